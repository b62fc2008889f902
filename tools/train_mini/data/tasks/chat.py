"""Family 1, the chat format: greetings, definitions, rewriting, follow-ups, system instructions, in 1 to 6 turns.

What this family must teach is the format: who speaks, when to think, when to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..render import Sample
from . import facts, wordings
from .common import SYSTEMS, assistant, effort, user
from .world import Draw, prose


class Turn(NamedTuple):
    question: str
    answer: str
    reasoning: str


_GREETINGS = [
    "Hello!",
    "Hi.",
    "Good morning!",
    "Good evening.",
    "Hey there",
    "Hi, how are you?",
    "Hello, are you there?",
    "Good day!",
    "hi",
    "Hello, my name is {p}.",
    "Hi, I am {p}.",
    "hey, it's {p}",
]
_BYES = ["Bye!", "Goodbye.", "See you tomorrow.", "That is all, thanks.", "Thank you, bye.", "Have a nice day!"]
_DEFINE = [
    "What does {w} mean?",
    "What is the meaning of the word {w}?",
    "Define {w}.",
    "Explain the word {w}.",
    'What does "{w}" mean?',
    "Give a definition of {w}.",
    "Please define the {k} {w}.",
    "meaning of {w}?",
    "Tell me what {w} means.",
    "How would you define {w}?",
]


def _greeting(draw: Draw) -> Turn:
    form = draw.template("greeting", _GREETINGS)
    if "{p}" in form:
        name = draw.entity("first_names")
        return Turn(
            form.format(p=name), f"Hello, {name}! How can I help you?", f"The user is called {name}. I greet back."
        )
    return Turn(form, "Hello! How can I help you?", "The user greets me. I greet back.")


def _bye(draw: Draw) -> Turn:
    return Turn(draw.template("bye", _BYES), "Goodbye!", "The user says goodbye.")


def _definition(draw: Draw) -> Turn:
    word, kind, gloss = draw.pick(draw.world.lists["glosses"][0][:1500])  # memory: what is tested is trained too
    return Turn(
        draw.template("define", _DEFINE).format(w=word, k=kind),
        f"{word}: {gloss}",
        f"{word} is a {kind}. I give its meaning.",
    )


def _words(draw: Draw, low: int = 2, high: int = 7) -> list[str]:
    return [draw.entity(draw.pick(["nouns", "goods", "cities"])) for _ in range(draw.number(low, high))]


def _upper(draw: Draw) -> Turn:
    text = " ".join(_words(draw, 1, 5)).lower()
    form = draw.wording(
        "upper",
        [
            "Write in capital letters: {t}",
            "Make this upper case: {t}",
            "{t}\n\nNow in capitals.",
            "Turn into upper case: {t}",
            "Shout this: {t}",
        ],
        lambda d: wordings.skill(d, wordings.UPPER),
    )
    return Turn(form.format(t=text), text.upper(), "I write every letter as a capital.")


def _lower(draw: Draw) -> Turn:
    text = " ".join(_words(draw, 1, 5)).upper()
    form = draw.wording(
        "lower",
        [
            "Write in small letters: {t}",
            "Make this lower case: {t}",
            "Turn into lower case: {t}",
            "{t}\n\nNow in small letters.",
        ],
        lambda d: wordings.skill(d, wordings.LOWER),
    )
    return Turn(form.format(t=text), text.lower(), "I write every letter small.")


def _sort(draw: Draw) -> Turn:
    words = draw.some(draw.world.lists["goods"][draw.test], draw.number(2, 5))
    form = draw.wording(
        "sort",
        [
            "Sort these words: {t}",
            "Put in alphabetical order: {t}",
            "Order alphabetically: {t}",
            "{t}\n\nSort this list.",
            "Which order is alphabetical? {t}",
        ],
        lambda d: wordings.skill(d, wordings.SORT),
    )
    return Turn(
        form.format(t=", ".join(words)),
        ", ".join(sorted(words)),
        f"The first letters are {', '.join(w[0] for w in sorted(words))}.",
    )


def _first_last(draw: Draw) -> Turn:
    words = _words(draw, 3, 8)
    first = draw.chance(0.5)
    which = "first" if first else "last"
    form = draw.wording(
        "first-last",
        [
            "What is the {w} item? {t}",
            "Name the {w} thing in this list: {t}",
            "{t}\n\nWhich is the {w} one?",
            "Give me the {w} of these: {t}",
        ],
        lambda d: wordings.skill(d, wordings.FIRST_LAST),
    )
    return Turn(
        form.format(w=which, t=", ".join(words)), words[0 if first else -1], f"The list has {len(words)} items."
    )


def _list_items(draw: Draw) -> Turn:
    words = _words(draw, 2, 5)
    form = draw.wording(
        "listing",
        ["Write as a list: {t}", "Make a bullet list of {t}", "{t}\n\nAs a list, one line each.", "List these: {t}"],
        lambda d: wordings.skill(d, wordings.LISTING),
    )
    return Turn(
        form.format(t=", ".join(words)), "\n".join(f"- {w}" for w in words), "Each item goes on a line of its own."
    )


def _sentence_of(draw: Draw) -> Turn:
    lines: list[str] = []
    while len(lines) < 2:
        lines = prose(draw.text(draw.pick(["literature", "docs"]), 120), 20, 200)[:6]
    first = draw.chance(0.5)
    form = draw.wording(
        "sentence-of",
        [
            "What is the {w} sentence?\n\n{t}",
            "{t}\n\nRepeat the {w} sentence.",
            "Quote the {w} sentence of this text:\n{t}",
            "Give only the {w} sentence.\n\n{t}",
        ],
        lambda d: wordings.skill(d, wordings.SENTENCE_OF),
    )
    return Turn(
        form.format(w="first" if first else "last", t=" ".join(lines)),
        lines[0 if first else -1],
        "I look for the sentence and repeat it.",
    )


def _letters(draw: Draw) -> Turn:
    word = draw.entity("goods")
    form = draw.template(
        "letters", ["Spell the word {w}.", "How do you spell {w}?", "Write {w} letter by letter.", "Spell: {w}"]
    )
    return Turn(form.format(w=word), "-".join(word), "I write the letters one by one.")


def _fact(draw: Draw) -> Turn:
    sample = facts.make(draw)
    return Turn(sample.messages[-2]["content"], sample.messages[-1]["content"], "I know this.")


_SKILLS: list[Callable[[Draw], Turn]] = [
    _greeting,
    _definition,
    _definition,
    _upper,
    _lower,
    _sort,
    _first_last,
    _list_items,
    _sentence_of,
    _letters,
    _fact,
    _fact,
]


def make(draw: Draw) -> Sample:
    if draw.chance(0.25):
        return _instructed(draw)
    if draw.chance(0.12):
        return _remembered(draw)
    turns = []
    if draw.chance(0.2):
        turns.append(_greeting(draw))
    n_turns = 1 if draw.test else draw.pick([1, 1, 2, 2, 3, 4, 5])
    while len(turns) < n_turns:
        turns.append(draw.pick(_SKILLS)(draw))
        if draw.chance(0.3) and not draw.test:
            turns.append(_follow_up(draw, turns[-1]))
    if draw.chance(0.08):
        turns.append(_bye(draw))
    return _conversation(draw, turns[:6], draw.pick(SYSTEMS) if draw.chance(0.25) else None)


def _follow_up(draw: Draw, before: Turn) -> Turn:
    """About the assistant's own previous answer."""
    kind = draw.pick(["repeat", "upper", "words"])
    if kind == "upper" and len(before.answer) < 60:
        return Turn(
            draw.template(
                "follow-upper", ["Now in capital letters.", "And in upper case?", "Write your answer in capitals."]
            ),
            before.answer.upper(),
            "I write my last answer in capitals.",
        )
    if kind == "words" and len(before.answer.split()) < 10:
        n = len(before.answer.split())
        return Turn(
            draw.template(
                "follow-words",
                [
                    "How many words was that?",
                    "How many words does your answer have?",
                    "Count the words of your answer.",
                ],
            ),
            str(n),
            f"My answer was: {before.answer}",
        )
    return Turn(
        draw.template(
            "follow-repeat",
            ["Say that again.", "Can you repeat your answer?", "Once more, please.", "Repeat what you said."],
        ),
        before.answer,
        "I repeat my last answer.",
    )


