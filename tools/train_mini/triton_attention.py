"""Attention kernels. Two partial softmaxes per row, later joined by their log-sum-exps (parts.join):

range   row t sees the keys lo[t]..hi[t]-1 of a flat array: the window, and all entries during index warm-up.
        A program takes 16 rows with all their heads as one tile, so the single latent is read once for every head.
gather  row t sees the keys listed in picked[t, K] (-1: none): the selected entries. A program takes one row.

q [R, H, D], kv [N, D] (keys and values at once), out [R, H, D], lse float32 [R, H]; -1e30 where a row sees nothing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16  # rows of a range tile


@triton.jit
def _range_forward(
    q_ptr, kv_ptr, lo_ptr, hi_ptr, out_ptr, lse_ptr, scale,
    H: tl.constexpr, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    M: tl.constexpr = BQ * H
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.arange(0, D)
    q = tl.load(q_ptr + row[:, None] * D + column[None, :])
    lo = tl.load(lo_ptr + row // H)
    hi = tl.load(hi_ptr + row // H)
    first = tl.min(lo, 0)
    end = tl.max(hi, 0)
    top = tl.full([M], -1e30, tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    for k0 in range(first, end, BK):
        key = k0 + tl.arange(0, BK)
        k = tl.load(kv_ptr + key[:, None] * D + column[None, :], mask=(key < end)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = (key[None, :] >= lo[:, None]) & (key[None, :] < hi[:, None])
        s = tl.where(seen, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(k.dtype), k)
        top = new_top
    out = acc / tl.maximum(total, 1e-30)[:, None]
    tl.store(out_ptr + row[:, None] * D + column[None, :], out.to(q.dtype))
    tl.store(lse_ptr + row, tl.where(total > 0, top + tl.log(tl.maximum(total, 1e-30)), -1e30))


@triton.jit
def _range_backward_q(
    q_ptr, kv_ptr, lo_ptr, hi_ptr, out_ptr, lse_ptr, grad_ptr, grad_lse_ptr, delta_ptr, dq_ptr, scale,
    H: tl.constexpr, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """dq, and delta = sum(grad * out) - grad_lse for the other kernel."""
    M: tl.constexpr = BQ * H
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.arange(0, D)
    at = row[:, None] * D + column[None, :]
    q = tl.load(q_ptr + at)
    grad = tl.load(grad_ptr + at)
    out = tl.load(out_ptr + at)
    lse = tl.load(lse_ptr + row)
    delta = tl.sum(grad.to(tl.float32) * out.to(tl.float32), 1) - tl.load(grad_lse_ptr + row)
    tl.store(delta_ptr + row, delta)
    lo = tl.load(lo_ptr + row // H)
    hi = tl.load(hi_ptr + row // H)
    first = tl.min(lo, 0)
    end = tl.max(hi, 0)
    dq = tl.zeros([M, D], tl.float32)
    for k0 in range(first, end, BK):
        key = k0 + tl.arange(0, BK)
        k = tl.load(kv_ptr + key[:, None] * D + column[None, :], mask=(key < end)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = (key[None, :] >= lo[:, None]) & (key[None, :] < hi[:, None])
        p = tl.where(seen, tl.exp(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(grad, tl.trans(k)) - delta[:, None]) * scale
        dq += tl.dot(ds.to(k.dtype), k)
    tl.store(dq_ptr + at, dq.to(q.dtype))


@triton.jit
def _range_backward_kv(
    q_ptr, kv_ptr, lo_ptr, hi_ptr, lse_ptr, grad_ptr, delta_ptr, dkv_ptr, scale, n_rows, n_keys, length, reach,
    RATIO: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Keys k0.. are read by rows from k0*RATIO on: at most `reach` rows after the last key's, in the same sequence."""
    M: tl.constexpr = BQ * H
    k0 = tl.program_id(0) * BK
    key = k0 + tl.arange(0, BK)
    column = tl.arange(0, D)
    k = tl.load(kv_ptr + key[:, None] * D + column[None, :], mask=(key < n_keys)[:, None], other=0.0)
    begin = k0 * RATIO // BQ * BQ
    last_sequence = (tl.minimum(k0 + BK, n_keys) - 1) * RATIO // length
    end = tl.minimum((k0 + BK) * RATIO + reach, (last_sequence + 1) * length)
    end = tl.minimum(end, n_rows)
    dk = tl.zeros([BK, D], tl.float32)
    for t0 in range(begin, end, BQ):
        row = t0 * H + tl.arange(0, M)
        at = row[:, None] * D + column[None, :]
        q = tl.load(q_ptr + at)
        grad = tl.load(grad_ptr + at)
        lo = tl.load(lo_ptr + row // H)
        hi = tl.load(hi_ptr + row // H)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = (key[None, :] >= lo[:, None]) & (key[None, :] < hi[:, None])
        p = tl.where(seen, tl.exp(s - tl.load(lse_ptr + row)[:, None]), 0.0)
        ds = p * (tl.dot(grad, tl.trans(k)) - tl.load(delta_ptr + row)[:, None]) * scale
        dk += tl.dot(tl.trans(ds.to(q.dtype)), q) + tl.dot(tl.trans(p.to(q.dtype)), grad)
    tl.store(dkv_ptr + key[:, None] * D + column[None, :], dk.to(k.dtype), mask=(key < n_keys)[:, None])


@triton.jit
def _gather_forward(
    q_ptr, kv_ptr, picked_ptr, out_ptr, lse_ptr, scale,
    H: tl.constexpr, HP: tl.constexpr, D: tl.constexpr, K: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    head, column, slot = tl.arange(0, HP), tl.arange(0, D), tl.arange(0, KP)
    at = (t * H + head)[:, None] * D + column[None, :]
    q = tl.load(q_ptr + at, mask=(head < H)[:, None], other=0.0)
    picked = tl.load(picked_ptr + t * K + slot, mask=slot < K, other=-1)
    k = tl.load(kv_ptr + picked[:, None] * D + column[None, :], mask=(picked >= 0)[:, None], other=0.0)
    s = tl.where((picked >= 0)[None, :], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
    top = tl.maximum(tl.max(s, 1), -1e30)
    p = tl.exp(s - top[:, None])
    total = tl.sum(p, 1)
    out = tl.dot(p.to(k.dtype), k) / tl.maximum(total, 1e-30)[:, None]
    tl.store(out_ptr + at, out.to(q.dtype), mask=(head < H)[:, None])
    lse = tl.where(total > 0, top + tl.log(tl.maximum(total, 1e-30)), -1e30)
    tl.store(lse_ptr + t * H + head, lse, mask=head < H)


@triton.jit
def _gather_backward(
    q_ptr, kv_ptr, picked_ptr, out_ptr, lse_ptr, grad_ptr, grad_lse_ptr, dq_ptr, dkv_ptr, scale,
    H: tl.constexpr, HP: tl.constexpr, D: tl.constexpr, K: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    """dkv is float32 and added to atomically."""
    t = tl.program_id(0).to(tl.int64)
    head, column, slot = tl.arange(0, HP), tl.arange(0, D), tl.arange(0, KP)
    at = (t * H + head)[:, None] * D + column[None, :]
    real = (head < H)[:, None]
    q = tl.load(q_ptr + at, mask=real, other=0.0)
    grad = tl.load(grad_ptr + at, mask=real, other=0.0)
    out = tl.load(out_ptr + at, mask=real, other=0.0)
    lse = tl.load(lse_ptr + t * H + head, mask=head < H, other=0.0)
    grad_lse = tl.load(grad_lse_ptr + t * H + head, mask=head < H, other=0.0)
    delta = tl.sum(grad.to(tl.float32) * out.to(tl.float32), 1) - grad_lse
    picked = tl.load(picked_ptr + t * K + slot, mask=slot < K, other=-1)
    seen = picked >= 0
    k = tl.load(kv_ptr + picked[:, None] * D + column[None, :], mask=seen[:, None], other=0.0)
    s = tl.dot(q, tl.trans(k)) * scale
    p = tl.where(seen[None, :] & real, tl.exp(s - lse[:, None]), 0.0)
    ds = (p * (tl.dot(grad, tl.trans(k)) - delta[:, None]) * scale).to(k.dtype)
    tl.store(dq_ptr + at, tl.dot(ds, k).to(q.dtype), mask=real)
    dk = tl.dot(tl.trans(ds), q) + tl.dot(tl.trans(p.to(k.dtype)), grad)
    tl.atomic_add(dkv_ptr + picked[:, None] * D + column[None, :], dk, mask=seen[:, None], sem="relaxed")


class RangeAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, kv, lo, hi, ratio: int, length: int, reach: int):
        q, kv = q.contiguous(), kv.contiguous()
        n_rows, heads, width = q.shape
        if n_rows % ROWS or length % ROWS:
            raise ValueError(f"{n_rows} rows in sequences of {length}: not multiples of {ROWS}")
        out = torch.empty_like(q)
        lse = torch.empty(n_rows, heads, device=q.device, dtype=torch.float32)
        _range_forward[(n_rows // ROWS,)](
            q, kv, lo, hi, out, lse, width**-0.5, heads, width, ROWS, 64, num_warps=8, num_stages=2
        )
        ctx.save_for_backward(q, kv, lo, hi, out, lse)
        ctx.shape = (ratio, length, reach)
        return out, lse

    @staticmethod
    def backward(ctx, grad, grad_lse):
        q, kv, lo, hi, out, lse = ctx.saved_tensors
        ratio, length, reach = ctx.shape
        n_rows, heads, width = q.shape
        scale = width**-0.5
        grad, grad_lse = grad.contiguous(), grad_lse.contiguous()
        delta, dq, dkv = torch.empty_like(lse), torch.empty_like(q), torch.empty_like(kv)
        _range_backward_q[(n_rows // ROWS,)](
            q, kv, lo, hi, out, lse, grad, grad_lse, delta, dq, scale, heads, width, ROWS, 32, num_warps=8, num_stages=1
        )
        block = 32
        _range_backward_kv[(triton.cdiv(len(kv), block),)](
            q, kv, lo, hi, lse, grad, delta, dkv, scale, n_rows, len(kv), length, reach,
            ratio, heads, width, ROWS, block, num_warps=8, num_stages=1,
        )  # fmt: skip
        return dq, dkv, None, None, None, None, None


class GatherAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, kv, picked):
        q, kv = q.contiguous(), kv.contiguous()
        n_rows, heads, width = q.shape
        out = torch.empty_like(q)
        lse = torch.empty(n_rows, heads, device=q.device, dtype=torch.float32)
        _gather_forward[(n_rows,)](
            q, kv, picked, out, lse, width**-0.5, *_gather_shape(heads, width, picked.shape[1]), num_warps=2
        )
        ctx.save_for_backward(q, kv, picked, out, lse)
        return out, lse

    @staticmethod
    def backward(ctx, grad, grad_lse):
        q, kv, picked, out, lse = ctx.saved_tensors
        n_rows, heads, width = q.shape
        dq = torch.empty_like(q)
        dkv = torch.zeros(kv.shape, device=kv.device, dtype=torch.float32)
        _gather_backward[(n_rows,)](
            q, kv, picked, out, lse, grad.contiguous(), grad_lse.contiguous(), dq, dkv, width**-0.5,
            *_gather_shape(heads, width, picked.shape[1]), num_warps=4,
        )  # fmt: skip
        return dq, dkv.to(kv.dtype), None


def _gather_shape(heads: int, width: int, k: int) -> tuple[int, int, int, int, int]:
    """H, H padded to a matrix tile, D, K, K padded."""
    return heads, max(16, triton.next_power_of_2(heads)), width, k, max(16, triton.next_power_of_2(k))


def window_attention(q: Tensor, window: Tensor, w_range, length: int, width: int) -> tuple[Tensor, Tensor]:
    return RangeAttention.apply(q, window, *w_range, 1, length, width)


def dense_attention(q: Tensor, entries: Tensor, e_range, ratio: int, length: int) -> tuple[Tensor, Tensor]:
    return RangeAttention.apply(q, entries, *e_range, ratio, length, length)


def gather_attention(q: Tensor, entries: Tensor, picked: Tensor) -> tuple[Tensor, Tensor]:
    return GatherAttention.apply(q, entries, picked)
