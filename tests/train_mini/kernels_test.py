"""The Triton kernels against their plain definitions, values and gradients; on the CPU through Triton's interpreter."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest
import torch

from train_mini import plain_kernels as plain
from train_mini.numerics import Numerics

pytest.importorskip("triton")
from train_mini import triton_attention, triton_mix, triton_select

NX = Numerics()


def dot_of_bf16(create_dot):
    """Triton 3.6's interpreter keeps bf16 as bit patterns and multiplies those; widen them first."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def wide(a):
        if a.dtype.scalar != tl.bfloat16:
            return a
        return TensorHandle((a.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    return lambda self, a, b, *rest: create_dot(self, wide(a), wide(b), *rest)


if os.environ["TRITON_INTERPRET"] == "1":
    from triton.runtime.interpreter import InterpreterBuilder

    InterpreterBuilder.create_dot = dot_of_bf16(InterpreterBuilder.create_dot)
DEVICE = "cuda" if torch.cuda.is_available() and os.environ["TRITON_INTERPRET"] == "0" else "cpu"


def draw(*shape, scale=1.0, seed=0, dtype=torch.bfloat16):
    g = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.randn(*shape, generator=g) * scale).to(dtype).to(DEVICE)


def close(got, want, tolerance):
    """Relative error of the whole tensor: bf16 storage of sums gives about 0.4 %."""
    error = (got.float() - want.float()).norm() / want.float().norm().clamp(min=1e-6)
    assert error < tolerance, f"relative error {error:.2e}"


def ranges(n, length, width, ratio):
    t = torch.arange(n, dtype=torch.int32)
    start = t // length * length
    start = torch.where(t % length >= 24, start + 24, start)
    window = (torch.maximum(t - width + 1, start).contiguous(), t + 1)
    return [r.to(DEVICE) for r in window], [(start // ratio).contiguous().to(DEVICE), ((t + 1) // ratio).to(DEVICE)]


def joined(parts_o, parts_lse, sink):
    total = torch.logaddexp(torch.logaddexp(parts_lse[0], parts_lse[1]), sink)
    return sum(o.float() * torch.exp(lse - total)[..., None] for o, lse in zip(parts_o, parts_lse))


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_attention(ratio, sparse):
    n, length, heads, d, width = 64, 32, 8, 64, 16
    w_range, e_range = ranges(n, length, width, ratio)
    everything = plain.all_entries(e_range, length // ratio)
    picked = torch.where(torch.rand(everything.shape, device=DEVICE) < 0.5, everything, -1) if sparse else everything
    leaves = [draw(n, heads, d), draw(n, d, seed=1), draw(n // ratio, d, seed=2), draw(heads, dtype=torch.float32)]
    upstream = draw(n, heads, d, seed=5)
    results = []
    for fast in (True, False):
        q, window, entries, sink = (t.clone().requires_grad_() for t in leaves)
        if fast:
            near = triton_attention.window_attention(q, window, w_range, length, width)
            if sparse:
                far = triton_attention.gather_attention(q, entries, picked)
            else:
                far = triton_attention.dense_attention(q, entries, e_range, ratio, length)
            out = joined(*zip(near, far), sink)
        else:
            out = plain.attend(NX, q, window, w_range, width, entries, picked, sink)
        (out * upstream).sum().backward()
        results.append([out.detach(), *(t.grad for t in (q, window, entries, sink))])
    for got, want in zip(*results):
        close(got, want, 0.012)


@pytest.mark.parametrize("ratio", [1, 2])
def test_scores_and_selection(ratio):
    n, length, heads, d = 64, 32, 4, 64
    n_seq, n_entries = n // length, length // ratio
    q, g, keys = draw(n, heads, d), draw(n, heads, seed=1), draw(n // ratio, d, seed=2)
    got = triton_select.index_scores(q, g, keys, n_seq, ratio)
    want = plain.index_scores(NX, q, g, keys, n_seq)
    _, (lo, hi) = ranges(n, length, 16, ratio)
    base = (torch.arange(n, device=DEVICE) // length * n_entries).int()
    lo, hi = lo - base, hi - base
    visible = plain._between(want, lo, hi)
    close(torch.where(visible, got, 0), torch.where(visible, want, 0), 0.01)
    coarse = (want.float() * 0.2).round().bfloat16()  # many ties
    for scores in (want, coarse):
        chosen = triton_select.select(scores, lo, hi, 6, None, 2)
        assert torch.equal(chosen, plain.select(scores, lo, hi, 6, None, 2))
        blocks = triton_select.candidate_blocks(scores, lo, hi, 2, 4)
        assert torch.equal(blocks.bool(), plain.candidate_blocks(scores, lo, hi, 2, 4))
        chosen = triton_select.select(scores, lo, hi, 6, blocks, 2)
        assert torch.equal(chosen, plain.select(scores, lo, hi, 6, blocks.bool(), 2))


def test_mix_and_expand():
    n, d = 64, 64
    leaves = [
        draw(n, 4, d), draw(n, 4, dtype=torch.float32), draw(24, 4 * d, scale=0.1, dtype=torch.float32),
        draw(24, dtype=torch.float32), torch.tensor([0.7, -0.5, 1.1], device=DEVICE),
        draw(d, seed=3), draw(n, d, seed=4),
    ]  # fmt: skip
    numbers = (1e-20, 1e-6, 20)
    upstream = [draw(n, d, seed=6), draw(n, 4, seed=7), draw(n, 4, d, seed=8)]
    results = []
    for fast in (True, False):
        streams, carried, fn, base, scale, norm, y = (t.clone().requires_grad_() for t in leaves)
        if fast:
            x, pre, post, comb = triton_mix.Mix.apply(streams, carried, fn, base, scale, norm, *numbers)
            out = triton_mix.Expand.apply(y, streams, post, comb)
        else:
            x, pre, post, comb = plain.mix(NX, streams, carried, fn, base, scale, norm, *numbers)
            out = plain.expand(NX, y, streams, post, comb)
        sum((a.float() * b.float()).sum() for a, b in zip((x, pre, out), upstream)).backward()
        values = [x.detach(), pre.detach(), post.detach(), comb.detach(), out.detach()]
        results.append(values + [t.grad for t in (streams, carried, fn, base, scale, norm, y)])
    for got, want in zip(*results):
        close(got, want, 0.012)
