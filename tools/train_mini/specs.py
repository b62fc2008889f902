"""Every tensor of the model: name, shape, how it is stored, how it starts and which optimizer moves it.

Tensors of one kind are stacked over the layers that have them, so that quantisers and optimizer run once per kind.
`python -m train_mini.specs DIR` prints the bytes of the checkpoint that DIR/config.json describes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from reference.config import Config
from reference.engram_hash import hash_plans


@dataclass(frozen=True)
class Stack:
    """`names` are checkpoint names in the order of the stack; the parameter is [*lead, *shape].

    storage    fp8 (32x32 tiles), fp4 (rows of 32), rows8 (FP8 table rows), bf16 or f32
    optimizer  muon, adam, table and index (adam with rates of their own), router (moved by load, not by gradient)
    init       standard deviation, or a constant in `value`
    """

    key: str
    names: tuple[str, ...]
    lead: tuple[int, ...]
    shape: tuple[int, ...]
    storage: str
    optimizer: str = "adam"
    init: float = 0.0
    value: float = 0.0

    @property
    def n_bytes(self) -> int:
        n = math.prod(self.shape)
        columns = self.shape[-1]
        per_tensor = {
            "fp8": lambda: n + math.prod(self.shape[:-1]) // 32 * (columns // 32),
            "fp4": lambda: n // 2 + n // 32,
            "rows8": lambda: n + n // 32,
            "bf16": lambda: 2 * n,
            "f32": lambda: 4 * n,
        }[self.storage]()
        return per_tensor * len(self.names)


class Specs:
    """All stacks of one config: `backbone` and `drafter`, by key."""

    def __init__(self, config: Config):
        self.config = config
        self.backbone = {s.key: s for s in self._backbone()}
        self.drafter = {s.key: s for s in self._drafter()}

    def all(self) -> dict[str, Stack]:
        return self.backbone | self.drafter

    def _backbone(self) -> Iterator[Stack]:
        c = self.config
        d, n = c.hidden_size, c.num_hidden_layers
        yield Stack("embed", ("embed.weight",), (), (c.vocab_size, d), "bf16", init=0.5)
        yield Stack("head", ("head.weight",), (), (c.vocab_size, d), "bf16", init=0.5 * d**-0.5)
        yield Stack("norm", ("norm.weight",), (), (d,), "bf16", value=1.0)
        yield from self._blocks("", [f"layers.{i}." for i in range(n)], c.n_routed_experts)
        yield from self._sources()
        yield from self._engram()

    def _blocks(self, key: str, prefixes: list[str], n_experts: int) -> Iterator[Stack]:
        """What every layer and every draft stage has."""
        c = self.config
        d, s, heads, width = c.hidden_size, c.hc_mult, c.num_attention_heads, c.head_dim
        rank, low, inner = c.q_lora_rank, c.o_groups * c.o_lora_rank, c.moe_intermediate_size
        n = len(prefixes)

        def stack(name: str, shape: tuple[int, ...], storage: str, suffix: str = "", **more) -> Stack:
            return Stack(key + name, tuple(p + name + suffix for p in prefixes), (n,), shape, storage, **more)

        def matrix(name: str, rows: int, columns: int, gain: float = 1.0) -> Stack:
            init = gain * columns**-0.5
            return stack(name, (rows, columns), "fp8", ".weight", optimizer="muon", init=init)

        def norm(name: str, width: int) -> Stack:
            return stack(name, (width,), "bf16", ".weight", value=1.0)

        yield norm("attn_norm", d)
        yield norm("ffn_norm", d)
        for site in ("attn", "ffn"):
            yield stack(f"hc_{site}_fn", ((2 + s) * s, s * d), "f32", init=0.02)
            yield stack(f"hc_{site}_base", ((2 + s) * s,), "f32")
            yield stack(f"hc_{site}_scale", (3,), "f32", value=0.1)
        yield matrix("attn.wq_a", rank, d)
        yield norm("attn.q_norm", rank)
        yield matrix("attn.wq_b", heads * width, rank)
        yield matrix("attn.wkv", width, d)
        yield norm("attn.kv_norm", width)
        yield matrix("attn.wo_a", low, heads * width // c.o_groups)
        yield matrix("attn.wo_b", d, low, gain=0.5)
        yield stack("attn.attn_sink", (heads,), "f32")
        yield stack("ffn.gate", (n_experts, d), "bf16", ".weight", init=d**-0.5)
        yield stack("ffn.gate.bias", (n_experts,), "f32", optimizer="router")
        for name, rows, columns, gain in (("w1", inner, d, 1), ("w3", inner, d, 1), ("w2", d, inner, 0.5)):
            names = tuple(f"{p}ffn.experts.{e}.{name}.weight" for p in prefixes for e in range(n_experts))
            shape, init = (rows, columns), gain * columns**-0.5
            yield Stack(f"{key}ffn.experts.{name}", names, (n, n_experts), shape, "fp4", "muon", init)
            yield matrix(f"ffn.shared_experts.{name}", rows, columns, gain)

    def _sources(self) -> Iterator[Stack]:
        c = self.config
        d, width, index_width = c.hidden_size, c.head_dim, c.index_head_dim

        def stack(name: str, layers: list[int], shape: tuple[int, ...], storage: str = "bf16", **more) -> Stack:
            names = tuple(f"layers.{i}.attn.{name}.weight" for i in layers)
            return Stack(name, names, (len(layers),), shape, storage, **more)

        kv = list(c.kv_source_layer_ids)
        gated = [i for i in kv if c.compress_ratios[i] > 1]
        index = list(c.index_source_layer_ids)
        if kv:
            yield stack("compressor.wkv", kv, (width, d), optimizer="muon", init=d**-0.5)
            yield stack("compressor.norm", kv, (width,), value=1.0)
            yield stack("indexer.wk", kv, (index_width, width), optimizer="index", init=width**-0.5)
            yield stack("indexer.k_norm", kv, (index_width,), optimizer="index", value=1.0)
        if gated:
            yield stack("compressor.wgate", gated, (width, d), optimizer="muon", init=0.3 * d**-0.5)
        if index:
            rows = c.index_n_heads * index_width
            init = c.q_lora_rank**-0.5
            yield stack("indexer.wq_b", index, (rows, c.q_lora_rank), "fp8", optimizer="index", init=init)
            yield stack("indexer.weights_proj", index, (c.index_n_heads, d), optimizer="index", init=d**-0.5)

    def _engram(self) -> Iterator[Stack]:
        c = self.config
        layers = list(c.engram_layer_ids)
        if not layers:
            return
        d, s = c.hidden_size, c.hc_mult
        columns = (c.engram_max_ngram_size - 1) * c.engram_n_heads * c.engram_head_dim
        for i, plan in zip(layers, hash_plans(c.text)):
            shape = (plan.n_rows, c.engram_head_dim)
            yield Stack(f"engram.embed.{i}", (f"layers.{i}.engram.embed.weight",), (), shape, "rows8", "table", 0.3)
        names = tuple(f"layers.{i}.engram." for i in layers)
        shape = ((s + 1) * d, columns)
        wkv = tuple(n + "wkv.weight" for n in names)
        yield Stack("engram.wkv", wkv, (len(layers),), shape, "fp8", "muon", columns**-0.5)
        for part in ("q_weight", "k_weight"):
            yield Stack("engram." + part, tuple(n + part for n in names), (len(layers),), (s, d), "bf16", value=1.0)

    def _drafter(self) -> Iterator[Stack]:
        c = self.config
        n = c.num_nextn_predict_layers
        if n == 0:
            return
        d, rank, vocab = c.hidden_size, c.dspark_markov_rank, c.vocab_size
        n_taps, last = len(c.dspark_target_layer_ids), f"mtp.{n - 1}."
        yield from self._blocks("mtp/", [f"mtp.{i}." for i in range(n)], c.dspark_n_routed_experts)
        init = (n_taps * d) ** -0.5
        yield Stack("mtp/main_proj", ("mtp.0.main_proj.weight",), (), (d, n_taps * d), "fp8", "muon", init)
        yield Stack("mtp/main_norm", ("mtp.0.main_norm.weight",), (), (d,), "bf16", value=1.0)
        yield Stack("mtp/norm", (last + "norm.weight",), (), (d,), "bf16", value=1.0)
        markov = last + "markov_head."
        yield Stack("mtp/markov.embed", (markov + "embed.weight",), (), (vocab, rank), "bf16", init=1.0)
        yield Stack("mtp/markov.head", (markov + "head.weight",), (), (vocab, rank), "bf16", init=0.02)
        proj = last + "confidence_head.proj.weight"
        yield Stack("mtp/confidence", (proj,), (), (1, d + rank), "bf16", init=0.02)


def initial_parameters(specs: Specs, seed: int) -> dict[str, Tensor]:
    """float32 parameters; every stack has its own generator, so adding one does not change the others."""
    parameters = {}
    for i, stack in enumerate(specs.all().values()):
        full = (*stack.lead, *stack.shape)
        if stack.init:
            generator = torch.Generator().manual_seed(seed * 1_000_003 + i)
            parameters[stack.key] = torch.randn(full, generator=generator) * stack.init
        else:
            parameters[stack.key] = torch.full(full, stack.value)
    for key, base in parameters.items():
        if key.endswith("_base"):
            _start_mixing(base, specs.config.hc_mult, site=key.endswith("ffn_base"))
    return parameters


def _start_mixing(base: Tensor, s: int, site: bool) -> None:
    """Streams start unmixed (comb near the identity, post 1); each site reads mostly one stream, in turn."""
    for layer in range(len(base)):
        # A site's `pre` is read one site later.
        reader = (2 * layer + site + 1) % s
        base[layer, :s] = -2.4
        base[layer, reader] = 1.1
        base[layer, 2 * s :].view(s, s).fill_diagonal_(4.0)


def count_bytes(config: Config) -> dict[str, int]:
    """Bytes of tensor data by part of the model."""
    specs = Specs(config)
    parts: dict[str, int] = {}
    for key, stack in specs.all().items():
        group = "drafter" if key.startswith("mtp/") else key.split(".")[0] if "." in key else key
        if "experts" in key and group != "drafter":
            group = "experts"
        if key.startswith("hc_"):
            group = "mhc"
        parts[group] = parts.get(group, 0) + stack.n_bytes
    return parts


def main() -> None:
    config = Config.read(Path(sys.argv[1]))
    parts = count_bytes(config)
    for name, size in sorted(parts.items(), key=lambda item: -item[1]):
        print(f"{name:12} {size:12,}")
    n_values = sum(math.prod(s.shape) * len(s.names) for s in Specs(config).all().values())
    n_tensors = sum(len(s.names) for s in Specs(config).all().values())
    tokenizer = 600_000
    header = 200 * n_tensors  # names, shapes and offsets, plus the shard index
    total = sum(parts.values())
    print(f"tensors {total:,} B, {n_values / 1e6:.1f}M values")
    print(f"with headers and index (~{header:,}) and a tokenizer of {tokenizer:,}: {total + header + tokenizer:,}")


if __name__ == "__main__":
    main()
