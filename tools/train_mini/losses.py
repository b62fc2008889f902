"""Cross entropy over a large vocabulary, a few thousand rows at a time; the gradient is made in the forward pass."""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 16384


def softmax_step(logits: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """float32 logits [n, V] -> weighted loss per row [n], d(loss)/d(logits) in bf16, and whether the target is best."""
    top = logits.amax(1, keepdim=True)
    e = torch.exp(logits - top)
    total = e.sum(1, keepdim=True)
    picked = logits.gather(1, target[:, None])
    loss = (total.log() + top - picked)[:, 0] * weight
    column = torch.arange(logits.shape[1], device=logits.device)
    grad = (e / total - (column == target[:, None]).float()) * weight[:, None]
    return loss, grad.to(torch.bfloat16), picked[:, 0] >= top[:, 0]


_compiled_step = None


def _step(logits: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    global _compiled_step
    if not logits.is_cuda:
        return softmax_step(logits, target, weight)
    if _compiled_step is None:
        from .parts import CompiledPart

        _compiled_step = CompiledPart("softmax_step", softmax_step)
    return _compiled_step(logits, target, weight)


def logits_of(hidden: Tensor, head: Tensor) -> Tensor:
    """float32 [n, V]."""
    if hidden.is_cuda and hidden.dtype == torch.bfloat16:
        return torch.mm(hidden, head.t(), out_dtype=torch.float32)
    return hidden.float() @ head.float().t()


class CrossEntropy(torch.autograd.Function):
    """Sum over rows of weight * -log softmax(hidden head^T)[target], and bool [R]: the target is the best token."""

    @staticmethod
    def forward(ctx, hidden: Tensor, head: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        loss = torch.zeros((), device=hidden.device)
        hit = torch.empty(len(hidden), device=hidden.device, dtype=torch.bool)
        d_hidden = torch.empty_like(hidden)
        d_head = torch.zeros(head.shape, device=head.device, dtype=torch.float32)
        for i in range(0, len(hidden), ROWS):
            rows = slice(i, i + ROWS)
            h = hidden[rows]
            part, grad, hit[rows] = _step(logits_of(h, head), target[rows], weight[rows])
            loss += part.sum()
            grad = grad.to(head.dtype)
            d_hidden[rows] = grad @ head
            d_head += (grad.t() @ h).float()
        ctx.save_for_backward(d_hidden, d_head)
        ctx.head_dtype = head.dtype
        ctx.mark_non_differentiable(hit)
        return loss, hit

    @staticmethod
    def backward(ctx, grad: Tensor, _):
        d_hidden, d_head = ctx.saved_tensors
        return d_hidden * grad.to(d_hidden.dtype), (d_head * grad).to(ctx.head_dtype), None, None


def cross_entropy(hidden: Tensor, head: Tensor, target: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean loss under `weight` [R] >= 0 (float32), which is normalised here; bool [R]: the target is the best token."""
    return CrossEntropy.apply(hidden, head, target, weight / weight.sum().clamp(min=1e-6))
