"""The files that travel to the training machine: text parts as packed token ids, word lists, and their hashes.

A part's file is xz over: document offsets (uint32, one more than documents), source of each document (uint8), token
ids (uint16), all little-endian. Reading checks every hash and refuses what is partial or of another tokenizer.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .fetch import DataError

INDEX = "carried.json"
VOCAB = "vocab.json.xz"
HELDOUT = "heldout"
_FILTERS = [
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 1, "pb": 1, "dict_size": 1 << 26}
]


@dataclass(frozen=True)
class TextPart:
    name: str
    docs: np.ndarray
    sources: np.ndarray
    tokens: np.ndarray

    def packed(self) -> bytes:
        return (
            self.docs.astype("<u4").tobytes()
            + self.sources.astype("u1").tobytes()
            + self.tokens.astype("<u2").tobytes()
        )


def write_part(folder: Path, part: TextPart) -> dict[str, Any]:
    """Writes NAME.xz and returns its entry of the index."""
    content = part.packed()
    packed = lzma.compress(content, format=lzma.FORMAT_XZ, filters=_FILTERS)
    (folder / f"{part.name}.xz").write_bytes(packed)
    return {
        "name": part.name, "file": f"{part.name}.xz", "bytes": len(packed), "sha256": hashlib.sha256(content).hexdigest(),
        "n_documents": len(part.docs) - 1, "n_tokens": len(part.tokens),
    }  # fmt: skip


def write_index(folder: Path, index: dict[str, Any]) -> None:
    (folder / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_index(folder: Path, tokenizer_sha256: str | None) -> dict[str, Any]:
    path = folder / INDEX
    if not path.is_file():
        raise DataError(f"{path} does not exist: run `python -m tools.train_mini.data text --out {folder}`")
    index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if tokenizer_sha256 not in (None, index["tokenizer_sha256"]):
        raise DataError(
            f"{path}: made with tokenizer {index['tokenizer_sha256'][:16]}, not {str(tokenizer_sha256)[:16]}"
        )
    return index


def read_part(folder: Path, entry: dict[str, Any]) -> TextPart:
    content = _unpacked(folder / entry["file"], entry["sha256"])
    n_docs, n_tokens = entry["n_documents"], entry["n_tokens"]
    at_sources, at_tokens = 4 * (n_docs + 1), 4 * (n_docs + 1) + n_docs
    if len(content) != at_tokens + 2 * n_tokens:
        raise DataError(f"{entry['file']}: {len(content)} bytes, not {at_tokens + 2 * n_tokens}")
    return TextPart(
        entry["name"],
        np.frombuffer(content, "<u4", n_docs + 1),
        np.frombuffer(content, "u1", n_docs, at_sources),
        np.frombuffer(content, "<u2", n_tokens, at_tokens),
    )


def write_vocab(folder: Path, vocab: dict[str, Any]) -> str:
    """Returns the hash that the index keeps."""
    content = json.dumps(vocab, ensure_ascii=False, separators=(",", ":")).encode()
    (folder / VOCAB).write_bytes(lzma.compress(content, preset=9))
    return hashlib.sha256(content).hexdigest()


def read_vocab(folder: Path, sha256: str) -> dict[str, Any]:
    vocab: dict[str, Any] = json.loads(_unpacked(folder / VOCAB, sha256))
    return vocab


def _unpacked(path: Path, sha256: str) -> bytes:
    try:
        content = lzma.decompress(path.read_bytes())
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{path}: {error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DataError(f"{path}: its content is not what {INDEX} names (sha256 {sha256[:16]}...)")
    return content
