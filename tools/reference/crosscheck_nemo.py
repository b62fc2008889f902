"""Compares the reference with a third party's implementation of the same model, on any checkpoint.

python -m reference.crosscheck_nemo --model DIR --input FILE.jsonl --dump-logits FILE.safetensors
                                    [--against FILE.safetensors]

Run from tools/ in a scratch environment (see requirements-reference.txt): nemo-automodel 0.7.0 (installed without its
dependencies), transformers 5.18.0, pillow 13.0.0, torch 2.15.0. It is a training code, run here on the CPU with its own
config, weight loading, token map, masks, routing and layer order. What the released model rounds and a training
code does not is added from outside, with nothing taken from our reference:

* FP8 activations at the inputs of wq_a, wq_b, wkv, wo_b, indexer.wq_b, engram.wkv and every expert matrix
* routed and shared experts summed in float32, one rounding
* attention and index scores as the release's kernels round them (the library has these for GPUs only)
* ties of top-k to the lowest index; sums of matrix products in float64
* the candidate filter applies to index sources that share the candidate source's keys (the library: to all later ones,
  and fails if such a layer is a kv source; the released model has none)
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from nemo_automodel.components.models.common import BackendConfig
from nemo_automodel.components.models.deepseek_v41 import attention as nemo_attention
from nemo_automodel.components.models.deepseek_v41.config import DeepseekV41Config
from nemo_automodel.components.models.deepseek_v41.model import DeepseekV41ForCausalLM
from nemo_automodel.components.models.deepseek_v41.quantization import quantize_cache
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

import compare_logits
from safetensors_io import Raw, SafetensorsFile, write_file

TORCH_VIEW = {"F8_E4M3": torch.float8_e4m3fn, "F8_E8M0": torch.float8_e8m0fnu, "BF16": torch.bfloat16, "I8": torch.int8}
FP8_INPUT = (
    "attn.wq_a", "attn.wq_b", "attn.wkv", "attn.wo_b", "attn.indexer.wq_b", "engram.wkv",
    "shared_experts.gate_proj", "shared_experts.up_proj", "shared_experts.down_proj",
)  # fmt: skip


def fp8(x: Tensor) -> Tensor:
    return quantize_cache(x, format="fp8", block_size=32)


def load(folder: Path) -> DeepseekV41ForCausalLM:
    config = json.loads((folder / "config.json").read_text())
    vision = config.get("vision_config") or {"num_hidden_layers": 0}
    nemo_config = DeepseekV41Config(
        text_config=config["text_config"], vision_config=vision, image_token_id=config["image_token_id"]
    )
    backend = BackendConfig(attn="eager", linear="torch", rms_norm="torch_fp32", experts="torch", dispatcher="torch")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    model = DeepseekV41ForCausalLM(nemo_config, backend=backend, tokenizer=tokenizer)
    state: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        if not file.name.startswith("model"):
            continue
        stored = SafetensorsFile(file)
        for name in stored.names():
            dtype, data = stored.raw(name)
            tensor = torch.from_numpy(np.array(data))
            state[name] = tensor.view(TORCH_VIEW[dtype]) if dtype in TORCH_VIEW else tensor
    missing, unexpected = model.load_state_dict(model.state_dict_adapter.from_hf(state), strict=False)
    missing = [name for name in missing if not name.endswith("bias_vl")]  # absent without a vision tower
    if missing or unexpected:
        raise ValueError(f"weights do not fit: missing {missing[:5]}, unexpected {unexpected[:5]}")
    if "rope_scaling" not in config["text_config"]:  # for the library that means the released YaRN
        for layer in model.model.layers.values():
            layer.attn.rotary_emb.original_length = 0
    return model.eval()


def add_roundings(model: DeepseekV41ForCausalLM) -> None:
    """Changes `model` and a few functions of torch and the library, for the rest of the process."""
    _accumulate_in_float64()
    torch.Tensor.topk = torch.topk = _stable_topk  # type: ignore[method-assign, assignment]
    text = model.config.text_config
    window = text.sliding_window
    nemo_attention.dsv4_sparse_attention = lambda *args, **_: sparse_attention(window, *args[:5])
    nemo_attention.indexer_scores = indexer_scores
    for name, module in model.named_modules():
        if name.endswith(FP8_INPUT):
            module.register_forward_pre_hook(lambda _, args: (fp8(args[0]), *args[1:]))
    for layer in model.model.layers.values():
        layer.attn.backend = SimpleNamespace(attn="tilelang")
        indexer = layer.attn.indexer
        if indexer is not None:
            indexer.attn_backend = "tilelang"
            keys_of = max(i for i in text.kv_source_layer_ids if i <= layer.attn.layer_idx)
            indexer.uses_candidates &= not indexer.owns_keys and keys_of == text.candidate_source_layer_id
        _quantise_experts(layer.ffn)


def _accumulate_in_float64() -> None:
    original_matmul, original_bmm = torch.Tensor.__matmul__, torch.bmm

    def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if bias is not None:
            raise ValueError("no linear of the text model has a bias")
        return original_matmul(x.double(), weight.double().T).to(x.dtype)

    F.linear = linear
    torch.bmm = lambda a, b: original_bmm(a.double(), b.double()).to(a.dtype)
    torch.Tensor.__matmul__ = lambda a, b: original_matmul(a.double(), b.double()).to(a.dtype)  # type: ignore


def _stable_topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, indices = x.sort(dim=dim, descending=largest, stable=True)
    return torch.return_types.topk((values.narrow(dim, 0, k), indices.narrow(dim, 0, k)))


def _quantise_experts(ffn: nn.Module) -> None:
    """FP8 inputs of w1, w3 and w2, and one rounding of the sum of routed and shared experts."""
    parts: dict[str, Tensor] = {}
    experts = ffn.experts
    activation, loop = experts.expert_activation_grouped, experts._forward_loop
    experts.expert_activation_grouped = lambda x, weight: fp8(activation(x, weight))

    def forward_loop(x: Tensor, *args: Any) -> Tensor:
        parts["routed"] = loop(fp8(x), *args)
        return parts["routed"]

    def keep_shared(_: nn.Module, args: Any, output: Tensor) -> None:
        parts["shared"] = output

    def combine(_: nn.Module, args: Any, output: Tensor) -> Tensor:
        return (parts["routed"] + parts["shared"].float()).to(output.dtype).view(output.shape)

    experts._forward_loop = forward_loop
    ffn.shared_experts.register_forward_hook(keep_shared)
    ffn.register_forward_hook(combine)


def indexer_scores(queries: Tensor, keys: Tensor, weights: Tensor, allowed: Tensor) -> Tensor:
    """The library's GPU kernel in torch: bf16 dots, bf16 products, float32 sum, bf16 result."""
    out = torch.empty(allowed.shape, dtype=torch.bfloat16)
    for t in range(queries.shape[1]):
        dots = torch.einsum("bhd,bkd->bhk", queries[:, t].double(), keys.double()).float().bfloat16()
        weighted = (dots.relu().float() * weights[:, t, :, None].float()).bfloat16()
        out[:, t] = weighted.double().sum(1).float().bfloat16()
    return out.masked_fill(~allowed, -torch.inf)


