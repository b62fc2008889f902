"""The forward pass of the text model: all tokens of one sequence, from position 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from . import attention, indexer, mhc, moe
from .checkpoint import Checkpoint, Weights
from .config import Config, LayerPlan
from .engram import engram
from .engram_hash import DEAD, hash_plans, hash_rows, read_token_map
from .numerics import Arithmetic
from .rope import frequencies

Trace = dict[str, Tensor]
"""Intermediate values by name, `L{layer}/...`; rows are those the layer ran."""


@dataclass
class State:
    """What flows from layer to layer. Row i of every per-row tensor is position `first + i`."""

    streams: Tensor  # [rows, S, d]
    carried: Tensor  # [rows, S]   collapse weights from the previous FFN site
    first: int = 0
    entries: dict[int, Tensor] = field(default_factory=dict)  # kv source -> compressed KV [N, D]
    index_keys: dict[int, Tensor] = field(default_factory=dict)  # kv source -> [N, Di]
    selected: dict[int, Tensor] = field(default_factory=dict)  # index source -> [rows, K]
    candidates: Tensor | None = None  # [rows, N]

    @property
    def positions(self) -> Tensor:
        return torch.arange(self.first, self.first + len(self.streams))

    def drop_rows_before(self, first: int) -> None:
        cut = first - self.first
        self.streams, self.carried, self.first = self.streams[cut:], self.carried[cut:], first
        self.selected = {source: rows[cut:] for source, rows in self.selected.items()}
        if self.candidates is not None:
            self.candidates = self.candidates[cut:]


class Model:
    """weights is any `Weights`; token_map is int64 [vocab] (None in a model without Engram)."""

    def __init__(self, config: Config, weights: Weights, token_map: np.ndarray | None, nx: Arithmetic = Arithmetic()):
        self.config, self.weights, self.token_map, self.nx = config, weights, token_map, nx
        self.hash_plans = hash_plans(config.text)
        self.freq = {ratio: frequencies(config, ratio) for ratio in (0, 1, 2)}

    @classmethod
    def load(cls, folder: Path, nx: Arithmetic = Arithmetic()) -> Model:
        config = Config.read(folder)
        token_map = None
        if config.engram_layer_ids:
            token_map = read_token_map(folder, config.vocab_size, config.engram_compressed_vocab_size)
        return cls(config, Checkpoint(folder), token_map, nx)

    def forward(
        self,
        tokens: list[int],
        *,
        keep: int | None = None,
        is_image: Tensor | None = None,
        embeddings: Tensor | None = None,
        trace: Trace | None = None,
        forced: dict[int, tuple[Tensor, Tensor]] | None = None,
    ) -> Tensor:
        """Logits float32 [rows, V].

        keep        None: every layer runs every row. K: layers after the last kv source run the last K rows only and
                    see no window row before them (prefill tail `compact`); logits of those rows
        is_image    bool [T]: rows inside image spans (Engram off, image router bias)
        embeddings  bf16 values [T, d] instead of embedding rows
        trace       filled with intermediate values
        forced      layer -> (streams, carried): replaces that layer's input, to compare one layer at a time
        """
        c = self.config
        if is_image is None:
            is_image = torch.zeros(len(tokens), dtype=torch.bool)
        if embeddings is None:
            embeddings = self.weights("embed.weight", c.vocab_size, c.hidden_size)[torch.tensor(tokens)]
        carried = torch.zeros(len(tokens), c.hc_mult)
        carried[:, 0] = 1
        state = State(embeddings[:, None, :].repeat(1, c.hc_mult, 1), carried)
        rows = self._engram_rows(tokens, is_image)
        for plan in c.layers:
            if keep is not None and plan.layer == c.last_kv_source + 1:
                state.drop_rows_before(max(0, len(tokens) - keep))
            if forced and plan.layer in forced:
                state.streams, state.carried = forced[plan.layer]
            self._layer(plan, state, rows, is_image[state.first :], trace)
        h = mhc.collapse(self.nx, state.streams, state.carried)
        h = self.nx.rms_norm(h, self.weights("norm.weight", c.hidden_size), c.rms_norm_eps)
        logits = self.nx.linear_f32(h, self.weights("head.weight", c.vocab_size, c.hidden_size))
        _put(trace, "logits", logits)
        return logits

    def _engram_rows(self, tokens: list[int], is_image: Tensor) -> list[np.ndarray]:
        if self.token_map is None:
            return []
        compressed = np.where(is_image.numpy(), DEAD, self.token_map[tokens])
        pad = int(self.token_map[self.config.engram_pad_token_id])
        return [hash_rows(plan, compressed, pad) for plan in self.hash_plans]

    def _layer(
        self, plan: LayerPlan, state: State, engram_rows: list[np.ndarray], is_image: Tensor, trace: Trace | None
    ) -> None:
        nx, c, name = self.nx, self.config, f"L{plan.layer}/"
        w = self.weights.scope(f"layers.{plan.layer}.")
        streams = state.streams
        _put(trace, name + "streams_in", streams)
        _put(trace, name + "p_in", state.carried)
        if plan.engram is not None:
            rows = engram_rows[plan.engram][state.first :]
            streams = engram(nx, c, w.scope("engram."), streams, rows, is_image)
            _put(trace, name + "engram_rows", torch.from_numpy(rows))
            _put(trace, name + "engram_out", streams)
        if plan.layer in c.text.get("dspark_target_layer_ids", []):
            _put(trace, name + "tap", nx.bf16(nx.sum(streams, 1) / c.hc_mult))

        site = mhc.mix(nx, c, w, "attn", streams)
        x = nx.rms_norm(mhc.collapse(nx, streams, state.carried), w("attn_norm.weight", c.hidden_size), c.rms_norm_eps)
        _put_mix(trace, name + "attn_", site, x)
        y = self._attention(plan, state, w.scope("attn."), x, trace)
        _put(trace, name + "attn_out", y)
        streams = mhc.expand(nx, y, streams, site)

        ffn_site = mhc.mix(nx, c, w, "ffn", streams)
        x = nx.rms_norm(mhc.collapse(nx, streams, site.pre), w("ffn_norm.weight", c.hidden_size), c.rms_norm_eps)
        _put_mix(trace, name + "ffn_", ffn_site, x)
        chosen, weight = moe.route(nx, c, w.scope("ffn.gate."), x, is_image)
        y = moe.moe(nx, c, w.scope("ffn."), x, chosen, weight)
        _put(trace, name + "experts", chosen)
        _put(trace, name + "routing_weights", weight)
        _put(trace, name + "ffn_out", y)
        state.streams, state.carried = mhc.expand(nx, y, streams, ffn_site), ffn_site.pre
        _put(trace, name + "streams_out", state.streams)
        _put(trace, name + "p_out", state.carried)

    def _attention(self, plan: LayerPlan, state: State, w: Weights, x: Tensor, trace: Trace | None) -> Tensor:
        nx, c, name = self.nx, self.config, f"L{plan.layer}/"
        freq, positions = self.freq[plan.ratio], state.positions
        qr = attention.query_low_rank(nx, c, w, x)
        window = attention.window_kv(nx, c, w, x, positions, freq)
        _put(trace, name + "qr", qr)
        _put(trace, name + "window_kv", window)
        entries = selected = None
        if plan.ratio > 0:
            if plan.mode == "full":
                self._compress(plan, state, w, x, trace)
            if plan.mode in ("full", "reindex"):
                self._select(plan, state, w.scope("indexer."), x, qr, trace)
            entries, selected = state.entries[plan.kv_source], state.selected[plan.index_source]
        q = attention.queries(nx, c, w, qr, positions, freq)
        sink = w("attn_sink", c.num_attention_heads)
        o = attention.attend(nx, c, q, window, entries, selected, sink)
        return attention.project_output(nx, c, w, o, positions, freq)

    def _compress(self, plan: LayerPlan, state: State, w: Weights, x: Tensor, trace: Trace | None) -> None:
        """Fills state.entries and state.index_keys of this kv source (which always runs from position 0)."""
        nx, c, name, freq = self.nx, self.config, f"L{plan.layer}/", self.freq[plan.ratio]
        latents = attention.compressed_latents(nx, c, w.scope("compressor."), x, plan.ratio)
        starts = torch.arange(len(latents)) * plan.ratio
        keys = indexer.index_keys(nx, c, w.scope("indexer."), latents, starts, freq)
        state.entries[plan.layer] = nx.nvfp4(attention.rotate(nx, latents, starts, freq))
        state.index_keys[plan.layer] = keys
        _put(trace, name + "compressed_kv", state.entries[plan.layer])
        _put(trace, name + "index_k", keys)

    def _select(self, plan: LayerPlan, state: State, w: Weights, x: Tensor, qr: Tensor, trace: Trace | None) -> None:
        """Fills state.selected of this index source, and state.candidates if it publishes them."""
        nx, c, name = self.nx, self.config, f"L{plan.layer}/"
        q = indexer.index_queries(nx, c, w, qr, state.positions, self.freq[plan.ratio])
        g = indexer.head_weights(nx, c, w, x)
        n_visible = indexer.visible_entries(state.positions, plan.ratio)
        scores = indexer.index_scores(nx, q, g, state.index_keys[plan.kv_source], n_visible)
        _put(trace, name + "index_q", q)
        _put(trace, name + "index_scores", scores)
        if plan.makes_candidates:
            state.candidates = indexer.candidate_mask(
                scores, n_visible, c.candidate_block_size, c.candidate_topk_blocks
            )
        if plan.uses_candidates:
            scores = scores.masked_fill(~state.candidates, -torch.inf)
        state.selected[plan.layer] = indexer.top_k(scores, c.index_topk)
        _put(trace, name + "topk", state.selected[plan.layer])


def _put(trace: Trace | None, name: str, value: Tensor) -> None:
    if trace is not None:
        trace[name] = value


def _put_mix(trace: Trace | None, name: str, site: mhc.Mix, x: Tensor) -> None:
    for part, value in (("pre", site.pre), ("post", site.post), ("comb", site.comb), ("in", x)):
        _put(trace, name + part, value)
