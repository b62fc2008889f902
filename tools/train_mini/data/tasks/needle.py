"""Family 5, needle in a haystack: planted facts in real text, asked for in one or several turns, and look-up drills.

Lengths are of the haystack in tokens; `make_at` plants one needle at a given depth for the evaluation's grid.
"""

from __future__ import annotations

from collections.abc import Callable

from ..render import Sample
from . import lookup, wordings
from .attributes import VALUES, attribute, question, statement, subject
from .common import assistant, effort, user, with_system
from .world import Draw, prose

# (share of the samples, shortest, longest); short ones have far more answers a token.
LENGTHS = [
    (0.22, 40, 180),
    (0.24, 180, 600),
    (0.18, 600, 1200),
    (0.15, 1200, 2200),
    (0.13, 2200, 3900),
    (0.08, 3900, 7800),
]
_DRILLS = 0.5  # of the samples
ABSENT = "The text does not say."

# (sentence, question): {k} is the key, {v} the value. Kinds of key and value below.
FORMS: list[tuple[str, str, str, str]] = [
    ("The access code of {k} is {v}.", "What is the access code of {k}?", "city", "code"),
    ("The secret number for {k} is {v}.", "What is the secret number for {k}?", "person", "code"),
    ("{k}'s locker has the number {v}.", "Which number does {k}'s locker have?", "person", "code"),
    ("The password for the {k} room is {v}.", "What is the password for the {k} room?", "noun", "word"),
    ("The magic word of {k} is {v}.", "What is the magic word of {k}?", "city", "word"),
    ("Remember that the {k} key opens with {v}.", "What does the {k} key open with?", "noun", "word"),
    ("The favourite colour of {k} is {v}.", "What is the favourite colour of {k}?", "person", "color"),
    ("{k} works as {v}.", "What does {k} work as?", "person", "job"),
    ("{k} was born in {v}.", "Where was {k} born?", "person", "city"),
    ("The parcel for {k} was sent to {v}.", "Where was the parcel for {k} sent?", "person", "city"),
    ("The keeper of the {k} archive is {v}.", "Who is the keeper of the {k} archive?", "city", "person"),
    ("The {k} project is led by {v}.", "Who leads the {k} project?", "noun", "person"),
    ("Train {k} leaves from platform {v}.", "From which platform does train {k} leave?", "code", "small"),
    ("Ticket {k} belongs to {v}.", "To whom does ticket {k} belong?", "code", "person"),
    ("The {k} box holds a {v}.", "What does the {k} box hold?", "noun", "good"),
    ("The pass phrase of {k} is {v}.", "What is the pass phrase of {k}?", "person", "wordcode"),
    ("The serial number of the {k} is {v}.", "What is the serial number of the {k}?", "good", "wordcode"),
    ("Room {k} is reserved for {v}.", "For whom is room {k} reserved?", "code", "person"),
    ("The {k} meeting takes place at {v}.", "When does the {k} meeting take place?", "noun", "time"),
    ("{k}'s phone extension is {v}.", "What is {k}'s phone extension?", "person", "code"),
    ("The budget of {k} is {v} dollars.", "How many dollars is the budget of {k}?", "company", "code"),
    ("The code name of {k} is {v}.", "What is the code name of {k}?", "person", "word"),
    ("In {k} the signal is {v}.", "What is the signal in {k}?", "city", "word"),
    ("The vault in {k} opens with {v}.", "What opens the vault in {k}?", "city", "code"),
    ("Note: {k} = {v}.", "Which value does {k} have in the note?", "noun", "code"),
    ("{k} keeps a {v} in the cellar.", "What does {k} keep in the cellar?", "person", "good"),
    ("The bridge of {k} was built by {v}.", "Who built the bridge of {k}?", "city", "person"),
    ("Shelf {k} is marked with the word {v}.", "With which word is shelf {k} marked?", "code", "word"),
    ("{k} has lived for years in {v}.", "Where has {k} lived for years?", "person", "city"),
    ("The {k} door is painted {v}.", "Which colour is the {k} door painted?", "noun", "color"),
    ("Flight {k} goes to {v}.", "Where does flight {k} go?", "code", "city"),
    ("{k} delivers its goods to {v}.", "To whom does {k} deliver its goods?", "company", "company"),
    ("The letter from {k} arrived on {v}.", "When did the letter from {k} arrive?", "person", "date"),
    ("In {k} the market opens at {v}.", "When does the market in {k} open?", "city", "time"),
    ("{k} was hired as {v}.", "As what was {k} hired?", "person", "job"),
    ("The {k} file is stored under {v}.", "Under what is the {k} file stored?", "noun", "wordcode"),
    ("Machine {k} has the operator {v}.", "Who is the operator of machine {k}?", "code", "person"),
    ("{k} bought {v} tiles.", "How many tiles did {k} buy?", "company", "code"),
    ("The guest from {k} ordered a {v}.", "What did the guest from {k} order?", "city", "good"),
    ("The answer to the {k} riddle is {v}.", "What is the answer to the {k} riddle?", "noun", "word"),
    ("{k} answers when you say {v}.", "What must you say so that {k} answers?", "person", "word"),
    ("The tower of {k} is {v} feet high.", "How many feet high is the tower of {k}?", "city", "code"),
    ("Car {k} is driven by {v}.", "Who drives car {k}?", "code", "person"),
    ("The spare key of {k} lies with {v}.", "With whom does the spare key of {k} lie?", "company", "person"),
    ("{k} will travel to {v} in spring.", "Where will {k} travel in spring?", "person", "city"),
]

