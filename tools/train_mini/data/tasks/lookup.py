"""Look-up drills: one text, many questions, each answer to be copied from further back. Training only.

Families needle and copying draw them. Keys and values are random, so no answer can be known otherwise; filler between
the text and the questions puts most of them farther back than the model's local window.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from ..render import Sample
from .attributes import VALUES
from .common import assistant, user, with_system
from .world import Draw, prose


class Pairs(NamedTuple):
    pairs: list[tuple[str, str]]
    lines: list[str]  # one a pair, as it stands in the text
    text: str


_SIZES = [(0.35, 3, 8), (0.35, 8, 20), (0.2, 20, 45), (0.1, 45, 140)]  # share of the samples, pairs
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KEYS: list[Callable[[Draw], str]] = [
    lambda d: d.entity("nouns"), lambda d: d.entity("nouns"), lambda d: d.entity("nouns").capitalize(), Draw.person,
    lambda d: d.entity("first_names"), lambda d: d.entity("cities"), lambda d: d.digits(d.pick([2, 3, 4])),
    lambda d: d.hex(d.number(3, 6)), Draw.word_code, lambda d: f"{d.entity('adjectives')} {d.entity('nouns')}",
    lambda d: f"{d.entity('nouns')}_{d.entity('nouns')}", lambda d: "".join(d.rng.choices(_LETTERS, k=d.number(2, 4))),
    lambda d: f"{d.entity('colors')} {d.entity('goods')}", lambda d: d.pick(_LETTERS) + d.digits(d.pick([1, 2, 3])), Draw.company,
]  # fmt: skip
_VALUES: list[Callable[[Draw], str]] = [
    *VALUES.values(), lambda d: d.digits(d.number(1, 6)), lambda d: d.digits(d.number(2, 5)), lambda d: d.entity("nouns"),
    lambda d: d.hex(d.number(4, 10)), lambda d: d.entity("first_names"), lambda d: d.entity("adjectives"),
    lambda d: " ".join(d.entity("nouns") for _ in range(d.number(2, 6))),
    lambda d: ", ".join(d.entity("nouns") for _ in range(d.number(2, 5))),
    lambda d: f"{d.entity('adverbs')} {d.entity('verbs')} the {d.entity('adjectives')} {d.entity('nouns')}",
    lambda d: f"/{d.entity('nouns')}/{d.entity('nouns')}/{d.hex(4)}", Draw.street, lambda d: "-".join(d.digits(3) for _ in range(3)),
]  # fmt: skip
_SEPARATORS = [": ", ": ", " = ", " -> ", " - ", "\t", " | ", " => ", ":", "=", " :: ", " -- ", " ... ", " ~ ", " > ", " is ", " has ", " goes with ", " stands for ",
               " belongs to ", " means ", " → "]  # fmt: skip
_BULLETS = ["", "", "", "", "- ", "* ", "• ", "> ", "  ", "# ", "the ", "Item "]
_WRAPS = ["{}", "{}", "{}", "{}", '"{}"', "[{}]", "<{}>", "({})", "`{}`", "*{}*", "'{}'"]
_JOINS = ["\n", "\n", "\n", "\n", "; ", " ;\n", "\n\n", " / ", ".\n", ". ", " || "]
_INTROS = ["", "", "Here is a list.", "Use this list.", "Remember these pairs:", "Data:", "List:", "Read this.", "These belong together:", "Learn the following.",
           "Look things up in this text.", "Table of values", "Notes:", "Here are some entries.", "Below are pairs.", "I will ask you about this:"]  # fmt: skip
_ASK = ["{k}", "{k}?", "{k}:", "{k} ->", "{k} =", "Q: {k}", "What is {k}?", "What does {k} have?", "Value of {k}?", "Look up {k}.", "Which value belongs to {k}?", "Find {k}.",
        "And {k}?", "{k}, please.", "Give me {k}.", "What stands next to {k}?", "What goes with {k}?", "Which entry has {k}? Give its value.", "What is the value of {k}?", "Now {k}.",
        "What did I say about {k}?", "Tell me the value for {k}.", "Please look up {k}.", 'What is next to "{k}"?', "{k} is what?"]  # fmt: skip
_ASK_BACK = ["Which key has {k}?", "What has the value {k}?", "To what does {k} belong?", "Find the key of {k}.", "Which entry says {k}? Give its key.", "What stands before {k}?",
             "Key of {k}?", "Whose value is {k}?", "{k} is the value of what?"]  # fmt: skip
_ASK_LINE = ["Repeat the line that begins with {k}.", "Quote the line of {k}.", "Which line starts with {k}?", "Copy the line with {k}.", "Give me the whole entry of {k}.",
             "Write the entry that begins with {k}.", "Line of {k}?", "The full line for {k}, please."]  # fmt: skip
_ASK_ALL = ["Give the values of these, one a line:\n{k}", "What belongs to these? One value a line.\n{k}", "Look all of these up and write one value a line:\n{k}", "Values only, one a line, for:\n{k}",
            "One line each:\n{k}"]  # fmt: skip
_ASK_LINES = [
    "Write the lines of these again:\n{k}",
    "Copy the entries of:\n{k}",
    "Repeat the whole line for each of these:\n{k}",
]
_GLUE = ["\n\n", "\n", "\n---\n", "\n\nQuestion: ", "\n\nQ: ", "\n\nNow: "]


def make(draw: Draw) -> Sample:
    return draw.pick([_pairs, _pairs, _pairs, _pairs, _records, _records, _neighbours, _sentences, _sentences, _long_copy])(draw)  # fmt: skip


def _size(draw: Draw) -> int:
    at = draw.rng.random()
    for share, low, high in _SIZES:
        if at < share:
            return draw.number(low, high)
        at -= share
    return draw.number(*_SIZES[-1][1:])


def _distinct(draw: Draw, kinds: list[Callable[[Draw], str]], count: int, taken: set[str]) -> list[str]:
    """Different ones, none of `taken`, of one kind or of several; fewer when the kinds have no more."""
    chosen = draw.some(kinds, draw.pick([1, 1, 2, 4]))
    found: dict[str, None] = {}
    for _ in range(4 * count):
        text = draw.pick(chosen)(draw)
        if text not in taken:
            found[text] = None
        if len(found) == count:
            break
    return list(found)


def _written(draw: Draw, pairs: list[tuple[str, str]]) -> Pairs:
    form = draw.rng.random()
    if form < 0.07:
        lines = [f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in pairs]
        return Pairs(pairs, lines, "{" + draw.pick([", ", ",\n "]).join(lines) + "}")
    if form < 0.14:
        lines = [f"| {k} | {v} |" for k, v in pairs]
        return Pairs(pairs, lines, "\n".join(["| key | value |", "| --- | --- |", *lines]))
    bullet, wrap, separator = draw.pick(_BULLETS), draw.pick(_WRAPS), draw.pick(_SEPARATORS)
    lines = [f"{bullet}{wrap.format(k)}{separator}{v}" for k, v in pairs]
    return Pairs(pairs, lines, draw.pick(_JOINS).join(lines))


def _filler(draw: Draw, p: float = 0.4) -> str:
    if not draw.chance(p):
        return ""
    n_tokens = draw.number(30, 150) if draw.chance(0.7) else draw.number(150, 700)
    return draw.text(draw.pick(["literature", "docs", "docs", "code"]), n_tokens)


def _asked(draw: Draw, text: str, turns: list[tuple[str, str]]) -> Sample:
    """The text with the first question, then the other questions one by one."""
    question, answer = turns[0]
    before, after = _filler(draw, 0.15), _filler(draw)
    parts = [p for p in (draw.pick(_INTROS), before, text, after) if p]
    messages = [user("\n\n".join(parts) + draw.pick(_GLUE) + question), assistant(answer)]
    for question, answer in turns[1:]:
        messages += [user(question), assistant(answer)]
    return Sample(with_system(draw, messages, 0.1))


def _pairs(draw: Draw) -> Sample:
    n = _size(draw)
    keys = _distinct(draw, _KEYS, n, set())
    values = _distinct(draw, _VALUES, len(keys), set(keys))
    written = _written(draw, list(zip(keys, values, strict=False)))
    pairs = written.pairs
    if draw.chance(0.25):  # all in one answer
        some = draw.some(range(len(pairs)), draw.number(2, 24))
        names = "\n".join(pairs[i][0] for i in some)
        if draw.chance(0.3):
            return _asked(draw, written.text, [(draw.pick(_ASK_LINES).format(k=names), "\n".join(written.lines[i] for i in some))])  # fmt: skip
        return _asked(draw, written.text, [(draw.pick(_ASK_ALL).format(k=names), "\n".join(pairs[i][1] for i in some))])
    plain, back, line = draw.pick(_ASK), draw.pick(_ASK_BACK), draw.pick(_ASK_LINE)
    varied = draw.chance(0.4)
    turns = []
    for i in draw.some(range(len(pairs)), draw.pick([1, 4, 8, 12, 20])):
        key, value = pairs[i]
        at = draw.rng.random()
        if at < 0.72:
            turns.append(((draw.pick(_ASK) if varied else plain).format(k=key), value))
        elif at < 0.87:
            turns.append((back.format(k=value), key))
        else:
            turns.append((line.format(k=key), written.lines[i].strip()))
    return _asked(draw, written.text, turns)


def _records(draw: Draw) -> Sample:
    """Rows with several named columns: the row and the column both have to match."""
    rows = _distinct(draw, _KEYS, draw.pick([2, 3, 4, 6, 8, 12]), set())
    columns = _distinct(draw, [lambda d: d.entity("nouns")], draw.number(2, 5), set(rows))
    kinds = [draw.pick(_VALUES) for _ in columns]
    cells = [[kind(draw) for kind in kinds] for _ in rows]
    form = draw.pick(["table", "table", "csv", "lines", "blocks", "sentences"])
    if form == "table":
        lines = [f"| name | {' | '.join(columns)} |", "|" + " --- |" * (len(columns) + 1)]
        lines += [f"| {r} | {' | '.join(c)} |" for r, c in zip(rows, cells, strict=True)]
    elif form == "csv":
        comma = draw.pick([";", "\t", " | ", " ; "])
        lines = [comma.join(["name", *columns]), *(comma.join([r, *c]) for r, c in zip(rows, cells, strict=True))]
    elif form == "blocks":
        lines = [r + "".join(f"\n  {n}: {v}" for n, v in zip(columns, c, strict=True)) for r, c in zip(rows, cells, strict=True)]  # fmt: skip
    else:
        equals, glue = draw.pick([(" = ", "; "), (": ", "; "), (" is ", " and "), (" ", ", ")])
        start = draw.pick([": ", " - ", " has ", ", with "])
        lines = [r + start + glue.join(f"{n}{equals}{v}" for n, v in zip(columns, c, strict=True)) for r, c in zip(rows, cells, strict=True)]  # fmt: skip
    joined = " ".join(line + "." for line in lines) if form == "sentences" else "\n".join(lines)
    ask = ["{c} of {r}?", "What is the {c} of {r}?", "{r}: {c}?", "{r}, {c}", "Which {c} does {r} have?", "Give me the {c} for {r}.", "{c}, {r}?", "And the {c} of {r}?",
           "What {c} does {r} have?", "Look up the {c} of {r}."]  # fmt: skip
    form, varied = draw.pick(ask), draw.chance(0.4)
    places = [(i, j) for i in range(len(rows)) for j in range(len(columns))]
    turns = [((draw.pick(ask) if varied else form).format(r=rows[i], c=columns[j]), cells[i][j]) for i, j in draw.some(places, draw.pick([1, 4, 8, 12, 16]))]  # fmt: skip
    return _asked(draw, joined, turns)


def _neighbours(draw: Draw) -> Sample:
    """A list without repeats; what comes after or before an item, or all from an item on."""
    items = _distinct(draw, draw.pick([_KEYS, _VALUES]), _size(draw) + 2, set())
    if len(items) < 3:
        return _pairs(draw)
    text = draw.pick(["\n", " ; ", "\n- ", "; ", " > ", " | "]).join(items)
    after = draw.chance(0.7)
    form = draw.pick(
        ["What comes after {k}?", "What is next after {k}?", "{k}, then?", "Which one follows {k}?", "Name the item after {k}."]
        if after
        else ["What comes before {k}?", "What is just before {k}?", "Which one precedes {k}?", "Name the item before {k}."]
    )  # fmt: skip
    turns = []
    for i in draw.some(range(1, len(items)), draw.pick([1, 4, 8, 12])):
        turns.append((form.format(k=items[i - 1 if after else i]), items[i if after else i - 1]))
    return _asked(draw, text, turns)


def _sentences(draw: Draw) -> Sample:
    """Real prose: the sentence with such a beginning, or the rest of it, several times."""
    lines = prose(draw.text(draw.pick(["literature", "docs", "docs"]), draw.pick([120, 200, 300, 500, 900])), 24, 260)
    turns = sentence_turns(draw, lines, draw.pick([1, 2, 4, 8]))
    return _asked(draw, draw.pick([" ", "\n"]).join(lines), turns) if turns else _pairs(draw)


def sentence_turns(draw: Draw, lines: list[str], count: int) -> list[tuple[str, str]]:
    """Questions for a sentence by its first words, or for how it goes on."""
    starts = [" ".join(s.split()[:4]) for s in lines]
    usable = [i for i, s in enumerate(starts) if starts.count(s) == 1 and len(lines[i].split()) > 5]
    rest = draw.chance(0.4)
    form = draw.pick(
        ['How does the sentence go on that begins with "{k}"?', 'Continue from the text: "{k}"', 'What follows "{k}" in that sentence?', '"{k} ..." - the rest of the sentence, please.']
        if rest
        else ['Quote the sentence that begins with "{k}".', 'Repeat the sentence that starts with "{k}"', "Which sentence starts with {k}?", 'Give the whole sentence: "{k} ..."', "Copy the sentence beginning {k}"]
    )  # fmt: skip
    return [
        (form.replace("{k}", starts[i]), lines[i].split(None, 4)[4] if rest else lines[i])
        for i in draw.some(usable, count)
    ]


def _long_copy(draw: Draw) -> Sample:
    """A long text once more, whole or from a line on: every token of the answer stands so far back."""
    kinds = draw.some(_VALUES, draw.pick([1, 2, 4]))
    if draw.chance(0.3):
        lines = [
            line
            for line in draw.text(draw.pick(["literature", "docs", "code", "code"]), draw.number(60, 300)).split("\n")
            if line.strip()
        ]
    else:
        n = draw.number(6, 50)
        glue = draw.pick([" ", ", ", "; ", " "])
        per_line = draw.pick([1, 2, 4, n])
        items = [draw.pick(kinds)(draw) for _ in range(n)]
        lines = [glue.join(items[i : i + per_line]) for i in range(0, n, per_line)]
    if not lines:  # a stretch of blank lines
        return _pairs(draw)
    start = draw.number(0, len(lines) - 1) if draw.chance(0.3) and len(lines) > 2 else 0
    text, again = "\n".join(lines), "\n".join(lines[start:])
    if start == 0:
        form = draw.pick(["{t}\n\nRepeat all of this.", "Write this text again:\n{t}", "Copy everything:\n\n{t}", "{t}\n\nOnce more, exactly.", "Text:\n{t}\n\nRepeat the text."])  # fmt: skip
    elif lines.count(lines[start]) > 1:
        return _pairs(draw)
    else:
        form = draw.pick(["{t}\n\nRepeat this from the following line to the end:\n{k}", "{t}\n---\nCopy from this line on:\n{k}", "Copy the text from here: {k}\n\n{t}"])  # fmt: skip
    return Sample(
        with_system(draw, [user(form.replace("{t}", text).replace("{k}", lines[start])), assistant(again)], 0.1)
    )
