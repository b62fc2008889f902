"""Random requests of the three APIs, for the differential test.

Bodies are JSON values that remember their spelling (json_values.py). Most are valid, the others were valid before one
place was changed.
"""

from building_blocks import MEDIA_TYPES, NAMES, PNG, Source
from json_values import Number, mutated


class Chat(Source):
    api = "chat"

    def body(self):
        body = {"model": "m"}
        names = self.tool_names() if self.chance(0.45) else []
        is_prefix = self.chance(0.12)
        if is_prefix and self.chance(0.95):
            names = []
        if names:
            body["tools"] = [{"type": "function", "function": self.function(name)} for name in names]
        elif self.chance(0.05):
            body["tools"] = self.pick([[], None])
        self.settings(body, names)
        body["messages"] = self.messages(names, is_prefix)
        if body.get("response_format") == {"type": "json_object"} and self.chance(0.8):
            body["messages"].insert(0, {"role": "system", "content": "Use JSON."})
        if self.chance(0.3):
            items = list(body.items())
            self.rng.shuffle(items)
            body = dict(items)
        return body

    def settings(self, body, names):
        self.with_chance(0.45, body, "thinking", self.thinking)
        self.with_chance(0.3, body, "reasoning_effort", self.effort)
        if self.chance(0.35 if names else 0.03):
            named = {"type": "function", "function": {"name": self.pick(names or NAMES)}}
            body["tool_choice"] = self.pick(["none", "auto", "required", named, None])
            if body["tool_choice"] in ("required", named) and self.chance(0.8):
                body["thinking"] = {"type": "disabled"}
        self.with_chance(0.15, body, "response_format", self.response_format)
        self.with_chance(0.15, body, "stop", lambda: self.pick(["END", "\n", self.stop(), self.stop(), None]))
        self.with_chance(0.12, body, "max_tokens", lambda: self.pick([1, 100, 4096, 393216, None] * 4 + [393217]))
        self.with_chance(0.05, body, "max_completion_tokens", lambda: self.pick([1, 50, 393216, None]))
        self.sampling(body)
        self.with_chance(0.05, body, "presence_penalty", lambda: self.pick([0, Number("-2"), Number("1.5"), None]))
        self.with_chance(0.05, body, "frequency_penalty", lambda: self.pick([0, 2, Number("0.5"), None]))
        self.with_chance(0.05, body, "seed", lambda: self.pick([0, 7, Number("9223372036854775807"), None]))
        self.with_chance(0.02, body, "n", lambda: self.pick([1, 1, 2, None]))
        if self.chance(0.08):
            body["logprobs"] = self.pick([True, True, False, None])
            self.with_chance(0.5, body, "top_logprobs", lambda: self.pick([0, 5, 20, None]))
        if self.chance(0.3 if body.get("stream") else 0.01):
            body["stream_options"] = self.pick([{"include_usage": True}, {"include_usage": False}, {}, None])
        self.with_chance(0.05, body, "parallel_tool_calls", lambda: self.pick([True, False, None]))
        self.unknown_fields(body)

    def response_format(self):
        kind = self.rng.randint(0, 6)
        if kind == 0:
            return self.pick([{"type": "text"}, None])
        if kind < 4:
            return {"type": "json_object"}
        if kind == 6 and self.chance(0.3):
            return {"type": "regex", "regex": self.pick(["[a-z]{3}", "a|b"])}
        json_schema = {"name": self.pick(NAMES), "schema": self.schema()}
        self.with_chance(0.2, json_schema, "description", self.text)
        self.with_chance(0.2, json_schema, "strict", lambda: self.pick([False, None]))
        self.with_chance(0.02, json_schema, "strict", lambda: True)
        return {"type": "json_schema", "json_schema": json_schema}

    def content(self, images=True):
        if self.chance(0.6):
            return self.text()
        return self.some(lambda: self.part(images), 0 if self.chance(0.1) else 1, 4)

    def part(self, images):
        if images and self.chance(0.4):
            image = {"url": self.url()}
            self.with_chance(0.4, image, "detail", lambda: self.pick(["low", "high", "original", "auto", None]))
            return {"type": "image_url", "image_url": image}
        if self.chance(0.003):
            return self.pick([{"type": "file", "file": {"file_id": "f"}}, {"type": "input_audio", "input_audio": {}},
                {"type": "refusal", "refusal": "no"}])
        return {"type": "text", "text": self.text()}

    def system(self):
        role = "developer" if self.chance(0.02) else "system"
        return {"role": role, "content": self.content(images=self.chance(0.15))}

    def messages(self, names, is_prefix):
        messages = []
        if self.chance(0.5):
            messages += self.some(self.system, 1, self.pick([1, 1, 2]))
        for _ in range(self.rng.randint(1, 3)):
            messages += self.turn(names)
        tail = self.rng.random()
        if is_prefix:
            messages = messages[:0] if self.chance(0.1) else messages
            messages.append(self.assistant([], prefix=True))
        elif tail < 0.7:
            messages.append({"role": "user", "content": self.content()})
        elif tail < 0.8:
            messages.append(self.system())
        return messages

    def turn(self, names):
        turn = []
        if self.chance(0.9):
            turn += self.some(lambda: {"role": "user", "content": self.content()}, 1, self.pick([1, 1, 2]))
        if self.chance(0.1):
            turn += self.some(lambda: {"role": "latest_reminder", "content": self.text()}, 1, 2)
        if self.chance(0.06):
            turn.append(self.system())
        if self.chance(0.1):
            turn[-1:] = [dict(message, name=self.pick(["bob", None])) for message in turn[-1:]]
        if self.chance(0.3):
            return turn
        has_calls = self.chance(0.6 if names else 0.15)
        ids = self.call_ids() if has_calls else []
        turn.append(self.assistant([(call, self.call_name(names)) for call in ids]))
        results = [{"role": "tool", "tool_call_id": call, "content": self.content()} for call in dict.fromkeys(ids)]
        self.rng.shuffle(results)
        turn += results
        if results and self.chance(0.03):
            turn.insert(-1, {"role": "user", "content": "between"})
        return turn

    def assistant(self, calls, prefix=False):
        message = {"role": "assistant"}
        if not calls or self.chance(0.6):
            message["content"] = self.content(images=False)
            if prefix and self.chance(0.3):
                message["content"] = ""
        elif self.chance(0.5):
            message["content"] = None
        self.with_chance(0.5, message, "reasoning_content", lambda: self.pick([self.text(), self.text(), "", None]))
        if calls:
            message["tool_calls"] = [
                {"id": call, "type": "function", "function": {"name": name, "arguments": self.arguments()}} for call,
                name in calls]
        if prefix:
            message["prefix"] = True
        elif self.chance(0.02):
            message["prefix"] = self.pick([False, None])
        return message


