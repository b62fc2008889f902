"""Text made by the model itself: batched decoding with caches, all sequences at the same position.

Prompts are forced token by token, so there is one loop and no prefill. On a GPU the step is captured once as a graph.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from reference.config import LayerPlan

from .losses import logits_of
from .model import Model, Weights


@dataclass
class Cache:
    """What one position leaves for the next; B sequences of at most `n` positions."""

    position: Tensor  # int64 scalar
    history: list[Tensor]  # compressed ids of the last tokens, newest first, each int64 [B]
    rings: list[Tensor] = field(default_factory=list)  # per layer [B, W, D]
    entries: dict[int, Tensor] = field(default_factory=dict)  # kv source -> [B, N, D]
    index_keys: dict[int, Tensor] = field(default_factory=dict)
    pending: dict[int, Tensor] = field(default_factory=dict)  # ratio-2 kv source -> x of the open group [B, d]
    selected: dict[int, Tensor] = field(default_factory=dict)
    candidates: Tensor | None = None


class Decoder:
    """One position at a time. `model` should not be compiled for these shapes: its parts run as they are."""

    def __init__(self, model: Model, w: Weights, n_seq: int, n_positions: int, device: str):
        self.model, self.w, self.n_seq, self.device = model, w, n_seq, device
        c, dtype = model.config, model.nx.dtype
        self.n_positions = n_positions
        ngram = len(model.hashes.plans[0][0]) if model.hashes else 1
        pad = model.hashes.pad if model.hashes else 0
        history = [torch.full((n_seq,), pad, device=device) for _ in range(ngram)]
        self.cache = Cache(torch.zeros((), dtype=torch.int64, device=device), history)
        for plan in c.layers:
            self.cache.rings.append(torch.zeros(n_seq, c.sliding_window, c.head_dim, dtype=dtype, device=device))
            if plan.mode == "full":
                n = -(-n_positions // plan.ratio)
                self.cache.entries[plan.layer] = torch.zeros(n_seq, n, c.head_dim, dtype=dtype, device=device)
                self.cache.index_keys[plan.layer] = torch.zeros(n_seq, n, c.index_head_dim, dtype=dtype, device=device)
                self.cache.pending[plan.layer] = torch.zeros(n_seq, c.hidden_size, dtype=dtype, device=device)
        ring = torch.arange(c.sliding_window, device=device, dtype=torch.int32)
        self.ring_slots = (
            ring[None, :] + torch.arange(n_seq, device=device, dtype=torch.int32)[:, None] * c.sliding_window
        )

    def step(self, tokens: Tensor) -> Tensor:
        """tokens int64 [B] at the cache's position -> logits float32 [B, V]; the position moves on."""
        model, c, cache, w = self.model, self.model.config, self.cache, self.w
        self.at = cache.position.expand(self.n_seq)
        cos_sin = {ratio: model.angles(ratio, self.at) for ratio in (0, 1)}
        hashed = self._hashed(tokens)
        x = F.embedding(tokens, w["embed"][0])
        streams = x[:, None, :].expand(-1, c.hc_mult, -1).contiguous()
        carried = torch.zeros(self.n_seq, c.hc_mult, device=self.device)
        carried[:, 0] = 1
        for plan in c.layers:
            if plan.engram is not None:
                streams = model._engram(w, plan, streams, hashed[plan.engram])

            def attention(x: Tensor, plan: LayerPlan = plan) -> Tensor:
                return self._attention(plan, x, cos_sin[min(plan.ratio, 1)])

            streams, carried, _ = model.block(w, "", plan.layer, streams, carried, attention, c.num_experts_per_tok)
        _, hidden = model.parts.final(streams, carried, w["norm"][0])
        cache.position += 1
        return logits_of(hidden, w["head"][0])

    def _hashed(self, tokens: Tensor) -> list[Tensor]:
        if self.model.hashes is None:
            return []
        hashes, history = self.model.hashes, self.cache.history
        for older, newer in zip(reversed(history[1:]), reversed(history[:-1])):
            older.copy_(newer)
        history[0].copy_(hashes.token_map[tokens])
        return [hashes.hash(plan, history) for plan in hashes.plans]

    def _attention(self, plan: LayerPlan, x: Tensor, cos_sin) -> Tensor:
        model, c, cache, w, i = self.model, self.model.config, self.cache, self.w, plan.layer
        qr, q, latent = model.project(w, "", i, x, cos_sin)
        ring = cache.rings[i]
        slot = (cache.position % c.sliding_window).view(1, 1, 1).expand(self.n_seq, 1, c.head_dim)
        ring.scatter_(1, slot, latent[:, None, :])
        seen = torch.arange(c.sliding_window, device=self.device) <= cache.position
        near = torch.where(seen, self.ring_slots, -1).contiguous()
        far = picked = None
        if plan.ratio > 0:
            if plan.mode == "full":
                self._compress(plan, x)
            if plan.mode in ("full", "reindex"):
                self._index(plan, x, qr, cos_sin)
            far, picked = cache.entries[plan.kv_source].flatten(0, 1), cache.selected[plan.index_source]
        o = model.ops.attend_lists(q, ring.flatten(0, 1), near, far, picked, w["attn.attn_sink"][i])
        return model.parts.project_output(o, w["attn.wo_a"][i], w["attn.wo_b"][i], *cos_sin)

    def _compress(self, plan: LayerPlan, x: Tensor) -> None:
        """Writes entry position // ratio every time; an incomplete one is overwritten before it is visible."""
        model, c, cache, w, ratio = self.model, self.model.config, self.cache, self.w, plan.ratio
        parts, i = model.parts, list(c.kv_source_layer_ids).index(plan.layer)
        wkv, norm = w["compressor.wkv"][i], w["compressor.norm"][i]
        if ratio == 1:
            latents = parts.compress1(x, wkv, norm)
        else:
            gated = [s for s in c.kv_source_layer_ids if c.compress_ratios[s] > 1].index(plan.layer)
            pair = torch.stack([cache.pending[plan.layer], x], 1).flatten(0, 1)
            latents = parts.compress2(pair, wkv, w["compressor.wgate"][gated], norm)
            cache.pending[plan.layer].copy_(x)
        entry = cache.position // ratio
        cos_sin = model.angles(ratio, (entry * ratio).expand(self.n_seq))
        keys = parts.index_keys(latents, w["indexer.wk"][i], w["indexer.k_norm"][i], *cos_sin)
        for buffer, value in ((cache.entries, parts.entries(latents, *cos_sin)), (cache.index_keys, keys)):
            at = entry.view(1, 1, 1).expand(self.n_seq, 1, value.shape[1])
            buffer[plan.layer].scatter_(1, at, value[:, None, :])

    def _index(self, plan: LayerPlan, x: Tensor, qr: Tensor, cos_sin) -> None:
        model, c, cache, w, nx = self.model, self.model.config, self.cache, self.w, self.model.nx
        i = list(c.index_source_layer_ids).index(plan.layer)
        q, g = model.parts.index_queries(x, qr, w["indexer.wq_b"][i], w["indexer.weights_proj"][i], *cos_sin)
        keys = cache.index_keys[plan.kv_source]
        dots = torch.bmm(q, keys.transpose(1, 2))
        scores = nx.store(nx.store(dots.relu().float() * g.float()[..., None]).float().sum(1))
        lo = torch.zeros(self.n_seq, dtype=torch.int32, device=self.device)
        hi = ((cache.position + 1) // plan.ratio).int().expand(self.n_seq).contiguous()
        if plan.makes_candidates:
            cache.candidates = model.ops.candidate_blocks(
                scores, lo, hi, c.candidate_block_size, c.candidate_topk_blocks
            )
        candidates = cache.candidates if plan.uses_candidates else None
        picked = model.ops.select(scores, lo, hi, c.index_topk, candidates, c.candidate_block_size)
        base = torch.arange(self.n_seq, device=self.device, dtype=torch.int32)[:, None] * keys.shape[1]
        cache.selected[plan.layer] = torch.where(picked < 0, -1, picked + base).contiguous()


@torch.no_grad()
def generate(
    model: Model, w: Weights, prompts: list[list[int]], temperature: Tensor, n_positions: int, seed: int, device: str,
) -> Tensor:  # fmt: skip
    """Tokens int64 [B, n_positions] that begin with the prompts; temperature float32 [B], 0 is greedy.

    Nothing stops at EOS: the caller cuts there.
    """
    n_seq = len(prompts)
    decoder = Decoder(model, w, n_seq, n_positions, device)
    forced = torch.full((n_seq, n_positions + 1), -1)
    for i, prompt in enumerate(prompts):
        forced[i, : min(len(prompt), n_positions)] = torch.tensor(prompt[:n_positions])
    forced = forced.to(device)
    generator = torch.Generator(device).manual_seed(seed)
    tokens, wish = forced[:, 0].clone(), torch.empty(n_seq, dtype=torch.int64, device=device)
    noise = torch.zeros(n_seq, model.config.vocab_size, device=device)
    out = torch.empty(n_seq, n_positions, dtype=torch.int64, device=device)

    def one() -> None:
        logits = decoder.step(tokens)
        wish.copy_((logits + temperature[:, None] * noise).argmax(1))

    graph = None
    for position in range(n_positions):
        out[:, position] = tokens
        # Gumbel noise: argmax(logits + T * noise) samples softmax(logits / T).
        noise.exponential_(generator=generator).log_().neg_()
        if graph is None:
            one()
            if device != "cpu" and position == 2:
                graph = _capture(one, decoder)
        else:
            graph.replay()
        following = forced[:, position + 1]
        tokens.copy_(torch.where(following < 0, wish, following))
    return out


def _capture(one, decoder: Decoder) -> torch.cuda.CUDAGraph | None:
    """The step as a graph. Capturing runs nothing, so the caches keep their state."""
    graph = torch.cuda.CUDAGraph()
    try:
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            one()
        return graph
    except Exception as error:  # slower, not wrong
        print(f"decoding runs without a graph: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return None
