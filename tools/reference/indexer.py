"""Which compressed entries a query reads: index scores, candidate blocks, top-k."""

from __future__ import annotations

import torch
from torch import Tensor

from .checkpoint import Weights
from .config import Config
from .numerics import Arithmetic
from .rope import rotate

_ROWS = 64  # queries scored at a time


def index_keys(nx: Arithmetic, config: Config, w: Weights, latents: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """Keys [N, Di] of compressed entries, from their latents before rotation; `positions` = first token of each."""
    width = config.index_head_dim
    k = nx.linear_bf16(latents, w("wk.weight", width, config.head_dim))
    k = nx.rms_norm(k, w("k_norm.weight", width), config.rms_norm_eps)
    return nx.mxfp4(rotate(nx, k, positions, freq))


def index_queries(nx: Arithmetic, config: Config, w: Weights, qr: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """Queries [T, Hi, Di] from the attention's low-rank query qr [T, Rq]."""
    heads, width = config.index_n_heads, config.index_head_dim
    q = nx.linear_fp8(qr, w("wq_b.weight", heads * width, config.q_lora_rank))
    return nx.mxfp4(rotate(nx, q.unflatten(1, (heads, width)), positions, freq))


def head_weights(nx: Arithmetic, config: Config, w: Weights, x: Tensor) -> Tensor:
    """Signed weights [T, Hi]."""
    heads = config.index_n_heads
    scale = torch.tensor(config.index_head_dim**-0.5 * heads**-0.5, dtype=torch.float32)
    return nx.bf16(nx.linear_bf16(x, w("weights_proj.weight", heads, config.hidden_size)) * scale)


def visible_entries(positions: Tensor, ratio: int) -> Tensor:
    """Number of entries a query at each position may see: those whose last token is not after it."""
    return (positions + 1) // ratio


def index_scores(nx: Arithmetic, q: Tensor, g: Tensor, keys: Tensor, n_visible: Tensor) -> Tensor:
    """[T, N]: sum over heads of g * ReLU(q . k), rounded to bf16 at three points; -inf where not visible."""
    parts = []
    for qs, gs in zip(q.split(_ROWS), g.split(_ROWS)):
        dots = nx.bf16(nx.matmul(qs, keys.T))  # [rows, Hi, N]
        parts.append(nx.bf16(nx.sum(nx.bf16(dots.relu() * gs[..., None]), 1)))
    hidden = torch.arange(len(keys)) >= n_visible[:, None]
    return torch.cat(parts).masked_fill(hidden, -torch.inf)


def candidate_mask(scores: Tensor, n_visible: Tensor, block: int, n_blocks_max: int) -> Tensor:
    """bool [T, N]: entries inside the best blocks of `block` entries. A block scores as its best visible entry; the one
    with the newest visible entry is always in; blocks without a visible entry never are."""
    n_entries = scores.shape[1]
    n_blocks = -(-n_entries // block)
    padded = torch.nn.functional.pad(scores, (0, n_blocks * block - n_entries), value=-torch.inf)
    best = padded.unflatten(1, (n_blocks, block)).amax(-1)
    newest = (n_visible - 1).clamp(min=0) // block
    seeing = n_visible > 0
    best[seeing, newest[seeing]] = torch.inf
    kept = top_k(best, min(n_blocks_max, n_blocks))
    blocks = torch.zeros(len(scores), n_blocks + 1, dtype=torch.bool)
    blocks.scatter_(1, torch.where(kept < 0, n_blocks, kept), True)
    return blocks[:, :n_blocks].repeat_interleave(block, 1)[:, :n_entries]


def top_k(scores: Tensor, k: int) -> Tensor:
    """int64 [T, k]: the k best columns of each row, ascending, then -1. -inf is never picked; ties: lowest column."""
    k_here = min(k, scores.shape[1])
    order = scores.sort(dim=1, descending=True, stable=True).indices[:, :k_here]
    none = scores.shape[1]
    picked = torch.where(scores.gather(1, order) == -torch.inf, none, order).sort(dim=1).values
    picked = torch.where(picked == none, -1, picked)
    return torch.nn.functional.pad(picked, (0, k - k_here), value=-1)
