"""Task parts from a seed: worker processes draw conversations and have them rendered in batches, this process writes.

Chunk c of a family is a function of (seed, family, c) alone, so the data does not depend on the number of workers.
"""

from __future__ import annotations

import multiprocessing
import random
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .carried import HELDOUT, read_index, read_part, read_vocab
from .catalogue import PARTS, TASKS_WEIGHTS
from .codec import Codec
from .parts import PartWriter, Weights, write_manifest
from .render import Renderer
from .tasks import FAMILIES
from .tasks.world import Corpus, Draw, World

_CHUNK_TOKENS = 120_000
_BATCH = 96
_TOKENS_MAX = 8192
_state: dict[str, Any] = {}


class Chunk(NamedTuple):
    tokens: np.ndarray
    lengths: list[int]
    loss: np.ndarray


def load_world(carried: Path, model: Path) -> World:
    codec = Codec(model / "tokenizer.json")
    index = read_index(carried, codec.sha256)
    parts = {e["name"]: read_part(carried, e) for e in index["parts"]}
    held_out = parts.pop(HELDOUT)
    corpus = Corpus(parts, held_out, [s["part"] for s in index["sources"]], codec)
    return World.of(read_vocab(carried, index["vocab_sha256"]), corpus)


def make_chunk(job: tuple[str, int, int]) -> tuple[str, Chunk]:
    """About 120,000 tokens of one family."""
    family, seed, number = job
    make, _ = FAMILIES[family]
    rng = random.Random(zlib.crc32(f"{seed}:{family}:{number}".encode()) << 32 | seed)
    draw = Draw(_state["world"], rng)
    done: list[tuple[np.ndarray, np.ndarray]] = []
    n_tokens = 0
    while n_tokens < _CHUNK_TOKENS:
        for ids, loss in _state["renderer"].render([make(draw) for _ in range(_BATCH)]):
            if len(ids) <= _TOKENS_MAX:
                done.append((ids, loss))
                n_tokens += len(ids)
    return family, Chunk(
        np.concatenate([i for i, _ in done]), [len(i) for i, _ in done], np.concatenate([m for _, m in done])
    )


def write_all(carried: Path, out: Path, model: Path, program: Path, n_tokens: int, seed: int, workers: int) -> str:
    """Text parts unpacked and `n_tokens` task tokens, one part a family; returns the fingerprint."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "manifest.json").unlink(missing_ok=True)  # partial until it is written again
    world = load_world(carried, model)
    entries = [_text_entry(out, name, part) for name, part in world.corpus.parts.items()]
    entries.append(_text_entry(out, HELDOUT, world.corpus.held_out))
    _state["world"] = world
    _state["renderer"] = Renderer(program, model)
    jobs = [
        (family, seed, i)
        for family, (_, share) in FAMILIES.items()
        for i in range(max(1, round(n_tokens * share / _CHUNK_TOKENS)))
    ]
    jobs.sort(key=lambda job: job[2] / FAMILIES[job[0]][1])  # all families at once: their chunks differ in cost
    writers = {
        f: PartWriter(out, f"tasks-{f}", "tasks", Weights(TASKS_WEIGHTS[0] * s, TASKS_WEIGHTS[1] * s), True)
        for f, (_, s) in FAMILIES.items()
    }
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"))
    try:
        for family, chunk in pool.map(make_chunk, jobs):
            writers[family].add(chunk.tokens, chunk.lengths, chunk.loss)
    finally:
        pool.shutdown(cancel_futures=True)
    entries += [writer.close() for writer in writers.values()]
    codec = world.corpus.codec
    return write_manifest(out, codec.sha256, codec.vocab_size, entries)


def _text_entry(out: Path, name: str, part: Any) -> dict[str, Any]:
    writer = PartWriter(out, name, HELDOUT if name == HELDOUT else "text", Weights(*PARTS.get(name, (0.0, 0.0))), False)
    writer.add(part.tokens, np.diff(part.docs.astype(np.int64)).tolist())
    return writer.close()
