"""The operations that have a Triton form in triton_kernels.py, in plain PyTorch: the definition, and the CPU's way."""

from __future__ import annotations

import torch
from torch import Tensor

from .numerics import Numerics

_BLOCK = 64  # slots per step of the running softmax
_ROWS = 256  # rows of a score matrix at a time


def attend(
    nx: Numerics, q: Tensor, window: Tensor, w_range: tuple[Tensor, Tensor], width: int,
    entries: Tensor | None, selected: Tensor | None, sink: Tensor,
) -> Tensor:  # fmt: skip
    """Softmax attention of q [R, H, D] over window rows [R, D] in the range and `selected` [R, K] of entries [N, D].

    Slots 0..width-1 are the window, then the selection (-1: none), each packed to the left; probabilities are rounded
    relative to the running maximum over blocks of 64 slots. sink [H] takes part in the denominator only.
    """
    lo, hi = (r.long()[:, None] for r in w_range)
    slot = lo + torch.arange(width, device=q.device)
    slot = torch.where(slot < hi, slot, -1)
    keys = window
    if entries is not None and selected is not None:
        shifted = torch.where(selected < 0, -1, selected.long() + len(window))
        slot, keys = torch.cat([slot, shifted], 1), torch.cat([window, entries])
    slot = torch.nn.functional.pad(slot, (0, -slot.shape[1] % _BLOCK), value=-1)
    wide = torch.float64 if nx.exact else torch.float32
    top = torch.full(q.shape[:2], -1e30, device=q.device)
    total = torch.zeros(q.shape[:2], dtype=wide, device=q.device)
    out = torch.zeros(q.shape, dtype=wide, device=q.device)
    for block in slot.split(_BLOCK, dim=1):
        if bool((block < 0).all()):
            continue
        k = keys[block.clamp(min=0)].to(wide)
        score = (q.to(wide) @ k.transpose(1, 2)).float() * (q.shape[-1] ** -0.5)
        score = score.masked_fill((block < 0)[:, None, :], -torch.inf)
        new_top = torch.maximum(top, score.detach().amax(-1))
        p = torch.exp(score - new_top[..., None])
        shrink = torch.exp(top - new_top).to(wide)
        total = total * shrink + p.to(wide).sum(-1)
        out = out * shrink[..., None] + nx.store(p).to(wide) @ k
        top = new_top
    total = total + torch.exp(sink - top).to(wide)
    return nx.store(out.float() / total.float()[..., None])


def all_entries(e_range: tuple[Tensor, Tensor], n_max: int) -> Tensor:
    """int32 [R, n_max]: every visible entry, ascending, then -1."""
    lo, hi = (r[:, None] for r in e_range)
    slot = lo + torch.arange(n_max, device=lo.device, dtype=torch.int32)
    return torch.where(slot < hi, slot, -1)


