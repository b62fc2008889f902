"""Family 3, field extraction to JSON: a document of one kind in one of eight surface forms, a subset of its fields asked for.

Key names, order and subset are random, so the schema has to be read. The schema comes as the response format or as words.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..render import Sample
from .attributes import ATTRIBUTES
from .common import assistant, effort, user, with_system
from .world import Draw

Field = tuple[list[str], str, str]  # spellings of the key, label in the document, kind of value

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
    "code": lambda d: d.number(1000, 99999),
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


def make(draw: Draw) -> Sample:
    kind, fields = draw.template("extract-kind", KINDS) if draw.chance(0.6) else _any_kind(draw)
    chosen = draw.some(fields, draw.number(2, len(fields)))
    values: dict[str, Any] = {}
    for _, label, value_kind in chosen:
        if label != "Email":
            values[label] = _VALUES[value_kind](draw)
    for _, label, _kind in chosen:
        if label == "Email":
            values[label] = draw.email(values.get("Name") or draw.person())
    missing = draw.pick(chosen)[1] if draw.chance(0.12) and len(chosen) > 3 else None
    said = [(label, values[label]) for _, label, _kind in chosen if label != missing]
    document = _document(draw, kind, said)
    asked = draw.some(chosen, draw.number(2, min(10, len(chosen))))
    keys = {f[1]: draw.template("key-" + f[0][0], f[0]) for f in asked}
    if len(set(keys.values())) < len(keys):
        keys = {f[1]: f[0][0] + f"_{i}" if i else f[0][0] for i, f in enumerate(asked)}
    answer = {keys[f[1]]: None if f[1] == missing else values[f[1]] for f in asked}
    return _sample(draw, kind, document, asked, keys, answer)


def _any_kind(draw: Draw) -> tuple[str, list[Field]]:
    """A document of some kind with any attributes as fields."""
    chosen = {name: kind for name, kind in (draw.template("attribute", ATTRIBUTES) for _ in range(draw.number(3, 10)))}
    fields: list[Field] = []
    for name, kind in chosen.items():
        words = name.split()
        spellings = [
            "_".join(words),
            words[0] + "".join(w.capitalize() for w in words[1:]),
            name,
            "_".join(words).upper(),
        ]
        fields.append((spellings, name.capitalize(), kind))
    if len(fields) < 2:
        return _any_kind(draw)
    return draw.template(
        "any-kind", ["record", "file", "report", "card", "entry", "sheet", "profile", "summary", "memo", "register"]
    ), fields


def _document(draw: Draw, kind: str, said: list[tuple[str, Any]]) -> str:
    if draw.chance(0.5):
        said = draw.some(said, len(said))
    pairs = [(label, _spelt(draw, value)) for label, value in said]
    form = draw.template("extract-form", ["key-value", "table", "sentence", "email", "note", "list", "form", "csv"])
    if form == "key-value":
        return "\n".join(f"{label}: {value}" for label, value in pairs)
    if form == "table":
        return "\n".join(["| field | value |", "| --- | --- |", *(f"| {label} | {value} |" for label, value in pairs)])
    if form == "sentence":
        return f"This {kind} has " + ", ".join(f"{label.lower()} {value}" for label, value in pairs) + "."
    if form == "email":
        body = " ".join(f"The {label.lower()} is {value}." for label, value in pairs)
        return f"Hello {draw.entity('first_names')},\n\nhere is what you asked for about the {kind}. {body}\n\nBest regards\n{draw.entity('first_names')}"
    if form == "note":
        return f"Note on a {kind}. " + "; ".join(f"{label.lower()} = {value}" for label, value in pairs)
    if form == "list":
        return f"{kind.capitalize()}\n" + "\n".join(f"- {label} - {value}" for label, value in pairs)
    if form == "form":
        return "\n".join(f"{label.upper()} .... [{value}]" for label, value in pairs)
    return ";".join(label for label, _ in pairs) + "\n" + ";".join(value for _, value in pairs)


def _spelt(draw: Draw, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return str(value)


def _schema(draw: Draw, asked: list[Field], keys: dict[str, str], answer: dict[str, Any]) -> dict[str, Any]:
    """Fields that may be null say so, and some others do too."""
    properties: dict[str, Any] = {}
    for _, label, kind in asked:
        spec: dict[str, Any] = {"type": _TYPES.get(kind, "string")}
        if kind in _ENUMS:
            spec["enum"] = _ENUMS[kind]
        if spec["type"] == "array":
            spec["items"] = {"type": "string"}
        if answer[keys[label]] is None or draw.chance(0.15):
            spec["type"] = [spec["type"], "null"]
            spec.pop("enum", None)
        properties[keys[label]] = spec
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_WORDS = [
    "Extract {k} as JSON from this {d}.\n\n{t}",
    "{t}\n\nGive me {k} as a JSON object.",
    "Read this {d} and answer with JSON. Keys: {k}.\n\n{t}",
    "Turn this into JSON with the keys {k}:\n{t}",
    "Document:\n{t}\n\nReturn JSON with these fields: {k}",
    "I need {k} in JSON.\n{t}",
    "From the {d} below, fill a JSON object with {k}.\n\n{t}",
    "{t}\n---\nJSON with {k}, please.",
    "Which values do {k} have? Answer as JSON.\n\n{t}",
    "Fields: {k}\nFormat: JSON\nText: {t}",
]
_PLAIN = [
    "Extract the data.\n\n{t}",
    "{t}",
    "Read this {d}.\n\n{t}",
    "Fill the schema from this {d}:\n{t}",
    "{t}\n\nExtract the fields.",
    "Here is a {d}:\n{t}\nAnswer in the required format.",
]


def _sample(
    draw: Draw, kind: str, document: str, asked: list[Field], keys: dict[str, str], answer: dict[str, Any]
) -> Sample:
    written = json.dumps(answer, ensure_ascii=False)
    reasoning = f"The fields are {', '.join(keys.values())}." if draw.chance(0.12) else None
    final = assistant(written, reasoning)
    thinking = effort(draw) if reasoning else None
    if draw.chance(0.5):
        text = draw.template("extract-plain", _PLAIN).format(t=document, d=kind)
        schema = {
            "type": "json_schema",
            "json_schema": {"name": kind.replace(" ", "_"), "schema": _schema(draw, asked, keys, answer)},
        }
        return Sample(
            with_system(draw, [user(text), final], 0.2), response_format=schema, thinking=thinking, check="json"
        )
    names = [f'"{k}"' for k in keys.values()] if draw.chance(0.3) else list(keys.values())
    text = draw.template("extract-words", _WORDS).format(k=", ".join(names), t=document, d=kind)
    return Sample(with_system(draw, [user(text), final], 0.2), thinking=thinking, check="json")
