"""Family 9, code: complete functions, write docstrings, continue a line, fill a gap, predict what a call returns.

Real functions come from training code (test: packages that are held out); script-made ones are run to get the answer.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from ..render import Sample
from .common import turn
from .world import Draw

_FUNCTIONS_MIN, _P_MORE = 30, 0.08


class Function(NamedTuple):
    signature: str
    docstring: str | None
    body: str
    source: str


def make(draw: Draw) -> Sample:
    at = draw.rng.random()
    if at < 0.4:
        return make_executed(draw)
    function = _function(draw)
    if at < 0.58 and function.docstring:
        return _body(draw, function)
    if at < 0.7 and function.docstring:
        return _docstring(draw, function)
    return _gap(draw, function) if at < 0.85 else _next_line(draw, function)


def _function(draw: Draw) -> Function:
    """From a pool that grows with the draw's samples: parsing is slow."""
    pool: list[Function] = draw.memo.setdefault("functions", [])
    while len(pool) < _FUNCTIONS_MIN or draw.chance(_P_MORE):
        pool.extend(functions(draw.world.corpus.document(draw.rng, "code", draw.test, 20_000)))
    return draw.pick(pool)


def functions(source: str) -> list[Function]:
    """Short functions of a Python file; none of anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines, found = source.split("\n"), []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not 3 <= (node.end_lineno or 0) - node.lineno <= 24:
            continue
        text = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
        head = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]).strip()
        docstring = ast.get_docstring(node)
        body_nodes = node.body[1:] if docstring else node.body
        if not body_nodes or not head or len(text) > 1400:
            continue
        body = textwrap.dedent("\n".join(lines[body_nodes[0].lineno - 1 : node.end_lineno]))
        found.append(Function(head, docstring, textwrap.indent(body, "    "), text))
    return found


def _body(draw: Draw, f: Function) -> Sample:
    form = draw.template(
        "code-body",
        [
            'Write the body of this function.\n\n{s}\n    """{d}"""',
            'Complete:\n\n{s}\n    """{d}"""',
            '{s}\n    """{d}"""\n\nWrite what is missing.',
            'Implement this Python function:\n{s}\n    """{d}"""',
        ],
    )
    return turn(draw, form.format(s=f.signature, d=f.docstring), f.body, None, 0, "code")


def _docstring(draw: Draw, f: Function) -> Sample:
    form = draw.template(
        "code-doc",
        [
            "Write a docstring for this function.\n\n{c}",
            "What does this do? Answer as a docstring.\n\n{c}",
            "Document:\n\n{c}",
            "{c}\n\nDescribe this function in a docstring.",
        ],
    )
    return turn(draw, form.format(c=f"{f.signature}\n{f.body}"), f.docstring or "", None, 0, "code")


def _gap(draw: Draw, f: Function) -> Sample:
    lines = f.source.split("\n")
    i = 1 + int(draw.rng.random() * (len(lines) - 1))
    gap = "\n".join([*lines[:i], "    # GAP", *lines[i + 1 :]])
    form = draw.template(
        "code-gap",
        [
            "Which line belongs at # GAP?\n\n{c}",
            "Fill the gap.\n\n{c}",
            "{c}\n\nWrite the line that # GAP stands for.",
            "Replace # GAP by the missing line:\n{c}",
        ],
    )
    return turn(draw, form.format(c=gap), lines[i].strip() or "pass", None, 0, "code")


def _next_line(draw: Draw, f: Function) -> Sample:
    lines = [line for line in f.source.split("\n") if line.strip()]
    i = 1 + int(draw.rng.random() * (len(lines) - 1))
    form = draw.template(
        "code-next",
        [
            "What is the next line?\n\n{c}",
            "Continue with one line:\n\n{c}",
            "{c}\n\nNext line?",
            "Write the line after this code:\n{c}",
        ],
    )
    return turn(draw, form.format(c="\n".join(lines[:i])), lines[i].strip(), None, 0, "code")


# Plans of small functions: (code with {f} name, {x} argument, {k} number), and what to call them with.
_Values = Callable[[Draw], Any]
_NUMBERS: _Values = lambda d: [d.number(0, 20) for _ in range(d.number(2, 5))]  # noqa: E731
_WORDS: _Values = lambda d: [d.entity("goods") for _ in range(d.number(2, 4))]  # noqa: E731
_INT: _Values = lambda d: d.number(0, 30)  # noqa: E731
_WORD: _Values = lambda d: d.entity("goods")  # noqa: E731
PLANS: list[tuple[str, _Values]] = [
    ("def {f}({x}):\n    return {x} + {k}", _INT),
    ("def {f}({x}):\n    return {x} - {k}", _INT),
    ("def {f}({x}):\n    return {x} * 2", _INT),
    ("def {f}({x}):\n    return {x} > {k}", _INT),
    ("def {f}({x}):\n    return {x} % 2 == 0", _INT),
    ('def {f}({x}):\n    if {x} < {k}:\n        return "small"\n    return "large"', _INT),
    ("def {f}({x}):\n    return max({x}, {k})", _INT),
    ("def {f}({x}):\n    return min({x}, {k})", _INT),
    ("def {f}({x}):\n    return [n for n in {x} if n > {k}]", _NUMBERS),
    ("def {f}({x}):\n    return [n + 1 for n in {x}]", _NUMBERS),
    ("def {f}({x}):\n    return max({x})", _NUMBERS),
    ("def {f}({x}):\n    return min({x})", _NUMBERS),
    ("def {f}({x}):\n    return len({x})", _NUMBERS),
    ("def {f}({x}):\n    return sorted({x})", _NUMBERS),
    ("def {f}({x}):\n    return {x}[0]", _NUMBERS),
    ("def {f}({x}):\n    return {x}[-1]", _NUMBERS),
    ("def {f}({x}):\n    return {x}[::-1]", _NUMBERS),
    ("def {f}({x}):\n    return {x}[1:]", _NUMBERS),
    (
        "def {f}({x}):\n    total = 0\n    for n in {x}:\n        total += n\n    return total",
        lambda d: [d.number(0, 9) for _ in range(d.number(2, 4))],
    ),
    ("def {f}({x}):\n    return {k} in {x}", _NUMBERS),
    ("def {f}({x}):\n    return [w.upper() for w in {x}]", _WORDS),
    ('def {f}({x}):\n    return "-".join({x})', _WORDS),
    ("def {f}({x}):\n    return sorted({x})", _WORDS),
    ("def {f}({x}):\n    return {x}[0]", _WORDS),
    ("def {f}({x}):\n    return {{w: len(w) for w in {x}}}", _WORDS),
    ("def {f}({x}):\n    return [w for w in {x} if len(w) > 5]", _WORDS),
    ('def {f}({x}):\n    return ", ".join(sorted({x}))', _WORDS),
    ("def {f}({x}):\n    return {x}.upper()", _WORD),
    ("def {f}({x}):\n    return {x}[0]", _WORD),
    ("def {f}({x}):\n    return {x}[:3]", _WORD),
    ('def {f}({x}):\n    return {x} + "s"', _WORD),
    ("def {f}({x}):\n    return len({x})", _WORD),
    ('def {f}({x}):\n    return {x}.startswith("s")', _WORD),
    ("def {f}({x}):\n    return {x} * 2", _WORD),
    ('def {f}({x}):\n    return {x}.replace("e", "a")', _WORD),
]


def make_executed(draw: Draw) -> Sample:
    code, values = draw.template("code-plan", PLANS)
    name, argument = (
        f"{draw.entity('verbs')}_{draw.entity('nouns')}",
        draw.pick(["x", "values", "n", "item", "data", "s", "words", "a"]),
    )
    if not name.isidentifier() or argument in name.split("_"):
        name = "f"
    source = code.format(f=name, x=argument, k=draw.number(1, 20))
    value = values(draw)
    scope: dict[str, Any] = {}
    exec(source, scope)  # our own template, names and numbers
    result = repr(scope[name](value))
    form = draw.template(
        "code-run",
        [
            "{c}\n\nWhat does {f}({v}) return?",
            "What is {f}({v})?\n\n{c}",
            "Given this code:\n{c}\nwhat is the value of {f}({v})?",
            "{c}\n\nprint({f}({v})) prints what?",
            "Run in your head: {f}({v})\n\n{c}",
        ],
    )
    return turn(
        draw,
        form.format(c=source, f=name, v=repr(value)),
        result,
        f"{argument} is {value!r}, so {source.splitlines()[-1].strip()} gives {result}.",
        0.4,
    )
