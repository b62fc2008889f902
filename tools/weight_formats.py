"""Bit patterns of the released weights and their values, in numpy.

BF16; E4M3FN with one E8M0 scale per 32x32 tile; E2M1 pairs with one E8M0 scale per row and 32 columns; E4M3FN table
rows with one E8M0 scale per row and 32 columns. An E8M0 byte c is 2^(c-127). The even element is the low nibble.
"""

from __future__ import annotations

import numpy as np

BLOCK = 32
E8M0_ONE = 127  # the code of scale 1, also given to blocks that are all zero


def _e4m3_magnitudes() -> np.ndarray:
    """Values of codes 0..126 (127 is NaN): 4 exponent bits, bias 7, 3 mantissa bits."""
    code = np.arange(127)
    exponent, mantissa = code >> 3, code & 7
    return np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0)).astype(np.float32)


E4M3_MAGNITUDES = _e4m3_magnitudes()
E2M1_MAGNITUDES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=np.float32)
E4M3_VALUES = np.concatenate([E4M3_MAGNITUDES, [np.nan], -E4M3_MAGNITUDES, [np.nan]]).astype(np.float32)
E2M1_VALUES = np.concatenate([E2M1_MAGNITUDES, -E2M1_MAGNITUDES])


def nearest_code(magnitude: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Index of the nearest entry of an ascending table; ties to the even index; above the last entry: the last."""
    middles = (table[1:] + table[:-1]) / 2
    code = np.searchsorted(middles, magnitude, side="left")
    tie = magnitude == middles[np.minimum(code, len(middles) - 1)]
    return (code + (tie & (code % 2 == 1) & (code < len(middles)))).astype(np.uint8)


def encode_e4m3(x: np.ndarray) -> np.ndarray:
    return nearest_code(np.abs(x), E4M3_MAGNITUDES) | (np.signbit(x).astype(np.uint8) << 7)


def encode_e2m1(x: np.ndarray) -> np.ndarray:
    return nearest_code(np.abs(x), E2M1_MAGNITUDES) | (np.signbit(x).astype(np.uint8) << 3)


def encode_bf16(x: np.ndarray) -> np.ndarray:
    """Round to nearest even; finite input."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def decode_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def round_bf16(x: np.ndarray) -> np.ndarray:
    return decode_bf16(encode_bf16(x))


def pow2ceil_code(amax: np.ndarray, largest: float) -> np.ndarray:
    """E8M0 code of the smallest power of two >= amax / largest; code 127 where amax is 0."""
    bits = (amax.astype(np.float32) / np.float32(largest)).view(np.uint32)
    code = (bits >> 23) + ((bits & 0x7FFFFF) != 0)
    return np.where(amax == 0, E8M0_ONE, np.minimum(code, 254)).astype(np.uint8)


def e8m0_value(code: np.ndarray) -> np.ndarray:
    """2^(code-127), as the exponent field of a float32; code 0 is the subnormal 2^-127."""
    return np.where(code == 0, np.uint32(1 << 22), code.astype(np.uint32) << 23).view(np.float32)


def encode_fp8_tiles(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[N, K] -> (E4M3 codes [N, K], E8M0 codes [ceil(N/32), K/32])."""
    n, k = w.shape
    padded = np.zeros((-(-n // BLOCK) * BLOCK, k), np.float32)
    padded[:n] = w
    tiles = np.abs(padded).reshape(-1, BLOCK, k // BLOCK, BLOCK)
    scale = pow2ceil_code(tiles.max(axis=(1, 3)), 448.0)
    return encode_e4m3(w / tile_scale(scale, w.shape)), scale


def encode_fp8_rows(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[N, K] -> (E4M3 codes [N, K], E8M0 codes [N, K/32]): the Engram table."""
    scale = pow2ceil_code(np.abs(w).reshape(len(w), -1, BLOCK).max(axis=2), 448.0)
    return encode_e4m3(w / row_scale(scale)), scale


def encode_fp4_rows(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[N, K] -> (E2M1 pairs [N, K/2], E8M0 codes [N, K/32]): the routed experts."""
    scale = pow2ceil_code(np.abs(w).reshape(len(w), -1, BLOCK).max(axis=2), 6.0)
    code = encode_e2m1(w / row_scale(scale))
    return code[:, 0::2] | (code[:, 1::2] << 4), scale


def tile_scale(scale: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return e8m0_value(scale).repeat(BLOCK, 0)[: shape[0]].repeat(BLOCK, 1)[:, : shape[1]]


def row_scale(scale: np.ndarray) -> np.ndarray:
    return e8m0_value(scale).repeat(BLOCK, -1)


def decode_fp8_tiles(code: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return E4M3_VALUES[code] * tile_scale(scale, code.shape)


def decode_fp8_rows(code: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return E4M3_VALUES[code] * row_scale(scale)


def decode_fp4_rows(pairs: np.ndarray, scale: np.ndarray) -> np.ndarray:
    code = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(pairs.shape[0], -1)
    return E2M1_VALUES[code] * row_scale(scale)