class MessagesApi(Source):
    api = "messages"

    def body(self):
        body = {"model": "m", "max_tokens": self.pick([1, 64, 4096, 393216, 500000])}
        names = self.tool_names() if self.chance(0.45) else []
        if names:
            body["tools"] = [self.tool(name) for name in names]
        self.with_chance(0.5, body, "system", self.system)
        self.with_chance(0.4, body, "thinking", self.thinking)
        if self.chance(0.35):
            body["output_config"] = {}
            self.with_chance(0.8, body["output_config"], "effort", self.effort)
            self.with_chance(0.3, body["output_config"], "format",
                             lambda: self.pick([{"type": "json_schema", "schema": self.schema()}, None]))
        if self.chance(0.4 if names else 0.02):
            body["tool_choice"] = self.choice(names or NAMES)
            if body["tool_choice"] and body["tool_choice"]["type"] == "tool" and self.chance(0.8):
                body["thinking"] = {"type": "disabled"}
        self.with_chance(0.2, body, "stop_sequences", lambda: self.pick([self.stop(), self.stop(), None]))
        self.sampling(body)
        self.with_chance(0.03, body, "top_k", lambda: self.pick([1, 40, 0, None]))
        self.unknown_fields(body)
        body["messages"] = self.messages(names)
        return body

    def tool(self, name):
        tool = self.function(name, "input_schema", needs_schema=True)
        self.with_chance(0.1, tool, "type", lambda: self.pick(["custom"] * 15 + [None]))
        self.with_chance(0.1, tool, "cache_control", lambda: {"type": "ephemeral"})
        return tool

    def choice(self, names):
        choice = {"type": self.pick(["none", "auto", "any", "tool"])}
        if choice["type"] == "tool":
            choice["name"] = self.pick(names)
        self.with_chance(0.2, choice, "disable_parallel_tool_use", lambda: self.pick([True, False, None]))
        return self.pick([choice] * 12 + [None])

    def text_block(self):
        block = {"type": "text", "text": self.text()}
        self.with_chance(0.1, block, "cache_control", lambda: {"type": "ephemeral"})
        self.with_chance(0.03, block, "citations", lambda: None)
        return block

    def image_block(self):
        if self.chance(0.5):
            return {"type": "image", "source": {"type": "url",
                "url": self.url() if self.chance(0.05) else "https://pics.example/é"}}
        data = self.pick([PNG, "AAAA", "AA==", "AAA="]) if self.chance(0.97) else self.pick(["AB==", "AAA", "AA AA",
            "AA-_", "", "AAB="])
        return {"type": "image", "source": {"type": "base64", "media_type": self.pick(MEDIA_TYPES), "data": data}}

    def block(self, images=True):
        if images and self.chance(0.35):
            return self.image_block()
        if self.chance(0.003):
            return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
        return self.text_block()

    def content(self, images=True):
        if self.chance(0.5):
            return self.text()
        return self.some(lambda: self.block(images), 1, 4)

    def system(self):
        if self.chance(0.4):
            return self.text()
        return self.some(self.text_block, 0 if self.chance(0.1) else 1, 3)

    def messages(self, names):
        messages = []
        for _ in range(self.rng.randint(1, 3)):
            messages += self.turn(names)
        if self.chance(0.7) or not messages:
            messages.append({"role": "user", "content": self.content()})
        return messages

    def turn(self, names):
        turn = []
        if self.chance(0.9):
            turn.append({"role": "user", "content": self.content()})
        if self.chance(0.08):
            turn.append({"role": "system", "content": self.content(images=False)})
        if self.chance(0.3):
            return turn
        ids = self.call_ids() if self.chance(0.6 if names else 0.15) else []
        turn.append(self.assistant([(call, self.call_name(names)) for call in ids]))
        if not ids:
            return turn
        results = [self.result(call) for call in dict.fromkeys(ids)]
        self.rng.shuffle(results)
        if self.chance(0.06) and len(results) > 1:
            turn.append({"role": "user", "content": results[:1]})
            results = results[1:]
        after = self.some(self.block, 1, 2) if self.chance(0.3) else []
        if after and self.chance(0.04):
            results, after = after, results
        turn.append({"role": "user", "content": results + after})
        return turn

    def result(self, call):
        block = {"type": "tool_result", "tool_use_id": call}
        self.with_chance(0.93, block, "content", lambda: self.pick(
            [self.text(), self.some(self.block, 0 if self.chance(0.2) else 1, 3)] * 6 + [None]))
        self.with_chance(0.2, block, "is_error", lambda: self.pick([True, False, None]))
        return block

    def assistant(self, calls):
        if not calls and self.chance(0.4):
            return {"role": "assistant", "content": self.text()}
        blocks = []
        if self.chance(0.5):
            thinking = lambda: {"type": "thinking", "thinking": self.text(), "signature": self.pick(["", "s"])}
            blocks += self.some(thinking, 1, self.pick([1, 2]))
        if not calls or self.chance(0.6):
            blocks += self.some(self.text_block, 1, 3)
        if self.chance(0.02):
            blocks.append({"type": "redacted_thinking", "data": "x"})
        blocks += [{"type": "tool_use", "id": call, "name": name,
                    "input": self.members(self.json_value, 4) if self.chance(0.95) else self.json_value()} for call,
                        name in calls]
        if self.chance(0.05):
            self.rng.shuffle(blocks)
        return {"role": "assistant", "content": blocks}


