"""Roundings of the model with straight-through gradients, in plain arithmetic that compiles on any device.

Two ways to run. Fast: values are stored as bf16 and products accumulate in float32. Exact (tests): values are float32
tensors on the bf16 grid and products accumulate in float64, as tools/reference does. Shapes are [.., channels].
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 32
# The release multiplies by the float32 reciprocals.
_PER_448 = torch.tensor(1 / 448, dtype=torch.float32).item()
_PER_6 = torch.tensor(1 / 6, dtype=torch.float32).item()


def straight_through(rounded: Tensor, x: Tensor) -> Tensor:
    """Value of `rounded`, gradient of x. The difference of a float32 and its rounding is exact, so the value is too."""
    return x + (rounded - x).detach()


def _bits(x: Tensor) -> Tensor:
    return x.contiguous().view(torch.int32)


def pow2floor(x: Tensor) -> Tensor:
    """Largest power of two <= x, for x >= 0 (0 gives 0)."""
    return (_bits(x) & 0x7F800000).view(torch.float32)


def pow2ceil(x: Tensor) -> Tensor:
    """Smallest power of two >= x, for positive normal float32."""
    return ((_bits(x) + 0x7FFFFF) & 0x7F800000).view(torch.float32)


def round_e4m3(x: Tensor) -> Tensor:
    """Nearest even, saturating; the step is 2^-9 below 2^-6."""
    x = x.clamp(-448.0, 448.0)
    step = pow2floor(x.abs()).clamp(min=2.0**-6) * 0.125
    return torch.round(x / step) * step


def round_e2m1(x: Tensor) -> Tensor:
    """Nearest of 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives, ties to the even code, saturating."""
    x = x.clamp(-6.0, 6.0)
    step = pow2floor(x.abs()).clamp(min=1.0) * 0.5
    return torch.round(x / step) * step


def _blocks(x: Tensor, size: int) -> Tensor:
    return x.unflatten(-1, (x.shape[-1] // size, size))


def quantize_fp8(x: Tensor) -> Tensor:
    """float32 -> E4M3 with a power-of-two scale per 32: activations and window KV."""
    b = _blocks(x, BLOCK)
    scale = pow2ceil(b.abs().amax(-1, keepdim=True).clamp(min=1e-4) * _PER_448)
    return (round_e4m3(b / scale) * scale).flatten(-2)


def quantize_mxfp4(x: Tensor) -> Tensor:
    """float32 -> E2M1 with a power-of-two scale per 32: index queries and keys."""
    b = _blocks(x, BLOCK)
    amax = b.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0**-126)
    scale = pow2ceil(amax * _PER_6)
    return (round_e2m1(b / scale) * scale).flatten(-2)


def quantize_nvfp4(x: Tensor) -> Tensor:
    """float32 -> E2M1 with an E4M3 scale per 16: compressed KV."""
    b = _blocks(x, 16)
    scale = round_e4m3(b.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0**-9) / 6.0)
    return (round_e2m1(b / scale) * scale).flatten(-2)


def _weight_scale(amax: Tensor, largest: float) -> Tensor:
    """The checkpoint writer's rule: pow2ceil(amax / largest), 1 for an all-zero block."""
    return torch.where(amax == 0, 1.0, pow2ceil((amax / largest).clamp(min=2.0**-126)))


def quantize_fp8_tiles(w: Tensor) -> Tensor:
    """[.., N, K] -> E4M3 with one scale per 32x32 tile; N and K are multiples of 32."""
    n, k = w.shape[-2:]
    tiles = w.reshape(*w.shape[:-2], n // BLOCK, BLOCK, k // BLOCK, BLOCK)
    scale = _weight_scale(tiles.abs().amax((-3, -1), keepdim=True), 448.0)
    return (round_e4m3(tiles / scale) * scale).reshape(w.shape)


def quantize_fp8_rows(w: Tensor) -> Tensor:
    """[.., K] -> E4M3 with one scale per row and 32 columns: rows of the Engram table."""
    b = _blocks(w, BLOCK)
    scale = _weight_scale(b.abs().amax(-1, keepdim=True), 448.0)
    return (round_e4m3(b / scale) * scale).flatten(-2)


def quantize_fp4_rows(w: Tensor) -> Tensor:
    """[.., K] -> E2M1 with one scale per row and 32 columns: routed experts."""
    b = _blocks(w, BLOCK)
    scale = _weight_scale(b.abs().amax(-1, keepdim=True), 6.0)
    return (round_e2m1(b / scale) * scale).flatten(-2)


class Numerics:
    """How values are stored and products summed; handed to every part of the model as `nx`."""

    def __init__(self, exact: bool = False):
        self.exact = exact
        self.dtype = torch.float32 if exact else torch.bfloat16

    def store(self, x: Tensor) -> Tensor:
        """float32 -> the storage type, rounded to bf16."""
        if not self.exact:
            return x.to(torch.bfloat16)
        return straight_through(x.to(torch.bfloat16).float(), x)

    def _quantized(self, f, x: Tensor) -> Tensor:
        x32 = x.float()
        return straight_through(f(x32), x32).to(self.dtype)

    def fp8(self, x: Tensor) -> Tensor:
        return self._quantized(quantize_fp8, x)

    def mxfp4(self, x: Tensor) -> Tensor:
        return self._quantized(quantize_mxfp4, x)

    def nvfp4(self, x: Tensor) -> Tensor:
        return self._quantized(quantize_nvfp4, x)

    def linear(self, x: Tensor, weight: Tensor) -> Tensor:
        """x [.., K], weight [N, K] -> stored [.., N]."""
        if not self.exact:
            return F.linear(x, weight)
        return self.store(F.linear(x.double(), weight.double()).float())

    def linear32(self, x: Tensor, weight: Tensor) -> Tensor:
        """-> float32. Operands on the bf16 grid are exact in TF32, so TF32 only changes the order of the sum."""
        if not self.exact:
            return F.linear(x.float(), weight.float())
        return F.linear(x.double(), weight.double()).float()

    def linear_fp8(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.linear(self.fp8(x), weight)

    def mean_square(self, x: Tensor) -> Tensor:
        """Of float32 x over the last dimension, which stays with size 1."""
        if not self.exact:
            return x.square().mean(-1, keepdim=True)
        return x.double().square().mean(-1, keepdim=True).float()

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        x32 = x.float()
        return self.store(weight.float() * (x32 * torch.rsqrt(self.mean_square(x32) + eps)))
