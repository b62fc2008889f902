"""Family 6: addition, subtraction, small products, comparing and counting, with a digit-by-digit scratchpad.

Operands are uniform over their range. Pairs with a test hash, in either order, are test only.
"""

from __future__ import annotations

from ..render import Sample
from .common import turn
from .world import Draw, is_test_pair

_FRAMES = ["What is {e}?", "Calculate {e}.", "Compute {e}.", "How much is {e}?", "Work out {e}.", "Please tell me {e}.", "Find {e}.", "Give the value of {e}.", "Can you calculate {e}?", "I need {e}.",
           "What does {e} make?", "Hi, what is {e}?", "Could you work out {e} for me?", "Tell me what {e} is.", "The answer to {e} is what?", "Evaluate {e}.", "Quick: {e}", "What do you get for {e}?", "{e} = ?", "{e}", "{e}?", "{e} =",
           "Solve: {e}", "Do you know {e}?", "Now {e}, please.", "Say how much {e} is.", "Exercise: {e}"]  # fmt: skip


def _framed(expressions: list[str], others: list[str]) -> list[str]:
    """Every frame with every expression: the split holds out whole wordings, not their parts."""
    return [frame.replace("{e}", e) for e in expressions for frame in _FRAMES] + others


_ADD = _framed(
    ["{a} + {b}", "{a}+{b}", "{a} plus {b}", "the sum of {a} and {b}", "{a} and {b} together", "{b} added to {a}", "{a} increased by {b}", "{b} more than {a}", "the total of {a} and {b}"],
    ["Add {a} and {b}.", "Please add {b} to {a}.", "Add up {a} and {b}.", "Sum {a} and {b}.", "Put {a} and {b} together.", "Add: {a}, {b}", "{a} and {b} make how much?", "Increase {a} by {b}.", "Can you add {a} and {b}?", "What do {a} and {b} add up to?",
     "Start with {a} and add {b}.", "If I add {b} to {a}, what do I get?", "Add {b} to {a}, please."],
)  # fmt: skip
_SUBTRACT = _framed(
    ["{a} - {b}", "{a}-{b}", "{a} minus {b}", "the difference of {a} and {b}", "{b} subtracted from {a}", "{a} reduced by {b}", "{b} less than {a}"],
    ["Subtract {b} from {a}.", "Take {b} away from {a}.", "Reduce {a} by {b}.", "What is left of {a} after taking away {b}?", "Can you subtract {b} from {a}?", "Start with {a} and take away {b}.", "Take {b} from {a}."],
)  # fmt: skip
_TIMES = _framed(
    ["{a} * {b}", "{a}*{b}", "{a} times {b}", "the product of {a} and {b}", "{a} multiplied by {b}"],
    ["Multiply {a} by {b}.", "Multiply {a} and {b}.", "Can you multiply {a} by {b}?", "What do you get when you multiply {a} by {b}?"],
)  # fmt: skip
_LARGER = [
    "Which is larger, {a} or {b}?",
    "Which number is bigger: {a} or {b}?",
    "Compare {a} and {b}. Which is larger?",
    "Name the larger of {a} and {b}.",
    "{a} or {b}: which is more?",
    "What is the greater of {a} and {b}?",
    "Which one is larger? {a}, {b}",
    "Pick the larger number: {a}, {b}.",
    "Of {a} and {b}, which is bigger?",
    "Tell me the larger number: {a} or {b}?",
    "Find the maximum of {a} and {b}.",
]
_SMALLER = ["Which is smaller, {a} or {b}?", "Which number is less: {a} or {b}?", "Name the smaller of {a} and {b}.", "{a} or {b}: which is less?", "What is the lesser of {a} and {b}?",
            "Which one is smaller? {a}, {b}", "Pick the smaller number: {a}, {b}.", "Of {a} and {b}, which is smaller?", "Find the minimum of {a} and {b}."]  # fmt: skip