class Responses(Source):
    api = "responses"

    def body(self):
        body = {"model": "m"}
        names = []
        if self.chance(0.45):
            body["tools"], names = self.tools()
        self.with_chance(0.4, body, "instructions", lambda: self.pick([self.text(), self.text(), None]))
        self.with_chance(0.5, body, "reasoning", self.reasoning_settings)
        if self.chance(0.35 if names else 0.03):
            self.set_choice(body, names or NAMES)
        self.with_chance(0.2, body, "text", self.text_settings)
        self.with_chance(0.12, body, "max_output_tokens", lambda: self.pick([1, 16, 4096, 393216, None] * 4 + [393217]))
        self.sampling(body)
        self.with_chance(0.04, body, "top_logprobs", lambda: self.pick([0, 20, None]))
        self.with_chance(0.05, body, "parallel_tool_calls", lambda: self.pick([True, False, None]))
        self.with_chance(0.02, body, *self.pick([("store", lambda: False), ("truncation", lambda: "disabled"),
            ("background", lambda: False),
                                                 ("include", list), ("store", lambda: True),
                                                 ("truncation", lambda: "auto"),
                                                 ("previous_response_id", lambda: "resp_1"),
                                                 ("include", lambda: ["x"])]))
        self.unknown_fields(body)
        body["input"] = self.text() if self.chance(0.1) else self.items(names)
        if body.get("text") == {"format": {"type": "json_object"}} and self.chance(0.8):
            body["instructions"] = "Use Json."
        return body

    def reasoning_settings(self):
        reasoning = {}
        self.with_chance(0.9, reasoning, "effort", self.effort)
        self.with_chance(0.2, reasoning, "summary", lambda: self.pick(["auto", None]))
        return reasoning

    def set_choice(self, body, names):
        name = self.pick(names)
        named = {"type": "function", "name": name}
        body["tool_choice"] = self.pick(["none", "auto", "required", named, None])
        if body["tool_choice"] in ("required", named) and self.chance(0.8):
            body["reasoning"] = {"effort": "none"}

    def text_settings(self):
        kind = self.rng.randint(0, 5)
        if kind == 0:
            return self.pick([{}, {"format": {"type": "text"}}, {"verbosity": "low"}] * 4 + [{"format": None}])
        if kind < 4:
            return {"format": {"type": "json_object"}}
        form = {"type": "json_schema", "name": self.pick(NAMES), "schema": self.schema()}
        self.with_chance(0.2, form, "strict", lambda: self.pick([False, None]))
        return {"format": form}

    def tools(self):
        names = self.tool_names()
        tools = [dict({"type": "function"}, **self.function(name)) for name in names]
        if self.chance(0.3):
            space = self.pick(["ns", "yard", "a-b"])
            inner = self.tool_names(2)
            group = {"type": "namespace", "name": space, "tools": [dict({"type": "function"},
                **self.function(name)) for name in inner]}
            self.with_chance(0.7, group, "description", self.text)
            tools.insert(self.rng.randint(0, len(tools)), group)
            names = names + [space + "::" + name for name in inner]
        if self.chance(0.01):
            tools.append(self.pick([{"type": "web_search"}, {"type": "custom", "name": "apply_patch"},
                {"type": "file_search"}]))
        return tools, names

    def part(self, kind, images):
        if images and self.chance(0.35):
            image = {"type": "input_image", "image_url": self.url()}
            self.with_chance(0.4, image, "detail", lambda: self.pick(["low", "high", "original", "auto", None]))
            return image
        if self.chance(0.003):
            return self.pick([{"type": "input_file", "file_id": "f"}, {"type": "refusal", "refusal": "no"}])
        part = {"type": kind, "text": self.text()}
        if kind == "output_text":
            self.with_chance(0.5, part, "annotations", list)
        return part

    def message(self, role, kind="input_text", images=True):
        item = {"role": role}
        self.with_chance(0.5, item, "type", lambda: "message")
        self.with_chance(0.2, item, "id", lambda: "msg_1")
        self.with_chance(0.2, item, "status", lambda: "completed")
        item["content"] = self.text() if self.chance(0.5) else self.some(lambda: self.part(kind, images),
            0 if self.chance(0.1) else 1, 3)
        return item

    def items(self, names):
        items = []
        if self.chance(0.3):
            items.append(self.message(self.pick(["system", "developer"]), images=self.chance(0.1)))
        for _ in range(self.rng.randint(1, 3)):
            items += self.turn(names)
        if self.chance(0.7) or not items:
            items.append(self.message("user"))
        if self.chance(0.004):
            items.insert(self.rng.randint(0, len(items)), self.pick([{"type": "web_search_call", "id": "w"},
                {"type": "item_reference", "id": "i"}]))
        return items

    def turn(self, names):
        turn = []
        if self.chance(0.9):
            turn += self.some(lambda: self.message("user"), 1, self.pick([1, 1, 2]))
        if self.chance(0.08):
            turn.append(self.message(self.pick(["system", "developer"]), images=False))
        if self.chance(0.3):
            return turn
        if self.chance(0.5):
            turn += self.some(self.reasoning, 1, self.pick([1, 1, 2]))
        ids = self.call_ids() if self.chance(0.6 if names else 0.15) else []
        answers = self.some(lambda: self.message("assistant", self.pick(["output_text"] * 9 + ["input_text"]),
            images=False), 0 if ids else 1, 2)
        calls = [self.call(call, names) for call in ids]
        if self.chance(0.1):
            answers += calls
            self.rng.shuffle(answers)
            turn += answers
        else:
            turn += answers + calls
        results = [self.result(call) for call in dict.fromkeys(ids)]
        self.rng.shuffle(results)
        return turn + results

    def reasoning(self):
        item = {"type": "reasoning", "id": "rs_1", "summary": self.pick([[], [{"type": "summary_text", "text": "s"}]])}
        self.with_chance(0.9, item, "content", lambda: self.pick(
            [self.some(lambda: {"type": "reasoning_text", "text": self.text()}, 0, 2)] * 9 + [None]))
        self.with_chance(0.1, item, "encrypted_content", lambda: self.pick([None, "x"]))
        return item

    def call(self, call_id, names):
        name = self.call_name(names)
        item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": self.arguments()}
        if "::" in name and self.chance(0.8):
            item["namespace"], item["name"] = name.split("::", 1)
        self.with_chance(0.3, item, "id", lambda: "fc_1")
        self.with_chance(0.3, item, "status", lambda: "completed")
        return item

    def result(self, call_id):
        output = self.text() if self.chance(0.6) else self.some(lambda: self.part("input_text", True),
            0 if self.chance(0.1) else 1, 3)
        return {"type": "function_call_output", "call_id": call_id, "output": output}


CONVERSATIONS = {"chat": Chat, "messages": MessagesApi, "responses": Responses}


def conversation(api, rng):
    """A body: half of them as made, the others with something wrong or odd."""
    source = CONVERSATIONS[api](rng)
    body = source.body()
    if rng.random() < 0.4:
        for _ in range(1 if rng.random() < 0.8 else 2):
            body = mutated(source, body)
    return body
