"""What random requests and outputs are made of: texts, JSON, schemas, tools, images and settings.

Texts are of many scripts, with blanks, controls and what looks like a special token. All follows from the `random.Random`
that a Source is given.
"""

import json

from json_values import Members, Number, dumps, spell_plainly

SPECIALS = [
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<think>", "</think>", "<｜System｜>", "<｜User｜>",
    "<｜Assistant｜>", "<｜latest_reminder｜>", "｜DSML｜", "<｜image｜>", "<｜ref｜>", "<｜/ref｜>", "<｜box｜>", "<｜/box｜>",
    "<｜point｜>", "<｜/point｜>", "<｜polygon｜>", "<｜/polygon｜>", "<｜fim▁hole｜>", "<|EOT|>", "<｜tool▁calls▁begin｜>",
    "<｜action｜>", "<｜title｜>", "<dsml:", "</dsml:", "<｜end_of_query｜>", "<|place_holder_mm_span_0436|>",
]
LOOKALIKES = [
    "<|User|>", "< think>", "</ think>", "<Think>", "<｜User>", "<｜image2｜>", "|DSML|", "<|im_start|>",
    "<｜DSML｜ calls>", "</｜DSML｜ calls>", "<｜DSML｜tool_calls>", '<｜DSML｜ invoke name="x">', "</｜DSML｜ invoke>",
    '<｜DSML｜ parameter name="k" string="true">', "</｜DSML｜ parameter>", "<tool_result>", "</tool_result>",
    "## Tools", "x-anthropic-billing-header: a=1", "X-Anthropic-Billing-Header:", "<system-reminder>", "::", "$id",
]
WORDS = (
    "river Lantern don't naïve coração İstanbul ığdır straße Žluťoučký ŵyn Ærø źródło γέφυρα ἀρχή ὁδός хлеб Ёлка љубав "
    "שלום עִבְרִית مرحبا مُدَرِّسٌ چای हिन्दी क्षेत्र ज्ञान বাংলা ಕನ್ನಡ தமிழ் ไทยน้ำ ລາວ မြန်မာ ភាសា སྐད አማርኛ ⴰⵎⴰⵣⵉⵖ "
    "ქართული Հայերեն 한국어 ᄒᆞᆫ글 "
    "日本語 ー々ヷ ﾊﾝｶｸ 指南针 鬱 𠮷野 ½ ² Ⅻ ① ™ ŉ ǆ ﬁ Å é 👩‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 🇫🇷 1️⃣ 🫱🏻‍🫲🏾 🪿 json JSON Json jſon 42 3.14 1e-7 ++i "
    "f(x)=[a,b];{} // # ```json ``` ` * _ ~ | \\n \\ \\u0041 \" ' <b> &amp; %20 $HOME C:\\dir /etc "
    "http://e.example/?q=1 END ### stop"
).split()
BLANKS = [" ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\r\n", "\r", "\u00a0", "\u2028", "\u3000", "\u200b", "\ufeff", "\v",
    "\f"]
CONTROLS = ["\x00", "\x01", "\x07", "\x1b[0m", "\x1f", "\x7f", "\x85", "\u202e", "\ufffd", "\uffff", "\ue000",
    "\U0010ffff", "\u0301"]
NUMBERS = (
    "0 -0 1 -1 7 1E2 1e+2 2E-3 -0.0 0.10 1.0 100.0 1e-7 0.0001 0.00001 1e15 1e16 1e21 1e22 123456789.123456789 "
    "3.0000000000000001 "
    "9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 "
    "18446744073709551615 "
    "18446744073709551616 12345678901234567890 123456789012345678901 -99999999999999999999 5e-324 1e-400 "
    "2.2250738585072014e-308 "
    "1.5e300 1.7976931348623157e308 0e0 -0e5 0.1 4.35 2.5e-5 1e5 -1.25E+3"
).split()
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"]
NAMES = ["go", "list_ports", "open-valve", "x", "A1", "read_gauge", "find-train", "translate_line", "_", "f"]
KEYS = ["a", "b", "city", "n", "", " ", "two words", "ключ", "鍵", "$id", "a.b", 'q"q', "back\\slash", "new\nline",
    "type", "name", "｜DSML｜"]
MEDIA_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"]


