"""Attributes that anything may have, with the kind of their values, and many ways to state them and to ask for them.

Shared by needles, passages and extraction: with them a model meets far more keys than each family's own plans have.
"""

from __future__ import annotations

from collections.abc import Callable

from . import wordings
from .world import Draw

# name: kind of value
ATTRIBUTES: list[tuple[str, str]] = [
    *(
        (name, "code")
        for name in """access code, secret number, badge number, pin, budget, account number, locker number, case number, file number, lot number, order number, postal code, index, weight,
      height, capacity, population, target, score, record, quota, altitude, frequency, delivery number, member number, house number, extension, contract number, key number, deposit""".split(
            ","
        )
    ),
    *(
        (name, "word")
        for name in """password, code name, magic word, emblem, mascot, signal, motto, symbol, nickname, hobby, theme, call sign, main subject, favourite animal, favourite dish, main product,
      hidden object, keyword, specialty, weakness, topic, material, main export""".split(",")
    ),
    *(
        (name, "person")
        for name in """owner, leader, guardian, keeper, founder, director, best friend, neighbour, doctor, teacher, deputy, contact person, lawyer, heir, editor, coach, inventor, partner,
      supervisor, guide, accountant, landlord""".split(",")
    ),
    *(
        (name, "city")
        for name in "home town, headquarters, birthplace, destination, meeting place, next stop, hiding place, port of call, place of work, holiday resort, branch office, final stop".split(
            ","
        )
    ),
    *(
        (name, "color")
        for name in "favourite colour, flag colour, team colour, door colour, signal colour, label colour".split(",")
    ),
    *(
        (name, "good")
        for name in "prize, favourite gift, lost item, tool, first purchase, lucky charm, latest order, missing part".split(
            ","
        )
    ),
    *(
        (name, "date")
        for name in "opening date, deadline, anniversary, expiry date, date of arrival, start date, audit date".split(
            ","
        )
    ),
    *(
        (name, "time")
        for name in "closing time, departure time, time of the meeting, lunch break, start time, curfew".split(",")
    ),
    *(
        (name, "wordcode")
        for name in "pass phrase, serial number, licence key, voucher, tracking code, reference, booking code, device name".split(
            ","
        )
    ),
    *((name, "job") for name in "profession, former job, dream job, second job".split(",")),
    *(
        (name, "company")
        for name in "employer, supplier, sponsor, main customer, insurer, publisher, competitor".split(",")
    ),
]
ATTRIBUTES = [(" ".join(name.split()), kind) for name, kind in ATTRIBUTES]

VALUES: dict[str, Callable[[Draw], str]] = {
    "city": lambda d: d.entity("cities"),
    "person": Draw.person,
    "company": Draw.company,
    "color": lambda d: d.entity("colors"),
    "time": Draw.time,
    "wordcode": Draw.word_code,
    "good": lambda d: f"{d.entity('colors')} {d.entity('goods')}",
    "code": lambda d: d.digits(d.pick([2, 3, 4, 5, 6])),
    "word": lambda d: d.entity("nouns"),
    "job": lambda d: d.entity("jobs").lower(),
    "date": lambda d: d.date()[0],
}

STATEMENTS = [
    "The {a} of {k} is {v}.",
    "{k} has the {a} {v}.",
    "{k}'s {a} is {v}.",
    "For {k}, the {a} is {v}.",
    "The {a} that belongs to {k} is {v}.",
    "As {a}, {k} has {v}.",
    "Note that {k} has {v} as {a}.",
    "It is known that the {a} of {k} is {v}.",
    "{k}: {a} {v}.",
    "{v} is the {a} of {k}.",
    "Remember: the {a} of {k} is {v}.",
    "In the list, {k} has the {a} {v}.",
    "The record of {k} gives {v} as {a}.",
    "The {a} of {k}: {v}.",
    "{k}, {a}: {v}.",
    "{v} was chosen as the {a} of {k}.",
    "We know the {a} of {k}; it is {v}.",
    "According to the files, {k} has {v} as {a}.",
    "If you ask for the {a} of {k}, the answer is {v}.",
    "The {a} {k} has is {v}.",
    "Everybody knows that the {a} of {k} is {v}.",
    "In the case of {k}, the {a} is {v}.",
    "They say that the {a} of {k} is {v}.",
    "{k} chose {v} as {a}.",
    "Since last year the {a} of {k} is {v}.",
    "The {a} for {k} was set to {v}.",
    "Do not forget that {k} has the {a} {v}.",
    "{k} is listed with the {a} {v}.",
    "It was found that the {a} of {k} is {v}.",
    "{k} uses {v} as {a}.",
]
QUESTIONS = [
    "What is the {a} of {k}?",
    "What is {k}'s {a}?",
    "Which {a} does {k} have?",
    "Tell me the {a} of {k}.",
    "Give the {a} of {k}.",
    "{k}: what is the {a}?",
    "What does the text give as the {a} of {k}?",
    "Name the {a} of {k}.",
    "I need the {a} of {k}.",
    "Find the {a} of {k}.",
    "What {a} does {k} have?",
    "Which {a} belongs to {k}?",
    "Please look up {k}'s {a}.",
    "The {a} of {k} is what?",
    "Can you tell me the {a} of {k}?",
    "Do you know the {a} of {k}?",
    "What was said about the {a} of {k}?",
    "Look for the {a} of {k}.",
    "State the {a} of {k}.",
    "{k} has which {a}?",
    "What is given as {a} of {k}?",
    "{a} of {k}?",
    "Could you find the {a} of {k}?",
    "I want to know the {a} of {k}.",
    "For {k}, what is the {a}?",
    "Write down the {a} of {k}.",
    "What is the {a} for {k}?",
    "What's the {a} of {k}?",
    "Please give the {a} of {k}.",
    "Say what the {a} of {k} is.",
    "Which is the {a} of {k}?",
    "Extract the {a} of {k}.",
    "What does it say is the {a} of {k}?",
    "Let me know {k}'s {a}.",
    "{k} - {a}?",
    "Report the {a} of {k}.",
]


_ENDINGS = "number name code date type place group level partner colour value sign limit owner time unit".split()


def attribute(draw: Draw) -> tuple[str, str]:
    """(name, kind of value): one of the list, in training half the time an invented one, so that it has to be read."""
    if draw.test or draw.chance(0.5):
        return draw.template("attribute", ATTRIBUTES)
    noun = draw.entity("nouns")
    name = (
        noun
        if draw.chance(0.3)
        else f"{noun} {draw.pick(_ENDINGS)}"
        if draw.chance(0.5)
        else f"{draw.entity('adjectives')} {noun}"
    )
    return name, draw.pick(list(VALUES))


def subject(draw: Draw) -> str:
    """A person, a place, a company or a named thing."""
    kind = draw.pick(["person", "person", "city", "company", "thing", "thing"])
    if kind == "thing":
        return f"the {draw.entity('nouns')} {draw.pick(['project', 'team', 'house', 'club', 'ship', 'machine', 'school', 'band', 'museum', 'garden'])}"
    return VALUES[kind](draw)


def statement(draw: Draw, attribute: str, key: str, value: str) -> str:
    text = draw.wording("attribute-statement", STATEMENTS, wordings.statement).format(a=attribute, k=key, v=value)
    return text[0].upper() + text[1:] if text.startswith("the ") else text


def question(draw: Draw, attribute: str, key: str) -> str:
    text = draw.wording("attribute-question", QUESTIONS, wordings.question).format(a=attribute, k=key)
    return text[0].upper() + text[1:] if text.startswith("the ") else text