_KINDS: dict[str, Callable[[Draw], str]] = VALUES | {
    "noun": lambda d: d.entity("nouns"),
    "small": lambda d: str(d.number(1, 99)),
}

_HEADS = [
    "Read the text and answer the question.\n\n{t}\n\n{q}", "{t}\n\n{q}", "Text:\n{t}\n\nQuestion: {q}", "{q}\n\n{t}",
    "Here is a long text. Somewhere in it is what you need.\n\n{t}\n\nQuestion: {q}", "<text>\n{t}\n</text>\n\n{q}",
    "Question: {q}\n\nText:\n{t}", "Find the answer in this text.\n\n{t}\n\n{q} Answer with the value only.",
    "Document:\n\n{t}\n\nNow tell me: {q}", "Please read:\n{t}\n---\n{q}",
    "{t}\n{q}", "{q}\n---\n{t}", "{q}\n{t}", "Text: {t}\n\nQ: {q}\nA:", "Q: {q}\n\n{t}", "Look into this text.\n\n{t}\n\n{q}", "{t}\n\n\n{q} The text says it.", "First the text:\n{t}\n\nThen the question: {q}",
    "<doc>\n{t}\n</doc>\nQuestion: {q}", "Search this:\n\n{t}\n\n{q}", "```\n{t}\n```\n{q}", "{t}\n\nFrom the text above: {q}", "Use this text.\n{t}\nWhat I want to know: {q}",
]  # fmt: skip


def make(draw: Draw) -> Sample:
    """Training: up to dozens of needles, sometimes near ones of the same form, many questions about one text."""
    if draw.chance(_DRILLS) and not draw.test:
        return lookup.make(draw)
    at, length = draw.rng.random(), 0
    for share, low, high in LENGTHS:
        if at < share or high == LENGTHS[-1][2]:
            length = draw.number(low, high)
            break
        at -= share
    counts = (
        [1, 2, 3, 4, 6, 8] if length < 180 else [1, 3, 4, 8, 12, 16] if length < 1200 else [1, 3, 8, 16, 24, 32, 40]
    )
    return _sample(draw, length, [], draw.pick(counts), draw.chance(0.04))


def make_at(draw: Draw, length: int, depth: float) -> Sample:
    """Evaluation: the question is about one needle at this depth, with at most two others."""
    return _sample(draw, length, [depth], draw.pick([1, 1, 2, 3]), False)