_SUM3 = [
    "Add {a}, {b} and {c}.",
    "What do {a}, {b} and {c} make together?",
    "Sum up {a}, {b}, {c}.",
    *_framed(
        [
            "{a} + {b} + {c}",
            "{a}+{b}+{c}",
            "{a} plus {b} plus {c}",
            "the sum of {a}, {b} and {c}",
            "the total of {a}, {b} and {c}",
        ],
        [],
    ),
]
_STORIES_ADD = [
    "{p} has {a} {n}s and buys {b} more. How many {n}s does {p} have now?", "A shop sold {a} {n}s on Monday and {b} on Tuesday. How many {n}s did it sell?",
    "There are {a} {n}s in one store and {b} in another. How many are there together?", "{p} counted {a} {n}s, then {b} more. How many in all?",
    "A lorry carries {a} {n}s and picks up {b} more. How many does it carry?", "{p} found {a} {n}s in {c} and {b} at home. How many did {p} find?",
    "One box holds {a} {n}s, the other {b}. What is the total?", "In {c} {a} {n}s were made in the morning and {b} in the evening. How many were made?",
    "{p} owns {a} {n}s. A friend brings {b} more. How many {n}s are there?", "There were {a} {n}s in {c}; {b} more came by ship. How many {n}s are there in total?", "A factory in {c} made {a} {n}s last week and {b} this week. What is the total number?",
    "{p} wants {a} {n}s, and a neighbour wants {b}. How many {n}s do they want together?", "First {a} {n}s arrived, later another {b}. How many arrived?", "On the left are {a} {n}s, on the right {b}. How many {n}s are that?", "{p} packed {a} {n}s and then {b} more. How many {n}s were packed?",
]  # fmt: skip
_STORIES_SUBTRACT = [
    "{p} had {a} {n}s and gave away {b}. How many are left?", "A shop in {c} had {a} {n}s and sold {b}. How many does it still have?",
    "Of {a} {n}s {b} broke. How many are whole?", "{p} needs {a} {n}s and has {b}. How many are missing?",
    "There were {a} {n}s in the store, {b} were sent to {c}. How many stayed?", "{p} ordered {a} {n}s and got {b} so far. How many are still to come?",
    "{p} has {a} {n}s and loses {b}. How many {n}s remain?", "From {a} {n}s, {b} are taken away. How many are left?", "A store in {c} held {a} {n}s; {b} were stolen. How many {n}s are left?", "{p} planned {a} {n}s and has made {b}. How many must still be made?",
    "Out of {a} {n}s {p} sells {b}. How many {n}s are left over?", "There are {a} {n}s and {b} of them are used. How many are unused?",
]  # fmt: skip


def make(draw: Draw) -> Sample:
    kind = draw.pick(
        ["add", "add", "add", "add", "subtract", "subtract", "times", "compare", "count", "sum3", "story", "story"]
    )
    return make_kind(draw, kind, draw.pick([2, 2, 3, 3, 3, 1]))


def make_kind(draw: Draw, kind: str, digits: int, p_thinking: float = 0.75) -> Sample:
    """`digits` is the length of the longer operand."""
    if kind == "compare":
        return _compare(draw)
    if kind == "count":
        return _count(draw)
    if kind == "sum3":
        return _sum3(draw)
    if kind == "times":
        a, b = _operands(draw, 2, 1)
        reasoning = f"{a} * {b}: {times_steps(a, b)}"
        return turn(draw, draw.template("times", _TIMES).format(a=a, b=b), str(a * b), reasoning, 0.85)
    a, b = _operands(draw, digits, draw.pick([digits, digits, max(1, digits - 1)]))
    adds = kind == "add" or (kind == "story" and draw.chance(0.5))
    if not adds and a < b:
        a, b = b, a
    swapped = False
    if kind == "story":
        good = draw.pick([g for g in draw.world.lists["goods"][draw.test] if not g.endswith("s")])
        names = {"p": draw.entity("first_names"), "n": good, "c": draw.entity("cities")}
        question = draw.template(f"story-{adds}", _STORIES_ADD if adds else _STORIES_SUBTRACT).format(a=a, b=b, **names)
    else:
        form = draw.template(kind, _ADD if adds else _SUBTRACT)
        question, swapped = form.format(a=a, b=b), form.index("{b}") < form.index("{a}")
    if adds:  # the scratchpad takes the numbers as they are said
        return turn(draw, question, str(a + b), add_steps(b, a) if swapped else add_steps(a, b), p_thinking)
    return turn(draw, question, str(a - b), subtract_steps(a, b), p_thinking)


