"""Mixture of experts: rows sorted by expert, one grouped product per matrix, and permutations with cheap gradients."""

from __future__ import annotations

import functools
import sys

import torch
from torch import Tensor

from .numerics import Numerics
from .parts import Parts


class Spread(torch.autograd.Function):
    """x [R, d] -> [R*e, d]: row `order[i] // e`. The gradient gathers instead of scattering."""

    @staticmethod
    def forward(ctx, x: Tensor, order: Tensor, inverse: Tensor, e: int) -> Tensor:
        ctx.save_for_backward(inverse)
        ctx.e = e
        return x[order // e]

    @staticmethod
    def backward(ctx, grad: Tensor):
        (inverse,) = ctx.saved_tensors
        return grad[inverse].view(-1, ctx.e, grad.shape[1]).sum(1), None, None, None


class Permute(torch.autograd.Function):
    """x [N, ..] -> x[order]; `inverse` undoes it."""

    @staticmethod
    def forward(ctx, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return x[order]

    @staticmethod
    def backward(ctx, grad: Tensor):
        (inverse,) = ctx.saved_tensors
        return grad[inverse], None, None


def grouped_product(nx: Numerics, x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """x [N, k] sorted by expert, weight [E, n, k], ends int32 [E] (where each expert's rows end) -> [N, n]."""
    if x.is_cuda and grouped_mm_works():
        return torch._grouped_mm(x, weight.transpose(1, 2), offs=ends)
    pieces = x.split(ends.diff(prepend=ends.new_zeros(1)).tolist())
    return torch.cat([nx.linear(piece, weight[e]) for e, piece in enumerate(pieces)])


@functools.cache
def grouped_mm_works() -> bool:
    """Tries the grouped product and its gradients once; without it experts run one by one, which is slow."""
    try:
        with torch.enable_grad():
            x = torch.ones(64, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            weight = torch.ones(3, 128, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            ends = torch.tensor([7, 7, 64], device="cuda", dtype=torch.int32)
            torch._grouped_mm(x, weight.transpose(1, 2), offs=ends).float().sum().backward()
            right = bool((x.grad == 128).all()) and weight.grad[:, 0, 0].tolist() == [7, 0, 57]
    except Exception as error:  # whatever this build of PyTorch raises
        print(f"no grouped product: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return False
    if not right:
        print("the grouped product is wrong here; experts run one by one", file=sys.stderr)
    return right


def mixture(nx: Numerics, parts: Parts, w, key: str, i: int, x: Tensor, n_chosen: int) -> tuple[Tensor, Tensor]:
    """Routed and shared experts of block i: x [R, d] -> ([R, d], rows per expert int64 [E])."""
    name = key + "ffn."
    w1, w3, w2 = (w[f"{name}experts.{n}"][i] for n in ("w1", "w3", "w2"))
    chosen, weight = parts.route(x, w[name + "gate"][i], w[name + "gate.bias"][i], n_chosen)
    ordered, order = chosen.flatten().to(torch.uint8).sort(stable=True)
    inverse = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    expert = torch.arange(len(w1), device=order.device, dtype=torch.int32)
    ends = torch.searchsorted(ordered.int(), expert, right=True, out_int32=True)
    xq = parts.quantize(x)
    spread = Spread.apply(xq, order, inverse, n_chosen)
    gu = grouped_product(nx, spread, torch.cat([w1, w3], 1), ends)
    a = parts.swiglu(gu, Permute.apply(weight.flatten(), order, inverse)[:, None])
    y = Permute.apply(grouped_product(nx, a, w2, ends), inverse, order).unflatten(0, (-1, n_chosen))
    shared = parts.shared_expert(xq, *(w[f"{name}shared_experts.{n}"][i] for n in ("w1", "w3", "w2")))
    return parts.sum_experts(y, shared), ends.diff(prepend=ends.new_zeros(1))
