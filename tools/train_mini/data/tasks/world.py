"""What task generators draw from: names, numbers, words and passages, each split into training and test by a hash.

A `Draw` is one sample's source of chance. In training it gives training entities and training templates only; a test
draw gives test entities and, by its grade, known or new templates. Families never use `random` otherwise.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from ..carried import TextPart
from ..codec import Codec

T = TypeVar("T")
KNOWN, NEW = "known", "new"  # grades: known templates or new ones, both with new values
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_COLORS = "red orange yellow green blue purple black white grey brown pink silver golden violet teal crimson amber ivory navy olive".split()
_GOODS = """lamp chair table kettle notebook backpack jacket blanket bottle keyboard monitor camera printer bicycle tent helmet
drill hammer ladder mirror carpet pillow guitar violin piano clock wallet umbrella toaster blender freezer heater scanner router
speaker tablet charger cable battery candle basket shovel bucket scarf sweater boots sandals ribbon teapot mug plate bowl fork
spoon cushion curtain shelf desk stool bench wardrobe globe telescope compass whistle drum puzzle kite scooter skateboard""".split()


_INVENTED = frozenset(["nouns", "adjectives", "first_names", "last_names", "cities"])
_P_INVENTED = 0.2
_ONSETS = "b br c ch cl d dr f fl g gr h j k kl l m n p pl qu r s sh sk st t th tr v w x z".split()
_RIMES = (
    "a ack ain al an ar ay e eck ed el en er est ew i ick il im in ing is o ock ol on or ot u ul um un ur us y".split()
)

_ENDED = re.compile(r"[.!?][\"”’)]*\s*$")
_ABBREVIATED = re.compile(
    r"\b(Mr|Mrs|Ms|Dr|St|Messrs|Capt|Col|Gen|Sen|Gov|Prof|Rev|Jr|Sr|No|vs|etc|e\.g|i\.e|cf|Fig|approx)\.$"
)
_INNER_END = re.compile(r"[.!?][\"”’)]*\s+[\"“‘(]?[A-Z]")


def bucket(key: str, modulus: int) -> int:
    return zlib.crc32(key.encode()) % modulus


def is_test_entity(name: str) -> bool:
    return bucket("entity:" + name, 10) == 0


def is_test_pair(a: int, b: int) -> bool:
    return bucket(f"pair:{min(a, b)},{max(a, b)}", 20) == 0


@cache
def split_templates(family: str, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(training, test) indices of a family's templates: the fifth with the lowest hashes is test only, at least one."""
    ranked = sorted(range(count), key=lambda i: zlib.crc32(f"{family}:{i}".encode()))
    n_test = max(1, count // 5) if count > 1 else 0
    return tuple(sorted(ranked[n_test:])), tuple(sorted(ranked[:n_test]))


class Corpus:
    """Text parts as passages. Test draws get the held-out part."""

    def __init__(
        self, parts: dict[str, TextPart], held_out: TextPart, source_parts: Sequence[str], codec: Codec
    ) -> None:
        self.parts, self.held_out, self.codec = parts, held_out, codec
        self.starts = {name: part.docs for name, part in parts.items()}
        kinds = np.array(
            [list(parts).index(source_parts[s]) if source_parts[s] in parts else 255 for s in held_out.sources]
        )
        self.held_docs = {name: np.flatnonzero(kinds == i) for i, name in enumerate(parts)}

    def slice(self, rng: random.Random, kind: str, n_tokens: int, test: bool) -> str:
        """About so many tokens of running text, cut at line ends where there are any, from as many documents as it takes."""
        texts, left = [], n_tokens
        while left > 0:
            part, doc = self._document(rng, kind, test)
            begin, end = int(part.docs[doc]) + 1, int(part.docs[doc + 1]) - 1
            start = begin if end - begin <= left + 16 else rng.randrange(begin, end - left)
            text = self.codec.text(part.tokens[start : min(end, start + left)])
            if start > begin:
                text = text[text.find("\n") + 1 :] if "\n" in text[:400] else text[text.find(" ") + 1 :]
            texts.append(text.strip())
            left -= max(32, min(end, start + left) - start)
        return "\n\n".join(texts)

    def document(self, rng: random.Random, kind: str, test: bool, tokens_max: int) -> str:
        """A document's first tokens."""
        part, doc = self._document(rng, kind, test)
        begin, end = int(part.docs[doc]) + 1, int(part.docs[doc + 1]) - 1
        return self.codec.text(part.tokens[begin : min(end, begin + tokens_max)])

    def _document(self, rng: random.Random, kind: str, test: bool) -> tuple[TextPart, int]:
        """By position, so that long documents come as often as their length says."""
        if test:
            return self.held_out, int(self.held_docs[kind][rng.randrange(len(self.held_docs[kind]))])
        part = self.parts[kind]
        return part, int(np.searchsorted(part.docs, rng.randrange(len(part.tokens)), side="right")) - 1


@dataclass(frozen=True, eq=False)
class World:
    """Word lists, each as (training, test)."""

    vocab: dict[str, Any]
    corpus: Corpus
    lists: dict[str, tuple[list[Any], list[Any]]]

    @staticmethod
    def of(vocab: dict[str, Any], corpus: Corpus) -> World:
        pools: dict[str, list[Any]] = {
            k: vocab[k] for k in ("first_names", "last_names", "jobs", "verbs", "adjectives", "adverbs")
        }
        pools["nouns"] = [w for w in vocab["nouns"] if w.isalpha()]
        pools["cities"] = [city for city, _ in vocab["cities"]]
        pools["glosses"], pools["methods"] = vocab["glosses"], vocab["methods"]
        pools["goods"], pools["colors"] = _GOODS, _COLORS
        lists = {}
        for name, pool in pools.items():
            keys = [e if isinstance(e, str) else e["name"] if isinstance(e, dict) else e[0] for e in pool]
            lists[name] = ([e for e, k in zip(pool, keys, strict=True) if not is_test_entity(k)],
                           [e for e, k in zip(pool, keys, strict=True) if is_test_entity(k)])  # fmt: skip
        return World(vocab, corpus, lists)


class Draw:
    """One sample's choices. `grade` is None in training."""

    def __init__(self, world: World, rng: random.Random, grade: str | None = None) -> None:
        self.world, self.rng, self.grade = world, rng, grade
        self.test = grade is not None
        self.memo: dict[str, Any] = {}  # what a family keeps for the draw's later samples

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.random() * len(options))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        return self.rng.sample(list(options), min(count, len(options)))

    def template(self, family: str, options: Sequence[T]) -> T:
        if len(options) == 1:
            return options[0]
        training, test = split_templates(family, len(options))
        return options[self.pick(test if self.grade == NEW and test else training)]

    def wording(self, family: str, options: Sequence[str], compose: Callable[[Draw], str], p: float = 0.5) -> str:
        """`template`, or in training with chance `p` a composed wording; never one that is held out."""
        if self.test or not self.chance(p):
            return self.template(family, options)
        held_out = {options[i] for i in split_templates(family, len(options))[1]}
        while (text := compose(self)) in held_out:
            pass
        return text

    def entity(self, kind: str) -> Any:
        """One of a word list; in training sometimes an invented word, which no memory of the list completes."""
        if not self.test and kind in _INVENTED and self.chance(_P_INVENTED):
            return self.invented(kind)
        return self.pick(self.world.lists[kind][self.test])

    def invented(self, kind: str) -> str:
        """The beginning of one noun and the end of another, or syllables; of no test entity."""
        nouns = self.world.lists["nouns"][0]
        while True:
            if self.chance(0.65):
                first, last = self.pick(nouns), self.pick(nouns)
                word = first[: self.number(2, 6)] + last[-self.number(2, 6) :]
            else:
                word = "".join(self.pick(_ONSETS) + self.pick(_RIMES) for _ in range(self.number(1, 3)))
            word = word.lower() if kind in ("nouns", "adjectives") else word.capitalize()
            if len(word) > 2 and not is_test_entity(word):
                return word

    def frequent(self, kind: str) -> Any:
        """Of word lists in order of frequency: frequent words more often."""
        pool = self.world.lists[kind][self.test]
        return pool[int(len(pool) * self.rng.random() ** 2)]

    def person(self) -> str:
        return f"{self.entity('first_names')} {self.entity('last_names')}"

    def number(self, low: int, high: int) -> int:
        """In [low, high], from the training or the test numbers when the range is wide."""
        while True:
            n = low + int(self.rng.random() * (high - low + 1))
            if high - low < 900 or self.test == (bucket(f"number:{n}", 10) == 0):
                return n

    def digits(self, count: int) -> str:
        return str(self.number(10 ** (count - 1), 10**count - 1))

    def company(self) -> str:
        names = self.world.vocab["company_suffixes"]
        if self.chance(0.3):
            return f"{self.entity('last_names')} and {self.entity('last_names')}"
        stem = self.entity("last_names") if self.chance(0.5) else self.frequent("nouns").capitalize()
        return f"{stem} {self.pick(names)}"

    def street(self) -> str:
        return f"{self.number(1, 899)} {self.entity('last_names')} {self.pick(self.world.vocab['street_suffixes'])}"

    def email(self, person: str) -> str:
        first, last = person.lower().split(" ")
        return f"{self.pick([first + '.' + last, first[0] + last, last + str(self.number(1, 99))])}@{self.entity('nouns')}.{self.pick(['com', 'org', 'net', 'io'])}"

    def date(self) -> tuple[str, str]:
        """(as written, as YYYY-MM-DD)."""
        year, month, day = self.number(1990, 2030), self.number(1, 12), self.number(1, 28)
        spelt = self.pick(
            [f"{day} {_MONTHS[month - 1]} {year}", f"{_MONTHS[month - 1]} {day}, {year}", f"{year}-{month:02}-{day:02}"]
        )
        return spelt, f"{year}-{month:02}-{day:02}"

    def time(self) -> str:
        return f"{self.number(6, 22)}:{self.pick(['00', '15', '30', '45', '10', '20', '40', '50'])}"

    def amount(self) -> float:
        return self.number(3, 2000) + self.pick([0.0, 0.5, 0.25, 0.75, 0.99, 0.9, 0.49])

    def word_code(self) -> str:
        return f"{self.entity('nouns')}-{self.digits(self.pick([2, 3]))}"

    def hex(self, count: int) -> str:
        return "".join(self.rng.choices("0123456789abcdef", k=count))

    def text(self, kind: str, n_tokens: int) -> str:
        return self.world.corpus.slice(self.rng, kind, n_tokens, self.test)


def sentences(text: str) -> list[str]:
    """Sentences of prose: split after a full stop, mark or quote before a capital."""
    return [s for s in re.split(r"(?<=[a-z\d)][.!?])\s+(?=[A-Z\"])|\n+", text) if s.strip()]


def prose(text: str, shortest: int, longest: int) -> list[str]:
    """Its sentences of these lengths that begin and end like one and are mostly letters: neither code nor tables.

    None has what may be taken for a sentence's end inside, so that joined by blanks they can still be told apart."""
    found = []
    for s in sentences(text):
        if (
            shortest < len(s) < longest
            and (s[0].isupper() or s[0] == '"')
            and _ENDED.search(s)
            and not _INNER_END.search(s)
            and not _ABBREVIATED.search(s)
            and sum(c.isalpha() or c == " " for c in s) > 0.88 * len(s)
        ):
            found.append(s.strip())
    return found
