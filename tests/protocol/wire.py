"""What a client sees: stream events and bodies of the three APIs reduced to one comparable form.

`View` holds reasoning, text and calls in their order, with indices and finish reasons; free of ids, times, usage, pings,
signatures, empty thinking blocks and the cutting of deltas. `fold` makes one from stream events, `of_body` from a body.
"""

import dataclasses
import json


@dataclasses.dataclass
class View:
    blocks: list = dataclasses.field(default_factory=list)  # ["reasoning"|"text", str] or ["call", name, arguments]
    finish: object = None
    open: object = None

    def add(self, kind, text):
        if not text:
            return
        if not self.blocks or self.blocks[-1][0] != kind:
            self.blocks.append([kind, ""])
        self.blocks[-1][1] += text

    def call(self, name):
        self.blocks.append(["call", name, ""])

    def without_blanks(self):
        """JSON mode: text counts without blanks at its ends."""
        blocks = [[b[0], b[1].strip()] if b[0] == "text" else b for b in self.blocks]
        return [b for b in blocks if b[0] != "text" or b[1]]

    def released(self, kind):
        return sum(len(b[1]) for b in self.blocks if b[0] == kind)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class ChatFold:
    def __init__(self):
        self.view = View()
        self.role_seen = False

    def push(self, event):
        check(event["object"] == "chat.completion.chunk", event)
        for choice in event["choices"]:
            delta = choice["delta"]
            if "role" in delta:
                check(not self.role_seen, "role twice")
                self.role_seen = True
            check(self.role_seen, "delta before the role")
            self.view.add("reasoning", delta.get("reasoning_content") or "")
            self.view.add("text", delta.get("content") or "")
            for call in delta.get("tool_calls", []):
                n_calls = sum(b[0] == "call" for b in self.view.blocks)
                if "id" in call:
                    check(call["index"] == n_calls, "call index")
                    self.view.call(call["function"]["name"])
                else:
                    check(call["index"] == n_calls - 1, "call index")
                self.view.blocks[-1][2] += call["function"].get("arguments", "")
            if choice["finish_reason"]:
                check(self.view.finish is None, "finish twice")
                self.view.finish = choice["finish_reason"]


class MessagesFold:
    def __init__(self):
        self.view = View()
        self.n_blocks = 0
        self.open = None
        self.empty = 0  # thinking blocks without text do not count

    def push(self, event):
        kind = event["type"]
        if kind == "content_block_start":
            check(self.open is None, "block inside a block")
            check(event["index"] == self.n_blocks, "block index")
            self.n_blocks += 1
            block = event["content_block"]
            self.open = block["type"]
            if self.open == "tool_use":
                check(block["input"] == {}, "tool input starts empty")
                self.view.call(block["name"])
        elif kind == "content_block_delta":
            check(event["index"] == self.n_blocks - 1, "delta of a closed block")
            delta = event["delta"]
            expected = {"thinking": ("thinking_delta", "signature_delta"), "text": ("text_delta",),
                        "tool_use": ("input_json_delta",)}[self.open]
            check(delta["type"] in expected, f"{delta['type']} in a {self.open} block")
            self.view.add("reasoning", delta.get("thinking", ""))
            self.view.add("text", delta.get("text", ""))
            if delta["type"] == "input_json_delta":
                self.view.blocks[-1][2] += delta["partial_json"]
        elif kind == "content_block_stop":
            check(self.open is not None and event["index"] == self.n_blocks - 1, "stop without block")
            self.open = None
        elif kind == "message_delta":
            check(self.open is None, "message_delta inside a block")
            self.view.finish = [event["delta"]["stop_reason"], event["delta"]["stop_sequence"]]


class ResponsesFold:
    def __init__(self):
        self.view = View()
        self.sequence = 0
        self.n_items = 0
        self.body = None

    def push(self, event):
        check(event["sequence_number"] == self.sequence, "sequence_number")
        self.sequence += 1
        kind = event["type"]
        if kind == "response.output_item.added":
            check(event["output_index"] == self.n_items, "output_index")
            self.n_items += 1
            if event["item"]["type"] == "function_call":
                item = event["item"]
                self.view.call((item.get("namespace") + "::" if item.get("namespace") else "") + item["name"])
        elif "output_index" in event:
            check(event["output_index"] == self.n_items - 1, "output_index of a closed item")
        if kind == "response.reasoning_text.delta":
            self.view.add("reasoning", event["delta"])
        elif kind == "response.output_text.delta":
            self.view.add("text", event["delta"])
        elif kind == "response.function_call_arguments.delta":
            self.view.blocks[-1][2] += event["delta"]
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            check(self.body is None, "two ends")
            self.body = event["response"]
            self.view.finish = _responses_finish(self.body)


def _responses_finish(body):
    return [body["status"], (body.get("incomplete_details") or {}).get("reason")]


FOLDS = {"chat": ChatFold, "messages": MessagesFold, "responses": ResponsesFold}


def fold(api, groups):
    folder = FOLDS[api]()
    for group in groups:
        for event in group:
            folder.push(event)
    return folder.view


def of_body(api, body):
    view = View()
    if api == "chat":
        (choice,) = body["choices"]
        message = choice["message"]
        view.add("reasoning", message.get("reasoning_content") or "")
        view.add("text", message.get("content") or "")
        for call in message.get("tool_calls") or []:
            view.call(call["function"]["name"])
            view.blocks[-1][2] = call["function"]["arguments"]
        view.finish = choice["finish_reason"]
    elif api == "messages":
        for block in body["content"]:
            if block["type"] == "tool_use":
                view.call(block["name"])
                view.blocks[-1][2] = block["input"]
            else:
                view.add({"thinking": "reasoning", "text": "text"}[block["type"]],
                         block.get("thinking", "") + block.get("text", ""))
        view.finish = [body["stop_reason"], body["stop_sequence"]]
    else:
        for item in body["output"]:
            if item["type"] == "function_call":
                view.call((item.get("namespace") + "::" if item.get("namespace") else "") + item["name"])
                view.blocks[-1][2] = item["arguments"]
            else:
                for part in item["content"]:
                    view.add("reasoning" if item["type"] == "reasoning" else "text", part["text"])
        view.finish = _responses_finish(body)
    return view


def same_blocks(a, b):
    """Arguments of a Messages body are an object; a stream's text of it must mean the same."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if x[0] == "call" and y[0] == "call":
            if x[1] != y[1] or _arguments(x[2], y[2]):
                return False
        elif x != y:
            return False
    return True


def _arguments(x, y):
    """True when they differ."""
    if isinstance(x, str) == isinstance(y, str):
        return x != y
    text, parsed = (x, y) if isinstance(x, str) else (y, x)
    try:
        value = json.loads(text)
    except ValueError:
        value = {}
    return (value if isinstance(value, dict) else {}) != parsed
