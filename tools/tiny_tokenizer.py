"""A small tokenizer of the released kind: byte-level BPE, every byte present, DeepSeek's three splits.

Deterministic: merges are trained on the word list below, and once its words are used up, on pairs of ids in order.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from reference.engram_hash import bytes_of_unicode

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
# The last ids of the vocabulary, in this order; the very last is the image placeholder.
CONTROL_TOKENS = [
    "<｜System｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", "｜DSML｜", "<｜latest_reminder｜>",
    "<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>", "<｜action｜>", "<｜deepseek_image｜>",
]  # fmt: skip
NOT_SPECIAL = {"<think>", "</think>", "｜DSML｜"}

# Ordinary words, and cases in which the compressed token map folds ids together: capitals, accents, ligatures,
# full-width forms, white space.
WORDS = """
the the the The and and And AND of of in ing tion that it is to for as with was on be at by this have from or one had
not but what all were when we there can an your which their said if do will each about how up out them then she many
some so these would other into has more her two like him see time could no make than first been its who now people my
made over did down only way find use may water long little very after words called just where most know get through back
much before go good new write our used me man too any day same right look think also around another came come work three
must because does part even place well such here take why things help put years different away again off went old number
the-quick brown fox jumps over a lazy dog def return import class self print function value index token tensor layer model
éa É ès ñ ü Ü ö ß ﬁ ﬁn ﬂ Ａ ａ １ ２ 。 ， 你 你好 好 世界 東京 タワー кот Кот мир Мир ελ Ελ שלום नमस्ते 😀 👍🏽
""".split()
SPACES = ["\n", "\n\n", "\r\n", "\t", "  ", "    ", " \n"]

SPLITS = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
]


def make_tokenizer(vocab_size: int) -> dict[str, Any]:
    """The contents of tokenizer.json: ids 0..2 are BOS, EOS, PAD, then bytes, merges, placeholders, control tokens."""
    n_placeholders = vocab_size // 16
    added = [f"<｜place▁holder▁no▁{i}｜>" for i in range(n_placeholders)] + CONTROL_TOKENS
    n_merges = vocab_size - 3 - 256 - len(added)
    if n_merges < 0:
        raise ValueError(f"vocab_size {vocab_size} has no room for 256 bytes and {3 + len(added)} added tokens")
    alphabet = {byte: char for char, byte in bytes_of_unicode().items()}
    tokens = [alphabet[b] for b in range(256)]
    merges = _train(tokens, n_merges)
    vocab = {name: i for i, name in enumerate([BOS, EOS, PAD, *tokens, *(a + b for a, b in merges)])}
    first_added = len(vocab)
    added_tokens = [_added(i, name) for i, name in enumerate([BOS, EOS, PAD])]
    added_tokens += [_added(first_added + i, name) for i, name in enumerate(added)]
    split = [{"type": "Split", "pattern": {"Regex": r}, "behavior": "Isolated", "invert": False} for r in SPLITS]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*split, byte_level]},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
            "merges": [f"{a} {b}" for a, b in merges],
        },
    }  # fmt: skip


def tokenizer_config(max_positions: int) -> dict[str, Any]:
    return {
        "add_bos_token": False, "add_eos_token": False, "bos_token": BOS, "eos_token": EOS, "pad_token": PAD,
        "clean_up_tokenization_spaces": False, "model_max_length": max_positions,
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": None,
    }  # fmt: skip


def _added(i: int, content: str) -> dict[str, Any]:
    return {
        "id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": content not in NOT_SPECIAL,
    }  # fmt: skip


def _train(tokens: list[str], n_merges: int) -> list[tuple[str, str]]:
    """Plain BPE: the most frequent adjacent pair first, ties to the smaller pair."""
    alphabet = {byte: char for char, byte in bytes_of_unicode().items()}

    def spell(text: str) -> tuple[str, ...]:
        return tuple(alphabet[b] for b in text.encode())

    words: Counter[tuple[str, ...]] = Counter()
    for word in WORDS:
        words[spell(" " + word)] += 2
        words[spell(word)] += 1
        words[spell(word.capitalize())] += 1
    words.update(map(spell, SPACES))
    known, merges = set(tokens), []
    while len(merges) < n_merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        pairs = Counter({p: n for p, n in pairs.items() if p[0] + p[1] not in known})
        if not pairs:
            return merges + _more_pairs([*tokens, *(a + b for a, b in merges)], n_merges - len(merges))
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        known.add(best[0] + best[1])
        words = Counter({_merge(word, best): count for word, count in words.items()})
    return merges


def _merge(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    result: list[str] = []
    for piece in word:
        if result and (result[-1], piece) == pair:
            result[-1] += piece
        else:
            result.append(piece)
    return tuple(result)


def _more_pairs(names: list[str], count: int) -> list[tuple[str, str]]:
    """Pairs of printable tokens that make a new token, in order of ids."""
    known, result = set(names), []
    usable = [n for n in names if n.isascii() and n.isalnum()]
    for first in usable:
        for second in usable:
            if len(result) == count:
                return result
            if first + second not in known:
                known.add(first + second)
                result.append((first, second))
    raise ValueError("vocab_size is too large for a generated tokenizer")