def _sample(draw: Draw, length: int, depths: list[float], n_needles: int, absent: bool) -> Sample:
    needles = _needles(draw, n_needles + absent)
    asked = needles.pop() if absent else needles[0]
    depths = depths + [draw.rng.random() for _ in needles[len(depths) :]]
    text = _planted(
        draw.text(draw.pick(["literature", "docs", "docs", "code"]), length),
        list(zip(depths, (n[0] for n in needles), strict=True)),
    )
    if not draw.test and len(needles) > 1 and not absent and draw.chance(0.3):
        return _all_at_once(draw, text, needles)
    head = draw.wording("needle-head", _HEADS, wordings.around_text)
    answer = ABSENT if absent else asked[2]
    messages = [user(head.format(t=text, q=asked[1]))]
    more = [] if draw.test else draw.some(needles[1:], draw.pick([0, 5, 15, 39, 39]))
    for _, asking, value in more:
        messages += [assistant(answer), user(asking)]
        answer = value
    if not draw.test and draw.chance(0.3):  # and of the text itself
        for asking, value in lookup.sentence_turns(draw, prose(text, 24, 260), draw.pick([1, 2, 4, 6])):
            messages += [assistant(answer), user(asking)]
            answer = value
    messages = with_system(draw, messages, 0.15)
    sentence = next((n[0] for n in needles if n[2] == answer), None)
    if draw.chance(0.15) and sentence:
        return Sample([*messages, assistant(answer, f'The text says: "{sentence}"')], thinking=effort(draw))
    return Sample([*messages, assistant(answer)])


def _all_at_once(draw: Draw, text: str, needles: list[tuple[str, str, str]]) -> Sample:
    """Several questions in one message, half the time before the text; one answer a line. Training only."""
    asked = draw.some(needles, draw.pick([2, 3, 4, 6, 10, 16]))
    mark = draw.pick(["", "", "- ", "* ", "Q: "])
    questions = [f"{f'{i}. ' if mark == 'Q: ' else mark}{n[1]}" for i, n in enumerate(asked, 1)]
    lead = draw.pick(
        [
            "",
            "",
            "Answer these, one answer a line.\n",
            "One line for each answer.\n",
            "Several questions:\n",
            "I have these questions:\n",
            "Questions\n",
        ]
    )
    request = lead + draw.pick(["\n", "\n", "\n\n", " "]).join(questions)
    order = ["{q}", "{t}"] if draw.chance(0.6) else ["{t}", "{q}"]
    message = (
        draw.pick(["\n\n", "\n\n", "\n---\n", "\n"]).join(order).replace("{q}", request, 1).replace("{t}", text, 1)
    )
    return Sample(with_system(draw, [user(message), assistant("\n".join(n[2] for n in asked))], 0.15))


def _needles(draw: Draw, count: int) -> list[tuple[str, str, str]]:
    """(sentence, question, value) with different keys and values; half the time all of one form."""
    same = _form(draw) if draw.chance(0.5) else None
    found: dict[str, tuple[str, str, str]] = {}
    while len(found) < count:
        key, value, needle = (same or _form(draw))()
        if all(value != n[2] and key not in n[1] for n in found.values()):
            found[key] = (*needle, value)
        elif len(found) > 2:
            same = None  # a form with few values
    return list(found.values())


def _form(draw: Draw) -> Callable[[], tuple[str, str, tuple[str, str]]]:
    """Draws (key, value, (sentence, question)) of one form: of the list above, or a statement about an attribute."""
    if draw.chance(0.45):
        sentence, asked, key_kind, value_kind = draw.template("needle", FORMS)

        def listed() -> tuple[str, str, tuple[str, str]]:
            key, value = _KINDS[key_kind](draw), _KINDS[value_kind](draw)
            return key, value, (sentence.format(k=key, v=value), asked.format(k=key))

        return listed
    name, value_kind = attribute(draw)

    def stated() -> tuple[str, str, tuple[str, str]]:
        key, value = subject(draw), VALUES[value_kind](draw)
        return key, value, (statement(draw, name, key, value), question(draw, name, key))

    return stated


def _planted(text: str, needles: list[tuple[float, str]]) -> str:
    """Each sentence after the end of the line or sentence nearest to its depth."""
    for depth, sentence in sorted(needles, reverse=True):
        at = int(depth * len(text))
        cuts = [c for c in (text.find("\n", at), _after(text.find(". ", at))) if c >= 0]
        at = min(cuts) if cuts else len(text)
        text = f"{text[:at]}{' ' if at and text[at - 1] != chr(10) else ''}{sentence}{text[at:]}"
    return text


def _after(at: int) -> int:
    return at + 1 if at >= 0 else at
