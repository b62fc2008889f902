"""Family 2, passage question answering: about script-made passages of facts, and about real text.

A script-made passage is 5 to 12 facts of one plan in shuffled order; questions ask one fact, join two, or ask for
what is not there. Questions about real text are cloze, "which sentence mentions" and yes/no on a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..render import Sample
from . import attributes, wordings
from .common import assistant, effort, user, with_system
from .world import Draw, prose

UNKNOWN = "The text does not say."

# A plan: opening sentence, then facts as (statements, questions, kind of value). {s} is the subject.
Fact = tuple[list[str], list[str], str]
PLANS: list[tuple[str, str, list[Fact]]] = [
    (
        "person",
        "{s} is known to many people in the region.",
        [
            (
                ["{s} was born in {v}.", "The birthplace of {s} is {v}."],
                ["Where was {s} born?", "In which city was {s} born?", "What is the birthplace of {s}?"],
                "city",
            ),
            (
                ["{s} lives in {v}.", "Today {s} lives in {v}.", "The home of {s} is in {v}."],
                ["Where does {s} live?", "In which city does {s} live now?", "Where is the home of {s}?"],
                "city",
            ),
            (
                ["The profession of {s} is {v}.", "{s} has the job of {v}."],
                ["What does {s} work as?", "What is the profession of {s}?", "What is {s}'s job?"],
                "job",
            ),
            (
                ["{s} is married to {v}.", "The partner of {s} is {v}."],
                ["Who is {s} married to?", "Who is the partner of {s}?"],
                "person",
            ),
            (
                ["{s} was born in the year {v}.", "The year of birth of {s} is {v}."],
                ["In which year was {s} born?", "What is the year of birth of {s}?"],
                "year",
            ),
            (
                ["{s} collects {v}.", "In the evening {s} repairs {v}."],
                ["What does {s} collect or repair?", "Which things does {s} spend time on?"],
                "goods",
            ),
            (
                ["{s} drives a {v} car.", "The car of {s} is {v}."],
                ["What colour is the car of {s}?", "Which colour does {s}'s car have?"],
                "color",
            ),
            (
                ["{s} studied under {v}.", "The teacher of {s} was {v}."],
                ["Who taught {s}?", "Who was the teacher of {s}?"],
                "person",
            ),
            (
                ["{s} owns {v} books.", "There are {v} books in {s}'s house."],
                ["How many books does {s} own?", "How many books are in {s}'s house?"],
                "count",
            ),
            (
                ["{s} started to work at {v}.", "The first employer of {s} was {v}."],
                ["Where did {s} start to work?", "What was the first employer of {s}?"],
                "company",
            ),
        ],
    ),
    (
        "event",
        "The {s} festival is held every year.",
        [
            (
                ["The {s} festival takes place in {v}.", "The host city of the {s} festival is {v}."],
                ["Where does the {s} festival take place?", "Which city hosts the {s} festival?"],
                "city",
            ),
            (
                ["It begins on {v}.", "The first day of the {s} festival is {v}."],
                ["When does the {s} festival begin?", "What is the first day of the {s} festival?"],
                "date",
            ),
            (
                ["It is organised by {v}.", "The organiser of the {s} festival is {v}."],
                ["Who organises the {s} festival?", "Who is the organiser of the {s} festival?"],
                "person",
            ),
            (
                ["About {v} people visit it.", "Last time {v} guests came."],
                ["How many people come to the {s} festival?", "How many visitors does the {s} festival have?"],
                "count",
            ),
            (
                ["A ticket costs {v} dollars.", "The price of a ticket is {v} dollars."],
                ["How much is a ticket for the {s} festival?", "What does a ticket cost?"],
                "small",
            ),
            (
                ["The doors open at {v}.", "Guests are let in from {v}."],
                ["When do the doors open?", "From what time are guests let in?"],
                "time",
            ),
            (
                ["The main sponsor is {v}.", "It is paid for by {v}."],
                ["Who is the main sponsor?", "Who pays for the {s} festival?"],
                "company",
            ),
            (
                ["The opening speech is given by {v}.", "{v} gives the opening speech."],
                ["Who gives the opening speech?"],
                "person",
            ),
            (
                ["Its symbol is a {v}.", "The posters show a {v}."],
                ["What is the symbol of the {s} festival?", "What do the posters show?"],
                "good",
            ),
        ],
    ),
    (
        "product",
        "The {s} is a new product.",
        [
            (
                ["The {s} is made by {v}.", "{v} makes the {s}."],
                ["Who makes the {s}?", "Which company makes the {s}?"],
                "company",
            ),
            (
                ["The {s} costs {v} dollars.", "Its price is {v} dollars."],
                ["How much does the {s} cost?", "What is the price of the {s}?"],
                "count",
            ),
            (
                ["The {s} weighs {v} grams.", "Its weight is {v} grams."],
                ["How much does the {s} weigh?", "What is the weight of the {s} in grams?"],
                "count",
            ),
            (
                ["It is sold in {v} only.", "The only colour is {v}."],
                ["In which colour is the {s} sold?", "What is the colour of the {s}?"],
                "color",
            ),
            (
                ["It was designed by {v}.", "The designer is {v}."],
                ["Who designed the {s}?", "Who is the designer of the {s}?"],
                "person",
            ),
            (
                ["The factory is in {v}.", "It is built in {v}."],
                ["Where is the {s} built?", "Where is the factory?"],
                "city",
            ),
            (
                ["The guarantee lasts {v} months.", "There is a guarantee of {v} months."],
                ["How long does the guarantee last?", "How many months is the guarantee of the {s}?"],
                "small",
            ),
            (
                ["The model number is {v}.", "It is sold under the number {v}."],
                ["What is the model number of the {s}?", "Under which number is the {s} sold?"],
                "code",
            ),
            (
                ["Sales began on {v}.", "It came to shops on {v}."],
                ["When did sales of the {s} begin?", "When did the {s} come to shops?"],
                "date",
            ),
        ],
    ),
    (
        "route",
        "The {s} line is a bus route.",
        [
            (
                ["The {s} line starts in {v}.", "Its first stop is {v}."],
                ["Where does the {s} line start?", "What is the first stop of the {s} line?"],
                "city",
            ),
            (
                ["The {s} line ends in {v}.", "Its last stop is {v}."],
                ["Where does the {s} line end?", "What is the last stop of the {s} line?"],
                "city",
            ),
            (
                ["The whole ride takes {v} minutes.", "It takes {v} minutes from end to end."],
                ["How long does the whole ride take?", "How many minutes does the {s} line take?"],
                "small",
            ),
            (
                ["The first bus leaves at {v}.", "Service begins at {v}."],
                ["When does the first bus leave?", "When does service begin?"],
                "time",
            ),
            (
                ["The driver on Monday is {v}.", "On Monday {v} drives."],
                ["Who drives on Monday?", "Who is the driver on Monday?"],
                "person",
            ),
            (
                ["The buses are {v}.", "Its buses are painted {v}."],
                ["What colour are the buses?", "Which colour do the buses have?"],
                "color",
            ),
            (
                ["The line is run by {v}.", "{v} runs the line."],
                ["Who runs the {s} line?", "Which company runs the {s} line?"],
                "company",
            ),
            (
                ["There are {v} stops.", "The {s} line has {v} stops."],
                ["How many stops does the {s} line have?", "How many stops are there?"],
                "small",
            ),
            (
                ["Halfway it stops in {v}.", "The longest stop is in {v}."],
                ["Where does it stop halfway?", "Where is the longest stop?"],
                "city",
            ),
        ],
    ),
    (
        "house",
        "The {s} house is an old building.",
        [
            (
                ["The {s} house stands in {v}.", "It was built in the middle of {v}."],
                ["Where does the {s} house stand?", "In which city is the {s} house?"],
                "city",
            ),
            (
                ["It was built in {v}.", "The builders finished it in {v}."],
                ["In which year was the {s} house built?", "When was the {s} house finished?"],
                "year",
            ),
            (
                ["The owner is {v}.", "Today it belongs to {v}."],
                ["Who owns the {s} house?", "To whom does the {s} house belong?"],
                "person",
            ),
            (
                ["It has {v} rooms.", "There are {v} rooms in it."],
                ["How many rooms does the {s} house have?", "How many rooms are there?"],
                "small",
            ),
            (
                ["The door is {v}.", "Visitors notice the {v} door."],
                ["What colour is the door?", "Which colour does the door of the {s} house have?"],
                "color",
            ),
            (
                ["The architect was {v}.", "It was planned by {v}."],
                ["Who was the architect?", "Who planned the {s} house?"],
                "person",
            ),
            (
                ["In the hall stands a {v}.", "The hall is known for its {v}."],
                ["What stands in the hall?", "What is the hall known for?"],
                "good",
            ),
            (
                ["The ground floor is rented by {v}.", "{v} rents the ground floor."],
                ["Who rents the ground floor?"],
                "company",
            ),
        ],
    ),
    (
        "team",
        "The {s} team plays in the second league.",
        [
            (
                ["The {s} team comes from {v}.", "Its home is {v}."],
                ["Where does the {s} team come from?", "What is the home of the {s} team?"],
                "city",
            ),
            (
                ["The captain is {v}.", "{v} leads the players."],
                ["Who is the captain of the {s} team?", "Who leads the players?"],
                "person",
            ),
            (
                ["The coach is {v}.", "The players are trained by {v}."],
                ["Who is the coach of the {s} team?", "Who trains the players?"],
                "person",
            ),
            (
                ["They wear {v} shirts.", "Their shirts are {v}."],
                ["What colour are the shirts?", "Which colour do the players wear?"],
                "color",
            ),
            (
                ["They scored {v} goals last season.", "Last season brought {v} goals."],
                ["How many goals did the {s} team score last season?"],
                "small",
            ),
            (
                ["The team was founded in {v}.", "The founding year is {v}."],
                ["When was the {s} team founded?", "In which year was the team founded?"],
                "year",
            ),
            (
                ["The next match is on {v}.", "They play again on {v}."],
                ["When is the next match?", "When do they play again?"],
                "date",
            ),
            (
                ["The stadium holds {v} people.", "There is room for {v} people."],
                ["How many people does the stadium hold?"],
                "count",
            ),
        ],
    ),
]

_KINDS: dict[str, Callable[[Draw], str]] = {
    "city": lambda d: d.entity("cities"),
    "person": Draw.person,
    "job": lambda d: d.entity("jobs").lower(),
    "company": Draw.company,
    "year": lambda d: str(d.number(1700, 2029)),
    "good": lambda d: d.entity("goods"),
    "goods": lambda d: d.pick([g for g in d.world.lists["goods"][d.test] if not g.endswith("s")]) + "s",
    "color": lambda d: d.entity("colors"),
    "count": lambda d: str(d.number(100, 9999)),
    "small": lambda d: str(d.number(2, 99)),
    "time": Draw.time,
    "date": lambda d: d.date()[0],
    "code": lambda d: d.digits(4),
}

# What each fact of a plan is called, so that it can be asked for in all the ways of attributes.QUESTIONS, and of whom.
_NAMES: dict[str, tuple[str, list[str]]] = {
    name: (subject, names.split(", "))
    for name, subject, names in [
        ("person", "{s}", "birthplace, current home, profession, spouse, year of birth, hobby object, car colour, former teacher, number of books, first employer"),
        ("event", "the {s} festival", "host city, first day, organiser, number of visitors, ticket price, opening hour, main sponsor, opening speaker, symbol"),
        ("product", "the {s}", "maker, price, weight, colour, designer, place of production, guarantee in months, model number, first day of sale"),
        ("route", "the {s} line", "first stop, last stop, ride time in minutes, time of the first bus, Monday driver, bus colour, operator, number of stops, halfway stop"),
        ("house", "the {s} house", "city, year of completion, owner, number of rooms, door colour, architect, object in the hall, tenant of the ground floor"),
        ("team", "the {s} team", "home city, captain, coach, shirt colour, number of goals last season, founding year, date of the next match, stadium capacity"),
    ]
}  # fmt: skip

_HEADS = [
    "Read the passage and answer.\n\n{t}\n\n{q}",
    "{t}\n\n{q}",
    "Passage:\n{t}\n\nQuestion: {q}",
    "{q}\n\n{t}",
    "Answer from the text.\n\n{t}\n\nQuestion: {q}",
    "<passage>\n{t}\n</passage>\n{q}",
    "Context: {t}\n\nQuestion: {q}\nAnswer with the words of the text.",
    "Text: {t}\n{q}",
    "Use the following text to answer the question.\n{t}\nQuestion: {q}",
    "According to this text, {q}\n\n{t}",
    "Given:\n{t}\n\nAnswer this: {q}",
    "I read this:\n\n{t}\n\nSo, {q}",
    "{t}\n{q}",
    "{q}\n{t}",
    "Q: {q}\n\nText: {t}",
    "{t}\n\nQ: {q}",
    "{t}\n---\n{q}",
    "<text>\n{t}\n</text>\n\nQuestion: {q}",
    "Read this.\n{t}\nMy question: {q}",
    "Question: {q}\nPassage: {t}",
    "```\n{t}\n```\n{q}",
    "Here is a text:\n{t}\n\nPlease answer: {q}",
    "Answer this: {q}\n\nThe text:\n{t}",
    "{t}\n\n{q} Use only the text.",
    "Find it in the text.\n{t}\n{q}",
    "{t}\n\nFrom this: {q}",
    "What follows is a passage.\n\n{t}\n\n{q}",
    "{q} Look here:\n\n{t}",
    "Please read the text and then answer.\n\n{t}\n\n{q}",
    "Text to read:\n\n{t}\n\nTo answer: {q}",
]


_OPENERS = [
    "Tell me: {q}",
    "Can you say this? {q}",
    "{q} Please be exact.",
    "I ask: {q}",
    "One question: {q}",
    "{q} What does it say?",
    "Please answer: {q}",
    "{q} Give the value only.",
    "I want to know: {q}",
    "{q} Look it up.",
]


def make(draw: Draw) -> Sample:
    """Training has more of what must be read or copied than the evaluation."""
    kinds = [make_facts, make_facts, make_attributes, make_attributes, make_real]
    return draw.pick(kinds if draw.test else [*kinds, make_attributes, make_real, make_real])(draw)


def make_facts(draw: Draw) -> Sample:
    """About a script-made passage; several turns in training."""
    name, opening, plan = draw.pick(PLANS)
    subject = (
        draw.person()
        if name == "person"
        else draw.entity("nouns").capitalize()
        if draw.chance(0.5)
        else draw.entity("cities")
    )
    facts = draw.some(list(range(len(plan))), draw.number(5, min(12, len(plan))))
    values: dict[int, str] = {}
    lines = [opening.format(s=subject)]
    for i in facts:
        value = _KINDS[plan[i][2]](draw)
        while value in values.values():
            value = _KINDS[plan[i][2]](draw)
        values[i] = value
        lines.append(draw.pick(plan[i][0]).format(s=subject, v=value))
    if draw.chance(0.35):  # another subject of the same plan: the name in the question has to be read
        lines += _other_subject(draw, name, opening, plan)
    passage = (" " if draw.chance(0.7) else "\n").join(_with_filler(draw, lines))
    unknown = [i for i in range(len(plan)) if i not in values]
    turns: list[tuple[str, str, str]] = []
    asked = draw.some(facts, 1 if draw.test else draw.pick([1, 2, 4, 8]))
    for i in asked:
        if unknown and draw.chance(0.15):
            i = draw.pick(unknown)
            turns.append((_named(draw, name, plan[i], subject), UNKNOWN, "There is nothing about this in the text."))
        else:
            said = next(line for line in lines if values[i] in line)
            turns.append((_named(draw, name, plan[i], subject), values[i], f'The text says: "{said}"'))
    return _conversation(draw, passage, turns)


def make_attributes(draw: Draw) -> Sample:
    """Several subjects with several attributes each: both have to match."""
    subjects = [attributes.subject(draw) for _ in range(draw.number(1, 4))]
    kinds = [attributes.attribute(draw) for _ in range(draw.number(1, 4))]
    facts: dict[tuple[str, str], tuple[str, str]] = {}
    for subject in subjects:
        for attribute, kind in kinds if draw.chance(0.7) else [attributes.attribute(draw) for _ in range(3)]:
            value = attributes.VALUES[kind](draw)
            facts[subject, attribute] = (attributes.statement(draw, attribute, subject, value), value)
    keys = draw.some(list(facts), len(facts))
    passage = draw.pick([" ", "\n", "\n\n"]).join(_with_filler(draw, [facts[key][0] for key in keys]))
    turns: list[tuple[str, str, str]] = []
    for subject, attribute in draw.some(keys, 1 if draw.test else draw.pick([1, 3, 6, 12])):
        other = attributes.attribute(draw)[0]
        if draw.chance(0.15) and (subject, other) not in facts:
            turns.append(
                (attributes.question(draw, other, subject), UNKNOWN, "There is nothing about this in the text.")
            )
        else:
            said, value = facts[subject, attribute]
            turns.append((attributes.question(draw, attribute, subject), value, f'The text says: "{said}"'))
    return _conversation(draw, passage, turns)


def _with_filler(draw: Draw, lines: list[str]) -> list[str]:
    """Sometimes with real prose before and after."""
    if not draw.chance(0.35):
        return lines
    filler = prose(
        draw.text(
            draw.pick(["literature", "docs"]), draw.number(40, 160) if draw.chance(0.7) else draw.number(160, 1400)
        ),
        20,
        300,
    )
    cut = draw.number(0, len(filler))
    return [*filler[:cut], *lines, *filler[cut:]]


def _named(draw: Draw, plan_name: str, fact: Fact, subject: str) -> str:
    if not draw.test and draw.chance(0.35):
        about, names = _NAMES[plan_name]
        plan = next(facts for name, _, facts in PLANS if name == plan_name)
        form = draw.wording("attribute-question", attributes.QUESTIONS, wordings.question, 1.0)
        question = form.format(a=names[plan.index(fact)], k=about).format(s=subject)
    else:
        question = draw.template(f"qa-{plan_name}-{fact[1][0]}", _questions(plan_name, fact)).format(s=subject)
    question = question[0].upper() + question[1:] if question.startswith("the ") else question
    return draw.template("qa-opener", _OPENERS).format(q=question) if draw.chance(0.3) else question


def _questions(plan_name: str, fact: Fact) -> list[str]:
    """Its own and those of its name."""
    plan = next(facts for name, _, facts in PLANS if name == plan_name)
    subject, names = _NAMES[plan_name]
    name = names[plan.index(fact)]
    return list(dict.fromkeys([*fact[1], *(form.format(a=name, k=subject) for form in attributes.QUESTIONS)]))


def _other_subject(draw: Draw, name: str, opening: str, plan: list[Fact]) -> list[str]:
    other = draw.person() if name == "person" else draw.entity("nouns").capitalize()
    named = [f for f in plan if "{s}" in f[0][0]]
    return [opening.format(s=other), *(f[0][0].format(s=other, v=_KINDS[f[2]](draw)) for f in draw.some(named, 3))]


def make_real(draw: Draw) -> Sample:
    """About a passage of real prose."""
    while True:
        text = draw.text(draw.pick(["literature", "docs", "docs"]), draw.number(90, 380))
        lines = prose(text, 30, 260)
        if len(lines) >= 3:
            break
    passage = " ".join(lines)
    kinds = [_cloze, _cloze, _mentions, _yes_no]
    make_turn = draw.pick(kinds)
    turns = [
        (make_turn if draw.test or draw.chance(0.6) else draw.pick(kinds))(draw, lines)
        for _ in range(1 if draw.test else draw.pick([1, 2, 4, 6]))
    ]
    return _conversation(draw, passage, turns)


def _cloze(draw: Draw, lines: list[str]) -> tuple[str, str, str]:
    line = draw.pick(lines)
    words = list(re.finditer(r"\b[A-Za-z]{4,}\b|\b\d+\b", line))
    if not words:
        return _mentions(draw, lines)
    word = draw.pick(words)
    gap = f"{line[: word.start()]}____{line[word.end() :]}"
    form = draw.wording(
        "qa-cloze",
        [
            'Which word is missing: "{g}"',
            'Fill the gap from the text: "{g}"',
            'What belongs in the gap? "{g}"',
            'According to the text, which word fills the gap? "{g}"',
            'Complete from the text: "{g}"',
            'What is the missing word in "{g}"?',
            'Name the word that is left out: "{g}"',
            '"{g}" - which word goes there?',
            'Put in the missing word: "{g}"',
            'In "{g}" a word was removed. Which one?',
            'Which word stands at ____ in "{g}"?',
            '"{g}"\nWrite the missing word.',
            'Look at the text. "{g}" lacks which word?',
            'Say the word for the blank: "{g}"',
            'One word is hidden: "{g}" Which?',
        ],
        lambda d: d.pick(wordings.CLOZE),
    )
    return form.format(g=gap), word.group(), f'The sentence is: "{line}"'


def _mentions(draw: Draw, lines: list[str]) -> tuple[str, str, str]:
    everything = " ".join(lines)
    for _ in range(20):
        line = draw.pick(lines)
        words = [w for w in re.findall(r"[A-Za-z]{5,}", line) if everything.count(w) == 1]
        if words:
            form = draw.wording(
                "qa-mentions",
                [
                    'Which sentence mentions "{w}"?',
                    'Quote the sentence with the word "{w}".',
                    'In which sentence does "{w}" occur?',
                    'Find the sentence that has "{w}" in it.',
                    'Where does the text say "{w}"? Quote the sentence.',
                    'Repeat the sentence with "{w}".',
                    'Give me the sentence that contains "{w}".',
                    'Copy the sentence in which "{w}" stands.',
                    'Which sentence uses the word "{w}"?',
                    'I look for the sentence with "{w}".',
                    'Show the whole sentence around "{w}".',
                    'The word "{w}" is in which sentence?',
                ],
                lambda d: d.pick(wordings.MENTIONS),
            )
            return form.format(w=draw.pick(words)), line, ""
    return "What is the first sentence?", lines[0], ""


def _yes_no(draw: Draw, lines: list[str]) -> tuple[str, str, str]:
    line = draw.pick(lines)
    form = draw.wording(
        "qa-yes-no",
        [
            'Does the text say this: "{s}"',
            'Is this sentence in the text? "{s}"',
            'True or not by the text: "{s}" Answer yes or no.',
            'Yes or no: does the text contain "{s}"?',
            'Can this be found in the text? "{s}"',
            '"{s}" Does the text say so?',
            'Is it right that the text says "{s}"?',
            'Check: is "{s}" in the text?',
            'Does this sentence occur word for word? "{s}"',
            'Yes or no: "{s}" is in the text.',
            'Look whether the text says "{s}" Yes or no?',
            'Did the text say "{s}"?',
        ],
        lambda d: d.pick(wordings.YES_NO),
    )
    words = list(re.finditer(r"\b[A-Za-z]{4,}\b", line))
    if draw.chance(0.5) or not words:
        return form.format(s=line), "Yes.", f'The text has: "{line}"'
    word = draw.pick(words)
    changed = f"{line[: word.start()]}{draw.entity('nouns')}{line[word.end() :]}"
    return form.format(s=changed), "No.", f'The text has: "{line}"'


def _conversation(draw: Draw, passage: str, turns: list[tuple[str, str, str]]) -> Sample:
    head = draw.wording("qa-head", _HEADS, wordings.around_text)
    messages = []
    for i, (question, answer, _) in enumerate(turns):
        messages += [user(head.format(t=passage, q=question) if i == 0 else question), assistant(answer)]
    reasoning = turns[-1][2]
    messages = with_system(draw, messages, 0.2)
    if reasoning and draw.chance(0.2):
        return Sample([*messages[:-1], assistant(turns[-1][1], reasoning)], thinking=effort(draw))
    return Sample(messages)
