"""Hyper-connections: S residual streams, mixed before and after every sublayer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .checkpoint import Weights
from .config import Config
from .numerics import Arithmetic


class Mix(NamedTuple):
    pre: Tensor  # [T, S]     weights of the next collapse
    post: Tensor  # [T, S]     how much of the sublayer's output each stream gets
    comb: Tensor  # [T, S, S]  comb[t, in, out]


def mix(nx: Arithmetic, config: Config, w: Weights, site: str, streams: Tensor) -> Mix:
    """Coefficients of one site ("attn" or "ffn") from the streams [T, S, d]; float32, never rounded."""
    s, eps = config.hc_mult, config.hc_eps
    v = streams.flatten(1)
    m = nx.linear_f32(v, w(f"hc_{site}_fn", (2 + s) * s, v.shape[1]))
    m = m * torch.rsqrt(nx.mean_square(v) + config.rms_norm_eps)
    scale, base = w(f"hc_{site}_scale", 3), w(f"hc_{site}_base", (2 + s) * s)
    per_coefficient = scale.repeat_interleave(torch.tensor([s, s, s * s]))
    # One rounding for multiply and add, as a fused multiply-add does.
    m = (m.double() * per_coefficient.double() + base.double()).float()

    pre = torch.sigmoid(m[:, :s]) + eps
    post = 2 * torch.sigmoid(m[:, s : 2 * s])
    comb = m[:, 2 * s :].unflatten(1, (s, s))
    comb = comb.softmax(-1) + eps  # sums of S values stay float32
    comb = comb / (comb.sum(-2, keepdim=True) + eps)
    for _ in range(config.hc_sinkhorn_iters - 1):
        comb = comb / (comb.sum(-1, keepdim=True) + eps)
        comb = comb / (comb.sum(-2, keepdim=True) + eps)
    return Mix(pre, post, comb)


def collapse(nx: Arithmetic, streams: Tensor, pre: Tensor) -> Tensor:
    """[T, S, d] weighted by pre [T, S] -> bf16 [T, d]; float32, streams in order."""
    return nx.bf16(_sum_in_order(pre[..., None] * streams))


def expand(nx: Arithmetic, y: Tensor, streams: Tensor, m: Mix) -> Tensor:
    """Writes the sublayer output y [T, d] into the streams: out_k = post_k y + sum_j comb[j, k] streams_j (float32)."""
    kept = _sum_in_order(m.comb[..., None] * streams[:, :, None, :])
    return nx.bf16(m.post[..., None] * y[:, None, :] + kept)


def _sum_in_order(terms: Tensor) -> Tensor:
    """[T, S, ..] -> [T, ..]."""
    total = terms[:, 0]
    for s in range(1, terms.shape[1]):
        total = total + terms[:, s]
    return total
