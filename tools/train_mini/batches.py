"""Reads a data folder (manifest.json and token files) and packs documents into flat batches.

Batch number i of a phase depends only on the seed and i, so a resumed run sees the same batches.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .rows import ALIGN, Rows, with_replay


class Part:
    """One part of the data: documents of tokens, and for tasks a mask of assistant tokens."""

    def __init__(self, folder: Path, entry: dict[str, Any], vocab_size: int, check: bool):
        self.name, self.kind = entry["name"], entry["kind"]
        self.weights = {"main": float(entry["weight_main"]), "final": float(entry["weight_final"])}
        self.tokens = np.memmap(_file(folder, entry["tokens"], 2 * entry["n_tokens"]), np.uint16, "r")
        self.offsets = np.fromfile(_file(folder, entry["docs"], 4 * (entry["n_documents"] + 1)), np.uint32).astype(
            np.int64
        )
        self.mask = None
        if entry.get("loss"):
            self.mask = np.memmap(_file(folder, entry["loss"], -(-entry["n_tokens"] // 8)), np.uint8, "r")
        if self.offsets[0] != 0 or self.offsets[-1] != entry["n_tokens"] or (np.diff(self.offsets) <= 0).any():
            raise ValueError(f"data part {self.name}: {entry['docs']} is not ascending from 0 to n_tokens")
        if check:
            digest = hashlib.sha256()
            for file in ("tokens", "docs", "loss"):
                if entry.get(file):
                    digest.update((folder / entry[file]).read_bytes())
            if digest.hexdigest() != entry["sha256"]:
                raise ValueError(f"data part {self.name} is partial or changed: its SHA-256 is not the manifest's")
            if int(self.tokens.max(initial=0)) >= vocab_size:
                raise ValueError(f"data part {self.name}: a token id is not below the vocabulary size {vocab_size}")

    @property
    def n_documents(self) -> int:
        return len(self.offsets) - 1

    def document(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens [n] and which of them are an assistant's, bool [n] (all of them where there is no mask)."""
        begin, end = self.offsets[i], self.offsets[i + 1]
        tokens = np.asarray(self.tokens[begin:end]).astype(np.int64)
        if self.mask is None:
            return tokens, np.ones(len(tokens), bool)
        first = begin // 8
        bits = np.unpackbits(np.asarray(self.mask[first : -(-end // 8)]))
        return tokens, bits[begin - first * 8 :][: len(tokens)].astype(bool)


def _file(folder: Path, name: str, size: int) -> Path:
    path = folder / name
    if not path.exists():
        raise ValueError(f"data set {folder} is partial: {name} is missing")
    if path.stat().st_size != size:
        raise ValueError(
            f"data set {folder} is partial: {name} has {path.stat().st_size} bytes, the manifest means {size}"
        )
    return path


class DataSet:
    def __init__(self, folder: Path, vocab_size: int, tokenizer_sha256: str | None = None, check: bool = True):
        path = folder / "manifest.json"
        if not path.exists():
            raise ValueError(f"data set {folder} has no manifest.json")
        manifest = json.loads(path.read_text())
        if manifest["vocab_size"] != vocab_size:
            raise ValueError(
                f"data set {folder} is for vocab_size {manifest['vocab_size']}, the config has {vocab_size}"
            )
        if tokenizer_sha256 is not None and manifest["tokenizer_sha256"] != tokenizer_sha256:
            raise ValueError(f"data set {folder} was made with another tokenizer")
        facts = json.dumps([manifest["tokenizer_sha256"], manifest["vocab_size"], manifest["parts"]], sort_keys=True)
        self.fingerprint: str = manifest["fingerprint"]
        if hashlib.sha256(facts.encode()).hexdigest() != self.fingerprint:
            raise ValueError(f"data set {folder}: the fingerprint is not that of its parts")
        self.parts = [Part(folder, entry, vocab_size, check) for entry in manifest["parts"]]


@dataclass
class Notes:
    """What is known of a batch's rows and never needed on the device."""

    part: np.ndarray  # int16 [R]  number of the data part, -1 for padding
    asked: np.ndarray  # bool [R]  the target is what an assistant says in a task
    start: np.ndarray  # int32 [R]

    def tally(self, hit: np.ndarray, names: list[str]) -> Counter[tuple[str, str]]:
        """hit bool [R]: the target was the best token. Counts by (part, what): answer tokens `right` of `tokens`, and
        documents with every answer token right, `whole` of `documents`. Parts of documents over 1,024 rows apart."""
        rows = np.flatnonzero(self.asked)
        starts, first, document = np.unique(self.start[rows], return_index=True, return_inverse=True)
        size = np.bincount(self.start)[starts]
        n_tokens, n_right = np.bincount(document), np.bincount(document, hit[rows])
        counts: Counter[tuple[str, str]] = Counter()
        for i, row in enumerate(rows[first]):
            name = names[self.part[row]] + (" long" if size[i] > 1024 else "")
            counts[name, "tokens"] += int(n_tokens[i])
            counts[name, "right"] += int(n_right[i])
            counts[name, "documents"] += 1
            counts[name, "whole"] += int(n_right[i] == n_tokens[i])
        return counts


@dataclass
class Batch:
    rows: Rows
    target: Tensor  # int64 [R]
    weight: Tensor  # float32 [R]
    notes: Notes | None = None

    def pinned(self) -> Batch:
        """In page-locked memory, so that copies to the device do not wait for its earlier work."""
        r = self.rows
        floor = None if r.late_floor is None else r.late_floor.pin_memory()
        moved = Rows(r.tokens.pin_memory(), r.start.pin_memory(), r.length, floor)
        return Batch(moved, self.target.pin_memory(), self.weight.pin_memory(), self.notes)

    def to(self, device: str) -> Batch:
        r = self.rows
        floor = None if r.late_floor is None else r.late_floor.to(device, non_blocking=True)
        moved = Rows(r.tokens.to(device, non_blocking=True), r.start.to(device, non_blocking=True), r.length, floor)
        target, weight = (t.to(device, non_blocking=True) for t in (self.target, self.weight))
        return Batch(moved, target, weight, self.notes)

    def tensors(self) -> list[Tensor]:
        r = self.rows
        return [r.tokens, r.start, self.target, self.weight, *([] if r.late_floor is None else [r.late_floor])]

    def clone(self) -> Batch:
        r = self.rows
        floor = None if r.late_floor is None else r.late_floor.clone()
        return Batch(Rows(r.tokens.clone(), r.start.clone(), r.length, floor), self.target.clone(), self.weight.clone())


class Packer:
    """Fills n_seq sequences of `length` rows, each document into the fullest sequence that still has room for it."""

    def __init__(self, n_seq: int, length: int, pad: int):
        self.n_seq, self.length = n_seq, length
        n = n_seq * length
        self.tokens = np.full(n, pad, np.int64)
        self.start = np.arange(n, dtype=np.int32)
        self.target = np.zeros(n, np.int64)
        self.weight = np.zeros(n, np.float32)
        self.cut = np.zeros(n, np.int32)
        self.notes = Notes(np.full(n, -1, np.int16), np.zeros(n, bool), self.start)
        self.free = np.full(n_seq, length)

    def place(
        self, tokens: np.ndarray, weight: np.ndarray, cut: int, may_cut: bool, part: int = -1,
        asked: np.ndarray | None = None,
    ) -> bool:  # fmt: skip
        """False if it fits nowhere. may_cut: the document may lose its end. asked bool [n]: an assistant's tokens."""
        need = len(tokens)
        fits = self.free >= need
        if fits.any():
            seq = int(np.where(fits, self.free, self.length + 1).argmin())
        elif may_cut:
            seq = int(self.free.argmax())
            need = int(self.free[seq])
            if need < 16:
                return False
        else:
            return False
        at = seq * self.length + self.length - int(self.free[seq])
        own = slice(at, at + need)
        self.tokens[own], self.start[own] = tokens[:need], at
        self.target[at : at + need - 1] = tokens[1:need]
        self.weight[at : at + need - 1] = weight[1:need]
        self.cut[own] = min(cut, need)
        self.notes.part[own] = part
        if asked is not None:
            self.notes.asked[at : at + need - 1] = asked[1:need]
        self.free[seq] -= min(-(-need // ALIGN) * ALIGN, self.free[seq])
        return True

    def batch(self, window: int) -> Batch:
        rows = Rows(torch.from_numpy(self.tokens), torch.from_numpy(self.start), self.length)
        if self.cut.any():
            rows = with_replay(rows, torch.from_numpy(self.cut), window)
        return Batch(rows, torch.from_numpy(self.target), torch.from_numpy(self.weight), self.notes)


@dataclass
class Document:
    part: int
    tokens: np.ndarray  # int64 [n]
    asked: np.ndarray  # bool [n]: what an assistant says in a task
    weight: np.ndarray  # float32 [n], of the loss on each token


class Sampler:
    """Draws batches of one phase ("main" or "final"). answer_weight: of an assistant's tokens in tasks; the other
    tokens of tasks weigh `context_weight`, text weighs 1."""

    def __init__(
        self, data: DataSet, phase: str, n_rows: int, length: int, seed: int, bos: int, pad: int, window: int,
        answer_weight: float = 1.0, context_weight: float = 1.0, replay_share: float = 0.0,
    ):  # fmt: skip
        self.data, self.phase, self.length, self.n_seq = data, phase, length, n_rows // length
        self.seed, self.bos, self.pad, self.window = seed, bos, pad, window
        self.answer_weight, self.context_weight, self.replay_share = answer_weight, context_weight, replay_share
        weights = np.array([p.weights[phase] for p in data.parts])
        if not weights.sum() > 0:
            raise ValueError(f"the data set has no part with a weight in phase {phase}")
        self.shares = weights / weights.sum()
        self.filler = [i for i, p in enumerate(data.parts) if p.kind == "text"] or list(range(len(data.parts)))

    def batch(self, i: int) -> Batch:
        g = np.random.default_rng([self.seed, 1 if self.phase == "main" else 2, i])
        packer = Packer(self.n_seq, self.length, self.pad)
        budget = self.shares * self.n_seq * self.length
        tasks, texts = [], []
        for part, tokens_wanted in enumerate(budget):
            drawn = 0
            while drawn < tokens_wanted:
                # A part whose share is smaller than a document is drawn with the matching chance.
                document = self._draw(part, g)
                n = len(document.tokens)
                if g.random() > (tokens_wanted - drawn) / n:
                    break
                drawn += n
                (tasks if self.data.parts[part].kind == "tasks" else texts).append(document)
        for document in sorted(tasks, key=lambda d: -len(d.tokens)):
            self._place(packer, document, g, may_cut=False)
        g.shuffle(texts)
        for document in texts:
            self._place(packer, document, g, may_cut=True)
        while packer.free.max() >= 64:  # what packing left over
            self._place(packer, self._draw(self.filler[g.integers(len(self.filler))], g), g, may_cut=True)
        return packer.batch(self.window)

    def _place(self, packer: Packer, d: Document, g: np.random.Generator, may_cut: bool) -> None:
        packer.place(d.tokens, d.weight, self._cut(d, g), may_cut, d.part, d.asked)

    def _draw(self, number: int, g: np.random.Generator) -> Document:
        part = self.data.parts[number]
        if part.kind == "tasks":
            for _ in range(20):
                tokens, asked = part.document(int(g.integers(part.n_documents)))
                if len(tokens) <= self.length:
                    break
            else:
                tokens, asked = tokens[: self.length], asked[: self.length]
            weight = np.where(asked, self.answer_weight, self.context_weight).astype(np.float32)
            return Document(number, tokens, asked, weight)
        # Uniform over tokens: a piece of the document under a random token.
        at = int(g.integers(part.offsets[-1]))
        i = int(np.searchsorted(part.offsets, at, side="right")) - 1
        tokens, _ = part.document(i)
        piece = (at - int(part.offsets[i])) // (self.length - 1)
        if piece:
            tokens = np.concatenate([[self.bos], tokens[piece * (self.length - 1) :]])
        tokens = tokens[: self.length]
        return Document(number, tokens, np.zeros(len(tokens), bool), np.ones(len(tokens), np.float32))

    def _cut(self, d: Document, g: np.random.Generator) -> int:
        """Length of the prompt under simulated replay, 0 for none: where the answer starts, or anywhere."""
        if g.random() >= self.replay_share:
            return 0
        if d.asked.any() and g.random() < 0.7:
            return int(d.asked.argmax())
        return int(g.integers(1, len(d.tokens) + 1))


def prefetched(make: Callable[[int], Batch], first: int, device: str, depth: int = 3):
    """Yields make(first), make(first + 1), .. from a thread, on the device."""
    ready: queue.Queue[Any] = queue.Queue(depth)
    stop = threading.Event()

    def work() -> None:
        i = first
        try:
            while not stop.is_set():
                batch = make(i) if device == "cpu" else make(i).pinned()
                while not stop.is_set():
                    try:
                        ready.put(batch, timeout=0.2)
                        break
                    except queue.Full:
                        pass
                i += 1
        except Exception as error:  # handed to the reader
            ready.put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, Exception):
                raise item
            yield item.to(device)
    finally:
        stop.set()