def _remembered(draw: Draw) -> Sample:
    """Something said early is asked for later."""
    keep = {
        "name": draw.entity("first_names"),
        "city": draw.entity("cities"),
        "colour": draw.entity("colors"),
        "number": draw.digits(2),
    }
    key = draw.pick(sorted(keep))
    say = {
        "name": "My name is {v}.",
        "city": "I live in {v}.",
        "colour": "My favourite colour is {v}.",
        "number": "My lucky number is {v}.",
    }[key]
    ask = {
        "name": "What is my name?",
        "city": "Where do I live?",
        "colour": "What is my favourite colour?",
        "number": "What is my lucky number?",
    }[key]
    tell = {
        "name": "Your name is {v}.",
        "city": "You live in {v}.",
        "colour": "Your favourite colour is {v}.",
        "number": "Your lucky number is {v}.",
    }[key]
    between = [draw.pick(_SKILLS[1:])(draw) for _ in range(draw.number(0, 3))]
    turns = [
        Turn(say.format(v=keep[key]), "I will remember that.", "I keep this in mind."),
        *between,
        Turn(ask, tell.format(v=keep[key]), f"The user said: {say.format(v=keep[key])}"),
    ]
    return _conversation(draw, turns, draw.pick(SYSTEMS) if draw.chance(0.2) else None)


