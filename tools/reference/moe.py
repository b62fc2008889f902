"""Mixture of experts: router, routed FP4 experts, one shared FP8 expert."""

from __future__ import annotations

import torch
from torch import Tensor

from .checkpoint import Weights
from .config import Config
from .numerics import Arithmetic


def route(nx: Arithmetic, config: Config, w: Weights, x: Tensor, is_image: Tensor) -> tuple[Tensor, Tensor]:
    """Expert ids int64 [T, e], best first, and their weights [T, e]. The bias takes part in the choice only."""
    n_experts = config.n_routed_experts
    logit = nx.linear_f32(x, w("weight", n_experts, config.hidden_size))
    score = torch.nn.functional.softplus(logit).sqrt()  # log1p(exp) up to 20, the logit itself above
    biased = score + w("bias", n_experts)
    if is_image.any():
        biased = torch.where(is_image[:, None], score + w("bias_vl", n_experts), biased)
    chosen = biased.sort(dim=1, descending=True, stable=True).indices[:, : config.num_experts_per_tok]
    weight = score.gather(1, chosen)
    return chosen, weight / (weight.sum(1, keepdim=True) + 1e-20) * config.routed_scaling_factor


def expert(nx: Arithmetic, config: Config, w: Weights, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Clamped SwiGLU of x [T, d], already quantised; a routing weight [T, 1] multiplies before w2."""
    d, inner, limit = config.hidden_size, config.moe_intermediate_size, config.swiglu_limit
    g = nx.linear_bf16(x, w("w1.weight", inner, d)).clamp(max=limit)
    u = nx.linear_bf16(x, w("w3.weight", inner, d)).clamp(-limit, limit)
    a = torch.nn.functional.silu(g) * u
    if weight is not None:
        a = weight * a
    return nx.linear_fp8(nx.bf16(a), w("w2.weight", d, inner))


def moe(nx: Arithmetic, config: Config, w: Weights, x: Tensor, chosen: Tensor, weight: Tensor) -> Tensor:
    """Sum in float32, routed experts by ascending id, the shared one last, one rounding."""
    x = nx.fp8(x)
    total = torch.zeros_like(x)
    for e in chosen.unique().tolist():
        row, place = (chosen == e).nonzero(as_tuple=True)
        y = expert(nx, config, w.scope(f"experts.{e}."), x[row], weight[row, place][:, None])
        total = total.index_add(0, row, y)
    return nx.bf16(total + expert(nx, config, w.scope("shared_experts."), x))
