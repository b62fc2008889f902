"""Dictionary text: WordNet glosses as sentences, and the Jargon File."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator

Files = Iterable[tuple[str, bytes]]
PARTS_OF_SPEECH = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}
_GLOSSES_A_DOCUMENT = 40


def wordnet_entries(files: Files) -> Iterator[tuple[str, list[str], str]]:
    """(part of speech, words, gloss with its examples) of each synonym set."""
    for name, content in files:
        kind = name.rpartition("/data.")[2]
        if kind not in PARTS_OF_SPEECH:
            continue
        for line in content.decode("utf-8", "replace").splitlines():
            if line.startswith(" ") or " | " not in line:
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            words = [re.sub(r"\(.*\)", "", w).replace("_", " ") for w in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
            yield PARTS_OF_SPEECH[kind], words, gloss.strip()


def wordnet(files: Files) -> Iterator[tuple[str, str]]:
    """Documents of forty entries, near ones together as the file has them."""
    lines: list[str] = []
    for kind, words, gloss in wordnet_entries(files):
        lines.append(f"{', '.join(words[:4])} ({kind}): {gloss}")
        if len(lines) == _GLOSSES_A_DOCUMENT:
            text = "\n".join(lines)
            yield "wordnet/" + hashlib.sha256(text.encode()).hexdigest()[:12], text
            lines = []


def jargon(files: Files) -> Iterator[tuple[str, str]]:
    """Entries begin in column 0; thirty to a document."""
    content = next(c for n, c in files if n.endswith("jargon.dict.dz"))
    text = gzip.decompress(content).decode("utf-8", "replace")
    entries = re.split(r"\n(?=\S)", text)
    clean = [_entry(e) for e in entries if len(e) > 80 and not e.startswith("00-")]
    for i in range(0, len(clean), 30):
        yield f"jargon/{i}", "\n\n".join(clean[i : i + 30])


def _entry(entry: str) -> str:
    """The head word, then paragraphs joined to a line; links lose their braces."""
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", entry)]
    return re.sub(r"\{([^{}]*)\}", r"\1", "\n".join(p for p in paragraphs if p))
