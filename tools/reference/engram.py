"""Engram: rows of a hashed n-gram table, gated into the residual streams at the start of a layer."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .checkpoint import Weights
from .config import Config
from .numerics import Arithmetic


def engram(nx: Arithmetic, config: Config, w: Weights, streams: Tensor, rows: np.ndarray, dead: Tensor) -> Tensor:
    """streams [T, S, d], rows int64 [T, columns], dead bool [T] -> streams with the gated value added."""
    _, s, d = streams.shape
    looked_up = w.table_rows("embed.weight", rows).flatten(1)
    kv = nx.linear_fp8(looked_up, w("wkv.weight", (s + 1) * d, looked_up.shape[1]))
    keys, value = kv[:, : s * d].unflatten(1, (s, d)), kv[:, s * d :]

    eps = config.rms_norm_eps
    inverse_rms = torch.rsqrt(nx.mean_square(streams) + eps) * torch.rsqrt(nx.mean_square(keys) + eps)
    weight = w("q_weight", s, d) * w("k_weight", s, d)
    dot = nx.sum(nx.wide(streams * weight) * nx.wide(keys), -1, keepdim=True) * inverse_rms * d**-0.5
    gate = torch.sigmoid(torch.copysign(dot.abs().clamp(min=1e-6).sqrt(), dot))
    gate = gate.masked_fill(dead[:, None, None], 0)
    return nx.bf16(streams + gate * value[:, None, :])