def _operands(draw: Draw, digits_a: int, digits_b: int) -> tuple[int, int]:
    while True:
        a, b = (draw.rng.randrange(0 if d == 1 else 10 ** (d - 1), 10**d) for d in (digits_a, digits_b))
        if digits_b > 1 and is_test_pair(a, b) != draw.test:
            continue
        return (a, b) if draw.chance(0.6) or draw.test else (b, a)


def add_steps(a: int, b: int) -> str:
    """The digits, then sums from the right: "4 7 + 3 8: 7+8=15 write 5 carry 1; ...", then what was written, from the left."""
    steps, carry, written = [], 0, ""
    left, right = str(a)[::-1], str(b)[::-1]
    for i in range(max(len(left), len(right))):
        x, y = int(left[i : i + 1] or "0"), int(right[i : i + 1] or "0")
        total = x + y + carry
        steps.append(f"{x}+{y}{'+1' if carry else ''}={total} write {total % 10}{' carry 1' if total > 9 else ''}")
        written, carry = str(total % 10) + written, total // 10
    if carry:
        steps.append("write 1")
        written = "1" + written
    return f"{' '.join(str(a))} + {' '.join(str(b))}: {'; '.join(steps)}. {' '.join(written)} is {a + b}."


def subtract_steps(a: int, b: int) -> str:
    """a >= b. "3-8 borrow 13-8=5"."""
    steps, borrow, written = [], 0, ""
    left, right = str(a)[::-1], str(b)[::-1]
    for i in range(len(left)):
        x, y = int(left[i]) - borrow, int(right[i : i + 1] or "0")
        borrow = int(x < y)
        digit = x + 10 * borrow - y
        steps.append(f"{x}-{y} borrow {x + 10}-{y}={digit}" if borrow else f"{x}-{y}={digit}")
        written = str(digit) + written
    return f"{' '.join(str(a))} - {' '.join(str(b))}: {'; '.join(steps)}. {' '.join(written)} is {a - b}."


def times_steps(a: int, b: int) -> str:
    tens, ones = divmod(max(a, b), 10)
    factor = min(a, b) if max(a, b) > 9 else b
    if max(a, b) <= 9:
        return f"{a * b}."
    return f"{tens * 10}*{factor}={tens * 10 * factor}; {ones}*{factor}={ones * factor}; {tens * 10 * factor}+{ones * factor}={a * b}."


def _compare(draw: Draw) -> Sample:
    digits = draw.pick([2, 3, 3])
    a, b = _operands(draw, digits, draw.pick([digits, digits, 2]))
    if a == b:
        a += 1
    larger = draw.chance(0.6)
    question = draw.template(f"compare-{larger}", _LARGER if larger else _SMALLER).format(a=a, b=b)
    answer = max(a, b) if larger else min(a, b)
    return turn(draw, question, str(answer), f"{a} is {'more' if a > b else 'less'} than {b}.", 0.4)


def _count(draw: Draw) -> Sample:
    words = [draw.entity("goods") for _ in range(draw.number(2, 9))]
    question = draw.template("count", [
        "How many words are in this list: {w}?", "Count the items: {w}.", "How many things are named here? {w}", "{w}\n\nHow many items is that?",
    ]).format(w=", ".join(words))  # fmt: skip
    steps = "; ".join(f"{i + 1} {w}" for i, w in enumerate(words))
    return turn(draw, question, str(len(words)), f"{steps}. That makes {len(words)}.", 0.7)


def _sum3(draw: Draw) -> Sample:
    a, b = _operands(draw, 2, 2)
    c = draw.number(1, 99)
    while is_test_pair(a + b, c) != draw.test:
        c = draw.number(1, 99)
    question = draw.template("sum3", _SUM3).format(a=a, b=b, c=c)
    return turn(draw, question, str(a + b + c), f"{add_steps(a, b)} {add_steps(a + b, c)}", 0.85)
