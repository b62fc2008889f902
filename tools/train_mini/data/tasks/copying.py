"""Family 8, copying and quoting: repeat exactly what is given, quote a sentence, fill a form, continue a pattern.

Half of the strings are random: words, hex, paths, dates, and ids drawn from the whole vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from ..render import Sample
from . import lookup, wordings
from .common import turn
from .world import Draw, prose

_REPEAT = [
    "Repeat exactly: {t}",
    "Repeat this exactly.\n\n{t}",
    "Copy the following text:\n{t}",
    "Write this again, without any change:\n\n{t}",
    "Echo: {t}",
    "{t}\n\nRepeat the text above exactly.",
    "Say this back to me: {t}",
    "Output exactly this text:\n{t}",
    "Please copy:\n{t}",
    "Reproduce the following:\n\n{t}",
]
_QUOTE = [
    "{t}\n\nQuote sentence {n}.",
    "Which is sentence {n} of this text?\n\n{t}",
    "{t}\n\nRepeat sentence number {n}.",
    "Give me sentence {n}:\n\n{t}",
    "Text: {t}\nSentence {n}, please.",
]
_FORMS = [
    "Fill the form.\nForm: {f}\nValues: {v}",
    "{f}\n\nPut these values in: {v}",
    "Complete the form {f} with {v}.",
    "Values: {v}\nNow fill in: {f}",
]
_CONTINUE = ["Continue: {t}", "What comes next? {t}", "Continue the pattern: {t}", "{t} ... What is next?"]


def make(draw: Draw) -> Sample:
    if draw.chance(0.4) and not draw.test:
        return lookup.make(draw)
    at = draw.rng.random()
    if at < 0.6:
        size = draw.number(1, 24) if not draw.test else draw.number(1, 36)
        text = draw.pick(_STRINGS)(draw, size)
        return turn(
            draw,
            draw.wording("repeat", _REPEAT, wordings.repeat, 0.7).format(t=text),
            text,
            "I copy the text exactly.",
            0.1,
        )
    if at < 0.78:
        return _quote(draw)
    if at < 0.9:
        return _form(draw)
    return _pattern(draw)


def _ids(draw: Draw, size: int) -> str:
    """Ordinary ids drawn uniformly; what does not decode or would change when read again is left out."""
    codec = draw.world.corpus.codec
    ids = np.array([draw.rng.randrange(3, codec.vocab_size - len(codec.control)) for _ in range(size)])
    return " ".join(codec.text(ids).split()).replace("\x00", "") or "x"


def _uuid(draw: Draw) -> str:
    return "-".join(draw.hex(n) for n in (8, 4, 4, 4, 12))


def _json_value(draw: Draw, size: int) -> str:
    value = {
        draw.entity("nouns"): draw.pick(
            [draw.number(1, 9999), draw.person(), draw.chance(0.5), [draw.entity("goods"), draw.number(1, 99)]]
        )
        for _ in range(1 + size // 6)
    }
    return json.dumps(value, ensure_ascii=False)


def _foreign(draw: Draw, size: int) -> str:
    pool = "àéîõüßçñøåæžšłőęțğıАБВГДежзийклмноабвгдежзαβγδεζηθλμπστ你好世界東京日本語中文字한국어שלוםمرحبا€£¥→≤≥…–“”"
    return " ".join("".join(draw.rng.choices(pool, k=draw.number(2, 7))) for _ in range(1 + size // 5))


_STRINGS: list[Callable[[Draw, int], str]] = [
    lambda d, n: " ".join(d.entity("nouns") for _ in range(n)),
    lambda d, n: " ".join(d.hex(d.number(2, 8)) for _ in range(1 + n // 4)),
    lambda d, n: _uuid(d),
    _ids,
    _ids,
    lambda d, n: " ".join(d.digits(d.number(1, 6)) for _ in range(n)),
    lambda d, n: "/" + "/".join(d.entity("nouns") for _ in range(1 + n // 4)),
    lambda d, n: ", ".join(d.date()[0] for _ in range(1 + n // 8)),
    _json_value,
    _foreign,
    lambda d, n: "\n".join(f"- {d.entity('goods')}" for _ in range(n)),
    lambda d, n: d.text(d.pick(["literature", "docs", "code", "glosses"]), 3 * n + 8) or "x",
    lambda d, n: d.text("code", 4 * n + 20) or "x",
    lambda d, n: "".join(d.rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", k=4 + n)),
]


def _quote(draw: Draw) -> Sample:
    lines: list[str] = []
    while len(lines) < 2:
        lines = prose(draw.text(draw.pick(["literature", "docs"]), draw.number(60, 220)), 20, 240)
    n = draw.number(1, min(len(lines), 8))
    question = draw.wording("quote", _QUOTE, wordings.quote, 0.7).format(t=" ".join(lines), n=n)
    return turn(
        draw,
        question,
        lines[n - 1],
        "; ".join(f"{i + 1}: {' '.join(s.split()[:3])}" for i, s in enumerate(lines[:n])),
        0.3,
    )


def _form(draw: Draw) -> Sample:
    keys = draw.some(draw.world.lists["nouns"][draw.test], draw.number(1, 5))
    values = {
        key: draw.pick([draw.person(), draw.entity("cities"), draw.digits(3), draw.entity("goods")]) for key in keys
    }
    form = ", ".join(f"{key}: ____" for key in keys)
    said = ", ".join(f"{key} = {values[key]}" for key in draw.some(keys, len(keys)))
    return turn(
        draw,
        draw.wording("form", _FORMS, wordings.form, 0.7).format(f=form, v=said),
        ", ".join(f"{k}: {v}" for k, v in values.items()),
        None,
        0,
    )


def _pattern(draw: Draw) -> Sample:
    if draw.chance(0.5):
        unit = [draw.entity("nouns") for _ in range(draw.number(2, 4))]
        words = (unit * 6)[: draw.number(2 * len(unit), 4 * len(unit))]
        return turn(
            draw,
            draw.wording("continue", _CONTINUE, wordings.carry_on, 0.7).format(t=" ".join(words)),
            (unit * 6)[len(words)],
            f"The pattern is {' '.join(unit)}.",
            0.3,
        )
    start, step = draw.number(1, 60), draw.number(1, 9)
    numbers = [start + step * i for i in range(draw.number(3, 6))]
    question = draw.wording("continue", _CONTINUE, wordings.carry_on, 0.7).format(t=", ".join(map(str, numbers)))
    return turn(draw, question, str(numbers[-1] + step), f"Each number is {step} more than the one before.", 0.5)
