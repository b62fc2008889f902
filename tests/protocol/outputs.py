"""Random model outputs with the requests they answer, for the differential test.

An output is put together from what the parser looks for, whole and broken, and cut into chunks of text or of token ids.
"""

from building_blocks import BLANKS, CONTROLS, SPECIALS, WORDS, Source
from json_values import dumps, spell_plainly

STOPS = ["END", "###", "\n\n", "stop", "aa", "aab", "ab\nab", "🙂", "</s>", "｜DSML｜", "<", "\n"]
THINK_END = "</think>"
# What the states of the parser turn on, for outputs without any sense.
SYMBOLS = [
    "\n", "\n", "\n\n", "<", "</", "｜DSML｜", "<｜DSML｜", "</｜DSML｜", "｜DSML", " calls>", "tool_calls>", " invoke",
    ' invoke name="', "f", '"',
    '">', ">", " parameter", ' parameter name="', '" string="true">', '" string="false">', ' string="', "true",
    'true">', 'false">', "</think>",
    "</think", "</", "think>", "<think>", "a", " ", "{", "}", "[", "]", "```", "```json", "```json\n", "\n```", "`",
    "\\", "é", "🙂", "1", ",", ":",
]
KEYS = ["a", "b", "city", "ключ", "", "q\\", "k\\n", "n=1", "<", "é", "🙂"]