def index_scores(nx: Numerics, q: Tensor, g: Tensor, keys: Tensor, n_seq: int) -> Tensor:
    """bf16 values [R, N] of queries [R, Hi, Di], weights g [R, Hi] and the keys [B*N, Di] of the row's own sequence."""
    n = len(keys) // n_seq
    parts = []
    for i in range(n_seq):
        own = slice(i * len(q) // n_seq, (i + 1) * len(q) // n_seq)
        for qs, gs in zip(q[own].split(_ROWS), g[own].split(_ROWS)):
            dots = nx.linear(qs, keys[i * n : (i + 1) * n])
            product = nx.store(dots.relu().float() * gs.float()[..., None])
            wide = product.double() if nx.exact else product.float()
            parts.append(nx.store(wide.sum(1).float()))
    return torch.cat(parts)


def candidate_blocks(scores: Tensor, lo: Tensor, hi: Tensor, block: int, n_blocks: int) -> Tensor:
    """bool [R, N/block]: the best blocks of each row; lo, hi: visible columns, lo a multiple of the block size.
    A block scores as its best visible entry; the one with the newest visible entry is always in."""
    visible = _between(scores, lo, hi)
    scores = scores.float().masked_fill(~visible, -torch.inf)
    extra = -scores.shape[1] % block
    scores = torch.nn.functional.pad(scores, (0, extra), value=-torch.inf)
    best = scores.unflatten(1, (-1, block)).amax(-1)
    newest = ((hi.long() - 1).clamp(min=0) // block)[:, None]
    seeing = (hi > lo)[:, None]
    best = torch.where(seeing & (torch.arange(best.shape[1], device=best.device) == newest), torch.inf, best)
    order = best.sort(dim=1, descending=True, stable=True).indices[:, :n_blocks]
    kept = torch.zeros_like(best, dtype=torch.bool).scatter_(1, order, True)
    return kept & (best > -torch.inf)


def select(scores: Tensor, lo: Tensor, hi: Tensor, k: int, candidates: Tensor | None, block: int) -> Tensor:
    """int32 [R, k]: columns of the k best visible scores, ascending, then -1; ties go to the lower column."""
    visible = _between(scores, lo, hi)
    if candidates is not None:
        visible &= candidates.repeat_interleave(block, 1)[:, : scores.shape[1]]
    scores = scores.float().masked_fill(~visible, -torch.inf)
    none = scores.shape[1]
    order = scores.sort(dim=1, descending=True, stable=True).indices[:, :k]
    picked = torch.where(scores.gather(1, order) == -torch.inf, none, order).sort(dim=1).values
    picked = torch.where(picked == none, -1, picked)
    return torch.nn.functional.pad(picked, (0, k - picked.shape[1]), value=-1).int()


def _between(scores: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    column = torch.arange(scores.shape[1], device=scores.device)
    return (column >= lo[:, None]) & (column < hi[:, None])


def mixing_coefficients(m: Tensor, s: int, iterations: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """pre [R, S], post [R, S], comb [R, S, S] (in, out) from the scaled and shifted products m [R, (2+S)S]."""
    pre = torch.sigmoid(m[:, :s]) + eps
    post = 2 * torch.sigmoid(m[:, s : 2 * s])
    comb = m[:, 2 * s : (2 + s) * s].unflatten(1, (s, s)).softmax(-1) + eps
    comb = comb / (comb.sum(-2, keepdim=True) + eps)
    for _ in range(iterations - 1):
        comb = comb / (comb.sum(-1, keepdim=True) + eps)
        comb = comb / (comb.sum(-2, keepdim=True) + eps)
    return pre, post, comb


def mix(
    nx: Numerics, streams: Tensor, carried: Tensor, fn: Tensor, base: Tensor, scale: Tensor, norm: Tensor,
    eps: float, hc_eps: float, iterations: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """One site: x = norm(collapse(streams [R, S, d], carried [R, S])) and the site's pre, post, comb."""
    s = streams.shape[1]
    v = streams.flatten(1).float()
    m = nx.linear32(v, fn) if nx.exact else torch.nn.functional.linear(v, fn)
    m = m * torch.rsqrt(nx.mean_square(v) + eps)
    sizes = torch.tensor([s, s, s * s], device=scale.device)
    per_coefficient = scale.repeat_interleave(sizes, output_size=(2 + s) * s)
    if nx.exact:  # one rounding, as a fused multiply-add
        m = (m.double() * per_coefficient.double() + base.double()).float()
    else:
        m = m * per_coefficient + base
    pre, post, comb = mixing_coefficients(m, s, iterations, hc_eps)
    collapsed = nx.store(_sum_in_order(carried[..., None] * streams.float()))
    return nx.rms_norm(collapsed, norm, eps), pre, post, comb


def expand(nx: Numerics, y: Tensor, streams: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    """[R, S, d]: out_k = post_k y + sum_j comb[j, k] streams_j."""
    kept = _sum_in_order(comb[..., None] * streams.float()[:, :, None, :])
    return nx.store(post[..., None] * y.float()[:, None, :] + kept)


def collapse(nx: Numerics, streams: Tensor, carried: Tensor) -> Tensor:
    return nx.store(_sum_in_order(carried[..., None] * streams.float()))


def _sum_in_order(terms: Tensor) -> Tensor:
    total = terms[:, 0]
    for i in range(1, terms.shape[1]):
        total = total + terms[:, i]
    return total
