"""Between a checkpoint folder in the released format and the trainer's stacked parameters; fingerprints of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import weight_formats as formats
from reference.checkpoint import Checkpoint
from reference.engram_hash import hash_plans, token_map
from safetensors_io import Raw, write_sharded

from .specs import Specs, Stack


def load_parameters(folder: Path, specs: Specs) -> dict[str, Tensor]:
    """Every parameter as float32 (values lie on the stored grids, and rounding them again changes nothing)."""
    checkpoint = Checkpoint(folder)
    return {key: _load_stack(checkpoint, stack) for key, stack in specs.all().items()}


def _load_stack(checkpoint: Checkpoint, stack: Stack) -> Tensor:
    if stack.storage == "rows8":
        (name,) = stack.names
        return checkpoint.table_rows(name, np.arange(stack.shape[0])).float()
    values = [checkpoint(name, *stack.shape) for name in stack.names]
    return torch.stack(values).view(*stack.lead, *stack.shape).float()


def encoded(stack: Stack, parameter: Tensor) -> Iterator[tuple[str, Raw]]:
    """Stored tensors of one stack, in the order of its names."""
    values = parameter.detach().float().cpu().reshape(len(stack.names), *stack.shape).numpy()
    for name, value in zip(stack.names, values):
        if not np.isfinite(value).all():
            raise ValueError(f"tensor {name} has a value that is not finite")
        if stack.storage == "f32":
            yield name, Raw("F32", value)
        elif stack.storage == "bf16":
            yield name, Raw("BF16", formats.encode_bf16(value))
        else:
            encode, dtype = {
                "fp8": (formats.encode_fp8_tiles, "F8_E4M3"),
                "fp4": (formats.encode_fp4_rows, "I8"),
                "rows8": (formats.encode_fp8_rows, "F8_E4M3"),
            }[stack.storage]
            code, scale = encode(value)
            yield name, Raw(dtype, code)
            yield name.removesuffix("weight") + "scale", Raw("F8_E8M0", scale)


def write_checkpoint(
    folder: Path, config: dict[str, Any], specs: Specs, parameters: dict[str, Tensor], shard_bytes: int
) -> int:
    """config.json, weights and their index; returns the number of shards. The tokenizer is the caller's to copy."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = [t for key, stack in specs.all().items() for t in encoded(stack, parameters[key])]
    n_shards = write_sharded(folder, tensors, shard_bytes)
    (folder / "config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n")
    return n_shards


def complete_config(top: dict[str, Any], tokenizer: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray | None]:
    """The config with the numbers that follow from a tokenizer, and the token map (None without Engram)."""
    text = dict(top["text_config"])
    if not text["engram_layer_ids"]:
        return top, None
    classes = token_map(tokenizer, text["vocab_size"])
    text["engram_compressed_vocab_size"] = int(classes.max()) + 1
    text["engram_num_embeddings"] = [plan.n_rows for plan in hash_plans(text)]
    return {**top, "text_config": text}, classes


def config_fingerprint(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def fingerprint(config: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """SHA-256 over the config and the bytes of every tensor, by ascending name."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        digest.update(name.encode())
        digest.update(value.view(torch.uint8).numpy().tobytes() if value.dim() else value.numpy().tobytes())
    return digest.hexdigest()
