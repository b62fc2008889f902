"""Trains the mini model's tokenizer: byte-level BPE of the released kind, in the form that the engine reads.

Ids: BOS 0, EOS 1, pad 2, 256 bytes, every digit run of two and three, trained merges, control tokens last. Digits are
kept out of training, so that all 1,110 runs are whole tokens and no other merge touches them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from reference.engram_hash import bytes_of_unicode  # noqa: E402
from tiny_tokenizer import BOS, EOS, NOT_SPECIAL, PAD, SPLITS  # noqa: E402

VOCAB_SIZE = 8192
NOISE = "<｜place▁holder▁no▁0｜>"  # fills draft slots (dspark_noise_token_id); never in text
CONTROL_TOKENS = [
    "<｜System｜>", "<｜User｜>", "<｜Assistant｜>", "<｜latest_reminder｜>", "<think>", "</think>", "｜DSML｜", NOISE,
    "<｜/polygon｜>", "<｜polygon｜>", "<｜/point｜>", "<｜point｜>", "<｜/box｜>", "<｜box｜>", "<｜/ref｜>", "<｜ref｜>",
    "<｜image｜>",
]  # fmt: skip
_DIGITS = "0123456789"


def train(texts: Iterable[str], vocab_size: int = VOCAB_SIZE) -> dict[str, Any]:
    """The contents of tokenizer.json, merges trained on the texts. Deterministic for the same texts in the same order."""
    alphabet = {byte: char for char, byte in bytes_of_unicode().items()}
    byte_tokens = [alphabet[b] for b in range(256)]
    digits = digit_merges()
    n_merges = vocab_size - 3 - 256 - len(digits) - len(CONTROL_TOKENS)
    merges = digits + _trained_merges(texts, n_merges)
    vocab = {name: i for i, name in enumerate([BOS, EOS, PAD, *byte_tokens, *(a + b for a, b in merges)])}
    first_control = len(vocab)
    if first_control + len(CONTROL_TOKENS) != vocab_size:
        raise ValueError(
            f"{first_control} entries and {len(CONTROL_TOKENS)} control tokens are not {vocab_size}: too little text"
        )
    added = [_added(i, name) for i, name in enumerate([BOS, EOS, PAD])]
    added += [_added(first_control + i, name) for i, name in enumerate(CONTROL_TOKENS)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*map(_split, SPLITS), byte_level]},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
            "merges": [f"{a} {b}" for a, b in merges],
        },
    }  # fmt: skip


def digit_merges() -> list[tuple[str, str]]:
    """Merges that make every run of two and three digits one token: the pair of lower rank in "abc" merges first."""
    pairs = [(a, b) for a in _DIGITS for b in _DIGITS]
    rank = {a + b: i for i, (a, b) in enumerate(pairs)}
    triples = []
    for a, b in pairs:
        for c in _DIGITS:
            triples.append((a + b, c) if rank[a + b] <= rank[b + c] else (a, b + c))
    return pairs + triples


def _trained_merges(texts: Iterable[str], count: int) -> list[tuple[str, str]]:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    without_digits = pre_tokenizers.Split(Regex(SPLITS[0]), behavior="removed")
    splits = [pre_tokenizers.Split(Regex(s), behavior="isolated") for s in SPLITS[1:]]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [without_digits, *splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=256 + count,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_pieces(texts), trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    if len(merges) != count:
        raise ValueError(f"{len(merges)} merges instead of {count}: too little text")
    return [(a, b) for a, b in merges]


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Not too long at once: the trainer holds a batch of them."""
    for text in texts:
        for i in range(0, len(text), 20_000):
            yield text[i : i + 20_000]


def _split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _added(i: int, content: str) -> dict[str, Any]:
    return {
        "id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": content not in NOT_SPECIAL,
    }  # fmt: skip


def plain_encoder(path: Path) -> Any:
    """An encoder of the `tokenizers` package without added tokens: text that spells a control token stays text."""
    from tokenizers import Tokenizer

    return Tokenizer.from_str(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"added_tokens": []}))


def write(tokenizer: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
