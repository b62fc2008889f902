"""Family 4, tool calls: 1 to 6 tools offered, hand-shaped ones or methods of web APIs; which one, with which arguments.

Cases: one call, two calls, no tool that fits, an argument missing, and a result turned into an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..render import Sample
from .common import assistant, effort, user, with_system
from .tool_shapes import ENUMS, SHAPES, VALUES, Parameter, Shape
from .world import Draw

_ENDS = [".", "", "!", ", please.", ".", " now."]
_STARTS = ["", "", "", "Please: ", "Hello. ", "Hi, ", "I have a task. ", "Can you do this? "]
_METHOD_FORMS = [
    "{d} Use {a}.",
    "I want this: {d} With {a}.",
    "{d} The values: {a}.",
    "Please do the following. {d} {a}.",
    "Task: {d}\n{a}",
    "{d} ({a})",
    "Do this for me: {d} Parameters are {a}.",
]
_NO_TOOL = [
    ("What is {a} + {b}?", "I have no tool for that, but {a} + {b} = {c}."), ("Write a poem about a {n}.", "None of my tools can do that."), ("Sing a song for {p}.", "None of my tools can do that."),
    ("How do you feel about the {n}?", "None of my tools can do that."), ("Paint the {n} for {p}.", "None of my tools can do that."), ("Tell me a joke about a {n}.", "None of my tools can do that."),
]  # fmt: skip
_THANKS = ["Thank you!", "Thanks.", "Great, thanks.", "Thank you very much."]


class Tool:
    """A tool with its names chosen: `definition` is what the request offers."""

    def __init__(self, draw: Draw, shape: Shape) -> None:
        self.shape = shape
        self.name = draw.template("tool-name-" + shape.names[0], shape.names)
        self.keys = [draw.template(f"parameter-{p.names[0]}", p.names) for p in shape.parameters]
        if len(set(self.keys)) < len(self.keys):
            self.keys = [
                p.names[0] + ("_2" if p.names[0] in [q.names[0] for q in shape.parameters[:i]] else "")
                for i, p in enumerate(shape.parameters)
            ]
        self.definition = definition(
            draw,
            self.name,
            shape.description,
            [self._schema(draw, key, p) for key, p in zip(self.keys, shape.parameters, strict=True)],
        )

    def _schema(self, draw: Draw, key: str, parameter: Parameter) -> tuple[str, dict[str, Any], bool]:
        spec: dict[str, Any] = {"type": VALUES[parameter.kind][0]}
        if spec["type"] == "array":
            spec["items"] = {"type": "string"}
        if draw.chance(0.75):
            spec["description"] = parameter.description
        if parameter.kind in ENUMS:
            spec["enum"] = ENUMS[parameter.kind]
        return key, spec, parameter.required

    def request(self, draw: Draw) -> tuple[str, dict[str, Any], str | None]:
        """(sentence, arguments, name of a required parameter that it could leave out)."""
        arguments: dict[str, Any] = {}
        said = []
        for key, p in zip(self.keys, self.shape.parameters, strict=True):
            if p.required or draw.chance(0.5):
                value = VALUES[p.kind][1](draw)
                arguments[key] = value
                spoken = (
                    ", ".join(value)
                    if isinstance(value, list)
                    else {True: "yes", False: "no"}[value]
                    if isinstance(value, bool)
                    else value
                )
                said.append((p.required, draw.pick(p.phrases).format(v=spoken)))
        if len(said) > 1 and draw.chance(0.3):
            said = [said[0], *draw.some(said[1:], len(said) - 1)]
        command = draw.template("tool-command-" + self.shape.names[0], self.shape.commands)
        question = command.startswith(("What", "How", "Where"))
        end = "?" if question else draw.pick(_ENDS)
        return f"{command} {' '.join(s for _, s in said)}{end}", arguments, None


def definition(
    draw: Draw, name: str, description: str, parameters: list[tuple[str, dict[str, Any], bool]]
) -> dict[str, Any]:
    if draw.chance(0.3):
        parameters = draw.some(parameters, len(parameters))
    schema: dict[str, Any] = {"type": "object", "properties": {key: spec for key, spec, _ in parameters}}
    schema["required"] = [key for key, _, required in parameters if required]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def make(draw: Draw) -> Sample:
    at = draw.rng.random()
    if at < 0.22:
        return _method(draw)
    tools = [Tool(draw, shape) for shape in draw.some(SHAPES, draw.pick([1, 2, 2, 3, 4, 5, 6]))]
    if at < 0.58:
        return _one_call(draw, tools)
    if at < 0.70:
        return _two_calls(draw, tools)
    if at < 0.78:
        return _no_tool(draw, tools)
    if at < 0.86:
        return _missing(draw, tools)
    return _result(draw, tools)


def call(name: str, arguments: dict[str, Any], number: int = 1) -> dict[str, Any]:
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def _turn(calls: list[dict[str, Any]], reasoning: str | None) -> dict[str, Any]:
    return {**assistant("", reasoning), "tool_calls": calls}


def _sample(
    draw: Draw, definitions: list[dict[str, Any]], messages: list[dict[str, Any]], reasons: list[str], check: str
) -> Sample:
    """Thinking a third of the time; then every assistant turn has its reasoning written."""
    thinking = effort(draw) if draw.chance(0.3) else None
    if thinking is not None:
        turns = [m for m in messages if m["role"] == "assistant"]
        for message, reason in zip(turns, reasons, strict=True):
            message["reasoning_content"] = reason
    return Sample(
        with_system(draw, messages, 0.3), thinking=thinking, tools=draw.some(definitions, len(definitions)), check=check
    )


def _one_call(draw: Draw, tools: list[Tool]) -> Sample:
    text, arguments, _ = tools[0].request(draw)
    messages = [user(draw.pick(_STARTS) + text), _turn([call(tools[0].name, arguments)], None)]
    return _sample(draw, [t.definition for t in tools], messages, [f"I call {tools[0].name}."], "call")


def _two_calls(draw: Draw, tools: list[Tool]) -> Sample:
    first, second = tools[0], tools[-1]
    (text_1, arguments_1, _), (text_2, arguments_2, _) = first.request(draw), second.request(draw)
    calls = [call(first.name, arguments_1), call(second.name, arguments_2, 2)]
    text = f"{text_1} {draw.pick(['And also: ', 'Then: ', 'Second: ', ''])}{text_2}"
    return _sample(
        draw,
        [t.definition for t in tools],
        [user(text), _turn(calls, None)],
        [f"Two calls are needed: {first.name} and {second.name}."],
        "call",
    )


def _no_tool(draw: Draw, tools: list[Tool]) -> Sample:
    a, b = draw.number(1, 9), draw.number(1, 9)
    question, answer = draw.template("no-tool", _NO_TOOL)
    words = {"a": a, "b": b, "c": a + b, "n": draw.entity("goods"), "p": draw.entity("first_names")}
    return _sample(
        draw,
        [t.definition for t in tools],
        [user(question.format(**words)), assistant(answer.format(**words))],
        ["No tool fits this."],
        "exact",
    )


def _missing(draw: Draw, tools: list[Tool]) -> Sample:
    """The request lacks one required argument: ask for it, then call."""
    tool = tools[0]
    required = [i for i, p in enumerate(tool.shape.parameters) if p.required]
    left_out = draw.pick(required)
    parameters = tool.shape.parameters
    arguments, said, asked_value = {}, [], None
    for i, (key, p) in enumerate(zip(tool.keys, parameters, strict=True)):
        if p.required:
            arguments[key] = value = VALUES[p.kind][1](draw)
            if i == left_out:
                asked_value = value
            else:
                said.append(draw.pick(p.phrases).format(v=value))
    command = draw.template("tool-command-" + tool.shape.names[0], tool.shape.commands)
    messages = [
        user(f"{' '.join([command, *said])}{'?' if command.startswith(('What', 'How', 'Where')) else '.'}"),
        assistant(f"Please give me the {tool.keys[left_out]}."),
    ]
    reasons = [f"The {tool.keys[left_out]} is missing."]
    if draw.chance(0.5) and not draw.test and asked_value is not None:
        messages += [user(str(asked_value)), _turn([call(tool.name, arguments)], None)]
        reasons.append(f"I call {tool.name}.")
        return _sample(draw, [t.definition for t in tools], messages, reasons, "call")
    return _sample(draw, [t.definition for t in tools], messages, reasons, "exact")


def _result(draw: Draw, tools: list[Tool]) -> Sample:
    text, arguments, _ = tools[0].request(draw)
    value = draw.number(2, 9999)
    answer = tools[0].shape.answer.format(r=value)
    messages = [
        user(text), _turn([call(tools[0].name, arguments)], None),
        {"role": "tool", "tool_call_id": "call_1", "content": tools[0].shape.result.format(r=value)}, assistant(answer),
    ]  # fmt: skip
    reasons = [f"I call {tools[0].name}.", f"The result is {value}."]
    if draw.chance(0.25) and not draw.test:
        messages += [user(draw.pick(_THANKS)), assistant("You are welcome.")]
        reasons.append("Nothing more to do.")
    return _sample(draw, [t.definition for t in tools], messages, reasons, "exact")


def _method(draw: Draw) -> Sample:
    """A method of a web API among others; the request names its purpose and its arguments."""
    methods = [draw.entity("methods") for _ in range(draw.pick([1, 2, 3, 4]))]
    chosen = methods[0]
    definitions = {
        m["name"]: definition(
            draw,
            m["name"],
            m["description"],
            [(k, _method_schema(p), p["required"]) for k, p in m["parameters"].items()],
        )
        for m in methods
    }
    arguments: dict[str, Any] = {}
    for key, p in chosen["parameters"].items():
        if p["required"] or draw.chance(0.4) or not arguments:
            arguments[key] = _method_value(draw, p)
    said = ", ".join(
        draw.pick(["{k} {v}", "{k}: {v}", "{k} = {v}"]).format(k=k, v=str(v).lower() if isinstance(v, bool) else v)
        for k, v in arguments.items()
    )
    text = draw.template("method", _METHOD_FORMS).format(d=chosen["description"], a=said)
    messages = [user(text), _turn([call(chosen["name"], arguments)], None)]
    return _sample(draw, list(definitions.values()), messages, [f"I call {chosen['name']}."], "call")


def _method_schema(parameter: dict[str, Any]) -> dict[str, Any]:
    return {key: parameter[key] for key in ("type", "description", "enum") if parameter.get(key)}


def _method_value(draw: Draw, parameter: dict[str, Any]) -> Any:
    if "enum" in parameter:
        return draw.pick(parameter["enum"])
    if parameter["type"] == "integer":
        return draw.number(1, 999)
    if parameter["type"] == "number":
        return draw.number(1, 99) + 0.5
    if parameter["type"] == "boolean":
        return draw.chance(0.5)
    kinds: list[Callable[[Draw], str]] = [
        Draw.word_code, lambda d: f"{d.entity('nouns')}s/{d.entity('nouns')}", lambda d: d.digits(5),
        lambda d: d.entity("nouns"), lambda d: d.hex(8),
    ]  # fmt: skip
    return draw.pick(kinds)(draw)
