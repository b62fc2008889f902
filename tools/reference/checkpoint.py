"""A checkpoint folder in the released format, read lazily and decoded to float32 tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

import weight_formats as formats
from safetensors_io import Raw, SafetensorsFile


class Weights(Protocol):
    """Where a part of the model gets its weights: `w(name, *shape)` is a float32 tensor of exactly that shape.
    A trainer can pass anything that behaves so (e.g. parameters rounded straight-through)."""

    def __call__(self, name: str, *shape: int) -> Tensor: ...

    def scope(self, prefix: str) -> Weights: ...

    def table_rows(self, name: str, ids: np.ndarray) -> Tensor: ...


class Checkpoint:
    """Weights of one folder. The stored dtype decides the decoding: FP8 tiles, FP4 rows, BF16 or F32."""

    def __init__(self, folder: Path, prefix: str = "", parent: Checkpoint | None = None):
        self.prefix = prefix
        if parent is not None:
            self._folder, self._where, self._files = parent._folder, parent._where, parent._files
            return
        index = folder / "model.safetensors.index.json"
        self._folder = folder
        self._files: dict[str, SafetensorsFile] = {}
        if index.exists():
            self._where: dict[str, str] = json.loads(index.read_text())["weight_map"]
        else:
            self._where = dict.fromkeys(SafetensorsFile(folder / "model.safetensors").names(), "model.safetensors")

    def scope(self, prefix: str) -> Checkpoint:
        return Checkpoint(self._folder, self.prefix + prefix, self)

    def names(self) -> list[str]:
        return list(self._where)

    def raw(self, name: str) -> Raw:
        full = self.prefix + name
        if full not in self._where:
            raise KeyError(f"missing tensor {full}")
        file_name = self._where[full]
        if file_name not in self._files:
            self._files[file_name] = SafetensorsFile(self._folder / file_name)
        return self._files[file_name].raw(full)

    def __call__(self, name: str, *shape: int) -> Tensor:
        stored = self.raw(name)
        if stored.dtype == "F8_E4M3":
            value = formats.decode_fp8_tiles(stored.data, self._scale(name))
        elif stored.dtype == "I8":
            value = formats.decode_fp4_rows(stored.data, self._scale(name))
        elif stored.dtype == "BF16":
            value = formats.decode_bf16(stored.data)
        elif stored.dtype == "F32":
            value = np.array(stored.data)
        else:
            raise ValueError(f"tensor {self.prefix}{name} has unsupported dtype {stored.dtype}")
        if value.shape != shape:
            raise ValueError(f"tensor {self.prefix}{name} is {list(value.shape)}, the config asks for {list(shape)}")
        return torch.from_numpy(value)

    def table_rows(self, name: str, ids: np.ndarray) -> Tensor:
        """Rows of an FP8 table with one scale per row and 32 columns: ids [..] -> float32 [.., columns]."""
        flat = ids.reshape(-1)
        rows = formats.decode_fp8_rows(self.raw(name).data[flat], self._scale(name)[flat])
        return torch.from_numpy(rows).unflatten(0, ids.shape)

    def _scale(self, name: str) -> np.ndarray:
        return self.raw(name.removesuffix("weight") + "scale").data