class Source:
    """Random building blocks."""

    def __init__(self, rng):
        self.rng = rng

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, options):
        return options[int(self.rng.random() * len(options))]

    def some(self, make, low, high):
        return [make() for _ in range(self.rng.randint(low, high))]

    def with_chance(self, p, body, key, make):
        if self.chance(p):
            body[key] = make()

    # --- texts ---

    def fragment(self):
        kind = self.rng.random()
        if kind < 0.55:
            return self.pick(WORDS)
        if kind < 0.72:
            return self.pick(BLANKS)
        if kind < 0.82:
            return self.pick(SPECIALS)
        if kind < 0.87:
            special = self.pick(SPECIALS)
            cut = self.rng.randint(1, len(special) - 1)
            return self.pick([special[:cut], special[cut:], special[:cut] + self.pick(SPECIALS) + special[cut:]])
        if kind < 0.96:
            return self.pick(LOOKALIKES)
        return self.pick(CONTROLS)

    def text(self, n_max=8):
        if self.chance(0.04):
            return ""
        between = self.pick(["", " ", " "])
        return between.join(self.some(self.fragment, 1, n_max))

    def plain_text(self):
        return " ".join(self.some(lambda: self.pick(WORDS), 1, 5))

    # --- JSON ---

    def number(self):
        kind = self.rng.random()
        if kind < 0.5:
            return Number(self.pick(NUMBERS))
        if kind < 0.7:
            return Number(self.rng.randint(-1000, 1000))
        if kind < 0.85:
            return Number(repr(self.rng.uniform(-1, 1) * 10.0 ** self.rng.randint(-20, 25)))
        return Number(self.rng.randint(-(10 ** 21), 10 ** 21))

    def key(self):
        return self.pick(KEYS) if self.chance(0.8) else self.text(3)

    def members(self, make, n_max):
        """An object, sometimes with repeated keys."""
        pairs = [(self.key(), make()) for _ in range(self.rng.randint(0, n_max))]
        if pairs and self.chance(0.1):
            pairs.append((self.pick(pairs)[0], make()))
        return Members(pairs)

    def json_value(self, depth=3):
        kind = self.rng.random()
        if depth > 0 and kind < 0.2:
            return self.members(lambda: self.json_value(depth - 1), 4)
        if depth > 0 and kind < 0.35:
            return self.some(lambda: self.json_value(depth - 1), 0, 3)
        if kind < 0.6:
            return self.number()
        if kind < 0.9:
            return self.text(4)
        return self.pick([None, True, False])

    def nested(self, depth):
        value = self.number()
        for _ in range(depth):
            value = [value] if self.chance(0.5) else {"a": value}
        return value

    def json_text(self, value):
        """A client's spelling of a value: blanks and escapes vary."""
        text = dumps(value, self.pick([json.dumps, spell_plainly]))
        if self.chance(0.2):
            text = self.pick([" ", "\n", "\t\r\n", "\ufeff", "\u00a0"]) + text + self.pick(["", " ", "\n"])
        return text

    def arguments(self):
        """The arguments of a call as text: mostly an object."""
        kind = self.rng.random()
        if kind < 0.8:
            return self.json_text(self.members(self.json_value, 4))
        if kind < 0.86:
            return self.json_text(self.json_value())
        if kind < 0.87:
            return self.json_text({"a": self.nested(self.rng.randint(110, 140))})
        return self.pick(["", "{}", " {} ", "{", "}", "{}x", "null", '"{}"', "[]", "NaN", "{'a': 1}", '{"a": 1,}',
            '{"a": NaN}', '{"a": 01}',
                          '{"a": 1e400}', '{"a": "\\ud800"}', '{"a": "\\ud83d\\ude00"}', '{"a": "\t"}',
                          '{"a": 1} {"b": 2}', '{"a"}', "[1, 2]",
                          '{"a": +1}', '{"a": .5}', '{"a": 5.}', '{"a": -}', '{"a": "\\x"}', '{"a": "\\/\\b\\f"}',
                          self.text()])

    # --- schemas and tools ---

    def schema(self, depth=2):
        """A valid schema of an object."""
        properties = {self.key(): self.subschema(depth) for _ in range(self.rng.randint(0, 3))}
        schema = {"type": "object"}
        self.with_chance(0.8, schema, "properties", lambda: properties)
        self.with_chance(0.4, schema, "required", lambda: list(properties)[: self.rng.randint(0, 3)])
        self.with_chance(0.3, schema, "additionalProperties", lambda: self.pick([False, True, {}, {"type": "string"}]))
        self.with_chance(0.1, schema, "$schema", lambda: self.pick(
            ["http://json-schema.org/draft-07/schema#",
                "https://json-schema.org/draft/2020-12/schema"] * 9 + ["http://json-schema.org/draft-04/schema#"]))
        self.with_chance(0.1, schema, "$defs", lambda: {"d": self.subschema(0)})
        self.with_chance(0.08, schema, "patternProperties", lambda: {self.pick(["^a", "[a-z]+",
            ".*"]): self.subschema(0)})
        self.with_chance(0.1, schema, "title", self.text)
        self.with_chance(0.1, schema, self.pick(["x-note", "example", "Type", "default"]), self.json_value)
        if self.chance(0.1):  # keys in another order
            items = list(schema.items())
            self.rng.shuffle(items)
            schema = dict(items)
        return schema

    def subschema(self, depth):
        kind = self.rng.randint(0, 9)
        if depth > 0 and kind == 0:
            return self.schema(depth - 1)
        if depth > 0 and kind == 1:
            return {"type": "array", "items": self.subschema(depth - 1),
                "minItems": self.pick([0, 1, Number("2.0"), Number("1e1")])}
        if depth > 0 and kind == 2:
            return {self.pick(["anyOf", "oneOf", "allOf"]): self.some(lambda: self.subschema(depth - 1), 1, 3)}
        if kind == 3:
            return {"enum": self.some(lambda: self.json_value(1), 1, 3)}
        if kind == 4:
            return {"type": "string", "pattern": self.pick(["^a+$", "\\d{3}", "[\\p{L}]", "a|b", "(?:x)"]),
                "maxLength": 5}
        if kind == 5:
            return {"type": self.pick(["number", "integer"]), "minimum": self.number(),
                "multipleOf": self.pick([1, Number("0.5"), Number("1E-2")])}
        if kind == 6:
            return {"const": self.json_value(1), "description": self.text()}
        if kind == 7:
            return {"type": ["string", "null"], "default": self.json_value(1)}
        if kind == 8:
            return self.pick([{}, True, {"type": "boolean"}, {"$ref": "#"}, {"not": {}}, {"format": "date"}])
        return {"type": "string", "description": self.text()}

    def function(self, name, schema_key="parameters", needs_schema=False):
        function = {"name": name}
        self.with_chance(0.6, function, "description", self.text)
        if needs_schema or self.chance(0.8):
            function[schema_key] = self.schema()
        elif self.chance(0.2):
            function[schema_key] = None
        self.with_chance(0.1, function, "strict", lambda: self.pick([False, None]))
        self.with_chance(0.01, function, "strict", lambda: True)
        self.with_chance(0.03, function, "defer_loading", lambda: self.pick([False, False, True]))
        return function

    def tool_names(self, n_max=3):
        return self.rng.sample(NAMES, self.rng.randint(1, n_max))

    # --- what the APIs have in common ---

    def url(self):
        if self.chance(0.6):
            if self.chance(0.03):
                return self.pick(["HTTPS://pics.example/1", "ftp://pics.example/1", "https://", "https:pics",
                    " https://x", "http://x\n", ""])
            return self.pick(["https://pics.example/1.png", "http://pics.example/a b?c=d#e", "https://u:p@[::1]:8/ü",
                "http://x"])
        return self.data_url()

    def data_url(self):
        data = self.pick([PNG, "AAAA", "AA==", "AAA="])
        if self.chance(0.03):
            data = self.pick(["AA", "A", "AAAA ", "AA=A", "A%41AA", "_-8=", "", "=", "AB==", "AA\nAA", "AAAA#x"])
        if self.chance(0.05):
            return self.pick(["DATA:", "data:", "data: "]) + self.pick(["image/jpg", "IMAGE/PNG", "image/tiff",
                " image/png "]) + self.pick(
                [";base64,", ";charset=x;base64,", ";Base64,", "; base64,", ","]) + data
        return "data:" + self.pick(MEDIA_TYPES) + ";base64," + data

    def sampling(self, body):
        self.with_chance(0.15, body, "temperature", lambda: self.pick([0, 1, 2, Number("0.7"), Number("1e0"),
            Number("-0"), None]))
        self.with_chance(0.1, body, "top_p", lambda: self.pick([1, Number("0.5"), Number("1E-3"), Number("1.0"), None]))
        self.with_chance(0.2, body, "stream", lambda: self.pick([True, False, None]))

    def unknown_fields(self, body):
        self.with_chance(0.05, body, "x_" + self.pick(NAMES), lambda: self.json_value(2))
        self.with_chance(0.03, body, self.pick(["metadata", "user", "service_tier"]),
            lambda: self.pick([None, "auto", {}, {"k": "v"}]))

    def thinking(self):
        thinking = {"type": self.pick(["enabled", "disabled", "disabled", "adaptive"])}
        self.with_chance(0.3, thinking, "budget_tokens", lambda: self.pick([1024, 0, None]))
        return thinking

    def effort(self):
        if self.chance(0.015):
            return self.pick([1, 25, 50, 99, 100, 0, 101, Number("50.0"), -3])
        return self.pick(EFFORTS) if self.chance(0.97) else self.pick(["High", "", "off", None, "very high"])

    def stop(self):
        stops = self.some(lambda: self.pick(["END", "###", "\n\n", "stop", "</s>", "<｜User｜>", "a", "🙂", "\\"]), 0, 3)
        if self.chance(0.01):
            stops = [str(i) for i in range(self.pick([16, 17, 40, 64]))]
        return stops

    def call_ids(self):
        ids = ["call_%d" % self.rng.randint(0, 99) for _ in range(self.rng.randint(1, 3))]
        if self.chance(0.1):
            ids[0] = self.pick(["a b", "ид", "<｜User｜>", "1", " "])
        return ids if self.chance(0.02) else list(dict.fromkeys(ids))

    def call_name(self, names):
        if names and self.chance(0.8):
            return self.pick(names)
        return self.pick(NAMES) if self.chance(0.8) else self.pick(['odd "name"', "ns::go", "", "ü", "a\nb",
            self.text(2)])
