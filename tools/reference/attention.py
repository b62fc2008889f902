"""Attention over a sliding window plus selected compressed entries; one latent per token serves as key and value."""

from __future__ import annotations

import torch
from torch import Tensor

from .checkpoint import Weights
from .config import Config
from .numerics import Arithmetic
from .rope import rotate

_BLOCK = 64  # slots per step of the running softmax
_ROWS = 32  # queries attended at a time


def query_low_rank(nx: Arithmetic, config: Config, w: Weights, x: Tensor) -> Tensor:
    """qr [T, Rq]: input of wq_b and of the indexer's queries."""
    rank = config.q_lora_rank
    qr = nx.linear_fp8(x, w("wq_a.weight", rank, config.hidden_size))
    return nx.rms_norm(qr, w("q_norm.weight", rank), config.rms_norm_eps)


def queries(nx: Arithmetic, config: Config, w: Weights, qr: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    heads, width = config.num_attention_heads, config.head_dim
    q = nx.linear_fp8(qr, w("wq_b.weight", heads * width, config.q_lora_rank)).unflatten(1, (heads, width))
    return rotate(nx, q, positions, freq)


def window_kv(nx: Arithmetic, config: Config, w: Weights, x: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """[T, D] on the FP8 grid."""
    k = nx.linear_fp8(x, w("wkv.weight", config.head_dim, config.hidden_size))
    k = nx.rms_norm(k, w("kv_norm.weight", config.head_dim), config.rms_norm_eps)
    return nx.fp8(rotate(nx, k, positions, freq))


def compressed_latents(nx: Arithmetic, config: Config, w: Weights, x: Tensor, ratio: int) -> Tensor:
    """[N, D], one per complete group of `ratio` tokens, before rotation. x starts at position 0."""
    shape = (config.head_dim, config.hidden_size)
    if ratio == 1:
        pooled = nx.linear_bf16(x, w("wkv.weight", *shape))
    else:
        groups = x[: len(x) // ratio * ratio].unflatten(0, (-1, ratio))
        c = nx.linear_f32(groups, w("wkv.weight", *shape))
        z = nx.linear_f32(groups, w("wgate.weight", *shape))
        share = torch.exp(z - z.amax(1, keepdim=True))
        share = share / nx.sum(share, 1, keepdim=True)
        pooled = nx.bf16(nx.sum(nx.wide(share) * nx.wide(c), 1))
    return nx.rms_norm(pooled, w("norm.weight", config.head_dim), config.rms_norm_eps)


def attend(
    nx: Arithmetic,
    config: Config,
    q: Tensor,
    window: Tensor,
    entries: Tensor | None,
    selected: Tensor | None,
    sink: Tensor,
) -> Tensor:
    """Softmax attention with a sink.

    q         [T, H, D]; query t may see window rows max(0, t-W+1)..t
    window    [T, D]
    entries   [N, D] compressed KV, or None in a window-only layer
    selected  int64 [T, K], ascending, then -1
    sink      [H], a logit that takes part in the denominator only
    returns   bf16 [T, H, D]

    Slots 0..W-1 are the window, W..W+K-1 the selection, both packed to the left; the running maximum moves once per 64
    slots, counted over empty slots too, and the probabilities used for values are rounded relative to it.
    """
    n_rows, width = len(q), config.sliding_window
    rows = torch.arange(n_rows)[:, None]
    first = (rows - width + 1).clamp(min=0)
    slot = first + torch.arange(width)
    slot = torch.where(slot <= rows, slot, -1)
    keys = window
    if entries is not None and selected is not None:
        slot = torch.cat([slot, torch.where(selected < 0, -1, selected + n_rows)], 1)
        keys = torch.cat([window, entries])
    slot = torch.nn.functional.pad(slot, (0, -slot.shape[1] % _BLOCK), value=-1)
    parts = [_attend_rows(nx, config, qs, keys, ss, sink) for qs, ss in zip(q.split(_ROWS), slot.split(_ROWS))]
    return torch.cat(parts)


def _attend_rows(nx: Arithmetic, config: Config, q: Tensor, keys: Tensor, slot: Tensor, sink: Tensor) -> Tensor:
    scale = torch.tensor(config.head_dim**-0.5, dtype=torch.float32)
    top = torch.full(q.shape[:2], -1e30)
    total = nx.wide(torch.zeros(q.shape[:2]))
    out = nx.wide(torch.zeros(q.shape))
    q_wide = nx.wide(q)
    for block in slot.split(_BLOCK, dim=1):
        if (block < 0).all():
            continue
        k = nx.wide(keys[block.clamp(min=0)])  # [rows, 64, D]
        score = (q_wide @ k.transpose(1, 2)).float() * scale
        score = score.masked_fill((block < 0)[:, None, :], -torch.inf)
        new_top = torch.maximum(top, score.amax(-1))
        p = torch.exp(score - new_top[..., None])
        shrink = nx.wide(torch.exp(top - new_top))
        total = total * shrink + nx.wide(p).sum(-1)
        out = out * shrink[..., None] + nx.wide(nx.bf16(p)) @ k
        top = new_top
    total = total + nx.wide(torch.exp(sink - top))
    return nx.bf16(out.float() / total.float()[..., None])


def project_output(nx: Arithmetic, config: Config, w: Weights, o: Tensor, positions: Tensor, freq: Tensor) -> Tensor:
    """Inverse rotation, then per group of heads a low-rank projection (bf16, input not quantised), then wo_b."""
    groups, rank = config.o_groups, config.o_lora_rank
    o = rotate(nx, o, positions, freq, inverse=True)
    grouped = o.flatten(1).unflatten(1, (groups, -1)).transpose(0, 1)  # [G, T, H/G*D]
    wo_a = w("wo_a.weight", groups * rank, grouped.shape[2]).unflatten(0, (groups, rank))
    low = nx.bf16(nx.matmul(grouped, wo_a.transpose(1, 2))).transpose(0, 1).flatten(1)
    return nx.linear_fp8(low, w("wo_b.weight", config.hidden_size, groups * rank))
