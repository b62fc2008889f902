"""Hyper-connection kernels: one pass over the streams for collapse, norm and mixing products; Sinkhorn in registers;
expand. Definitions: plain_kernels.mix and .expand. S = 4 streams; `fn` has 24 rows, padded to 32 for the matrix unit.

streams bf16 [R, 4, d], carried/pre/post float32 [R, 4], comb float32 [R, 4, 4] (in, out).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

S = 4
PADDED = 32


@triton.jit
def _mix_forward(
    x_ptr, p_ptr, high_ptr, low_ptr, w_ptr, out_ptr, m_ptr, square_ptr, rstd_ptr, eps,
    D: tl.constexpr, BR: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """x_out = norm(sum_s p_s x_s); m = fn x (fn = high + low); square = mean x^2; rstd of the collapsed row."""
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    column = tl.arange(0, D)
    n = tl.arange(0, N)
    collapsed = tl.zeros([BR, D], tl.float32)
    m = tl.zeros([BR, N], tl.float32)
    square = tl.zeros([BR], tl.float32)
    for s in range(4):
        x = tl.load(x_ptr + (row * 4 + s).to(tl.int64)[:, None] * D + column[None, :])
        at = n[:, None] * (4 * D) + s * D + column[None, :]
        m += tl.dot(x, tl.trans(tl.load(high_ptr + at))) + tl.dot(x, tl.trans(tl.load(low_ptr + at)))
        wide = x.to(tl.float32)
        square += tl.sum(wide * wide, 1)
        collapsed += tl.load(p_ptr + row * 4 + s)[:, None] * wide
    collapsed = collapsed.to(tl.bfloat16).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(collapsed * collapsed, 1) / D + eps)
    w = tl.load(w_ptr + column).to(tl.float32)
    out = w[None, :] * (collapsed * rstd[:, None])
    tl.store(out_ptr + row.to(tl.int64)[:, None] * D + column[None, :], out.to(tl.bfloat16))
    tl.store(m_ptr + row[:, None] * N + n[None, :], m)
    tl.store(square_ptr + row, square / (4 * D))
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def _mix_backward(
    x_ptr, p_ptr, fn_ptr, w_ptr, rstd_ptr, grad_ptr, dm_ptr, dsquare_ptr, dx_ptr, dp_ptr, dw_ptr,
    D: tl.constexpr, BR: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """grad is of the normalised row. dw_ptr float32 [programs, D]: this program's part of the norm's gradient."""
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    column = tl.arange(0, D)
    n = tl.arange(0, N)
    collapsed = tl.zeros([BR, D], tl.float32)
    for s in tl.static_range(4):
        x = tl.load(x_ptr + (row * 4 + s).to(tl.int64)[:, None] * D + column[None, :]).to(tl.float32)
        collapsed += tl.load(p_ptr + row * 4 + s)[:, None] * x
    collapsed = collapsed.to(tl.bfloat16).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    grad = tl.load(grad_ptr + row.to(tl.int64)[:, None] * D + column[None, :]).to(tl.float32)
    w = tl.load(w_ptr + column).to(tl.float32)
    unit = collapsed * rstd[:, None]
    tl.store(dw_ptr + tl.program_id(0) * D + column, tl.sum(grad * unit, 0))
    grad = grad * w[None, :]
    dc = rstd[:, None] * (grad - unit * (tl.sum(grad * unit, 1) / D)[:, None])
    dm = tl.load(dm_ptr + row[:, None] * N + n[None, :])
    dsquare = tl.load(dsquare_ptr + row) * (2.0 / (4 * D))
    for s in tl.static_range(4):
        at = (row * 4 + s).to(tl.int64)[:, None] * D + column[None, :]
        x = tl.load(x_ptr + at).to(tl.float32)
        tl.store(dp_ptr + row * 4 + s, tl.sum(dc * x, 1))
        fn = tl.load(fn_ptr + n[:, None] * (4 * D) + s * D + column[None, :])
        dx = tl.load(p_ptr + row * 4 + s)[:, None] * dc + dsquare[:, None] * x + tl.dot(dm.to(tl.bfloat16), fn)
        tl.store(dx_ptr + at, dx.to(tl.bfloat16))


@triton.jit
def _logits(m_ptr, scale_ptr, base_ptr, row, rs, first: tl.constexpr, group: tl.constexpr, N: tl.constexpr):
    """Four columns [BR, 4] of m * rs * scale[group] + base."""
    i = first + tl.arange(0, 4)
    m = tl.load(m_ptr + row[:, None] * N + i[None, :]) * rs[:, None]
    return m * tl.load(scale_ptr + group) + tl.load(base_ptr + i)[None, :]


@triton.jit
def _comb_logits(m_ptr, scale_ptr, base_ptr, row, rs, N: tl.constexpr):
    i = 8 + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    m = tl.load(m_ptr + row[:, None, None] * N + i[None, :, :]) * rs[:, None, None]
    return m * tl.load(scale_ptr + 2) + tl.load(base_ptr + i)[None, :, :]


@triton.jit
def _softmax_rows(logits):
    e = tl.exp(logits - tl.max(logits, 2)[:, :, None])
    return e / tl.sum(e, 2)[:, :, None]


@triton.jit
def _coefficients_forward(
    m_ptr, square_ptr, scale_ptr, base_ptr, pre_ptr, post_ptr, comb_ptr, eps, hc_eps,
    ITERATIONS: tl.constexpr, BR: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    rs = tl.rsqrt(tl.load(square_ptr + row) + eps)
    at = row[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(pre_ptr + at, tl.sigmoid(_logits(m_ptr, scale_ptr, base_ptr, row, rs, 0, 0, N)) + hc_eps)
    tl.store(post_ptr + at, 2 * tl.sigmoid(_logits(m_ptr, scale_ptr, base_ptr, row, rs, 4, 1, N)))
    comb = _softmax_rows(_comb_logits(m_ptr, scale_ptr, base_ptr, row, rs, N)) + hc_eps
    comb = comb / (tl.sum(comb, 1) + hc_eps)[:, None, :]
    for _ in range(ITERATIONS - 1):
        comb = comb / (tl.sum(comb, 2) + hc_eps)[:, :, None]
        comb = comb / (tl.sum(comb, 1) + hc_eps)[:, None, :]
    i = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(comb_ptr + row[:, None, None] * 16 + i[None, :, :], comb)


@triton.jit
def _coefficients_backward(
    m_ptr, square_ptr, scale_ptr, base_ptr, dpre_ptr, dpost_ptr, dcomb_ptr, scratch_ptr, dlogit_ptr, eps, hc_eps,
    ITERATIONS: tl.constexpr, BR: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """dlogit [R, 24 of N]. Every normalisation is undone from its divisors, kept in scratch [programs, 2*IT, BR, 4]."""
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    rs = tl.rsqrt(tl.load(square_ptr + row) + eps)
    four = tl.arange(0, 4)
    at = row[:, None] * 4 + four[None, :]
    to = row[:, None] * N + four[None, :]
    a = tl.sigmoid(_logits(m_ptr, scale_ptr, base_ptr, row, rs, 0, 0, N))
    tl.store(dlogit_ptr + to, tl.load(dpre_ptr + at) * a * (1 - a))
    a = tl.sigmoid(_logits(m_ptr, scale_ptr, base_ptr, row, rs, 4, 1, N))
    tl.store(dlogit_ptr + to + 4, 2 * tl.load(dpost_ptr + at) * a * (1 - a))

    start = _softmax_rows(_comb_logits(m_ptr, scale_ptr, base_ptr, row, rs, N))
    slot = scratch_ptr + tl.program_id(0) * (2 * ITERATIONS * BR * 4) + tl.arange(0, BR)[:, None] * 4 + four[None, :]
    comb = start + hc_eps
    divisor = tl.sum(comb, 1) + hc_eps
    tl.store(slot, divisor)
    comb = comb / divisor[:, None, :]
    for i in range(ITERATIONS - 1):
        divisor = tl.sum(comb, 2) + hc_eps
        tl.store(slot + (2 * i + 1) * (BR * 4), divisor)
        comb = comb / divisor[:, :, None]
        divisor = tl.sum(comb, 1) + hc_eps
        tl.store(slot + (2 * i + 2) * (BR * 4), divisor)
        comb = comb / divisor[:, None, :]
    tl.debug_barrier()
    i16 = four[:, None] * 4 + four[None, :]
    grad = tl.load(dcomb_ptr + row[:, None, None] * 16 + i16[None, :, :])
    for back in range(ITERATIONS - 1):
        i = ITERATIONS - 2 - back
        divisor = tl.load(slot + (2 * i + 2) * (BR * 4))
        grad = (grad - tl.sum(grad * comb, 1)[:, None, :]) / divisor[:, None, :]
        comb = comb * divisor[:, None, :]
        divisor = tl.load(slot + (2 * i + 1) * (BR * 4))
        grad = (grad - tl.sum(grad * comb, 2)[:, :, None]) / divisor[:, :, None]
        comb = comb * divisor[:, :, None]
    divisor = tl.load(slot)
    grad = (grad - tl.sum(grad * comb, 1)[:, None, :]) / divisor[:, None, :]
    grad = start * (grad - tl.sum(grad * start, 2)[:, :, None])
    tl.store(dlogit_ptr + row[:, None, None] * N + 8 + i16[None, :, :], grad)


@triton.jit
def _expand_forward(y_ptr, x_ptr, post_ptr, comb_ptr, out_ptr, D: tl.constexpr, BR: tl.constexpr):
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    column = tl.arange(0, D)
    wide = row.to(tl.int64)[:, None] * D
    y = tl.load(y_ptr + wide + column[None, :]).to(tl.float32)
    x0 = tl.load(x_ptr + wide * 4 + column[None, :]).to(tl.float32)
    x1 = tl.load(x_ptr + wide * 4 + D + column[None, :]).to(tl.float32)
    x2 = tl.load(x_ptr + wide * 4 + 2 * D + column[None, :]).to(tl.float32)
    x3 = tl.load(x_ptr + wide * 4 + 3 * D + column[None, :]).to(tl.float32)
    for k in tl.static_range(4):
        c = comb_ptr + row * 16 + k
        out = tl.load(post_ptr + row * 4 + k)[:, None] * y
        out += tl.load(c)[:, None] * x0 + tl.load(c + 4)[:, None] * x1
        out += tl.load(c + 8)[:, None] * x2 + tl.load(c + 12)[:, None] * x3
        tl.store(out_ptr + wide * 4 + k * D + column[None, :], out.to(tl.bfloat16))


@triton.jit
def _expand_backward(
    y_ptr, x_ptr, post_ptr, comb_ptr, grad_ptr, dy_ptr, dx_ptr, dpost_ptr, dcomb_ptr,
    D: tl.constexpr, BR: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    column = tl.arange(0, D)
    wide = row.to(tl.int64)[:, None] * D
    g0 = tl.load(grad_ptr + wide * 4 + column[None, :]).to(tl.float32)
    g1 = tl.load(grad_ptr + wide * 4 + D + column[None, :]).to(tl.float32)
    g2 = tl.load(grad_ptr + wide * 4 + 2 * D + column[None, :]).to(tl.float32)
    g3 = tl.load(grad_ptr + wide * 4 + 3 * D + column[None, :]).to(tl.float32)
    y = tl.load(y_ptr + wide + column[None, :]).to(tl.float32)
    post = post_ptr + row * 4
    dy = tl.load(post)[:, None] * g0 + tl.load(post + 1)[:, None] * g1
    dy += tl.load(post + 2)[:, None] * g2 + tl.load(post + 3)[:, None] * g3
    tl.store(dy_ptr + wide + column[None, :], dy.to(tl.bfloat16))
    tl.store(dpost_ptr + row * 4, tl.sum(g0 * y, 1))
    tl.store(dpost_ptr + row * 4 + 1, tl.sum(g1 * y, 1))
    tl.store(dpost_ptr + row * 4 + 2, tl.sum(g2 * y, 1))
    tl.store(dpost_ptr + row * 4 + 3, tl.sum(g3 * y, 1))
    for j in tl.static_range(4):
        x = tl.load(x_ptr + wide * 4 + j * D + column[None, :]).to(tl.float32)
        c = comb_ptr + row * 16 + 4 * j
        dx = tl.load(c)[:, None] * g0 + tl.load(c + 1)[:, None] * g1
        dx += tl.load(c + 2)[:, None] * g2 + tl.load(c + 3)[:, None] * g3
        tl.store(dx_ptr + wide * 4 + j * D + column[None, :], dx.to(tl.bfloat16))
        dc = dcomb_ptr + row * 16 + 4 * j
        tl.store(dc, tl.sum(g0 * x, 1))
        tl.store(dc + 1, tl.sum(g1 * x, 1))
        tl.store(dc + 2, tl.sum(g2 * x, 1))
        tl.store(dc + 3, tl.sum(g3 * x, 1))


BR_MIX, BR_BACKWARD, BR_COEFFICIENTS, BR_EXPAND = 32, 16, 32, 4


class Mix(torch.autograd.Function):
    """(streams, carried, fn, base, scale, norm) -> (x, pre, post, comb)."""

    @staticmethod
    def forward(ctx, streams, carried, fn, base, scale, norm, eps: float, hc_eps: float, iterations: int):
        n_rows, s, d = streams.shape
        if s != S or n_rows % BR_MIX:
            raise ValueError(f"{s} streams, {n_rows} rows: the kernel takes {S} streams and multiples of {BR_MIX} rows")
        streams, carried = streams.contiguous(), carried.contiguous()
        fn = torch.nn.functional.pad(fn, (0, 0, 0, PADDED - fn.shape[0]))
        high = fn.to(torch.bfloat16)
        low = (fn - high.float()).to(torch.bfloat16)
        x = torch.empty(n_rows, d, device=fn.device, dtype=torch.bfloat16)
        m = torch.empty(n_rows, PADDED, device=fn.device)
        square, rstd = (torch.empty(n_rows, device=fn.device) for _ in range(2))
        _mix_forward[(n_rows // BR_MIX,)](
            streams, carried, high, low, norm, x, m, square, rstd, eps, d, BR_MIX, PADDED, num_warps=8, num_stages=2
        )
        pre, post = (torch.empty(n_rows, S, device=fn.device) for _ in range(2))
        comb = torch.empty(n_rows, S, S, device=fn.device)
        _coefficients_forward[(n_rows // BR_COEFFICIENTS,)](
            m, square, scale, base, pre, post, comb, eps, hc_eps, iterations, BR_COEFFICIENTS, PADDED, num_warps=1
        )
        ctx.save_for_backward(streams, carried, high, base, scale, norm, m, square, rstd)
        ctx.numbers = (eps, hc_eps, iterations)
        return x, pre, post, comb

    @staticmethod
    def backward(ctx, grad, dpre, dpost, dcomb):
        streams, carried, high, base, scale, norm, m, square, rstd = ctx.saved_tensors
        eps, hc_eps, iterations = ctx.numbers
        n_rows, _, d = streams.shape
        programs = n_rows // BR_COEFFICIENTS
        dlogit = torch.zeros_like(m)
        scratch = torch.empty(programs, 2 * iterations, BR_COEFFICIENTS, 4, device=m.device)
        _coefficients_backward[(programs,)](
            m, square, scale, base, dpre.contiguous(), dpost.contiguous(), dcomb.contiguous(), scratch, dlogit,
            eps, hc_eps, iterations, BR_COEFFICIENTS, PADDED, num_warps=1,
        )  # fmt: skip
        dm, dsquare, dbase, dscale = _through_affine(dlogit, m, square, scale, eps)
        dx, dp = torch.empty_like(streams), torch.empty_like(carried)
        dw = torch.empty(n_rows // BR_BACKWARD, d, device=m.device)
        _mix_backward[(n_rows // BR_BACKWARD,)](
            streams, carried, high, norm, rstd, grad.contiguous(), dm, dsquare, dx, dp, dw,
            d, BR_BACKWARD, PADDED, num_warps=4, num_stages=1,
        )  # fmt: skip
        dfn = (dm.to(torch.bfloat16).t() @ streams.view(n_rows, -1))[:24].float()
        return dx, dp, dfn, dbase, dscale, dw.sum(0).to(norm.dtype), None, None, None


def _through_affine(dlogit: Tensor, m: Tensor, square: Tensor, scale: Tensor, eps: float):
    """Gradients behind logit = m * rsqrt(square + eps) * scale[group] + base; all float32."""
    rs = torch.rsqrt(square + eps)[:, None]
    group = torch.nn.functional.pad(scale.repeat_interleave(_sizes(scale.device), output_size=24), (0, PADDED - 24))
    normalised = m * rs
    dnormalised = dlogit * group
    dm = dnormalised * rs
    dsquare = -0.5 * (dnormalised * m).sum(1) * rs[:, 0] ** 3
    per_column = (dlogit * normalised).sum(0)
    dscale = torch.stack([per_column[:4].sum(), per_column[4:8].sum(), per_column[8:24].sum()])
    return dm, dsquare.contiguous(), dlogit.sum(0)[:24], dscale


_SIZES: dict[torch.device, Tensor] = {}


def _sizes(device: torch.device) -> Tensor:
    """Columns of pre, post and comb; made once per device."""
    if device not in _SIZES:
        _SIZES[device] = torch.tensor([4, 4, 16], device=device)
    return _SIZES[device]


class Expand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, streams, post, comb):
        y, streams, post, comb = (t.contiguous() for t in (y, streams, post, comb))
        out = torch.empty_like(streams)
        n_rows, _, d = streams.shape
        _expand_forward[(n_rows // BR_EXPAND,)](y, streams, post, comb, out, d, BR_EXPAND, num_warps=4)
        ctx.save_for_backward(y, streams, post, comb)
        return out

    @staticmethod
    def backward(ctx, grad):
        y, streams, post, comb = ctx.saved_tensors
        n_rows, _, d = streams.shape
        dy, dx, dpost, dcomb = (torch.empty_like(t) for t in (y, streams, post, comb))
        _expand_backward[(n_rows // BR_EXPAND,)](
            y, streams, post, comb, grad.contiguous(), dy, dx, dpost, dcomb, d, BR_EXPAND, num_warps=4
        )
        return dy, dx, dpost, dcomb
