"""Family 3, field extraction to JSON: a document of some kind in some layout (layouts.py), a subset of its fields asked for.

Key names, order and subset are random, so the schema has to be read. The schema comes as the response format or as words.
A key that is held out stands in the document in its own words or the request says its label: reading is enough.
Bare digits are JSON numbers, yes and no are booleans; where a list may have one member the request says "a list".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ..render import Sample
from . import wordings
from .attributes import ATTRIBUTES
from .common import assistant, effort, user, with_system
from .layouts import document
from .world import NEW, Draw, split_templates

Field = tuple[list[str], str, str]  # spellings of the key, label in the document, kind of value


class Asked(NamedTuple):
    """A field of one document, its names chosen."""

    key: str
    label: str  # in words
    kind: str
    value: Any


_PERSON = (["name", "person", "full_name", "contact"], "Name", "person")
_EMAIL = (["email", "mail", "email_address", "e_mail"], "Email", "email")
_CITY = (["city", "town", "place", "location"], "City", "city")
_DATE = (["date", "day", "on_date", "when"], "Date", "date")
_AMOUNT = (["total", "amount", "sum", "price"], "Total", "amount")

KINDS: list[tuple[str, list[Field]]] = [
    (
        "invoice",
        [
            (["invoice_number", "number", "invoice_id", "no"], "Invoice number", "code"),
            (["customer", "client", "buyer", "bill_to"], "Customer", "company"),
            _DATE,
            _AMOUNT,
            (["currency", "currency_code", "cur"], "Currency", "currency"),
            (["paid", "is_paid", "settled"], "Paid", "bool"),
            (["items", "positions", "lines"], "Items", "goods"),
        ],
    ),
    (
        "booking",
        [
            (["guest", "guest_name", "booked_by"], "Guest", "person"),
            (["hotel", "house", "hotel_name"], "Hotel", "company"),
            _CITY,
            (["arrival", "check_in", "from"], "Arrival", "date"),
            (["nights", "n_nights", "stay"], "Nights", "small"),
            (["room", "room_number", "room_no"], "Room", "code"),
            (["breakfast", "with_breakfast"], "Breakfast", "bool"),
        ],
    ),
    (
        "contact",
        [
            _PERSON,
            _EMAIL,
            (["phone", "telephone", "phone_number"], "Phone", "phone"),
            (["company", "employer", "firm"], "Company", "company"),
            _CITY,
            (["job", "title", "position", "role"], "Job", "job"),
            (["street", "address", "street_address"], "Street", "street"),
        ],
    ),
    (
        "ticket",
        [
            (["ticket_id", "id", "ticket"], "Ticket", "code"),
            (["reporter", "reported_by", "author"], "Reported by", "person"),
            (["priority", "urgency", "severity"], "Priority", "priority"),
            (["component", "part", "area"], "Component", "noun"),
            (["opened", "created", "opened_on"], "Opened", "date"),
            (["closed", "done", "is_closed"], "Closed", "bool"),
            (["votes", "n_votes", "score"], "Votes", "small"),
        ],
    ),
    (
        "order",
        [
            (["order_id", "order", "order_number"], "Order", "code"),
            (["item", "product", "article"], "Item", "good"),
            (["quantity", "count", "pieces"], "Quantity", "small"),
            (["color", "colour", "shade"], "Colour", "color"),
            (["recipient", "deliver_to", "receiver"], "Deliver to", "person"),
            _CITY,
            _AMOUNT,
            (["express", "is_express", "fast"], "Express", "bool"),
        ],
    ),
    (
        "meeting",
        [
            (["topic", "subject", "about"], "Topic", "noun"),
            (["host", "organizer", "chair"], "Host", "person"),
            _DATE,
            (["time", "start", "starts_at"], "Time", "time"),
            (["room", "room_no", "where"], "Room", "code"),
            (["attendees", "guests", "participants"], "Attendees", "people"),
            (["online", "is_online", "remote"], "Online", "bool"),
        ],
    ),
    (
        "review",
        [
            (["product", "item", "thing"], "Product", "good"),
            (["rating", "stars", "points"], "Rating", "stars"),
            (["reviewer", "author", "by"], "Reviewer", "person"),
            _DATE,
            (["recommended", "recommends", "would_buy_again"], "Recommended", "bool"),
            (["shop", "seller", "bought_at"], "Shop", "company"),
        ],
    ),
    (
        "log line",
        [
            (["host", "machine", "server"], "host", "host"),
            (["level", "severity", "kind"], "level", "level"),
            (["code", "status", "error_code"], "code", "code3"),
            (["user", "user_name", "login"], "user", "first"),
            (["duration", "seconds", "took"], "duration", "small"),
            (["path", "file", "file_path"], "path", "path"),
        ],
    ),
    (
        "flight",
        [
            (["flight", "flight_number", "flight_no"], "Flight", "flight"),
            (["passenger", "traveller", "name"], "Passenger", "person"),
            (["from_city", "origin", "departure"], "From", "city"),
            (["to_city", "destination", "arrival"], "To", "city"),
            _DATE,
            (["seat", "seat_number", "place"], "Seat", "seat"),
            (["bags", "luggage", "n_bags"], "Bags", "digit"),
        ],
    ),
    (
        "recipe",
        [
            (["dish", "name", "title"], "Dish", "noun"),
            (["servings", "portions", "serves"], "Servings", "digit"),
            (["minutes", "time_minutes", "cooking_time"], "Minutes", "small"),
            (["author", "cook", "by"], "Cook", "person"),
            (["vegetarian", "is_vegetarian", "meatless"], "Vegetarian", "bool"),
            (["oven_temperature", "degrees", "oven"], "Oven", "code3"),
        ],
    ),
    (
        "employee",
        [
            _PERSON,
            (["employee_id", "staff_number", "staff_id"], "Staff number", "code"),
            (["department", "team", "unit"], "Department", "noun"),
            (["salary", "pay", "wage"], "Salary", "code"),
            (["hired", "start_date", "since"], "Hired", "date"),
            _EMAIL,
            (["manager", "boss", "reports_to"], "Manager", "person"),
            (["full_time", "is_full_time"], "Full time", "bool"),
        ],
    ),
    (
        "car",
        [
            (["brand", "maker", "make"], "Maker", "company"),
            (["plate", "licence_plate", "registration"], "Plate", "plate"),
            (["owner", "keeper", "holder"], "Owner", "person"),
            (["year", "built", "model_year"], "Year", "year"),
            (["color", "colour", "paint"], "Colour", "color"),
            (["mileage", "distance", "kilometres"], "Kilometres", "code"),
            _CITY,
        ],
    ),
    (
        "course",
        [
            (["course", "title", "subject"], "Course", "noun"),
            (["teacher", "lecturer", "instructor"], "Teacher", "person"),
            (["students", "participants", "seats"], "Students", "small"),
            (["room", "hall", "place"], "Room", "code"),
            (["begins", "start_date", "first_day"], "Begins", "date"),
            (["fee", "cost", "price"], "Fee", "amount"),
        ],
    ),
    (
        "shipment",
        [
            (["tracking", "tracking_number", "parcel"], "Tracking", "wordcode"),
            (["sender", "from", "shipper"], "Sender", "company"),
            (["receiver", "to", "recipient"], "Receiver", "person"),
            (["weight", "kilograms", "weight_kg"], "Weight", "amount"),
            _CITY,
            (["delivered", "arrived", "is_delivered"], "Delivered", "bool"),
        ],
    ),
]

_VALUES: dict[str, Callable[[Draw], Any]] = {
    "word": lambda d: d.entity("nouns"),
    "person": Draw.person,
    "company": Draw.company,
    "city": lambda d: d.entity("cities"),
    "street": Draw.street,
    "job": lambda d: d.entity("jobs"),
    "noun": lambda d: d.entity("nouns"),
    "good": lambda d: f"{d.entity('colors')} {d.entity('goods')}",
    "color": lambda d: d.entity("colors"),
    "time": Draw.time,
    "code": lambda d: int(d.digits(d.pick([3, 4, 4, 5, 5, 6]))),
    "code3": lambda d: d.number(100, 599),
    "small": lambda d: d.number(2, 99),
    "digit": lambda d: d.number(1, 9),
    "year": lambda d: d.number(1960, 2029),
    "stars": lambda d: d.number(1, 5),
    "amount": Draw.amount,
    "bool": lambda d: d.chance(0.5),
    "currency": lambda d: d.pick(["EUR", "USD", "GBP", "CHF", "JPY", "SEK"]),
    "priority": lambda d: d.pick(["low", "medium", "high"]),
    "level": lambda d: d.pick(["info", "warning", "error", "debug"]),
    "date": lambda d: d.date()[0],
    "phone": lambda d: f"{d.digits(3)}-{d.digits(4)}",
    "host": lambda d: f"{d.entity('nouns')}{d.number(1, 30)}",
    "first": lambda d: d.entity("first_names").lower(),
    "path": lambda d: f"/{d.entity('nouns')}/{d.entity('nouns')}.{d.pick(['txt', 'log', 'json', 'cfg'])}",
    "flight": lambda d: f"{d.pick(['LH', 'BA', 'AF', 'QX', 'DL', 'UA'])}{d.digits(3)}",
    "seat": lambda d: f"{d.number(1, 40)}{d.pick('ABCDEF')}",
    "plate": lambda d: f"{d.pick('ABCDEFGHKLM')}{d.pick('ABCDEFGHKLM')}-{d.digits(3)}",
    "wordcode": Draw.word_code,
    "goods": lambda d: d.some(d.world.lists["goods"][d.test], d.number(1, 3)),
    "words": lambda d: " ".join(d.entity("nouns") for _ in range(d.number(2, 4))),
    "hex": lambda d: "x" + d.hex(d.number(4, 9)),
    "remark": lambda d: (
        f"{d.entity('adjectives')} {d.entity('nouns')} with {d.entity('adjectives')} {d.entity('nouns')}"
    ),
    "people": lambda d: [d.person() for _ in range(d.number(1, 3))],
}
_TYPES = {
    "small": "integer",
    "digit": "integer",
    "code": "integer",
    "code3": "integer",
    "year": "integer",
    "stars": "integer",
    "amount": "number",
    "bool": "boolean",
    "goods": "array",
    "people": "array",
}
_ENUMS = {"priority": ["low", "medium", "high"], "level": ["info", "warning", "error", "debug"]}

_STYLES: list[Callable[[list[str]], str]] = [
    "_".join,
    lambda w: w[0] + "".join(x.capitalize() for x in w[1:]),
    " ".join,
    lambda w: "_".join(w).upper(),
    lambda w: "".join(x.capitalize() for x in w),
    "-".join,
    lambda w: " ".join(w).capitalize(),
    lambda w: " ".join(x.capitalize() for x in w),
]
_STYLE_SHARES = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7]
_ENDINGS = "number name date id type status count code total level owner place limit size state group index note time unit".split()
_NOUNS_OF_KINDS = "record file report card entry sheet profile summary memo register slip document form notice statement page item log dossier certificate".split()


def make(draw: Draw) -> Sample:
    while True:
        kind, fields = _listed(draw) if draw.chance(0.4) else _any_kind(draw)
        norms = [norm for f in fields for norm in {_norm(f.key), _norm(f.label)}]
        if len(fields) > 1 and len(set(norms)) == len(norms):
            break
    missing = draw.pick(fields).key if draw.chance(0.12) and len(fields) > 3 else None
    said = [(f.label, _spelt(f.value)) for f in fields if f.key != missing]
    if draw.chance(0.3):
        said = draw.some(said, len(said))
    asked = [f._replace(value=None) if f.key == missing else f for f in fields]
    asked = draw.some(asked, draw.number(min(2, len(asked)), min(10, len(asked))))
    return _sample(draw, kind, document(draw, kind, said), asked, [f for f in fields if f.key != missing])


def _norm(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> str:
    return name.replace("_", " ").lower()


def _listed(draw: Draw) -> tuple[str, list[Asked]]:
    """A document of the list; its labels are the keys in words, or other names of the same thing."""
    kind, fields = draw.template("extract-kind", KINDS)
    chosen = draw.some(fields, draw.number(2, len(fields)))
    found = []
    person = draw.person()
    for names, label, value_kind in chosen:
        key = draw.template("key-" + names[0], names)
        known = [names[i] for i in split_templates("key-" + names[0], len(names))[0]]
        at = draw.rng.random()
        said = key if draw.grade == NEW or at < 0.5 else label if at < 0.8 else draw.pick(known)
        value = draw.email(person) if label == "Email" else person if label == "Name" else _VALUES[value_kind](draw)
        found.append(Asked(key, _words(said), value_kind, value))
    return kind, found


def _any_kind(draw: Draw) -> tuple[str, list[Asked]]:
    """A document of some invented kind with any fields: only the labels say what is what."""
    found: dict[str, Asked] = {}
    style = draw.pick(_STYLE_SHARES)
    mixed = draw.chance(0.15)
    for _ in range(draw.number(3, 11)):
        label, value_kind = _any_label(draw)
        words = label.split()
        usable = split_templates("key-" + "_".join(words), len(_STYLES))[draw.grade == NEW]
        if mixed:
            style = draw.pick(_STYLE_SHARES)
        key = _STYLES[style if style in usable else draw.pick(usable)](words)
        found[_norm(key)] = Asked(key, label, value_kind, _VALUES[value_kind](draw))
    kind = draw.template("any-kind", _NOUNS_OF_KINDS)
    return f"{draw.entity('nouns')} {kind}" if draw.chance(0.5) else kind, list(found.values())


def _any_label(draw: Draw) -> tuple[str, str]:
    at = draw.rng.random()
    if at < 0.35:
        return draw.template("attribute", ATTRIBUTES)
    value_kind = draw.pick(list(_VALUES))
    if at < 0.6:
        return draw.entity("nouns"), value_kind
    if at < 0.8:
        return f"{draw.entity('adjectives')} {draw.entity('nouns')}", value_kind
    return f"{draw.entity('nouns')} {draw.pick(_ENDINGS)}", value_kind


def _spelt(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return str(value)


def _schema(draw: Draw, asked: list[Asked]) -> dict[str, Any]:
    """Fields that may be null say so, and some others do too; labels unlike their keys are mostly described."""
    properties: dict[str, Any] = {}
    for f in asked:
        spec: dict[str, Any] = {"type": _TYPES.get(f.kind, "string")}
        if f.kind in _ENUMS:
            spec["enum"] = _ENUMS[f.kind]
        if spec["type"] == "array":
            spec["items"] = {"type": "string"}
        if f.value is None or draw.chance(0.15):
            spec["type"] = [spec["type"], "null"]
            spec.pop("enum", None)
        if draw.chance(0.6 if _norm(f.key) != _norm(f.label) else 0.1):
            spec["description"] = draw.pick(["{}", "The {}.", "{} of the document", "Labelled {}."]).format(f.label)
        properties[f.key] = spec
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _placed(instructions: list[str]) -> list[str]:
    return [place.replace("{i}", i) for i in instructions for place in _PLACES]


_PLACES = ["{i}\n\n{t}", "{t}\n\n{i}", "{i}\n{t}", "{t}\n---\n{i}", "<document>\n{t}\n</document>\n\n{i}", "Document:\n{t}\n\n{i}", "{i}\n\n```\n{t}\n```", "{i}\n\nText:\n{t}",
           "Here is a {d}.\n\n{t}\n\n{i}"]  # fmt: skip
_WORDS = _placed([
    "Extract {k} as JSON.", "Give me {k} as a JSON object.", "Answer with JSON. Keys: {k}.", "Turn this {d} into JSON with the keys {k}.", "Return JSON with these fields: {k}.",
    "I need {k} in JSON.", "Fill a JSON object with {k}.", "JSON with {k}, please.", "Which values do {k} have? Answer as JSON.", "Fields: {k}\nFormat: JSON",
    "Write a JSON object that has {k}.", "Pull {k} out of this {d} and write JSON.", "From the {d}, list {k} as one JSON object.", "Please read out {k}. Reply in JSON only.",
    "Convert to JSON. Wanted keys: {k}", "Find {k} in the {d}; the answer is a JSON object.", "Produce JSON, keys {k}.", "Only JSON: {k}", "What are {k}? Use JSON.",
    "Make JSON of this. Take just {k}.", "Parse the {d} and output {k} as JSON.", "Return an object with the members {k} (JSON).", "Get {k}. Output format: JSON.",
])  # fmt: skip
_PLAIN = _placed([
    "Extract the data.", "Read this {d}.", "Fill the schema from this {d}.", "Extract the fields.", "Answer in the required format.", "What does this {d} say?", "Parse this.",
    "Read the {d} and answer as asked.", "Take the values from the {d}.", "Give me the structured data.", "Please extract.", "Convert this {d} to the given format.",
    "Find the values.", "Fill in the object.", "Get the fields of this {d}.", "Put this {d} into the schema.", "Process the {d}.", "Write down what is asked for.",
])  # fmt: skip
_LISTS = ["{}", "{}", '"{}"', "`{}`"]


def _named(draw: Draw, asked: list[Asked]) -> str:
    """The keys in words, with what cannot be seen from the key."""
    form = draw.pick(_LISTS)
    said = []
    for f in asked:
        hints = []
        if _norm(f.key) != _norm(f.label) and draw.chance(0.6):
            hints.append(f.label)
        if _TYPES.get(f.kind) == "array":
            hints.append("a list")
        said.append(form.format(f.key) + (f" ({', '.join(hints)})" if hints else ""))
    at = draw.rng.random()
    if at < 0.15:
        return "\n" + "\n".join(f"- {s}" for s in said) + "\n"
    return ", ".join(said[:-1]) + " and " + said[-1] if at < 0.4 and len(said) > 1 else ", ".join(said)


_MORE = [
    "Now {k}.",
    "And {k}?",
    "Also {k} as JSON.",
    "The same with {k}.",
    "Now give me {k} in JSON.",
    "JSON again, now with {k}.",
    "Next: {k}",
    "Please add an object with {k}.",
    "Once more, only {k}.",
]


def _written(asked: list[Asked]) -> str:
    return json.dumps({f.key: f.value for f in asked}, ensure_ascii=False)


def _sample(draw: Draw, kind: str, text: str, asked: list[Asked], there: list[Asked]) -> Sample:
    """`there` are the fields that the document has: training sometimes asks for more of them in further turns."""
    written = _written(asked)
    reasoning = f"The fields are {', '.join(f.key for f in asked)}." if draw.chance(0.12) else None
    final = assistant(written, reasoning)
    thinking = effort(draw) if reasoning else None
    if draw.chance(0.5):
        question = (
            draw.wording("extract-plain", _PLAIN, wordings.extract_plain).replace("{d}", kind).replace("{t}", text)
        )
        schema = {
            "type": "json_schema",
            "json_schema": {"name": re.sub(r"\W", "_", kind), "schema": _schema(draw, asked)},
        }
        return Sample(with_system(draw, [user(question), final], 0.2), response_format=schema, thinking=thinking, check="json")  # fmt: skip
    question = draw.wording("extract-words", _WORDS, wordings.extract_words).replace("{d}", kind).replace("{k}", _named(draw, asked)).replace("{t}", text)  # fmt: skip
    messages = [user(question), final]
    for _ in range(0 if draw.test or thinking is not None else draw.pick([0, 1, 2, 4])):
        more = draw.some(there, draw.number(1, 4))
        messages += [user(draw.pick(_MORE).replace("{k}", _named(draw, more))), assistant(_written(more))]
    return Sample(with_system(draw, messages, 0.2), thinking=thinking, check="json")
