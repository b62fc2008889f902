"""Reading and writing safetensors files and sharded checkpoint folders with numpy alone.

A file is: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, bytes. Values stay raw here (FP8, FP4
and BF16 arrive as unsigned integers); what the bits mean is in `weight_formats.py`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Storage type of each dtype tag; FP8, FP4 pairs, E8M0 and BF16 are bit patterns.
STORAGE = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
    "F8_E4M3": np.uint8, "F8_E8M0": np.uint8, "I8": np.uint8, "U8": np.uint8,
    "I16": np.int16, "I32": np.int32, "I64": np.int64,
}  # fmt: skip


class Raw(NamedTuple):
    """One stored tensor: its dtype tag and its raw values."""

    dtype: str
    data: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


class SafetensorsFile:
    """A memory-mapped file; `raw(name)` is a view, nothing is copied."""

    def __init__(self, path: Path):
        with open(path, "rb") as f:
            (header_bytes,) = struct.unpack("<Q", f.read(8))
            header = json.loads(f.read(header_bytes))
        header.pop("__metadata__", None)
        self._entries = header
        self._map = np.memmap(path, dtype=np.uint8, mode="r")
        self._base = 8 + header_bytes

    def names(self) -> list[str]:
        return list(self._entries)

    def raw(self, name: str) -> Raw:
        entry = self._entries[name]
        begin, end = (self._base + offset for offset in entry["data_offsets"])
        data = (
            self._map[begin:end].view(STORAGE[entry["dtype"]]) if end > begin else np.empty(0, STORAGE[entry["dtype"]])
        )
        return Raw(entry["dtype"], data.reshape(entry["shape"]))


def write_file(path: Path, tensors: dict[str, Raw]) -> None:
    """Writes one file; the header is padded so that the data starts at a multiple of 8 bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.data.shape),
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for tensor in tensors.values():
            f.write(np.ascontiguousarray(tensor.data).tobytes())


def write_sharded(folder: Path, tensors: Iterable[tuple[str, Raw]], shard_bytes_max: int) -> int:
    """Writes `model-000NN-of-000MM.safetensors` and the index; returns the number of shards."""
    shards = list(_split(tensors, shard_bytes_max))
    weight_map, total = {}, 0
    for i, shard in enumerate(shards):
        file_name = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        write_file(folder / file_name, shard)
        weight_map.update(dict.fromkeys(shard, file_name))
        total += sum(t.nbytes for t in shard.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    return len(shards)


def _split(tensors: Iterable[tuple[str, Raw]], shard_bytes_max: int) -> Iterator[dict[str, Raw]]:
    shard: dict[str, Raw] = {}
    size = 0
    for name, tensor in tensors:
        if shard and size + tensor.nbytes > shard_bytes_max:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor
        size += tensor.nbytes
    if shard:
        yield shard