class Outputs(Source):
    """`api` and what the request asks for decide what an output may look like."""

    def __init__(self, rng, api):
        super().__init__(rng)
        self.api = api
        self.thinking = self.chance(0.5)
        self.has_tools = self.chance(0.6)
        self.is_json = api != "messages" and self.chance(0.15)
        self.stops = self.some(lambda: self.pick(STOPS), 1, 3) if api != "responses" and self.chance(0.3) else []
        self.is_required = self.has_tools and not self.thinking and self.chance(0.2)
        self.is_prefix = api == "chat" and not self.has_tools and not self.is_json and self.chance(0.4)

    # --- the request ---

    def request(self):
        return getattr(self, "request_of_" + self.api)()

    def request_of_chat(self):
        body = {"model": "m", "messages": [{"role": "user", "content": "Reply in json."}]}
        if not self.thinking:
            body["thinking"] = {"type": "disabled"}
        if self.has_tools:
            body["tools"] = [{"type": "function", "function": {"name": name}} for name in ("f", "go")]
        if self.is_required:
            body["tool_choice"] = self.pick(["required", {"type": "function", "function": {"name": "go"}}])
        if self.is_json:
            body["response_format"] = {"type": "json_object"}
        if self.stops:
            body["stop"] = self.stops
        if self.is_prefix:
            prefix = {"role": "assistant", "content": self.pick(["", "So"]), "prefix": True}
            self.with_chance(0.5, prefix, "reasoning_content", lambda: "I think")
            body["messages"].append(prefix)
        return body

    def request_of_messages(self):
        body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Go on."}]}
        if not self.thinking:
            body["thinking"] = {"type": "disabled"}
        if self.has_tools:
            body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in ("f", "go")]
        if self.is_required:
            body["tool_choice"] = {"type": "tool", "name": "go"}
        if self.stops:
            body["stop_sequences"] = self.stops
        return body

    def request_of_responses(self):
        body = {"model": "m", "input": "Reply in json."}
        if not self.thinking:
            body["reasoning"] = {"effort": "none"}
        if self.has_tools:
            body["tools"] = [{"type": "function", "name": "f"},
                             {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "go"}]}]
        if self.is_required:
            body["tool_choice"] = self.pick(["required", {"type": "function", "name": "f"}])
        if self.is_json:
            body["text"] = {"format": {"type": "json_object"}}
        return body

    # --- the output ---

    def newlines(self):
        return self.pick(["", "\n", "\n\n", "\n\n", "\n\n\n", "\n \n"])

    def words(self):
        fragments = []
        for _ in range(self.rng.randint(0, 5)):
            kind = self.rng.random()
            if kind < 0.7:
                fragments.append(self.pick(WORDS) + self.pick([" ", "", "\n"]))
            elif kind < 0.85:
                fragments.append(self.pick(BLANKS + CONTROLS))
            elif kind < 0.9 and self.stops:
                stop = self.pick(self.stops)
                fragments.append(stop[: self.rng.randint(0, len(stop))])
            elif kind < 0.92:
                fragments.append(self.pick(SYMBOLS))
            elif kind < 0.925:
                fragments.append(self.pick(SPECIALS))
        return "".join(fragments)

    def value(self):
        if self.chance(0.5):
            return self.pick(["v", "", 'Par"is\n', "\\", "\t\x00\x1f", "é🙂", "<b>", "</", "</｜DSM", '"}', self.words(),
                self.words()])
        return self.text(5)

    def parameter(self, tag):
        key = self.pick(KEYS) if self.chance(0.97) else self.pick(["two words", " lead", "trail ", "tab\tkey",
            "nl\nkey", self.text(2)])
        is_string = self.chance(0.6)
        value = self.value() if is_string else self.pick([dumps(self.json_value(2), spell_plainly), "{", "", "nul",
            "01", "1 2"])
        string = "true" if is_string else "false"
        return f'<｜DSML｜{tag}parameter name="{key}" string="{string}">{value}</｜DSML｜{tag}parameter>\n'

    def invoke(self, tag):
        names = ["f", "go", "ns::go", "ns::x", "a::b::c", "::", "", 'x\\"y', "é", " sp "]
        name = self.pick(names[:3]) if self.chance(0.8) else self.pick(names)
        parameters = "".join(self.some(lambda: self.parameter(tag), 0, 3))
        return f'<｜DSML｜{tag}invoke name="{name}">\n{parameters}</｜DSML｜{tag}invoke>\n'

    def calls(self, is_open=False):
        """A block of calls; `is_open`: the prompt had its first line."""
        tag, outer = (" ", " calls") if self.chance(0.85) else ("", "tool_calls")
        body = "".join(self.some(lambda: self.invoke(tag), 1 if self.chance(0.95) else 0, 2))
        block = ("" if is_open else f"<｜DSML｜{outer}>\n") + body + f"</｜DSML｜{outer}>"
        return self.broken(block) if self.chance(0.35) else block

    def broken(self, text):
        for _ in range(self.rng.randint(1, 2)):
            at = self.rng.randint(0, len(text))
            end = min(len(text), at + self.rng.randint(1, 12))
            text = self.pick([
                text[:at], text[:at] + text[end:], text[:at] + self.pick(SYMBOLS) + text[at:], text[:end] + text[at:],
                self.without_a(text, '"'), self.without_a(text, " "), self.without_a(text, "="),
                text.replace('"', "", 1), text.replace("\n", "", 1), text.replace("\n", "\n\n"),
                text.replace(">", " >", 1),
                text.replace("true", "false", 1), text.replace("｜DSML｜", "|DSML|", 1),
                text.replace(" string", "  string", 1),
                text.replace("</｜DSML｜ invoke>\n", "", 1), text.replace("name=", "name = ", 1),
                text.replace('"', "'", 2),
            ])
        return text

    def without_a(self, text, character):
        places = [i for i, c in enumerate(text) if c == character]
        at = self.pick(places) if places else len(text)
        return text[:at] + text[at + 1 :]

    def answer(self):
        if not self.is_json:
            return self.words()
        json_text = dumps(self.pick([self.members(self.json_value, 3), self.json_value()]), spell_plainly)
        before = self.pick(["", "", "\n", " ", "Sure:\n", self.words()])
        fence = self.pick(["", "", "```json\n", "```\n", "```", "```python\n", "```json"])
        after = self.pick(["", "\n```", "```", "\n``` ", "\n```\nDone", "\n``", self.words()])
        return before + fence + json_text + after

    def reasoning(self):
        end = self.pick([THINK_END] * 12 + ["", "</think", THINK_END + "\n" + THINK_END])
        return self.newlines() + self.words() + self.newlines() + end + self.newlines()

    def output(self):
        if self.chance(0.1):
            return "".join(self.some(lambda: self.pick(SYMBOLS), 1, 30))
        text = ""
        if self.thinking and self.chance(0.95):
            text += self.reasoning()
        if self.is_required:
            text += self.calls(is_open=True)
        text += self.newlines() + self.answer()
        if self.chance(0.1):
            text += THINK_END + self.answer()
        for _ in range(self.pick([1, 1, 1, 2]) if self.chance(0.7 if self.has_tools else 0.1) else 0):
            text += self.newlines() + self.calls()
        if self.stops and self.chance(0.4):
            at = self.rng.randint(0, len(text))
            text = text[:at] + self.pick(self.stops) + text[at:]
        if self.chance(0.3):
            text += self.newlines() + self.words()
        return self.broken(text) if text and self.chance(0.1) else text

    # --- chunks ---

    def cut(self, items):
        """The items (characters or ids) as chunks."""
        kind = self.rng.random()
        if kind < 0.15:
            return [items] if items else []
        if kind < 0.4:
            return [items[i : i + 1] for i in range(len(items))]
        n_cuts = 1 if kind < 0.5 else self.rng.randint(1, 12)
        points = sorted(self.rng.randint(0, len(items)) for _ in range(n_cuts))
        return [items[a:b] for a, b in zip([0, *points], [*points, len(items)])]

    def ids(self, text, encode):
        """Ids of the text; cutting it before it is encoded spells markers with ordinary tokens."""
        if self.chance(0.25):
            points = sorted(self.rng.randint(0, len(text)) for _ in range(self.rng.randint(1, 6)))
            ids = [i for a, b in zip([0, *points], [*points, len(text)]) for i in encode(text[a:b])]
        else:
            ids = encode(text)
        if self.chance(0.15):  # also pieces of characters
            for _ in range(self.rng.randint(1, 4)):
                ids.insert(self.rng.randint(0, len(ids)), self.rng.randint(3, 127999))
        if self.chance(0.1):
            ids.insert(self.rng.randint(0, len(ids)), self.rng.choice([128821, 128822, 128825, 129272, 129278]))
        if self.chance(0.02):
            ids.insert(self.rng.randint(0, len(ids)), self.rng.choice([0, 1, 2, 128803, 128804, 128799, 128840, 129264,
                129268]))
        return ids


def answered(api, rng, encode):
    """A request, the chunks of an answer (all texts or all lists of ids) and how it finished."""
    source = Outputs(rng, api)
    request = source.request()
    text = source.output()
    chunks = source.cut(source.ids(text, encode)) if source.chance(0.4) else source.cut(text)
    finish = source.pick(["stop"] * 6 + ["length", "length", "content_filter", "eof"])
    return request, chunks, finish
