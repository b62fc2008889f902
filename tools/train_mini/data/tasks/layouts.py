"""Surface forms of a document of labelled values: lines, tables, mails, logs, markup, prose; each drawn piece by piece.

A layout takes labels in words and values as text. Labels are written in one case a document; no value is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .world import Draw

Pairs = list[tuple[str, str]]
_NUMBER = re.compile(r"[1-9]\d*(\.\d+)?")

_CASES: list[Callable[[str], str]] = [str.capitalize, str.capitalize, str.title, str.lower, str.upper, lambda t: t.replace(" ", "_"), lambda t: t.title().replace(" ", "")]  # fmt: skip
_BULLETS = ["", "", "", "- ", "* ", "• ", "> ", "  ", "+ ", "-- ", "# "]
_DECORATIONS = ["{}", "{}", "{}", "{}", "**{}**", "[{}]", "<{}>", "'{}'", "_{}_", "({})"]
_SEPARATORS = [
    ": ",
    ": ",
    ": ",
    " = ",
    " - ",
    " -> ",
    ":\t",
    " | ",
    " => ",
    " :: ",
    ": ....... ",
    " ~ ",
    "=",
    " .. ",
    " – ",
]
_VALUES = ["{}", "{}", "{}", "{}", "[{}]", "<{}>"]
_FRAMES = [
    "The {l} is {v}.", "Its {l} is {v}.", "It has the {l} {v}.", "As {l} we have {v}.", "The {l}: {v}.", "{v} is the {l}.", "For the {l} they gave {v}.", "We noted {v} as the {l}.",
    "About the {l}: {v}.", "In the field {l} stands {v}.", "The {l} was given as {v}.", "Under {l} you find {v}.", "As for the {l}, it is {v}.", "The {l} says {v}.", "{l}: {v}.",
    "Please note the {l} {v}.", "The value of {l} is {v}.", "Next, {l} is {v}.", "The {l} that was entered is {v}.", "Someone wrote {v} for the {l}.", "{l} = {v}.", "The {l} should be {v}.",
]  # fmt: skip
_FILLERS = [
    "Thank you for your patience.", "I hope this helps.", "Everything else stays as it was.", "We spoke about this last week.", "Call me if something is unclear.", "The rest can wait.",
    "This was checked twice.", "More will follow soon.", "Please keep this safe.", "Nothing else has changed.", "It was a long day.", "Sorry for the late answer.",
    "I copied this from the screen.", "As you can see, it is all here.", "This is what we know so far.", "The office is closed tomorrow.", "I found this in the old folder.",
]  # fmt: skip
_HELLOS = ["Hello", "Hi", "Dear", "Good morning", "Hey", "Good day", "Dear colleague"]
_OPENERS = [
    "here is what you asked for about the {d}.",
    "below is the {d}.",
    "please see the {d}.",
    "this is about the {d}.",
    "I send you the {d}.",
    "the {d} has come in.",
    "you wanted the {d}.",
]
_BYES = ["Best regards", "Yours", "Thanks", "Kind regards", "See you", "Bye", "Greetings", "All the best"]
_TITLES = [
    "{D}",
    "*** {D} ***",
    "== {D} ==",
    "# {D}",
    "{D}:",
    "New {d}",
    "[{d}]",
    "Details of the {d}",
    "{D}\n-----",
    "Copy of a {d}",
    "Entry: {d}",
]


def document(draw: Draw, kind: str, pairs: Pairs) -> str:
    """Every layout has its own test bucket; the pieces of a layout are shared. Some layouts are for training only."""
    if not draw.test and draw.chance(0.3):
        return draw.pick(_MORE_LAYOUTS)(draw, kind, pairs)
    return draw.template("extract-layout", _LAYOUTS)(draw, kind, pairs)


def _cased(draw: Draw, pairs: Pairs) -> Pairs:
    case = draw.pick(_CASES)
    return [(case(label), value) for label, value in pairs]


def _titled(draw: Draw, kind: str, text: str, p: float = 0.4) -> str:
    return draw.pick(_TITLES).format(d=kind, D=kind.capitalize()) + "\n" + text if draw.chance(p) else text


def _surrounded(draw: Draw, text: str) -> str:
    """Sometimes remarks before and after."""
    before = draw.pick(_FILLERS) + "\n" if draw.chance(0.12) else ""
    return before + text + ("\n" + draw.pick(_FILLERS) if draw.chance(0.15) else "")


def _lines(draw: Draw, kind: str, pairs: Pairs, bullets: list[str], joins: list[str]) -> str:
    bullet, around, separator, value = draw.pick(bullets), draw.pick(_DECORATIONS), draw.pick(_SEPARATORS), draw.pick(_VALUES)  # fmt: skip
    lines = [f"{bullet}{around.format(k)}{separator}{value.format(v)}" for k, v in _cased(draw, pairs)]
    return _surrounded(draw, _titled(draw, kind, draw.pick(joins).join(lines)))


def _plain_lines(draw: Draw, kind: str, pairs: Pairs) -> str:
    return "\n".join(f"{k}: {v}" for k, v in _cased(draw, pairs))


def _list(draw: Draw, kind: str, pairs: Pairs) -> str:
    return _lines(draw, kind, pairs, _BULLETS, ["\n", "\n", "\n\n"])


def _spaced(draw: Draw, kind: str, pairs: Pairs) -> str:
    return _lines(draw, kind, pairs, [""], ["\n\n", ";\n", "\n"])


def _inline(draw: Draw, kind: str, pairs: Pairs) -> str:
    return _lines(draw, kind, pairs, [""], ["; ", " / ", " || ", " ; "])


def _numbered(draw: Draw, kind: str, pairs: Pairs) -> str:
    dot, separator = draw.pick([". ", ") ", ": ", " - "]), draw.pick(_SEPARATORS)
    return _titled(draw, kind, "\n".join(f"{i}{dot}{k}{separator}{v}" for i, (k, v) in enumerate(_cased(draw, pairs), 1)))  # fmt: skip


def _columns(draw: Draw, kind: str, pairs: Pairs) -> str:
    pairs = _cased(draw, pairs)
    width = max(len(k) for k, _ in pairs) + 2
    fill = draw.pick([" ", " ", ".", "-", "_"])
    return _titled(draw, kind, "\n".join(f"{(k + ' ').ljust(width, fill)} {v}" for k, v in pairs))


def _form(draw: Draw, kind: str, pairs: Pairs) -> str:
    dots, left, right = draw.pick([(" .... ", "[", "]"), (" ", "[ ", " ]"), (": ", "__", "__"), ("  ", "( ", " )")])
    return "\n".join(f"{k.upper()}{dots}{left}{v}{right}" for k, v in pairs)


def _label_above(draw: Draw, kind: str, pairs: Pairs) -> str:
    end, indent = draw.pick(["", ":", " -"]), draw.pick(["", "  ", "\t", "= "])
    return _titled(draw, kind, draw.pick(["\n", "\n\n"]).join(f"{k}{end}\n{indent}{v}" for k, v in _cased(draw, pairs)))


def _value_first(draw: Draw, kind: str, pairs: Pairs) -> str:
    form = draw.pick(["{v} ({k})", "{v} <- {k}", "{v} [{k}]", "{v} is {k}", "{v} : {k}"])
    return _titled(draw, kind, "\n".join(form.format(k=k, v=v) for k, v in _cased(draw, pairs)))


def _table(draw: Draw, kind: str, pairs: Pairs) -> str:
    left, right = draw.pick([("field", "value"), ("name", "content"), ("key", "value"), ("what", "entry"), ("item", "data")])  # fmt: skip
    rows = [f"| {k} | {v} |" for k, v in _cased(draw, pairs)]
    return _titled(
        draw, kind, "\n".join([f"| {left} | {right} |", "| --- | --- |", *rows] if draw.chance(0.7) else rows)
    )


def _wide_table(draw: Draw, kind: str, pairs: Pairs) -> str:
    pairs = _cased(draw, pairs)
    head, row = (f"| {' | '.join(cells)} |" for cells in zip(*pairs, strict=True))
    return _titled(draw, kind, "\n".join([head, "|" + " --- |" * len(pairs), row]))


def _csv(draw: Draw, kind: str, pairs: Pairs) -> str:
    pairs = _cased(draw, pairs)
    comma = draw.pick([";", "\t", " | ", " ; "] if any("," in v for _, v in pairs) else [",", ";", "\t", ", "])
    return "\n".join(comma.join(cells) for cells in zip(*pairs, strict=True))


def _html(draw: Draw, kind: str, pairs: Pairs) -> str:
    start, form, end = draw.pick([
        ("<table>", "<tr><th>{k}</th><td>{v}</td></tr>", "</table>"), ("<dl>", "<dt>{k}</dt><dd>{v}</dd>", "</dl>"), ("<ul>", "<li><b>{k}</b> {v}</li>", "</ul>"), ("<p>", "<b>{k}:</b> {v}<br>", "</p>"),
    ])  # fmt: skip
    return "\n".join([start, *(form.format(k=k, v=v) for k, v in _cased(draw, pairs)), end])


def _xml(draw: Draw, kind: str, pairs: Pairs) -> str:
    name = draw.pick(["record", "entry", kind.replace(" ", "_")])
    glue = draw.pick(["_", "-"])
    tags = [(k.replace(" ", glue), v) for k, v in pairs]
    return "\n".join([f"<{name}>", *(f"  <{k}>{v}</{k}>" for k, v in tags), f"</{name}>"])


def _json(draw: Draw, kind: str, pairs: Pairs) -> str:
    values: dict[str, object] = {}
    for k, v in _cased(draw, pairs):  # a string of digits would not say whether the answer is one, too
        values[k] = (
            {"yes": True, "no": False}[v] if v in ("yes", "no") else json.loads(v) if _NUMBER.fullmatch(v) else v
        )
    return json.dumps(values, ensure_ascii=False, indent=draw.pick([None, None, 1, 2]))


def _settings(draw: Draw, kind: str, pairs: Pairs) -> str:
    section, equals = draw.pick(["[{d}]", "# {d}", "; {d}", "[section {d}]"]), draw.pick([" = ", "=", ": ", " := "])
    return "\n".join([section.format(d=kind), *(f"{k.replace(' ', '_')}{equals}{v}" for k, v in pairs)])


def _log(draw: Draw, kind: str, pairs: Pairs) -> str:
    start = draw.pick(["{t} INFO ", "[{t}] {d}: ", "{t} {d} saved ", "info {d} ", "{d}[{n}]: ", "{t} | "])
    head = start.format(t=f"{draw.time()}:{draw.number(10, 59)}", d=kind, n=draw.number(100, 999))
    quoted = draw.pick(['"{}"', "<{}>", "[{}]"])
    return head + " ".join(f"{k.replace(' ', '_')}={quoted.format(v) if ' ' in v else v}" for k, v in pairs)


def _log_lines(draw: Draw, kind: str, pairs: Pairs) -> str:
    said = draw.pick(["set {k} to {v}", "{k}={v}", "{k}: {v}", "{k} is now {v}", "read {k} -> {v}"])
    hour, minute = draw.number(0, 23), draw.number(0, 40)
    return "\n".join(f"{hour:02}:{minute + i:02} {said.format(k=k, v=v)}" for i, (k, v) in enumerate(pairs))


def _sentence(draw: Draw, kind: str, pairs: Pairs) -> str:
    form, glue = draw.pick([("{k} {v}", ", "), ("{k} {v}", "; "), ("the {k} {v}", " and "), ("{v} as {k}", ", "), ("{k}: {v}", ", ")])  # fmt: skip
    start = draw.pick(["This {d} has ", "The {d} comes with ", "In the {d}: ", "A {d} with ", "We got a {d} that has "])
    return start.format(d=kind) + glue.join(form.format(k=k, v=v) for k, v in pairs) + "."


def _prose(draw: Draw, kind: str, pairs: Pairs, p_filler: float = 0.2) -> str:
    parts = []
    one = draw.template("extract-frame", _FRAMES) if draw.chance(0.3) else None
    for k, v in pairs:
        frame = one or draw.template("extract-frame", _FRAMES)
        parts.append(frame.format(l=k.capitalize() if frame.startswith("{l}") else k, v=v))
        if draw.chance(p_filler):
            parts.append(draw.pick(_FILLERS))
    return draw.pick([" ", " ", "\n"]).join(parts)


def _mail(draw: Draw, kind: str, pairs: Pairs) -> str:
    inner = _prose if draw.chance(0.6) else draw.pick([_plain_lines, _list, _inline])
    opener = draw.pick(_OPENERS).format(d=kind)
    return f"{draw.pick(_HELLOS)} {draw.entity('first_names')},\n\n{opener} {draw.pick(['', chr(10)])}{inner(draw, kind, pairs)}\n\n{draw.pick(_BYES)}\n{draw.entity('first_names')}"


def _note(draw: Draw, kind: str, pairs: Pairs) -> str:
    equals = draw.pick([" = ", ": ", " is ", " -> "])
    start = draw.pick(["Note on a {d}. ", "{d} - ", "Remember for the {d}: ", "Short note ({d}): ", "About the {d}: "])
    return start.format(d=kind) + draw.pick(["; ", " / "]).join(f"{k}{equals}{v}" for k, v in pairs)


def _chat(draw: Draw, kind: str, pairs: Pairs) -> str:
    one, two = draw.entity("first_names"), draw.entity("first_names")
    ask, say = draw.pick([("And the {k}?", "{v}"), ("{k}?", "{v}"), ("What is the {k}?", "It is {v}."), ("The {k}?", "{v}, I think."), ("Tell me the {k}.", "{v}.")])  # fmt: skip
    return "\n".join(f"{one}: {ask.format(k=k)}\n{two}: {say.format(v=v)}" for k, v in pairs)


def _value_above(draw: Draw, kind: str, pairs: Pairs) -> str:
    indent, end = draw.pick(["", "  ", "\t", "^ ", "-- "]), draw.pick(["", "", ":", "."])
    return _titled(draw, kind, draw.pick(["\n", "\n\n"]).join(f"{v}\n{indent}{k}{end}" for k, v in _cased(draw, pairs)))


def _right_labels(draw: Draw, kind: str, pairs: Pairs) -> str:
    """Values in the left column."""
    pairs = _cased(draw, pairs)
    width, fill = max(len(v) for _, v in pairs) + 2, draw.pick([" ", " ", ".", "_"])
    return _titled(draw, kind, "\n".join(f"{(v + ' ').ljust(width, fill)} {k}" for k, v in pairs))


def _arrows(draw: Draw, kind: str, pairs: Pairs) -> str:
    mark = draw.pick(
        [
            " // ",
            " # ",
            " ; ",
            " => ",
            " belongs to ",
            " stands for ",
            " fills ",
            "  --  ",
            " @ ",
            " = ",
            " | ",
            ", which is the ",
            " goes under ",
        ]
    )
    bullet = draw.pick(_BULLETS)
    return _surrounded(draw, _titled(draw, kind, draw.pick(["\n", "\n", "\n\n", " / "]).join(f"{bullet}{v}{mark}{k}" for k, v in _cased(draw, pairs))))  # fmt: skip


def _both_ways(draw: Draw, kind: str, pairs: Pairs) -> str:
    """The label now before, now behind its value: the words between say which is which."""
    forms = [
        "{k}: {v}",
        "{v} as {k}",
        "{k} = {v}",
        "{v} for the {k}",
        "the {k} being {v}",
        "{v} under {k}",
        "{k} ({v})",
    ]
    return _titled(draw, kind, draw.pick(["\n", "; ", "\n- "]).join(draw.pick(forms).format(k=k, v=v) for k, v in _cased(draw, pairs)))  # fmt: skip


def _value_lists(draw: Draw, kind: str, pairs: Pairs) -> str:
    """Markup with the value first."""
    start, form, end = draw.pick([("<div>", "<p>{v} <small>{k}</small></p>", "</div>"), ("<table>", "<tr><td>{v}</td><th>{k}</th></tr>", "</table>"), ("", "_{v}_ **{k}**", ""), ("<ol>", "<li>{v} <i>{k}</i></li>", "</ol>"),
                                  ("", '<item value="{v}" name="{k}"/>', ""), ("", '{{{v}}}{{{k}}}', "")])  # fmt: skip
    return "\n".join(p for p in [start, *(form.format(k=k, v=v) for k, v in _cased(draw, pairs)), end] if p)


def _two_rows(draw: Draw, kind: str, pairs: Pairs) -> str:
    """All labels, then all values, in columns of one width or numbered."""
    pairs = _cased(draw, pairs)
    if draw.chance(0.5):
        widths = [max(len(k), len(v)) + 2 for k, v in pairs]
        rows = [
            "".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()
            for cells in zip(*pairs, strict=True)
        ]
        return _titled(draw, kind, "\n".join(rows))
    numbers, glue = range(1, len(pairs) + 1), draw.pick(["; ", "\n", " / "])
    heads = glue.join(f"{i}: {k}" for i, (k, _) in zip(numbers, pairs, strict=True))
    values = glue.join(f"{i}: {v}" for i, (_, v) in zip(numbers, pairs, strict=True))
    return draw.pick(["Names\n{h}\nValues\n{v}", "{h}\n\n{v}", "Columns: {h}\nRow: {v}", "Fields\n{h}\nData\n{v}"]).replace("{h}", heads).replace("{v}", values)  # fmt: skip


def _table_of_three(draw: Draw, kind: str, pairs: Pairs) -> str:
    """A column of notes beside label and value."""
    notes = ["ok", "new", "checked", "-", "see file", "old", "sure"]
    forms = ["| {n} | {k} | {v} |", "| {k} | {n} | {v} |", "| {k} | {v} | {n} |", "{n}\t{k}\t{v}", "{k};{n};{v}"]
    form = draw.pick(forms)
    return _titled(draw, kind, "\n".join(form.format(n=draw.pick(notes), k=k, v=v) for k, v in _cased(draw, pairs)))


_MORE_LAYOUTS: list[Callable[[Draw, str, Pairs], str]] = [_value_above, _right_labels, _arrows, _arrows, _both_ways, _value_lists, _two_rows, _table_of_three]  # fmt: skip

_LAYOUTS: list[Callable[[Draw, str, Pairs], str]] = [
    _plain_lines, _list, _spaced, _inline, _numbered, _columns, _form, _label_above, _value_first, _table, _wide_table, _csv, _html, _xml, _json, _settings, _log, _log_lines,
    _sentence, _prose, _mail, _note, _chat,
]  # fmt: skip