def _instructed(draw: Draw) -> Sample:
    """A system message says how to answer."""
    inner = draw.pick([_first_last, _sort, _upper, _fact])(draw)
    start = draw.pick(
        ["Sure:", "Here you are:", "Answer:", "Of course.", "Result:", f"{draw.entity('first_names')} says:"]
    )
    how = draw.pick(["start", "json", "end", "refuse"])
    if how == "start":
        system = draw.template(
            "sys-start",
            [
                'Begin every answer with "{s}"',
                'Always start with "{s}"',
                'Every answer starts with "{s}"',
                'Your answers begin with "{s}"',
            ],
        ).format(s=start)
        return _conversation(draw, [inner._replace(answer=f"{start} {inner.answer}")], system)
    if how == "json":
        system = draw.template(
            "sys-json",
            [
                'Answer in JSON with the key "{k}".',
                'Write each answer as a JSON object with one key, "{k}".',
                'Only JSON, please: the key is "{k}".',
                'Format: a JSON object with "{k}".',
            ],
        )
        key = draw.pick(["answer", "result", "text", "value", "reply"])
        quoted = inner.answer.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return _conversation(draw, [inner._replace(answer=f'{{"{key}": "{quoted}"}}')], system.format(k=key))
    if how == "end":
        word = draw.entity("nouns")
        system = draw.template(
            "sys-end",
            [
                'End every answer with the word "{w}".',
                'The last word of each answer is "{w}".',
                'Always close with "{w}".',
            ],
        ).format(w=word)
        return _conversation(draw, [inner._replace(answer=f"{inner.answer} {word}")], system)
    name = draw.entity("goods")
    system = draw.template(
        "sys-topic",
        ["You only talk about the {n}.", "Answer only questions about the {n}.", "Your only topic is the {n}."],
    ).format(n=name)
    return _conversation(
        draw, [inner._replace(answer=f"I can only talk about the {name}.", reasoning="This is not my topic.")], system
    )


def _conversation(draw: Draw, turns: list[Turn], system: str | None) -> Sample:
    messages = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        messages += [user(turn.question), assistant(turn.answer)]
    if draw.chance(0.04):  # a reminder that changes nothing
        messages.insert(
            -2,
            {
                "role": "latest_reminder",
                "content": draw.pick(
                    [
                        f"The time is {draw.time()}.",
                        f"Today is {draw.date()[0]}.",
                        f"The user is in {draw.entity('cities')}.",
                    ]
                ),
            },
        )
    if draw.chance(0.25):
        messages[-1] = assistant(turns[-1].answer, turns[-1].reasoning)
        return Sample(messages, thinking=effort(draw))
    return Sample(messages)
