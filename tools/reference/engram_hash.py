"""Which table rows a token reads: the compressed token map, primes, multipliers and n-gram hashes.

No torch here: the checkpoint writer uses this file too.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DEAD = -1  # compressed id of a position that belongs to no text (an image span)
_LONE_SPACE = "\ue000"  # stands for a text that is one space while the ends are stripped


def bytes_of_unicode() -> dict[str, int]:
    """The byte-level alphabet: printable Latin-1 stands for itself, the other bytes are U+0100 onwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def normalise(text: str) -> str:
    """NFKC, NFD, no combining marks, lower case by code point, white space folded, ends stripped, a lone space kept."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    text = "".join(c.lower() for c in text if unicodedata.category(c)[0] != "M")
    text = re.sub("[ \t\r\n]+", " ", text)
    if text == " ":
        text = _LONE_SPACE
    return text.strip(_white_space()).replace(_LONE_SPACE, " ")


def _white_space() -> str:
    """The Unicode White_Space property (str.strip alone would also take U+001C..1F)."""
    return "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def token_map(tokenizer: dict[str, Any], n_tokens: int) -> np.ndarray:
    """int64 [n_tokens]: raw id -> compressed id, numbered by first appearance. `tokenizer` is tokenizer.json."""
    names = {i: name for name, i in tokenizer["model"]["vocab"].items()}
    names |= {added["id"]: added["content"] for added in tokenizer["added_tokens"]}
    alphabet = bytes_of_unicode()
    seen: dict[str, int] = {}
    result = np.empty(n_tokens, np.int64)
    for i in range(n_tokens):
        name = names[i]
        raw = bytes(alphabet[c] for c in name) if all(c in alphabet for c in name) else name.encode()
        text = raw.decode("utf-8", errors="replace")
        key = name if "\ufffd" in text else normalise(text) or text
        result[i] = seen.setdefault(key, len(seen))
    return result


def read_token_map(folder: Path, vocab_size: int, n_classes: int) -> np.ndarray:
    """The map of a checkpoint's tokenizer; refused when its class count is not the config's."""
    result = token_map(json.loads((folder / "tokenizer.json").read_text()), vocab_size)
    found = int(result.max()) + 1
    if found != n_classes:
        raise ValueError(f"token map has {found} classes, engram_compressed_vocab_size is {n_classes}")
    return result


class HashPlan(NamedTuple):
    """Constants of one Engram layer; column c = (n-gram size - 2) * heads + head."""

    multipliers: np.ndarray  # int64 [ngram]
    primes: np.ndarray  # int64 [ngram-1, heads]
    offsets: np.ndarray  # int64 [columns]

    @property
    def n_rows(self) -> int:
        return int(self.primes.sum())


def hash_plans(text_config: dict[str, Any]) -> list[HashPlan]:
    """One plan per Engram layer, in list order (primes are never handed out twice)."""
    ngram, heads = text_config["engram_max_ngram_size"], text_config["engram_n_heads"]
    bound = (2**63 - 1) // text_config["engram_compressed_vocab_size"] // 2
    seen: set[int] = set()
    plans = []
    for layer in text_config["engram_layer_ids"]:
        primes = np.array([_next_primes(text_config["engram_vocab_size"], heads, seen) for _ in range(ngram - 1)])
        offsets = np.concatenate([[0], np.cumsum(primes.reshape(-1))[:-1]])
        draws = np.random.default_rng(10007 * layer).integers(0, bound, size=ngram, dtype=np.int64)
        plans.append(HashPlan(2 * draws + 1, primes, offsets))
    return plans


def _next_primes(start: int, count: int, seen: set[int]) -> list[int]:
    """The first `count` primes from `start` on that were never handed out."""
    result: list[int] = []
    candidate = start
    while len(result) < count:
        if candidate not in seen and _is_prime(candidate):
            result.append(candidate)
            seen.add(candidate)
        candidate += 1
    return result


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))


def hash_rows(plan: HashPlan, compressed: np.ndarray, pad: int) -> np.ndarray:
    """Table rows int64 [T, columns] of the whole sequence `compressed` [T] (DEAD allowed).

    A shift that reaches before the start or onto a DEAD token, and every farther one, reads `pad`.
    """
    n_tokens, ngram = len(compressed), len(plan.multipliers)
    rows = np.empty((n_tokens, ngram - 1, plan.primes.shape[1]), np.int64)
    alive = np.ones(n_tokens, bool)
    mixed = np.zeros(n_tokens, np.int64)
    for shift in range(ngram):
        shifted = np.full(n_tokens, DEAD)
        shifted[shift:] = compressed[: max(n_tokens - shift, 0)]
        alive &= shifted != DEAD
        mixed ^= np.where(alive, shifted, pad) * plan.multipliers[shift]
        if shift > 0:
            rows[:, shift - 1] = mixed[:, None] % plan.primes[shift - 1]
    return rows.reshape(n_tokens, -1) + plan.offsets
