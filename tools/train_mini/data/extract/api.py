"""Descriptions of web APIs, and the command line examples of one: correct but formulaic, so capped by the catalogue."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .html_text import page_text

Files = Iterable[tuple[str, bytes]]


def botocore(files: Files) -> Iterator[tuple[str, str]]:
    """A document a service, newest version: operations, then shapes, as "Name: text"."""
    newest: dict[str, tuple[str, bytes]] = {}
    for name, content in files:
        found = re.search(r"/data/([^/]+)/[^/]+/service-2\.json(\.gz)?$", name)
        if found:
            newest[found[1]] = (name, content)  # paths are in order: the last version wins
    for name, content in newest.values():
        service = json.loads(gzip.decompress(content) if name.endswith(".gz") else content)
        lines = [_plain(service.get("documentation", ""))]
        for kind in ("operations", "shapes"):
            for key, value in service.get(kind, {}).items():
                lines.append(f"{key}: {_plain(value['documentation'])}" if value.get("documentation") else "")
                for member, shape in value.get("members", {}).items():
                    lines.append(
                        f"{key}.{member}: {_plain(shape['documentation'])}" if shape.get("documentation") else ""
                    )
        yield f"botocore/{name}", "\n".join(line for line in lines if len(line) > 60)


def _plain(documentation: str) -> str:
    return page_text(documentation.encode(), None, r"^\b$").replace("\n\n", " ") if documentation else ""


def google_api(files: Files) -> Iterator[tuple[str, str]]:
    """A document an API; of several versions of one API the last."""
    newest = {
        name.rpartition("/")[2].split(".")[0]: (name, content)
        for name, content in files
        if "/documents/" in name and name.endswith(".json")
    }
    for name, content in newest.values():
        lines: list[str] = []
        if "documents/index.json" not in name:
            _descriptions("", json.loads(content), lines)
        yield f"google/{name}", "\n".join(lines)


def _descriptions(key: str, value: Any, lines: list[str]) -> None:
    if isinstance(value, dict):
        text = value.get("description")
        if isinstance(text, str) and len(text) > 60:
            lines.append(f"{key}: {' '.join(text.split())}")
        for name, inner in value.items():
            _descriptions(name, inner, lines)


def awscli(files: Files) -> Iterator[tuple[str, str]]:
    for name, content in files:
        if "/examples/" in name and name.endswith(".rst"):
            text = re.sub(r"`([^`<]*) <[^>]*>`__?", r"\1", content.decode("utf-8", "replace"))
            yield name, text.replace("``", "`").replace("\r\n", "\n")
