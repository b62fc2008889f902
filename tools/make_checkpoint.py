#!/usr/bin/env python3
"""Writes a random checkpoint in the released format, for tests. numpy and the standard library only.

make_checkpoint.py (--preset NAME | --config FILE.json) --out DIR [--seed S] [--inputs LENGTH,LENGTH,...]

A config file is a released config.json or a bare text_config; presets lie in tools/presets/. The class count of the
token map and the Engram table sizes are computed and written to config.json. The same seed gives the same bytes.

The weights are not those of a trained model but are chosen so that mistakes show: very small inputs of norms (eps
matters), a block of 32 query channels that is 2^-12 in size with 2^12 in the weight behind it, all-zero blocks, scales
that differ from tile to tile, SwiGLU inputs beyond the clamp, signed index weights, sinks, biases and mixing
coefficients far from their neutral values.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import weight_formats as formats
from reference.engram_hash import hash_plans, token_map
from safetensors_io import Raw, write_sharded
from tiny_tokenizer import make_tokenizer, tokenizer_config

PRESETS = Path(__file__).parent / "presets"
Named = Iterator[tuple[str, Raw]]


class Draw:
    """Random arrays; each tensor has its own generator, so adding one does not change the others."""

    def __init__(self, seed: int):
        self.seed = seed

    def generator(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def normal(self, name: str, shape: tuple[int, ...], std: float = 1.0) -> np.ndarray:
        return self.generator(name).standard_normal(shape, dtype=np.float32) * np.float32(std)

    def uniform(self, name: str, shape: tuple[int, ...], low: float, high: float, signed: bool = False) -> np.ndarray:
        g = self.generator(name)
        value = g.uniform(low, high, shape).astype(np.float32)
        return value * g.choice(np.float32([-1, 1]), shape) if signed else value

    def matrix(self, name: str, n: int, k: int, gain: float) -> np.ndarray:
        """[n, k] that maps unit inputs to outputs of size `gain`; 1 tile of 32x32 in 8 is 4 times larger or smaller."""
        w = self.normal(name, (n, k), gain / k**0.5)
        tiles = (-(-n // 32), -(-k // 32))
        factor = self.generator(name + "/tiles").choice(np.float32([0.25, 4.0] + [1.0] * 14), tiles)
        return w * factor.repeat(32, 0)[:n].repeat(32, 1)[:, :k]


def bf16(name: str, value: np.ndarray) -> Named:
    yield name, Raw("BF16", formats.encode_bf16(value))


def f32(name: str, value: np.ndarray) -> Named:
    yield name, Raw("F32", value.astype(np.float32))


def fp8(name: str, value: np.ndarray) -> Named:
    code, scale = formats.encode_fp8_tiles(value)
    yield f"{name}.weight", Raw("F8_E4M3", code)
    yield f"{name}.scale", Raw("F8_E8M0", scale)


def fp4(name: str, value: np.ndarray) -> Named:
    pairs, scale = formats.encode_fp4_rows(value)
    yield f"{name}.weight", Raw("I8", pairs)
    yield f"{name}.scale", Raw("F8_E8M0", scale)


class TensorPlan:
    """Every tensor of a checkpoint, in the order it is written."""

    def __init__(self, config: dict[str, Any], draw: Draw):
        self.c, self.draw = config["text_config"], draw
        self.vision: dict[str, Any] | None = config.get("vision_config")

    def tensors(self) -> Named:
        c, draw = self.c, self.draw
        d, vocab = c["hidden_size"], c["vocab_size"]
        yield from bf16("embed.weight", draw.normal("embed", (vocab, d)))
        for layer in range(c["num_hidden_layers"]):
            yield from self.layer(layer)
        yield from self.norm("norm", d)
        yield from bf16("head.weight", draw.normal("head", (vocab, d), 4 / d**0.5))
        for stage in range(c["num_nextn_predict_layers"]):
            yield from self.draft_stage(stage)
        if self.vision:
            yield from self.vision_tower(self.vision)

    def norm(self, name: str, width: int) -> Named:
        yield from bf16(f"{name}.weight", self.draw.uniform(name, (width,), 0.6, 1.2))

    def layer(self, layer: int) -> Named:
        c, name = self.c, f"layers.{layer}."
        if layer in c["engram_layer_ids"]:
            yield from self.engram(name + "engram.", c["engram_num_embeddings"][c["engram_layer_ids"].index(layer)])
        yield from self.block(name, c["n_routed_experts"])
        if layer in c["kv_source_layer_ids"]:
            yield from self.compressor(name + "attn.", c["compress_ratios"][layer])
        if layer in c["index_source_layer_ids"]:
            yield from self.index_query(name + "attn.indexer.")

    def block(self, name: str, n_experts: int) -> Named:
        """What every layer and every draft stage has."""
        c = self.c
        d, s = c["hidden_size"], c["hc_mult"]
        yield from self.norm(name + "attn_norm", d)
        yield from self.norm(name + "ffn_norm", d)
        for site in ("attn", "ffn"):
            yield from self.mixing(f"{name}hc_{site}_", (2 + s) * s, s * d)
        yield from self.attention(name + "attn.")
        yield from self.moe(name + "ffn.", n_experts)

    def mixing(self, name: str, n: int, k: int) -> Named:
        yield from f32(name + "fn", self.draw.normal(name + "fn", (n, k), 0.5 / k**0.5))
        yield from f32(name + "base", self.draw.normal(name + "base", (n,), 1.7))
        yield from f32(name + "scale", self.draw.uniform(name + "scale", (3,), 0.5, 2.5, signed=True))

    def attention(self, name: str) -> Named:
        c, draw = self.c, self.draw
        d, heads, width, rank = c["hidden_size"], c["num_attention_heads"], c["head_dim"], c["q_lora_rank"]
        groups, low = c["o_groups"], c["o_lora_rank"]
        tiny = 2.0**-10  # rms-norm inputs of about 1e-3
        yield from fp8(name + "wq_a", draw.matrix(name + "wq_a", rank, d, tiny))
        q_norm = draw.uniform(name + "q_norm", (rank,), 0.6, 1.2)
        q_norm[self.small_block()] *= 2.0**-12
        yield from bf16(name + "q_norm.weight", q_norm)
        yield from fp8(name + "wq_b", self.behind_q_norm(name + "wq_b", heads * width))
        yield from fp8(name + "wkv", draw.matrix(name + "wkv", width, d, tiny))
        yield from self.norm(name + "kv_norm", width)
        yield from fp8(name + "wo_a", draw.matrix(name + "wo_a", groups * low, heads * width // groups, 1.1))
        wo_b = draw.matrix(name + "wo_b", d, groups * low, 0.3)
        wo_b[-32:, :32] = 0
        yield from fp8(name + "wo_b", wo_b)
        yield from f32(name + "attn_sink", draw.normal(name + "attn_sink", (heads,), 1.4))

    def small_block(self) -> slice:
        """The 32 query channels that are 2^-12 in size."""
        return slice(32, 64) if self.c["q_lora_rank"] > 32 else slice(0, 32)

    def behind_q_norm(self, name: str, n: int) -> np.ndarray:
        w = self.draw.matrix(name, n, self.c["q_lora_rank"], 1.0)
        w[:, self.small_block()] *= 2.0**12
        return w

    def compressor(self, name: str, ratio: int) -> Named:
        c, draw = self.c, self.draw
        d, width, index_width = c["hidden_size"], c["head_dim"], c["index_head_dim"]
        wkv, wgate, wk = (name + n for n in ("compressor.wkv", "compressor.wgate", "indexer.wk"))
        yield from bf16(wkv + ".weight", draw.matrix(wkv, width, d, 2.0**-10))
        if ratio > 1:
            yield from bf16(wgate + ".weight", draw.matrix(wgate, width, d, 1.5))
        yield from self.norm(name + "compressor.norm", width)
        yield from bf16(wk + ".weight", draw.matrix(wk, index_width, width, 2.0**-10))
        yield from self.norm(name + "indexer.k_norm", index_width)

    def index_query(self, name: str) -> Named:
        c = self.c
        weights_proj = name + "weights_proj"
        yield from fp8(name + "wq_b", self.behind_q_norm(name + "wq_b", c["index_n_heads"] * c["index_head_dim"]))
        yield from bf16(
            weights_proj + ".weight", self.draw.matrix(weights_proj, c["index_n_heads"], c["hidden_size"], 1)
        )

    def moe(self, name: str, n_experts: int) -> Named:
        c, draw = self.c, self.draw
        d, inner = c["hidden_size"], c["moe_intermediate_size"]
        yield from bf16(name + "gate.weight", draw.normal(name + "gate", (n_experts, d), 1.5 / d**0.5))
        yield from f32(name + "gate.bias", draw.normal(name + "gate.bias", (n_experts,), 0.15))
        if self.vision:
            yield from f32(name + "gate.bias_vl", draw.normal(name + "gate.bias_vl", (n_experts,), 0.15))
        for e in range(n_experts):
            for matrix, value in self.expert(f"{name}experts.{e}.", d, inner, gain=2.2):
                value[e % len(value), :32] = 0  # one block without a scale of its own
                yield from fp4(matrix, value)
        for matrix, value in self.expert(name + "shared_experts.", d, inner, gain=3.0):
            yield from fp8(matrix, value)

    def expert(self, name: str, d: int, inner: int, gain: float) -> Iterator[tuple[str, np.ndarray]]:
        """`gain` puts part of the SwiGLU inputs beyond the clamp."""
        yield name + "w1", self.draw.matrix(name + "w1", inner, d, gain)
        yield name + "w3", self.draw.matrix(name + "w3", inner, d, gain)
        yield name + "w2", self.draw.matrix(name + "w2", d, inner, 0.03)

    def engram(self, name: str, n_rows: int) -> Named:
        c, draw = self.c, self.draw
        d, s, width = c["hidden_size"], c["hc_mult"], c["engram_head_dim"]
        columns = (c["engram_max_ngram_size"] - 1) * c["engram_n_heads"] * width
        table = draw.normal(name + "embed", (n_rows, width), 0.3)
        table *= 2.0 ** draw.generator(name + "embed/rows").integers(-2, 3, (n_rows, 1))
        table[::97, :32] = 0
        code, scale = formats.encode_fp8_rows(table)
        yield name + "embed.weight", Raw("F8_E4M3", code)
        yield name + "embed.scale", Raw("F8_E8M0", scale)
        yield from fp8(name + "wkv", draw.matrix(name + "wkv", (s + 1) * d, columns, 1.2))
        yield from bf16(name + "q_weight", draw.uniform(name + "q_weight", (s, d), 0.6, 1.8, signed=True))
        yield from bf16(name + "k_weight", draw.uniform(name + "k_weight", (s, d), 0.6, 1.8))

    def draft_stage(self, stage: int) -> Named:
        c, draw, name = self.c, self.draw, f"mtp.{stage}."
        d, rank, vocab = c["hidden_size"], c["dspark_markov_rank"], c["vocab_size"]
        yield from self.block(name, c["dspark_n_routed_experts"])
        if stage == 0:
            n_taps = len(c["dspark_target_layer_ids"])
            yield from fp8(name + "main_proj", draw.matrix(name + "main_proj", d, n_taps * d, 1.2))
            yield from self.norm(name + "main_norm", d)
        if stage == c["num_nextn_predict_layers"] - 1:
            yield from self.norm(name + "norm", d)
            markov, proj = name + "markov_head.", name + "confidence_head.proj.weight"
            yield from bf16(markov + "embed.weight", draw.normal(markov + "embed", (vocab, rank)))
            yield from bf16(markov + "head.weight", draw.normal(markov + "head", (vocab, rank), rank**-0.5))
            yield from bf16(proj, draw.normal(proj, (1, d + rank), (d + rank) ** -0.5))

    def vision_tower(self, v: dict[str, Any]) -> Named:
        draw, d, h, inner = self.draw, self.c["hidden_size"], v["hidden_size"], v["intermediate_size"]

        def linear(name: str, n: int, k: int, gain: float, bias: bool) -> Named:
            yield from bf16(f"{name}.weight", draw.normal(name, (n, k), gain / k**0.5))
            if bias:
                yield from bf16(f"{name}.bias", draw.normal(name + ".bias", (n,), 0.1))

        yield from linear("vision.patch_embed.proj", h, 3 * v["patch_size"] ** 2, 1.5, True)
        for i in range(v["num_hidden_layers"]):
            name = f"vision.blocks.{i}."
            yield from self.norm(name + "norm1", h)
            yield from self.norm(name + "norm2", h)
            yield from linear(name + "attn.wqkv", 3 * h, h, 1.5, True)
            yield from linear(name + "attn.wo", h, h, 0.5, True)
            yield from linear(name + "mlp.w1", 2 * inner, h, 1.5, False)
            yield from linear(name + "mlp.w2", h, inner, 0.5, False)
        yield from self.norm("vision.norm", h)
        yield from linear("aligner.w1", d, h * v["downsample_ratio"] ** 2, 1.5, True)
        yield from linear("aligner.w2", d, d, 1.5, True)
        for name in ("image_start", "image_end", "image_newline"):
            yield from bf16(name, draw.normal(name, (d,)))


def complete_config(given: dict[str, Any], tokenizer: dict[str, Any]) -> dict[str, Any]:
    """A released config.json from a full or bare one, with the computed Engram numbers."""
    top = dict(given) if "text_config" in given else {"text_config": given}
    text = {**top["text_config"], "model_type": "deepseek_v41_text"}
    if text["engram_layer_ids"]:
        classes = token_map(tokenizer, text["vocab_size"])
        text["engram_compressed_vocab_size"] = int(classes.max()) + 1
        text["engram_num_embeddings"] = [plan.n_rows for plan in hash_plans(text)]
    else:
        text.setdefault("engram_compressed_vocab_size", text["vocab_size"])
        text["engram_num_embeddings"] = []
    head = {
        "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "dtype": "bfloat16",
        "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "image_token_id": text["vocab_size"] - 1,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32],
            "scale_fmt": "ue8m0", "expert_dtype": "fp4",
        },
    }  # fmt: skip
    return {**head, **top, "text_config": text}


def write_inputs(path: Path, lengths: list[int], vocab_size: int, seed: int) -> None:
    """Random ids behind BOS, one line per length; parts of the second half repeat the first, so n-grams come back."""
    lines = []
    for length in lengths:
        g = np.random.default_rng([seed, length])
        tokens = np.concatenate([[0], g.integers(3, vocab_size, max(length - 1, 0))])[:length]
        half = length // 2
        for at in range(half, length - 8, 24):
            tokens[at : at + 8] = tokens[at - half + 1 : at - half + 9]
        lines.append(json.dumps({"name": f"len-{length}", "tokens": tokens.tolist()}))
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--preset", choices=sorted(p.stem for p in PRESETS.glob("*.json")))
    source.add_argument("--config", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", help="also write inputs.jsonl with random sequences of these lengths")
    args = parser.parse_args()

    given = json.loads((args.config or PRESETS / f"{args.preset}.json").read_text())
    vocab_size = given.get("text_config", given)["vocab_size"]
    tokenizer = make_tokenizer(vocab_size)
    config = complete_config(given, tokenizer)
    args.out.mkdir(parents=True, exist_ok=True)
    tensors = list(TensorPlan(config, Draw(args.seed)).tensors())
    total = sum(t.nbytes for _, t in tensors)
    n_shards = write_sharded(args.out, tensors, total // 2 + max(t.nbytes for _, t in tensors))
    files = {
        "config.json": config,
        "generation_config.json": {
            "bos_token_id": 0, "eos_token_id": 1, "do_sample": True, "temperature": 1.0, "top_p": 1.0,
        },
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": tokenizer_config(config["text_config"]["max_position_embeddings"]),
    }  # fmt: skip
    for name, content in files.items():
        (args.out / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    if args.inputs:
        write_inputs(args.out / "inputs.jsonl", [int(n) for n in args.inputs.split(",")], vocab_size, args.seed)
    print(f"{args.out}: {len(tensors)} tensors, {total / 1e6:.1f} MB, {n_shards} shards", file=sys.stderr)


if __name__ == "__main__":
    main()
