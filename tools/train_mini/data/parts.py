"""What the trainer reads: NAME.tokens, NAME.docs, NAME.loss and one manifest.json over all parts, each with its hash.

Kinds of parts: `text`, `tasks` (with a loss mask), and `heldout`, which is text that is never trained on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .fetch import DataError

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Weights:
    """Shares of the tokens seen, in the two phases of training."""

    main: float
    final: float


class PartWriter:
    """Writes one part document by document; `close` gives its manifest entry."""

    def __init__(self, folder: Path, name: str, kind: str, weights: Weights, with_loss: bool) -> None:
        self.folder, self.name, self.kind, self.weights = folder, name, kind, weights
        self.file = (folder / f"{name}.tokens").open("wb")
        self.digest = hashlib.sha256()
        self.offsets = [0]
        self.loss: list[np.ndarray] | None = [] if with_loss else None

    def add(self, tokens: np.ndarray, lengths: Iterable[int], loss: np.ndarray | None = None) -> None:
        """Whole documents, one after another; `loss` has a byte a token."""
        content = tokens.astype("<u2").tobytes()
        self.file.write(content)
        self.digest.update(content)
        for length in lengths:
            self.offsets.append(self.offsets[-1] + length)
        if self.loss is not None and loss is not None:
            self.loss.append(loss)

    @property
    def n_tokens(self) -> int:
        return self.offsets[-1]

    def close(self) -> dict[str, Any]:
        self.file.close()
        docs = np.array(self.offsets, "<u4").tobytes()
        (self.folder / f"{self.name}.docs").write_bytes(docs)
        self.digest.update(docs)
        if self.loss is not None:
            bits = np.packbits(np.concatenate(self.loss)).tobytes()
            (self.folder / f"{self.name}.loss").write_bytes(bits)
            self.digest.update(bits)
        return {
            "name": self.name, "kind": self.kind, "tokens": f"{self.name}.tokens", "docs": f"{self.name}.docs",
            "loss": f"{self.name}.loss" if self.loss is not None else None, "n_tokens": self.n_tokens,
            "n_documents": len(self.offsets) - 1, "sha256": self.digest.hexdigest(),
            "weight_main": round(self.weights.main, 5), "weight_final": round(self.weights.final, 5),
        }  # fmt: skip


def write_manifest(folder: Path, tokenizer_sha256: str, vocab_size: int, parts: list[dict[str, Any]]) -> str:
    """Returns the fingerprint: over the tokenizer and every part."""
    facts = json.dumps([tokenizer_sha256, vocab_size, parts], sort_keys=True)
    fingerprint = hashlib.sha256(facts.encode()).hexdigest()
    manifest = {
        "fingerprint": fingerprint,
        "tokenizer_sha256": tokenizer_sha256,
        "vocab_size": vocab_size,
        "parts": parts,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return fingerprint


def check(folder: Path) -> dict[str, Any]:
    """The manifest, after every file has been read and its hash found right. Refuses anything else by name."""
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(f"{path} does not exist: the data set is partial")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    facts = json.dumps([manifest["tokenizer_sha256"], manifest["vocab_size"], manifest["parts"]], sort_keys=True)
    if hashlib.sha256(facts.encode()).hexdigest() != manifest["fingerprint"]:
        raise DataError(f"{path}: the fingerprint is not that of its parts")
    for part in manifest["parts"]:
        digest = hashlib.sha256()
        for key in ("tokens", "docs", "loss"):
            if part[key] is not None:
                try:
                    digest.update((folder / part[key]).read_bytes())
                except OSError as error:
                    raise DataError(f"{folder / part[key]}: {error}") from error
        if digest.hexdigest() != part["sha256"]:
            raise DataError(
                f"{folder}: part {part['name']} is partial or changed (its sha256 differs from the manifest)"
            )
    return manifest
