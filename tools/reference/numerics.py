"""Rounding and summation: the only file that knows how numbers are represented.

Values travel as float32 tensors. A function named after a format returns the nearest values of that format, again as
float32, so a rounding point of the model is one visible call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

E4M3_MAX = 448.0
E2M1_MAX = 6.0


def round_bf16(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16).to(torch.float32)


def round_e4m3(x: Tensor) -> Tensor:
    """Nearest even, saturating (the cast alone would give NaN above 448)."""
    return x.clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn).to(torch.float32)


def round_e2m1(x: Tensor) -> Tensor:
    """Nearest of +-{0, .5, 1, 1.5, 2, 3, 4, 6}, ties to the even code, saturating, the sign of zero kept."""
    a = x.abs()
    up_on_tie = torch.stack([a >= 0.75, a >= 1.75, a >= 3.5]).sum(0)
    down_on_tie = torch.stack([a > 0.25, a > 1.25, a > 2.5, a > 5.0]).sum(0)
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float32)
    return torch.copysign(magnitudes[up_on_tie + down_on_tie], x)


def pow2ceil(t: Tensor) -> Tensor:
    """Smallest power of two >= t, for positive normal float32: exponent field plus one if any mantissa bit is set."""
    bits = t.contiguous().view(torch.int32)
    exponent = (bits >> 23) + ((bits & 0x7FFFFF) != 0)
    return (exponent.to(torch.int32) << 23).view(torch.float32)


def _blocks(x: Tensor, size: int) -> Tensor:
    return x.reshape(*x.shape[:-1], x.shape[-1] // size, size)


def quantize_fp8(x: Tensor) -> Tensor:
    """E4M3 with a power-of-two scale per 32 values: activations of FP8 and FP4 linears, and window KV."""
    b = _blocks(x, 32)
    amax = b.abs().amax(-1, keepdim=True).clamp(min=1e-4)
    scale = pow2ceil(amax * torch.tensor(1 / E4M3_MAX, dtype=torch.float32))
    return (round_e4m3(b / scale) * scale).reshape(x.shape)


def quantize_mxfp4(x: Tensor) -> Tensor:
    """E2M1 with a power-of-two scale per 32 values: index queries and keys."""
    b = _blocks(x, 32)
    amax = b.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0**-126)
    scale = pow2ceil(amax * torch.tensor(1 / E2M1_MAX, dtype=torch.float32))
    return (round_e2m1(b / scale) * scale).reshape(x.shape)


def quantize_nvfp4(x: Tensor) -> Tensor:
    """E2M1 with an E4M3 scale per 16 values: compressed KV. The scale is rounded: |x|/scale may exceed 6 (clamped)."""
    b = _blocks(x, 16)
    amax = b.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0**-9)
    scale = round_e4m3(amax / E2M1_MAX)
    return (round_e2m1(b / scale) * scale).reshape(x.shape)


@dataclass(frozen=True)
class Arithmetic:
    """How sums and roundings are carried out; handed to every part of the model as `nx`.

    accumulate        type of running sums; results are float32
    straight_through  roundings keep their value but have the gradient of the identity (for training)
    """

    accumulate: torch.dtype = torch.float64
    straight_through: bool = False

    def _round(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        if not self.straight_through:
            return f(x)
        return x + (f(x.detach()) - x.detach())

    def bf16(self, x: Tensor) -> Tensor:
        return self._round(round_bf16, x)

    def fp8(self, x: Tensor) -> Tensor:
        return self._round(quantize_fp8, x)

    def mxfp4(self, x: Tensor) -> Tensor:
        return self._round(quantize_mxfp4, x)

    def nvfp4(self, x: Tensor) -> Tensor:
        return self._round(quantize_nvfp4, x)

    def wide(self, x: Tensor) -> Tensor:
        return x.to(self.accumulate)

    def sum(self, x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
        return self.wide(x).sum(dim, keepdim=keepdim).float()

    def mean_square(self, x: Tensor) -> Tensor:
        """Mean of x^2 over the last dimension, kept with size 1."""
        return self.wide(x).square().mean(-1, keepdim=True).float()

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        return (self.wide(a) @ self.wide(b)).float()

    def linear_f32(self, x: Tensor, weight: Tensor) -> Tensor:
        """x [.., K], weight [N, K] -> float32 [.., N]."""
        return self.matmul(x, weight.T)

    def linear_bf16(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.bf16(self.linear_f32(x, weight))

    def linear_fp8(self, x: Tensor, weight: Tensor) -> Tensor:
        """Input quantised to FP8 per 32; the weight is FP8 or FP4, already decoded. All scales are powers of two, so
        multiplying decoded values and summing once equals the release's scaled sum of block sums."""
        return self.linear_bf16(self.fp8(x), weight)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return self.bf16(weight * (x * torch.rsqrt(self.mean_square(x) + eps)))
