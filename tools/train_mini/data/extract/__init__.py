"""Text out of packages: one function an extractor name of the catalogue, each yielding (document name, text)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from . import api, books, code, glosses, manuals

Files = Iterable[tuple[str, bytes]]
Extractor = Callable[[Files], Iterator[tuple[str, str]]]

EXTRACTORS: dict[str, Extractor] = {
    "sotu": books.sotu,
    "shakespeare": books.shakespeare,
    "austen": books.austen,
    "sword": books.sword,
    "wordnet": glosses.wordnet,
    "jargon": glosses.jargon,
    "botocore": api.botocore,
    "google_api": api.google_api,
    "awscli": api.awscli,
    "python_code": code.python_code,
    "go_code": code.go_code,
    **manuals.EXTRACTORS,
}
