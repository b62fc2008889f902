"""Evaluation cases as JSON lines: {"id", "family", "grade", "request", "answer", "check", ...}.

`request` is a chat body without the answer. `check`: `exact` (text after stripping), `json` (equal JSON values), `call`
(`answer` is a list of {"name", "arguments"}), `code` (exact after stripping; partial credit is the evaluator's).
Needles have "length" (haystack tokens) and "depth". Grades: `known` templates or `new` ones, values always new.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .render import Sample
from .tasks import FAMILIES, arithmetic, needle
from .tasks.world import KNOWN, NEW, Draw, World

NEEDLE_LENGTHS = (256, 1024, 2048, 4096, 7800)
NEEDLE_DEPTHS = tuple(i / 10 for i in range(10))
CASES = 500
TEXT_DOMAINS = ("literature", "docs", "code")
_TRIES = 30


def write(path: Path, world: World, seed: int, cases: int = CASES) -> int:
    n = 0
    with path.open("w", encoding="utf-8") as file:
        for record in records(world, seed, cases):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            n += 1
    return n


def records(world: World, seed: int, cases: int) -> Iterator[dict[str, Any]]:
    for family in FAMILIES:
        for grade in (KNOWN, NEW):
            draw = Draw(world, random.Random(zlib.crc32(f"test:{seed}:{family}:{grade}".encode())), grade)
            seen: set[str] = set()
            for i in range(cases):
                for _ in range(_TRIES):  # short questions repeat: take another as long as there are some
                    sample, note = _case(draw, family, i, cases)
                    record = _record(sample)
                    key = json.dumps(record["request"])
                    if key not in seen:
                        break
                seen.add(key)
                yield {"id": f"{family}-{grade}-{i}", "family": family, "grade": grade, **note, **record}


def write_texts(path: Path, world: World, seed: int, per_domain: int = 24, tokens: int = 900) -> int:
    """Held-out text for bits per byte, a line each: {"domain", "text"}."""
    rng = random.Random(zlib.crc32(f"texts:{seed}".encode()))
    with path.open("w", encoding="utf-8") as file:
        for domain in TEXT_DOMAINS:
            for _ in range(per_domain):
                record = {"domain": domain, "text": world.corpus.document(rng, domain, True, tokens)}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return per_domain * len(TEXT_DOMAINS)


def _case(draw: Draw, family: str, i: int, cases: int) -> tuple[Sample, dict[str, Any]]:
    if family == "needle":  # a full grid of lengths and depths
        cell = i * len(NEEDLE_LENGTHS) * len(NEEDLE_DEPTHS) // cases
        length, depth = NEEDLE_LENGTHS[cell // len(NEEDLE_DEPTHS)], NEEDLE_DEPTHS[cell % len(NEEDLE_DEPTHS)]
        return needle.make_at(draw, length - 120, depth + draw.rng.random() / 10), {"length": length, "depth": depth}
    if family == "arithmetic" and i < 2 * cases // 5:
        digits = 2 + (i % 2)
        return arithmetic.make_kind(draw, "add", digits, p_thinking=1.0), {"kind": f"{digits}-digit addition"}
    return FAMILIES[family][0](draw), {}


def _record(sample: Sample) -> dict[str, Any]:
    final = sample.messages[-1]
    calls = [
        {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}
        for c in final.get("tool_calls", [])
    ]
    request = sample.request(sample.messages[:-1])
    return {"request": request, "answer": calls or final["content"], "check": "call" if calls else sample.check}
