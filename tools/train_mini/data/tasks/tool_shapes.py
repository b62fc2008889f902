"""Hand-shaped tools of family 4: names, parameters with several spellings, and how a sentence says each argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .world import Draw


class Parameter(NamedTuple):
    names: list[str]
    kind: str  # of VALUES
    description: str
    phrases: list[str]  # {v} is the value as said
    required: bool = True
    choices: list[str] | None = None  # of the kind "choice"


class Shape(NamedTuple):
    names: list[str]
    description: str
    commands: list[str]  # the sentence's beginning
    parameters: list[Parameter]
    result: str  # what a call returns; {r} is a value that the answer repeats
    answer: str
    framed: bool = False  # commands are verb and object only (tool_parts.py)


VALUES: dict[str, tuple[str, Callable[[Draw], Any]]] = {
    "city": ("string", lambda d: d.entity("cities")),
    "person": ("string", Draw.person),
    "first": ("string", lambda d: d.entity("first_names")),
    "noun": ("string", lambda d: d.entity("nouns")),
    "good": ("string", lambda d: d.entity("goods")),
    "color": ("string", lambda d: d.entity("colors")),
    "company": ("string", Draw.company),
    "date": ("string", lambda d: d.date()[1]),
    "time": ("string", Draw.time),
    "email": ("string", lambda d: d.email(d.person())),
    "path": ("string", lambda d: f"/{d.entity('nouns')}/{d.entity('nouns')}.{d.pick(['txt', 'csv', 'log', 'json'])}"),
    "text": ("string", lambda d: _text(d)),
    "small": ("integer", lambda d: d.number(1, 60)),
    "count": ("integer", lambda d: d.number(2, 999)),
    "number": ("number", lambda d: d.pick([d.number(1, 500) + 0.5, d.number(1, 99) + 0.25])),
    "bool": ("boolean", lambda d: d.chance(0.5)),
    "unit": ("string", lambda d: d.pick(["celsius", "fahrenheit"])),
    "language": (
        "string",
        lambda d: d.pick(["French", "German", "Spanish", "Italian", "Polish", "Dutch", "Swedish", "Turkish"]),
    ),
    "currency": ("string", lambda d: d.pick(["EUR", "USD", "GBP", "CHF", "JPY", "SEK"])),
    "priority": ("string", lambda d: d.pick(["low", "medium", "high"])),
    "code": ("string", Draw.word_code),
    "room": ("string", lambda d: d.pick(["kitchen", "bedroom", "office", "hall", "garage", "bathroom", "cellar"])),
    "words": ("array", lambda d: [d.entity("nouns") for _ in range(d.number(1, 3))]),
    "sort": ("string", lambda d: d.pick(["price", "date", "name", "rating"])),
    "mode": ("string", lambda d: d.pick(["car", "train", "bus", "bicycle"])),
    "job": ("string", lambda d: d.entity("jobs").lower()),
    "digits": ("integer", lambda d: int(d.digits(d.pick([2, 3, 4, 5])))),
    "choice": ("string", lambda d: ""),  # drawn from the parameter's own choices
}
ENUMS = {
    "unit": ["celsius", "fahrenheit"],
    "currency": ["EUR", "USD", "GBP", "CHF", "JPY", "SEK"],
    "priority": ["low", "medium", "high"],
    "sort": ["price", "date", "name", "rating"],
    "mode": ["car", "train", "bus", "bicycle"],
}


def _text(draw: Draw) -> str:
    return draw.pick(
        [
            "the {a} {n} is ready",
            "please bring the {n}",
            "I will be late",
            "meet me near the {n}",
            "do not forget the {a} {n}",
            "we need a new {n}",
        ]
    ).format(a=draw.entity("colors"), n=draw.entity("goods"))


_P = Parameter
_CITY = _P(["city", "location", "place", "town"], "city", "Name of the city.", ["in {v}", "for {v}"])
_DATE = _P(["date", "day", "on_date"], "date", "The date as YYYY-MM-DD.", ["on {v}", "for {v}"], False)
_TIME = _P(["time", "at_time", "start"], "time", "Time of day.", ["at {v}"])
_TO = _P(["recipient", "to", "receiver"], "person", "Who gets it.", ["to {v}"])

SHAPES = [
    Shape(
        ["get_weather", "weather_report", "current_weather"],
        "Tells the weather in a city.",
        ["What is the weather", "How is the weather", "Tell me the weather", "Check the weather"],
        [
            _CITY,
            _P(["unit", "units"], "unit", "Unit of the temperature.", ["in {v}"], False),
            _P(["days", "n_days"], "small", "How many days ahead.", ["for the next {v} days"], False),
        ],
        '{{"temperature": {r}}}',
        "The temperature is {r} degrees.",
    ),
    Shape(
        ["send_email", "write_email", "mail_send"],
        "Sends an email.",
        ["Send an email", "Write an email", "Please email"],
        [
            _P(["address", "email", "to_address"], "email", "Address of the recipient.", ["to {v}"]),
            _P(["subject", "title"], "noun", "Subject line.", ["with the subject {v}", "about {v}"]),
            _P(["body", "message", "content"], "text", "What to write.", ['saying "{v}"', 'with the text "{v}"']),
        ],
        '{{"sent": true, "id": {r}}}',
        "The email was sent. Its id is {r}.",
    ),
    Shape(
        ["send_message", "text_message", "message_person"],
        "Sends a text message to a person.",
        ["Send a message", "Text", "Write a message"],
        [_TO, _P(["text", "message", "content"], "text", "The message.", ['saying "{v}"', 'that says "{v}"'])],
        '{{"status": "sent", "id": {r}}}',
        "The message was sent with id {r}.",
    ),
    Shape(
        ["create_event", "add_event", "calendar_add"],
        "Adds an event to the calendar.",
        ["Create an event", "Add an event to my calendar", "Put an event in the calendar"],
        [
            _P(["title", "name", "summary"], "noun", "Title of the event.", ["called {v}", "named {v}"]),
            _P(["date", "day", "on_date"], "date", "The date as YYYY-MM-DD.", ["on {v}"]),
            _TIME,
            _P(["duration", "minutes"], "small", "Length in minutes.", ["for {v} minutes"], False),
        ],
        '{{"event_id": {r}}}',
        "The event was created with id {r}.",
    ),
    Shape(
        ["set_timer", "start_timer", "timer"],
        "Starts a timer.",
        ["Set a timer", "Start a timer"],
        [
            _P(["minutes", "duration"], "small", "Minutes until it rings.", ["for {v} minutes"]),
            _P(["label", "name"], "noun", "What it is for.", ["called {v}", "with the label {v}"], False),
        ],
        '{{"timer": {r}}}',
        "Timer {r} is running.",
    ),
    Shape(
        ["set_alarm", "alarm_at"],
        "Sets an alarm.",
        ["Set an alarm", "Wake me", "I need an alarm"],
        [_TIME, _DATE],
        '{{"alarm": {r}}}',
        "Alarm {r} is set.",
    ),
    Shape(
        ["convert_currency", "exchange", "currency_convert"],
        "Converts an amount of money.",
        ["Convert", "Exchange", "Please convert"],
        [
            _P(["amount", "value", "sum"], "number", "How much.", ["the amount {v}", "a sum of {v}"]),
            _P(["source", "from_currency"], "currency", "Currency to convert from.", ["from {v}"]),
            _P(["target", "to_currency"], "currency", "Currency to convert to.", ["to {v}", "into {v}"]),
        ],
        '{{"result": {r}}}',
        "The result is {r}.",
    ),
    Shape(
        ["translate", "translate_text"],
        "Translates a text.",
        ["Translate", "Please translate"],
        [
            _P(["text", "source_text", "content"], "text", "What to translate.", ['"{v}"', 'the sentence "{v}"']),
            _P(["language", "target_language", "to"], "language", "Language to translate to.", ["into {v}", "to {v}"]),
        ],
        '{{"characters": {r}}}',
        "The translation has {r} characters.",
    ),
    Shape(
        ["search_flights", "find_flights", "flight_search"],
        "Finds flights between two cities.",
        ["Find flights", "Search for flights", "I need a flight", "Look up flights"],
        [
            _P(["origin", "from_city", "departure"], "city", "City of departure.", ["from {v}"]),
            _P(["destination", "to_city", "arrival"], "city", "City of arrival.", ["to {v}"]),
            _P(["date", "day"], "date", "The date as YYYY-MM-DD.", ["on {v}"]),
            _P(["passengers", "seats"], "small", "How many people fly.", ["for {v} people"], False),
        ],
        '{{"cheapest": {r}}}',
        "The cheapest flight costs {r}.",
    ),
    Shape(
        ["book_hotel", "reserve_room", "hotel_booking"],
        "Books a hotel room.",
        ["Book a hotel", "Reserve a room", "Book a room"],
        [
            _CITY,
            _P(["guest", "name"], "person", "Name of the guest.", ["for {v}", "in the name of {v}"]),
            _P(["nights", "n_nights"], "small", "Number of nights.", ["for {v} nights"]),
            _P(
                ["breakfast", "with_breakfast"],
                "bool",
                "Whether breakfast is included.",
                ["with breakfast: {v}"],
                False,
            ),
        ],
        '{{"booking": {r}}}',
        "The room is booked. The booking number is {r}.",
    ),
    Shape(
        ["play_music", "play_song", "start_music"],
        "Plays music.",
        ["Play", "I want to hear", "Put on"],
        [
            _P(["artist", "performer", "singer"], "person", "Who performs.", ["music by {v}", "something by {v}"]),
            _P(["room", "where"], "room", "Room of the speaker.", ["in the {v}"], False),
            _P(["volume", "loudness"], "small", "Volume.", ["at volume {v}"], False),
        ],
        '{{"track": {r}}}',
        "Track {r} is playing.",
    ),
    Shape(
        ["turn_on_light", "light_on", "switch_light"],
        "Switches the light in a room.",
        ["Turn on the light", "Switch the light on"],
        [
            _P(["room", "where", "area"], "room", "The room.", ["in the {v}"]),
            _P(["brightness", "level"], "small", "Brightness in percent.", ["at {v} percent"], False),
            _P(["color", "colour"], "color", "Colour of the light.", ["in {v}"], False),
        ],
        '{{"lamps": {r}}}',
        "{r} lamps are on.",
    ),
    Shape(
        ["set_temperature", "heat_room", "thermostat"],
        "Sets the temperature of a room.",
        ["Set the temperature", "Heat"],
        [
            _P(["room", "zone"], "room", "The room.", ["in the {v}", "of the {v}"]),
            _P(["degrees", "temperature"], "small", "Degrees.", ["to {v} degrees"]),
        ],
        '{{"now": {r}}}',
        "It is {r} degrees now.",
    ),
    Shape(
        ["search_products", "find_products", "shop_search"],
        "Searches a shop.",
        ["Search the shop", "Find products", "Look in the shop"],
        [
            _P(["query", "search", "keywords"], "good", "What to look for.", ["for a {v}", "like a {v}"]),
            _P(
                ["max_price", "limit", "price_limit"],
                "count",
                "Highest price.",
                ["below {v} dollars", "for at most {v} dollars"],
                False,
            ),
            _P(["color", "colour"], "color", "Colour.", ["in {v}"], False),
            _P(["sort_by", "order_by"], "sort", "How to sort.", ["sorted by {v}"], False),
        ],
        '{{"found": {r}}}',
        "There are {r} products.",
    ),
    Shape(
        ["add_to_cart", "cart_add", "order_item"],
        "Puts a product into the cart.",
        ["Put into my cart", "Order", "Add to the cart"],
        [
            _P(["item", "product", "article"], "good", "The product.", ["a {v}", "the {v}"]),
            _P(["quantity", "count", "pieces"], "small", "How many.", ["{v} times", "in quantity {v}"]),
        ],
        '{{"total": {r}}}',
        "The cart's total is {r}.",
    ),
    Shape(
        ["get_stock_price", "stock_quote", "share_price"],
        "Tells the price of a company's share.",
        ["What is the share price", "Get the stock price", "How much is a share"],
        [
            _P(["company", "firm", "name"], "company", "Name of the company.", ["of {v}"]),
            _P(["currency", "cur"], "currency", "Currency of the answer.", ["in {v}"], False),
        ],
        '{{"price": {r}}}',
        "The price is {r}.",
    ),
    Shape(
        ["create_ticket", "open_ticket", "report_issue"],
        "Opens a support ticket.",
        ["Open a ticket", "Create a ticket", "Report a problem"],
        [
            _P(["title", "summary", "subject"], "noun", "Short title.", ["about the {v}", "called {v}"]),
            _P(["priority", "urgency"], "priority", "How urgent it is.", ["with {v} priority"]),
            _P(["assignee", "owner"], "person", "Who works on it.", ["assigned to {v}"], False),
        ],
        '{{"ticket": {r}}}',
        "Ticket {r} is open.",
    ),
    Shape(
        ["read_file", "open_file", "file_read"],
        "Reads a file.",
        ["Read the file", "Open the file", "Show me the file"],
        [
            _P(["path", "file", "file_path"], "path", "Path of the file.", ["{v}"]),
            _P(["lines", "max_lines"], "count", "Most lines to read.", ["up to {v} lines"], False),
        ],
        '{{"lines": {r}}}',
        "The file has {r} lines.",
    ),
    Shape(
        ["delete_file", "remove_file", "file_delete"],
        "Deletes a file.",
        ["Delete the file", "Remove the file"],
        [_P(["path", "file", "target"], "path", "Path of the file.", ["{v}"])],
        '{{"freed": {r}}}',
        "{r} bytes are free again.",
    ),
    Shape(
        ["search_files", "grep_files", "find_text"],
        "Searches files for a word.",
        ["Search all files", "Look through the files"],
        [
            _P(["pattern", "word", "query"], "noun", "Word to look for.", ["for the word {v}", "for {v}"]),
            _P(["folder", "directory", "path"], "path", "Where to look.", ["in {v}", "under {v}"]),
        ],
        '{{"matches": {r}}}',
        "There are {r} matches.",
    ),
    Shape(
        ["get_directions", "route_to", "find_route"],
        "Finds the way between two cities.",
        ["How do I get", "Find the way", "Show me the route"],
        [
            _P(["start", "origin", "from_place"], "city", "Where to start.", ["from {v}"]),
            _P(["end", "destination", "to_place"], "city", "Where to go.", ["to {v}"]),
            _P(["mode", "means", "travel_mode"], "mode", "Means of transport.", ["by {v}"], False),
        ],
        '{{"kilometres": {r}}}',
        "The way is {r} kilometres long.",
    ),
    Shape(
        ["call_person", "phone_call", "dial"],
        "Calls a person.",
        ["Call", "Phone", "Please call"],
        [
            _P(["person", "name", "contact"], "person", "Whom to call.", ["{v}"]),
            _P(["time", "at_time"], "time", "When to call.", ["at {v}"], False),
        ],
        '{{"call": {r}}}',
        "Call {r} has begun.",
    ),
    Shape(
        ["add_contact", "save_contact", "new_contact"],
        "Saves a contact.",
        ["Save a contact", "Add a contact", "New contact"],
        [
            _P(["name", "person", "full_name"], "person", "Full name.", ["named {v}", "for {v}"]),
            _P(["email", "mail"], "email", "Email address.", ["with the email {v}"]),
            _P(["company", "employer"], "company", "Where they work.", ["from {v}", "at {v}"], False),
        ],
        '{{"contact": {r}}}',
        "Contact {r} was saved.",
    ),
    Shape(
        ["add_note", "save_note", "make_note"],
        "Saves a note.",
        ["Make a note", "Save a note", "Note down"],
        [
            _P(["text", "content", "note"], "text", "What to note.", ['that "{v}"', 'saying "{v}"']),
            _P(
                ["tags", "labels", "keywords"],
                "words",
                "Words to find it by.",
                ["tagged {v}", "with the tags {v}"],
                False,
            ),
        ],
        '{{"note": {r}}}',
        "Note {r} was saved.",
    ),
    Shape(
        ["track_parcel", "parcel_status", "where_is_parcel"],
        "Tells where a parcel is.",
        ["Where is the parcel", "Track the parcel", "Find the parcel"],
        [_P(["tracking_number", "code", "parcel"], "code", "Number of the parcel.", ["{v}", "with the number {v}"])],
        '{{"hours_left": {r}}}',
        "The parcel arrives in {r} hours.",
    ),
    Shape(
        ["count_people", "population_of", "city_population"],
        "Tells how many people live in a city.",
        ["How many people live", "Tell me the population"],
        [_CITY, _P(["year", "in_year"], "count", "Year of the count.", ["as of year {v}"], False)],
        '{{"population": {r}}}',
        "{r} people live there.",
    ),
    Shape(
        ["reserve_table", "book_table", "restaurant_booking"],
        "Reserves a table in a restaurant.",
        ["Reserve a table", "Book a table"],
        [
            _P(["restaurant", "place"], "company", "Name of the restaurant.", ["at {v}"]),
            _P(["people", "guests", "seats"], "small", "How many guests.", ["for {v} people"]),
            _TIME,
            _DATE,
        ],
        '{{"table": {r}}}',
        "You have table {r}.",
    ),
    Shape(
        ["pay_bill", "transfer_money", "send_money"],
        "Sends money.",
        ["Transfer money", "Send money", "Pay"],
        [
            _TO,
            _P(["amount", "sum", "value"], "number", "How much.", ["the amount {v}", "{v} in total"]),
            _P(["currency", "cur"], "currency", "Currency.", ["in {v}"]),
        ],
        '{{"transaction": {r}}}',
        "The transaction number is {r}.",
    ),
    Shape(
        ["list_users", "find_users", "user_search"],
        "Lists users of the system.",
        ["List the users", "Find users", "Show all users"],
        [
            _P(["team", "group", "department"], "noun", "Name of their team.", ["of the {v} team", "in the team {v}"]),
            _P(["active", "only_active"], "bool", "Only active ones.", ["with active set to {v}"], False),
            _P(["limit", "max_results"], "small", "Most users to list.", ["at most {v}"], False),
        ],
        '{{"users": {r}}}',
        "There are {r} users.",
    ),
    Shape(
        ["start_server", "launch_machine", "boot"],
        "Starts a machine.",
        ["Start a server", "Launch a machine"],
        [
            _P(["name", "host", "machine"], "code", "Name of the machine.", ["called {v}", "named {v}"]),
            _P(["memory", "gigabytes"], "small", "Memory in gigabytes.", ["with {v} gigabytes"]),
            _P(["region", "location"], "city", "Where it stands.", ["in {v}"], False),
        ],
        '{{"machine": {r}}}',
        "Machine {r} is starting.",
    ),
]


def value_of(draw: Draw, parameter: Parameter) -> Any:
    return draw.pick(parameter.choices) if parameter.choices else VALUES[parameter.kind][1](draw)
