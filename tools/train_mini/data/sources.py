"""Documents of all sources: fetched, extracted, filtered, without duplicates, split into training and held out.

A document is held out as a whole: by the hash of its text, or because its package is. The split does not depend on
the order of sources. Duplicates are exact: whole documents everywhere, long lines inside a package of prose.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .catalogue import HELDOUT_PERMILLE, SOURCES, Source
from .extract import EXTRACTORS
from .fetch import files

_CHARS_MIN = 300
_LINE_MIN = 60  # shorter lines may repeat: headings, closing braces, verse


@dataclass(frozen=True)
class Document:
    source: Source
    name: str
    text: str
    held_out: bool


def documents(cache: Path, names: set[str] | None = None) -> Iterator[Document]:
    """Of the named sources (default: all that have text), up to each one's cap, in a fixed order."""
    chosen = [s for s in SOURCES if s.part != "words" and (names is None or s.name in names)]
    seen: set[bytes] = set()
    with multiprocessing.Pool() as pool:
        for source, texts in zip(chosen, pool.imap(partial(_extracted, cache), chosen), strict=True):
            yield from _documents_of(source, texts, seen)


def _extracted(cache: Path, source: Source) -> list[tuple[bytes, str, str]]:
    """(hash, name, text) of what is long enough."""
    lines_seen: set[bytes] = set()
    found = []
    for name, raw in EXTRACTORS[source.extractor](files(source, cache)):
        text = _clean(raw)
        if source.part != "code":
            text = _without_seen_lines(text, lines_seen)
        if len(text) >= _CHARS_MIN:
            found.append((hashlib.sha256(text.encode()).digest(), name, text))
    found.sort(key=lambda item: _order(source, item[1], item[0]))
    return found


def _documents_of(source: Source, texts: list[tuple[bytes, str, str]], seen: set[bytes]) -> Iterator[Document]:
    room = source.cap_mb * 1e6
    for digest, name, text in texts:
        if digest in seen:
            continue
        seen.add(digest)
        room -= len(text.encode())
        if room < 0:
            break
        yield Document(
            source, name, text, source.held_out or int.from_bytes(digest[:4], "big") % 1000 < HELDOUT_PERMILLE
        )


def _order(source: Source, name: str, digest: bytes) -> tuple[int, bytes | str]:
    """A cap takes a random part, except of Go, whose standard library goes before its commands."""
    return ("/cmd/" in name, digest) if source.extractor == "go_code" else (0, digest)


def _clean(text: str) -> str:
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\ufeff", "").replace("\u00ad", "")
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)
    return re.sub(r"\n{4,}", "\n\n\n", text).strip()


def _without_seen_lines(text: str, seen: set[bytes]) -> str:
    kept = []
    for line in text.split("\n"):
        if len(line) >= _LINE_MIN:
            key = hashlib.blake2b(line.encode(), digest_size=8).digest()
            if key in seen:
                continue
            seen.add(key)
        kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
