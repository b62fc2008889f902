"""Family 7: a fixed body of facts. All of them are trained; only ways of asking are held out.

In a tenth of the samples the context contradicts the table, and the context is right.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..render import Sample
from .common import turn
from .world import Draw, World

_ELEMENTS = """Hydrogen H, Helium He, Lithium Li, Beryllium Be, Boron B, Carbon C, Nitrogen N, Oxygen O, Fluorine F, Neon Ne, Sodium Na,
Magnesium Mg, Aluminium Al, Silicon Si, Phosphorus P, Sulfur S, Chlorine Cl, Argon Ar, Potassium K, Calcium Ca, Scandium Sc, Titanium Ti,
Vanadium V, Chromium Cr, Manganese Mn, Iron Fe, Cobalt Co, Nickel Ni, Copper Cu, Zinc Zn, Gallium Ga, Germanium Ge, Arsenic As, Selenium Se,
Bromine Br, Krypton Kr"""
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_MONTHS = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
]
_UNITS = [
    ("minutes", "an hour", 60),
    ("seconds", "a minute", 60),
    ("hours", "a day", 24),
    ("days", "a week", 7),
    ("months", "a year", 12),
    ("metres", "a kilometre", 1000),
    ("grams", "a kilogram", 1000),
    ("centimetres", "a metre", 100),
    ("millimetres", "a centimetre", 10),
    ("millilitres", "a litre", 1000),
    ("weeks", "a year", 52),
    ("inches", "a foot", 12),
    ("bits", "a byte", 8),
    ("years", "a century", 100),
    ("things", "a dozen", 12),
    ("sides", "a triangle", 3),
    ("sides", "a hexagon", 6),
    ("degrees", "a right angle", 90),
]
_PROJECT = [
    (
        ["What is your name?", "Who are you?", "What are you called?", "Tell me your name.", "Introduce yourself."],
        "I am the mini model of deepinfer, a small language model.",
    ),
    (
        [
            "What is deepinfer?",
            "Explain deepinfer in a sentence.",
            "What does deepinfer do?",
            "Tell me about deepinfer.",
            "Describe deepinfer.",
        ],
        "deepinfer is an inference engine for the DeepSeek-V4.1-Flash family of models.",
    ),
    (
        ["How large are you?", "How many parameters do you have?", "What is your size?", "How big are you?"],
        "I have about 45 million parameters.",
    ),
    (
        [
            "Which command writes text from a prompt?",
            "How do I generate text with deepinfer?",
            "Which deepinfer command continues a prompt?",
            "What do I call to generate text?",
        ],
        "deepinfer generate",
    ),
    (
        [
            "Which command checks the machine?",
            "Which deepinfer command says what is missing?",
            "How do I check what this machine can run?",
        ],
        "deepinfer doctor",
    ),
    (
        [
            "Which command turns text into token ids?",
            "How do I tokenize text with deepinfer?",
            "Which deepinfer command gives token ids?",
        ],
        "deepinfer tokenize",
    ),
    (
        [
            "Which command measures perplexity?",
            "How do I score a text with deepinfer?",
            "Which deepinfer command gives log-probabilities?",
        ],
        "deepinfer score",
    ),
    (
        [
            "Which command shows the prompt of a request?",
            "Which deepinfer command renders a conversation?",
            "How do I see the rendered prompt?",
        ],
        "deepinfer render",
    ),
]

_COUNTRY_FORMS = {
    "capital": (
        [
            "What is the capital of {k}?",
            "Name the capital of {k}.",
            "Which city is the capital of {k}?",
            "{k}: which capital?",
            "Tell me the capital of {k}.",
            "What's {k}'s capital?",
            "The capital of {k} is called what?",
            "Capital of {k}?",
            "Which city governs {k}?",
            "I need the capital of {k}.",
        ],
        "The capital of {k} is {v}.",
    ),
    "capital of": (
        [
            "Of which country is {k} the capital?",
            "{k} is the capital of which country?",
            "Which country has {k} as its capital?",
            "Name the country whose capital is {k}.",
            "Whose capital is {k}?",
        ],
        "{k} is the capital of {v}.",
    ),
    "continent": (
        [
            "On which continent is {k}?",
            "Which continent does {k} belong to?",
            "Where in the world is {k}: which continent?",
            "Name the continent of {k}.",
            "{k} is on which continent?",
        ],
        "{k} is in {v}.",
    ),
    "currency": (
        [
            "What is the currency of {k}?",
            "Which currency is used in {k}?",
            "What money do people use in {k}?",
            "Name the currency of {k}.",
            "With what currency do you pay in {k}?",
        ],
        "The currency of {k} is the {v}.",
    ),
    "currency code": (
        [
            "What is the currency code of {k}?",
            "Which currency code belongs to {k}?",
            "Give the currency code for {k}.",
            "Currency code of {k}?",
        ],
        "The currency code of {k} is {v}.",
    ),
    "dialling code": (
        [
            "What is the dialling code of {k}?",
            "Which dialling code does {k} have?",
            "Give the dialling code for {k}.",
            "What do I dial for {k}?",
        ],
        "The dialling code of {k} is +{v}.",
    ),
    "country code": (
        [
            "What is the two-letter code of {k}?",
            "Which two-letter country code does {k} have?",
            "Give the two-letter code for {k}.",
            "ISO code of {k}?",
        ],
        "The two-letter code of {k} is {v}.",
    ),
    "neighbour": (
        [
            "Which countries border {k}?",
            "Name the neighbours of {k}.",
            "What are the neighbours of {k}?",
            "{k} borders which countries?",
        ],
        "{k} borders {v}.",
    ),
}
_SHORT = [" Short answer.", " Answer with the name only.", " Just the answer.", " Only the value, please.", " No sentence, just the value.", " Give only the value.", " Say only the answer.", " Value only.", " Answer only.",
          " Be as short as you can.", " Without a sentence.", " Only the answer.", " Reply with the value alone.", " Just the value.", " As short as possible.", " The bare answer, please."]  # fmt: skip
_FRAMES = ["What is the {a} of {k}?", "Name the {a} of {k}.", "Tell me the {a} of {k}.", "{k}: {a}?", "{a} of {k}?", "Give me the {a} of {k}.", "What's the {a} of {k}?", "What {a} does {k} have?", "Which {a} does {k} have?",
           "Which {a} belongs to {k}?", "Do you know the {a} of {k}?", "Please name {k}'s {a}.", "I would like to know the {a} of {k}.", "Can you tell me the {a} of {k}?", "The {a} of {k} is what?", "For {k}, what is the {a}?",
           "State the {a} of {k}.", "{k} has which {a}?", "What is {k}'s {a}?", "Look up the {a} of {k}.", "Say the {a} of {k}.", "Let me know the {a} of {k}.", "Could you name the {a} of {k}?", "I am looking for the {a} of {k}.",
           "{a} for {k}?", "What would you say is the {a} of {k}?", "Write the {a} of {k}.", "I forgot the {a} of {k}."]  # fmt: skip
_NAMES = {"capital": ["capital", "capital city"], "continent": ["continent"], "currency": ["currency"], "currency code": ["currency code"], "dialling code": ["dialling code", "phone prefix"],
          "country code": ["two-letter code", "ISO code"], "symbol": ["chemical symbol", "symbol"], "atomic": ["atomic number"]}  # fmt: skip
_OPENERS = [
    "Tell me: {q}",
    "Question: {q}",
    "Hello! {q}",
    "Please answer this: {q}",
    "I wonder: {q}",
    "Q: {q}",
    "Quick question. {q}",
    "A question for you: {q}",
    "Hi. {q}",
    "Please: {q}",
    "Here is an easy one. {q}",
    "{q} Thanks.",
]
_NOTES = [
    "According to this note, {s} {q}",
    "Note: {s}\n\n{q} Answer from the note.",
    "In this story {s} {q}",
    "Suppose that {s} {q}",
]


def _wordings(kind: str, forms: list[str]) -> list[str]:
    """The kind's own questions and those of its name, each plain and behind every opener."""
    named = [f.replace("{a}", name) for name in _NAMES.get(kind, []) for f in _FRAMES]
    plain = list(dict.fromkeys([*forms, *named]))
    return [*plain, *(opener.replace("{q}", form) for form in forms for opener in _OPENERS)]


