"""The forward pass of a flat batch (rows.py), equal to tools/reference and fast.

Row-wise work is in parts.py; attention, index scores, selection and stream mixing come from `ops` (plain or Triton).
Everything returned is differentiable with respect to the float32 parameters unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from reference.config import Config, LayerPlan
from reference.engram_hash import hash_plans
from reference.rope import frequencies

from .grouped import mixture
from .numerics import Numerics, quantize_fp4_rows, quantize_fp8_tiles, straight_through
from .ops import Ops
from .parts import Parts
from .probe import IndexTask, Probe
from .rows import Rows
from .specs import Specs, Stack

Weights = dict[str, tuple[Tensor, ...]]
"""Prepared weights: key -> one tensor per stacked layer (a single one for tensors that are not stacked)."""


@dataclass
class Output:
    hidden: Tensor  # [R, d] normalised, input of the head
    loads: Tensor  # int64 [L, E] rows that each expert got
    index_loss: Tensor  # float32 scalar, mean over index sources (0 without a probe)
    recall: dict[int, Tensor]  # index source -> share of attention mass that its selection would keep
    taps: Tensor | None  # [R, n_taps*d], no gradient


@dataclass
class State:
    streams: Tensor  # [R, S, d]
    carried: Tensor  # [R, S]
    entries: dict[int, Tensor] = field(default_factory=dict)
    index_keys: dict[int, Tensor] = field(default_factory=dict)
    selected: dict[int, Tensor] = field(default_factory=dict)
    candidates: Tensor | None = None
    task: IndexTask | None = None
    tasks: list[IndexTask] = field(default_factory=list)


@dataclass
class Seen:
    """Which keys each row sees: window ranges by "layer is after the last kv source", entry ranges by ratio."""

    window: dict[bool, tuple[Tensor, Tensor]]
    entries: dict[int, tuple[Tensor, Tensor]]


class Model:
    def __init__(self, config: Config, nx: Numerics, ops: Ops, token_map: np.ndarray | None, device: str = "cpu"):
        self.config, self.nx, self.ops = config, nx, ops
        self.parts: Parts = ops.parts
        self.specs = Specs(config)
        self.freq = {ratio: frequencies(config, ratio).to(device) for ratio in (0, 1)}
        self.hashes = _HashTables(config, token_map, device) if config.engram_layer_ids else None

    def prepare(self, parameters: dict[str, Tensor], stacks: dict[str, Stack]) -> Weights:
        """Rounds every parameter as the checkpoint will store it; once per step."""
        return {key: self._prepare(stack, parameters[key]) for key, stack in stacks.items()}

    def _prepare(self, stack: Stack, p: Tensor) -> tuple[Tensor, ...]:
        value = self.ops.round_weight(stack.storage, p)
        return value.unbind(0) if stack.lead else (value,)

    def angles(self, ratio: int, position: Tensor) -> tuple[Tensor, Tensor]:
        angle = position.float()[:, None] * self.freq[min(ratio, 1)]
        return angle.cos(), angle.sin()

    def forward(
        self, w: Weights, rows: Rows, *, dense: bool = False, probe: Probe | None = None, want_taps: bool = False
    ) -> Output:
        """dense: compressed entries are all attended (index warm-up). probe: rows on which the indexer is trained."""
        c = self.config
        position = rows.position
        cos_sin = {ratio: self.angles(ratio, position) for ratio in (0, 1)}
        x = F.embedding(rows.tokens, w["embed"][0])
        carried = torch.zeros(len(x), c.hc_mult, device=x.device)
        carried[:, 0] = 1
        state = State(x[:, None, :].expand(-1, c.hc_mult, -1).contiguous(), carried)
        hashed = self.hashes.rows(rows.tokens, position) if self.hashes else []
        seen = Seen(
            {late: rows.window_range(c.sliding_window, late) for late in (False, True)},
            {ratio: rows.entry_range(ratio) for ratio in {p.ratio for p in c.layers} - {0}},
        )
        loads, taps = [], []
        for plan in c.layers:
            if plan.engram is not None:
                state.streams = self._engram(w, plan, state.streams, hashed[plan.engram])
            if want_taps and plan.layer in c.dspark_target_layer_ids:
                taps.append(self.parts.tap(state.streams.detach()))
            loads.append(self._layer(w, plan, state, rows, seen, cos_sin[min(plan.ratio, 1)], dense, probe))
        if state.task is not None:
            state.tasks.append(state.task)
        _, hidden = self.parts.final(state.streams, state.carried, w["norm"][0])
        losses = [task.loss() for task in state.tasks]
        return Output(
            hidden=hidden,
            loads=torch.stack(loads),
            index_loss=torch.stack(losses).mean() if losses else torch.zeros((), device=x.device),
            recall={task.layer: task.recall(c.index_topk) for task in state.tasks},
            taps=torch.cat(taps, 1) if taps else None,
        )

    def _engram(self, w: Weights, plan: LayerPlan, streams: Tensor, hashed: Tensor) -> Tensor:
        i = plan.engram
        looked_up = F.embedding(hashed, w[f"engram.embed.{plan.layer}"][0])
        return self.parts.engram(
            streams, looked_up, w["engram.wkv"][i], w["engram.q_weight"][i], w["engram.k_weight"][i]
        )

    def _layer(
        self, w: Weights, plan: LayerPlan, state: State, rows: Rows, seen: Seen, cos_sin: tuple[Tensor, Tensor],
        dense: bool, probe: Probe | None,
    ) -> Tensor:  # fmt: skip
        def attention(x: Tensor) -> Tensor:
            return self._attention(w, plan, state, rows, seen, x, cos_sin, dense, probe)

        state.streams, state.carried, load = self.block(
            w, "", plan.layer, state.streams, state.carried, attention, self.config.num_experts_per_tok
        )
        return load

    def block(self, w, key: str, i: int, streams: Tensor, carried: Tensor, attention, n_chosen: int):
        """Both sublayers around the given attention ([R, d] -> [R, d]); also a draft stage. Returns the new streams,
        the new carried mix and the experts' loads."""
        mix, expand = self.ops.mix, self.ops.expand
        names = ("fn", "base", "scale")
        x, pre, post, comb = mix(streams, carried, *(w[f"{key}hc_attn_{n}"][i] for n in names), w[key + "attn_norm"][i])
        streams = expand(attention(x), streams, post, comb)
        x, ffn_pre, post, comb = mix(streams, pre, *(w[f"{key}hc_ffn_{n}"][i] for n in names), w[key + "ffn_norm"][i])
        y, load = mixture(self.nx, self.parts, w, key, i, x, n_chosen)
        return expand(y, streams, post, comb), ffn_pre, load

    def _attention(
        self, w, plan: LayerPlan, state: State, rows: Rows, seen: Seen, x: Tensor, cos_sin, dense: bool, probe
    ) -> Tensor:
        parts, i, c = self.parts, plan.layer, self.config
        qr, q, window = self.project(w, "", i, x, cos_sin)
        w_range = seen.window[i > c.last_kv_source]
        sink = w["attn.attn_sink"][i]
        if plan.ratio == 0:
            o = self.ops.attend_window(q, window, w_range, sink)
        else:
            e_range = seen.entries[plan.ratio]
            if plan.mode == "full":
                self._compress(w, plan, state, x, rows)
            if plan.mode in ("full", "reindex"):
                self._index(w, plan, state, x, qr, rows, e_range, cos_sin, dense, probe)
            entries = state.entries[plan.kv_source]
            if state.task is not None:
                state.task.add_attention(q, window, w_range, c.sliding_window, entries, sink)
            if dense:
                o = self.ops.attend_dense(q, window, w_range, entries, e_range, plan.ratio, rows.length, sink)
            else:
                selected = state.selected[plan.index_source]
                o = self.ops.attend_selected(q, window, w_range, entries, selected, sink)
        return parts.project_output(o, w["attn.wo_a"][i], w["attn.wo_b"][i], *cos_sin)

    def project(self, w: Weights, key: str, i: int, x: Tensor, cos_sin: tuple[Tensor, Tensor]):
        names = ("wq_a", "q_norm", "wq_b", "wkv", "kv_norm")
        return self.parts.project(x, *(w[f"{key}attn.{n}"][i] for n in names), *cos_sin)

    def _compress(self, w: Weights, plan: LayerPlan, state: State, x: Tensor, rows: Rows) -> None:
        """Entries and index keys of this kv source. The indexer trains on a detached copy of the latents."""
        c, parts, ratio = self.config, self.parts, plan.ratio
        i = list(c.kv_source_layer_ids).index(plan.layer)
        wkv, norm = w["compressor.wkv"][i], w["compressor.norm"][i]
        if ratio == 1:
            latents = parts.compress1(x, wkv, norm)
        else:
            gated = [s for s in c.kv_source_layer_ids if c.compress_ratios[s] > 1].index(plan.layer)
            latents = parts.compress2(x, wkv, w["compressor.wgate"][gated], norm)
        cos_sin = self.angles(ratio, rows.position[::ratio])
        state.entries[plan.layer] = parts.entries(latents, *cos_sin)
        keys = parts.index_keys(latents.detach(), w["indexer.wk"][i], w["indexer.k_norm"][i], *cos_sin)
        state.index_keys[plan.layer] = keys

    def _index(self, w, plan, state: State, x, qr, rows: Rows, e_range, cos_sin, dense: bool, probe) -> None:
        """Selected entries of this index source, from detached inputs; starts its probe task."""
        c, parts = self.config, self.parts
        i = list(c.index_source_layer_ids).index(plan.layer)
        keys = state.index_keys[plan.kv_source]
        q, g = parts.index_queries(
            x.detach(), qr.detach(), w["indexer.wq_b"][i], w["indexer.weights_proj"][i], *cos_sin
        )
        if state.task is not None:
            state.tasks.append(state.task)
            state.task = None
        if probe is not None:
            state.task = IndexTask(plan.layer, probe, q, g, keys, e_range, rows.length // plan.ratio)
        if dense:
            return
        with torch.no_grad():
            n_seq = len(rows.tokens) // rows.length
            scores = self.ops.index_scores(q.detach(), g.detach(), keys.detach(), n_seq, plan.ratio)
            base = torch.arange(len(x), device=x.device, dtype=torch.int32) // rows.length * scores.shape[1]
            lo, hi = e_range[0] - base, e_range[1] - base
            if plan.makes_candidates:
                state.candidates = self.ops.candidate_blocks(
                    scores, lo, hi, c.candidate_block_size, c.candidate_topk_blocks
                )
            candidates = state.candidates if plan.uses_candidates else None
            picked = self.ops.select(scores, lo, hi, c.index_topk, candidates, c.candidate_block_size)
            state.selected[plan.layer] = torch.where(picked < 0, -1, picked + base[:, None]).contiguous()


def round_weight(nx: Numerics, storage: str, p: Tensor) -> Tensor:
    """A float32 parameter as stored: on the grid of its storage, straight-through."""
    if storage == "fp8":
        return straight_through(quantize_fp8_tiles(p), p).to(nx.dtype)
    if storage == "fp4":
        return straight_through(quantize_fp4_rows(p), p).to(nx.dtype)
    return nx.store(p) if storage == "bf16" else p  # table rows are rounded after the look-up


class _HashTables:
    """Engram rows of a flat batch: reference/engram_hash.hash_rows for every document at once."""

    def __init__(self, config: Config, token_map: np.ndarray, device: str):
        self.token_map = torch.from_numpy(token_map).to(device)
        self.pad = int(token_map[config.engram_pad_token_id])
        self.plans = [
            tuple(torch.from_numpy(np.asarray(a, np.int64)).to(device) for a in plan)
            for plan in hash_plans(config.text)
        ]

    def rows(self, tokens: Tensor, position: Tensor) -> list[Tensor]:
        """int64 [R, columns] per Engram layer."""
        history = self.shifted(self.token_map[tokens], position)
        return [self.hash(plan, history) for plan in self.plans]

    def shifted(self, compressed: Tensor, position: Tensor) -> list[Tensor]:
        ngram = len(self.plans[0][0])
        result = []
        for shift in range(ngram):
            moved = compressed.roll(shift)
            result.append(torch.where(position >= shift, moved, self.pad))
        return result

    @staticmethod
    def hash(plan: tuple[Tensor, ...], history: list[Tensor]) -> Tensor:
        multipliers, primes, offsets = plan
        mixed = history[0] * multipliers[0]
        columns = []
        for shift in range(1, len(history)):
            mixed = mixed ^ (history[shift] * multipliers[shift])
            columns.append(mixed[:, None] % primes[shift - 1])
        return torch.cat(columns, 1) + offsets