def sparse_attention(window: int, query: Tensor, kv: Tensor, sink: Tensor, indices: Tensor, scale: float) -> Tensor:
    """The library's GPU kernel in numpy, one query and 64 slots at a time; slot lists are the library's own.

    The list's window part has min(T, window) slots; it is widened to `window`, so that a row does not depend on T.
    """
    q, keys = query[0].double().numpy(), kv[0].double().numpy()
    n_tokens, heads, width = q.shape
    out = np.empty((n_tokens, heads, width), np.float32)
    used = min(n_tokens, window)
    gap = np.full(window - used, -1)
    for t in range(n_tokens):
        row = indices[0, t].numpy()
        slots = np.concatenate([_packed(row[:used]), gap, _packed(row[used:])])
        top = np.full(heads, -1e30, np.float32)
        total, value = np.zeros(heads), np.zeros((heads, width))
        for begin in range(0, len(slots), 64):
            block = slots[begin : begin + 64]
            block = block[block >= 0]
            if len(block) == 0:
                continue
            k = keys[block]
            score = (q[t] @ k.T).astype(np.float32) * np.float32(scale)
            new_top = np.maximum(top, score.max(1))
            p = np.exp(score - new_top[:, None])
            shrink = np.exp(top - new_top).astype(np.float64)
            rounded = torch.from_numpy(p).bfloat16().double().numpy()
            total = total * shrink + p.sum(1, dtype=np.float64)
            value = value * shrink[:, None] + rounded @ k
            top = new_top
        total += np.exp(sink.detach().float().numpy().reshape(heads) - top)
        out[t] = value.astype(np.float32) / total.astype(np.float32)[:, None]
    return torch.from_numpy(out).bfloat16()[None]


def _packed(row: np.ndarray) -> np.ndarray:
    return np.concatenate([row[row >= 0], row[row < 0]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--dump-logits", type=Path, required=True)
    parser.add_argument("--against", type=Path, help="logits of the reference for the same inputs")
    parser.add_argument("--tokens-max", type=int, default=10**9, help="leave out longer inputs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = load(args.model)
    add_roundings(model)
    dumped: dict[str, Raw] = {}
    for line in args.input.read_text().splitlines():
        item = json.loads(line)
        if len(item["tokens"]) > args.tokens_max:
            continue
        began = time.monotonic()
        with torch.no_grad():
            logits = model(torch.tensor([item["tokens"]])).logits[0]
        dumped[item["name"]] = Raw("F32", logits.numpy())
        print(f"{item['name']}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    write_file(args.dump_logits, dumped)
    if args.against:
        got, want = SafetensorsFile(args.dump_logits), SafetensorsFile(args.against)
        inputs = compare_logits.against_dump(got, want)
        compare_logits.print_summary(compare_logits.summarise(inputs, 40), inputs, [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