@lru_cache(maxsize=4)
def _table(world: World) -> list[tuple[str, list[str], str, str]]:
    """(kind, questions, value, full answer) of every fact. No question has two answers: what is one capital of two is left out."""
    facts: list[tuple[str, list[str], str, str]] = []

    def add(kind: str, forms: list[str], sentence: str, key: object, value: object) -> None:
        if key and value:
            questions = wordings.setdefault((kind, forms[0]), _wordings(kind, forms))
            facts.append((kind, [f.format(k=key) for f in questions], str(value), sentence.format(k=key, v=value)))

    wordings: dict[tuple[str, str], list[str]] = {}
    capitals = [c["capital"] for c in world.vocab["countries"]]
    for c in world.vocab["countries"]:
        values = {
            "capital": c["capital"],
            "continent": c["continent"],
            "currency": c["currency"],
            "currency code": c["code"],
            "country code": c["iso"],
        }
        for kind, value in values.items():
            add(kind, *_COUNTRY_FORMS[kind], c["name"], value)
        if capitals.count(c["capital"]) == 1:
            add("capital of", *_COUNTRY_FORMS["capital of"], c["capital"], c["name"])
        if c["phone"].lstrip("+").isdigit():
            add("dialling code", *_COUNTRY_FORMS["dialling code"], c["name"], c["phone"].lstrip("+"))
        if 1 <= len(c["neighbours"]) <= 5:
            add("neighbour", *_COUNTRY_FORMS["neighbour"], c["name"], ", ".join(c["neighbours"]))
    for number, element in enumerate(_ELEMENTS.replace("\n", " ").split(","), 1):
        name, symbol = element.split()
        add(
            "symbol",
            [
                "What is the chemical symbol of {k}?",
                "Which symbol does the element {k} have?",
                "Symbol of {k}?",
                "Give the chemical symbol for {k}.",
            ],
            "The symbol of {k} is {v}.",
            name.lower(),
            symbol,
        )
        add(
            "atomic",
            [
                "What is the atomic number of {k}?",
                "Which atomic number does {k} have?",
                "Atomic number of {k}?",
                "Give the atomic number of {k}.",
            ],
            "The atomic number of {k} is {v}.",
            name.lower(),
            number,
        )
        add(
            "element",
            [
                "Which element has the symbol {k}?",
                "{k} is the symbol of which element?",
                "Name the element with the symbol {k}.",
                "What element is {k}?",
            ],
            "{k} is the symbol of {v}.",
            symbol,
            name.lower(),
        )
        add(
            "element no",
            [
                "Which element has the atomic number {k}?",
                "Name the element with atomic number {k}.",
                "Element number {k} is which one?",
            ],
            "Element {k} is {v}.",
            number,
            name.lower(),
        )
    for i, day in enumerate(_DAYS):
        add(
            "day after",
            [
                "Which day comes after {k}?",
                "What day follows {k}?",
                "The day after {k} is?",
                "If today is {k}, what is tomorrow?",
            ],
            "After {k} comes {v}.",
            day,
            _DAYS[(i + 1) % 7],
        )
        add(
            "day before",
            ["Which day comes before {k}?", "What day is before {k}?", "If today is {k}, what was yesterday?"],
            "Before {k} comes {v}.",
            day,
            _DAYS[i - 1],
        )
    for i, (month, days) in enumerate(_MONTHS):
        add(
            "month days",
            [
                "How many days does {k} have?",
                "How long is {k} in days?",
                "Days in {k}?",
                "How many days are there in {k}?",
            ],
            "{k} has {v} days.",
            month,
            days,
        )
        add(
            "month after",
            ["Which month comes after {k}?", "What month follows {k}?", "Name the month after {k}."],
            "After {k} comes {v}.",
            month,
            _MONTHS[(i + 1) % 12][0],
        )
        add(
            "month no",
            [
                "Which month of the year is {k}, as a number?",
                "What number does the month {k} have?",
                "{k} is month number?",
            ],
            "{k} is month {v}.",
            month,
            i + 1,
        )
    for unit, whole, count in _UNITS:
        add(
            "unit",
            [
                f"How many {unit} are in {{k}}?",
                f"How many {unit} does {{k}} have?",
                f"{{k}} has how many {unit}?",
                f"Tell me how many {unit} make {{k}}.",
            ],
            f"There are {{v}} {unit} in {{k}}.",
            whole,
            count,
        )
    for questions, answer in _PROJECT:
        facts.append(("project", _wordings("project", questions), answer, answer))
    return facts


def make(draw: Draw) -> Sample:
    table = _table(draw.world)
    fact = draw.pick(table) if draw.chance(0.9) else draw.pick(table[-len(_PROJECT) - 120 :])
    kind, questions, value, sentence = fact
    question = draw.template(f"fact-{kind}", questions)
    if draw.chance(0.1) and kind != "project" and not draw.test:
        return _contradicted(draw, fact, table, question)
    if kind == "project":
        return turn(draw, question, value, None, 0)
    if draw.chance(0.4):
        return turn(draw, question + draw.template("fact-short", _SHORT), value, sentence, 0.3)
    return turn(draw, question, sentence, sentence, 0.15)


def _contradicted(draw: Draw, fact: tuple[str, list[str], str, str], table: list[Any], question: str) -> Sample:
    kind, _, value, sentence = fact
    other = draw.pick(table)
    while other[0] != kind or other[2] == value:
        other = draw.pick(table)
    statement = sentence.replace(value, other[2])
    return turn(draw, draw.template("fact-note", _NOTES).format(s=statement, q=question), statement, None, 0)
