"""Rotary positions: adjacent channel pairs, the last `rotated` channels of a vector, float32 angles."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .config import Config
from .numerics import Arithmetic


def frequencies(config: Config, ratio: int) -> Tensor:
    """float32 [rotated/2]. Window-only layers: base rope_theta. Others: compress_rope_theta blended by YaRN."""
    dim = config.qk_rope_head_dim
    base = config.rope_theta if ratio == 0 else config.compress_rope_theta
    freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    yarn = config.text.get("rope_scaling")
    if ratio == 0 or not yarn:
        return freq

    def channel(rotations: float) -> float:
        """The channel that turns this often over the original context."""
        context = yarn["original_max_position_embeddings"]
        return dim * math.log(context / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(channel(yarn["beta_fast"])), 0)
    high = min(math.ceil(channel(yarn["beta_slow"])), dim - 1)
    width = high - low if high != low else 0.001
    ramp = ((torch.arange(dim // 2, dtype=torch.float32) - low) / width).clamp(0, 1)
    return freq / yarn["factor"] * ramp + freq * (1 - ramp)


def rotate(nx: Arithmetic, x: Tensor, positions: Tensor, freq: Tensor, inverse: bool = False) -> Tensor:
    """x [T, .., C] with positions [T]; rotates the last 2*len(freq) channels and rounds them to bf16."""
    angle = positions.float()[:, None] * freq
    angle = angle.view(len(positions), *([1] * (x.dim() - 2)), len(freq))
    c, s = angle.cos(), angle.sin()
    if inverse:
        s = -s
    rotated = 2 * len(freq)
    keep, turn = x[..., :-rotated], x[..., -rotated:].unflatten(-1, (-1, 2))
    a, b = turn[..., 0], turn[..., 1]
    turned = torch.stack([a * c - b * s, a * s + b * c], dim=-1).flatten(-2)
    return torch.cat([keep, nx.bf16(turned)], dim=-1)
