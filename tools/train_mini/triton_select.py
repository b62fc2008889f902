"""Index scores and selection kernels; none of them has a gradient. Definitions: plain_kernels.py."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _scores(
    q_ptr, g_ptr, k_ptr, out_ptr, length, n_entries,
    RATIO: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Tile of BQ rows x BK entries of one sequence; tiles that no row of theirs may see are left unwritten."""
    k0 = tl.program_id(0) * BK
    t0 = tl.program_id(1) * BQ
    sequence = tl.program_id(2).to(tl.int64)
    if k0 * RATIO < t0 + BQ:
        t = t0 + tl.arange(0, BQ)
        row = sequence * length + t
        key = k0 + tl.arange(0, BK)
        column = tl.arange(0, D)
        real_t, real_k = t < length, key < n_entries
        at = (sequence * n_entries + key)[:, None] * D + column[None, :]
        k = tl.load(k_ptr + at, mask=real_k[:, None], other=0.0)
        total = tl.zeros([BQ, BK], tl.float32)
        for h in range(H):
            q = tl.load(q_ptr + (row * H + h)[:, None] * D + column[None, :], mask=real_t[:, None], other=0.0)
            g = tl.load(g_ptr + row * H + h, mask=real_t, other=0.0).to(tl.float32)
            dots = tl.dot(q, tl.trans(k)).to(tl.bfloat16).to(tl.float32)
            total += (tl.maximum(dots, 0.0) * g[:, None]).to(tl.bfloat16).to(tl.float32)
        to = out_ptr + row[:, None] * n_entries + key[None, :]
        tl.store(to, total.to(tl.bfloat16), mask=real_t[:, None] & real_k[None, :])


@triton.jit
def _ordered(score):
    """bf16 -> int32 that orders like the number, 1..65535 for anything but NaN (-0 counts as +0)."""
    bits = (score.to(tl.float32) + 0.0).to(tl.bfloat16).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    return tl.where(bits >= 0x8000, 0xFFFF - bits, bits + 0x8000)


@triton.jit
def _threshold(order, k):
    """Largest v with at least k values >= v (0 if there are fewer than k)."""
    v = 0
    for i in tl.static_range(16):
        higher = v + (1 << (15 - i))
        v = tl.where(tl.sum((order >= higher).to(tl.int32), 0) >= k, higher, v)
    return v


@triton.jit
def _best(order, k):
    """Marks the k best of `order`, ties to the lower index, 0 never."""
    v = _threshold(order, k)
    above = order > v
    tied = (order == v) & (v > 0)
    room = k - tl.sum(above.to(tl.int32), 0)
    rank = tl.cumsum(tied.to(tl.int32), 0)
    return above | (tied & (rank <= room))


@triton.jit
def _select(
    score_ptr, lo_ptr, hi_ptr, candidate_ptr, out_ptr, n_entries, n_blocks,
    HAS_CANDIDATES: tl.constexpr, BLOCK: tl.constexpr, K: tl.constexpr, NP: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    lo = tl.load(lo_ptr + t)
    hi = tl.load(hi_ptr + t)
    column = tl.arange(0, NP)
    visible = (column >= lo) & (column < hi)
    score = tl.load(score_ptr + t * n_entries + column, mask=visible, other=0.0)
    if HAS_CANDIDATES:
        visible = visible & (tl.load(candidate_ptr + t * n_blocks + column // BLOCK, mask=visible, other=0) > 0)
    chosen = _best(tl.where(visible, _ordered(score), 0), K)
    slot = tl.cumsum(chosen.to(tl.int32), 0) - 1
    tl.store(out_ptr + t * K + slot, column, mask=chosen)


@triton.jit
def _candidates(
    score_ptr, lo_ptr, hi_ptr, out_ptr, n_entries, n_blocks,
    BLOCK: tl.constexpr, K: tl.constexpr, NB: tl.constexpr,
):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    lo = tl.load(lo_ptr + t)
    hi = tl.load(hi_ptr + t)
    block = tl.arange(0, NB)
    column = block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    visible = (column >= lo) & (column < hi)
    score = tl.load(score_ptr + t * n_entries + column, mask=visible, other=0.0)
    best = tl.max(tl.where(visible, _ordered(score), 0), 1)
    newest = (hi > lo) & (block == (hi - 1) // BLOCK)
    chosen = _best(tl.where(newest, 0x10000 - 1, best), K)
    tl.store(out_ptr + t * n_blocks + block, chosen.to(tl.int8), mask=block < n_blocks)


def index_scores(q: Tensor, g: Tensor, keys: Tensor, n_seq: int, ratio: int) -> Tensor:
    """bf16 [R, N]; entries that a row may not see hold anything."""
    n_rows, heads, width = q.shape
    length, n_entries = n_rows // n_seq, len(keys) // n_seq
    out = torch.empty(n_rows, n_entries, device=q.device, dtype=torch.bfloat16)
    bq, bk = 64, 64
    grid = (triton.cdiv(n_entries, bk), triton.cdiv(length, bq), n_seq)
    _scores[grid](
        q.contiguous(), g.contiguous(), keys.contiguous(), out, length, n_entries, ratio, heads, width, bq, bk,
        num_warps=4,
    )  # fmt: skip
    return out


def select(scores: Tensor, lo: Tensor, hi: Tensor, k: int, candidates: Tensor | None, block: int) -> Tensor:
    n_rows, n_entries = scores.shape
    out = torch.full((n_rows, k), -1, device=scores.device, dtype=torch.int32)
    padded = triton.next_power_of_2(n_entries)
    n_blocks = candidates.shape[1] if candidates is not None else 0
    _select[(n_rows,)](
        scores, lo, hi, candidates if candidates is not None else scores, out, n_entries, n_blocks,
        candidates is not None, block, k, padded, num_warps=_warps(padded),
    )  # fmt: skip
    return out


def candidate_blocks(scores: Tensor, lo: Tensor, hi: Tensor, block: int, n_blocks: int) -> Tensor:
    """int8 [R, N/block]: 1 for a published block."""
    n_rows, n_entries = scores.shape
    here = triton.cdiv(n_entries, block)
    out = torch.empty(n_rows, here, device=scores.device, dtype=torch.int8)
    padded = triton.next_power_of_2(here)
    _candidates[(n_rows,)](
        scores, lo, hi, out, n_entries, here, block, n_blocks, padded, num_warps=_warps(padded * block)
    )
    return out


def _warps(n: int) -> int:
    return 1 if n <= 512 else 4 if n <= 4096 else 8
