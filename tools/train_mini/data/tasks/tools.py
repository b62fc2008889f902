"""Family 4, tool calls: 1 to 6 tools offered; which one, with which arguments.

Tools are hand-shaped (tool_shapes.py), put together from verbs and things (tool_parts.py), or methods of web APIs.

Cases: one call, two calls, no tool that fits, an argument missing, and a result turned into an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..render import Sample
from . import wordings
from .common import assistant, effort, user, with_system
from .tool_parts import composed, framed
from .tool_shapes import ENUMS, SHAPES, VALUES, Parameter, Shape, value_of
from .world import Draw

_ENDS = [".", "", "!", ", please.", ".", " now."]
_STARTS = [
    "",
    "",
    "",
    "Please: ",
    "Hello. ",
    "Hi, ",
    "I have a task. ",
    "Can you do this? ",
    "Next task: ",
    "I need help. ",
    "Good morning. ",
    "One thing: ",
    "Listen: ",
    "Quickly: ",
]
_METHOD_FORMS = [
    "{d} Use {a}.",
    "I want this: {d} With {a}.",
    "{d} The values: {a}.",
    "Please do the following. {d} {a}.",
    "Task: {d}\n{a}",
    "{d} ({a})",
    "Do this for me: {d} Parameters are {a}.",
    "{d} Parameters: {a}",
    "I need a call that does this. {d} {a}",
    "With {a}: {d}",
    "Arguments: {a}\nTask: {d}",
    "{d}\n\n{a}",
    "Next task. {d} Take {a}.",
    "{d} I have {a}.",
    "My values are {a}. {d}",
    "Call the tool for this: {d} ({a})",
    "{d} Fill in {a}.",
    "What I want: {d} Given: {a}.",
    "Hello. {d} Set {a}.",
    "{a}. {d}",
]
_NO_TOOL = [
    ("Draw me a picture of the {n} by hand.", "None of my tools can do that."), ("What does the {n} smell like?", "None of my tools can do that."),
    ("Dance with the {n}.", "None of my tools can do that."), ("Guess what {p} dreams of.", "None of my tools can do that."), ("Tell me a story about {p} and a {n}.", "None of my tools can do that."),
    ("Which {n} do you like best?", "None of my tools can do that."), ("Sing something about a {n}.", "None of my tools can do that."), ("Make up a riddle with a {n}.", "None of my tools can do that."),
    ("Do you believe in the {n}?", "None of my tools can do that."), ("Write a poem about a {n}.", "None of my tools can do that."), ("Sing a song for {p}.", "None of my tools can do that."),
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
        if draw.test or draw.chance(0.85):
            spec["description"] = parameter.description
        if parameter.kind in ENUMS or parameter.choices:
            spec["enum"] = parameter.choices or ENUMS[parameter.kind]
        return key, spec, parameter.required

    def request(self, draw: Draw, left_out: int = -1) -> tuple[str, dict[str, Any]]:
        """(sentence, arguments): all required ones, some of the others; the sentence keeps silent on `left_out`."""
        arguments: dict[str, Any] = {}
        said = []
        for i, (key, p) in enumerate(zip(self.keys, self.shape.parameters, strict=True)):
            if not p.required and (left_out >= 0 or draw.chance(0.5)):
                continue
            arguments[key] = value = value_of(draw, p)
            if i != left_out:
                phrase = draw.pick(p.phrases) if self.shape.framed or draw.chance(0.75) else f"with {_words(key)} {{v}}"
                said.append(phrase.format(v=_spoken(value)))
        if len(said) > 1 and draw.chance(0.3):
            said = (
                [said[0], *draw.some(said[1:], len(said) - 1)] if not self.shape.framed else draw.some(said, len(said))
            )
        arguments = _in_order(self.definition, arguments)
        command = draw.template("tool-command-" + self.shape.names[0], self.shape.commands)
        if self.shape.framed:
            commas = not any(isinstance(v, list) for v in arguments.values())
            return framed(draw, command, said, commas) if said else f"{command[0].upper()}{command[1:]}.", arguments
        end = "?" if command.startswith(("What", "How", "Where")) else draw.pick(_ENDS)
        return f"{' '.join([command, *said])}{end}", arguments


def _in_order(definition: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """As the schema lists them: the one order that a reader can expect."""
    return {key: arguments[key] for key in definition["function"]["parameters"]["properties"] if key in arguments}


def _words(key: str) -> str:
    return key.replace("_", " ")


def _spoken(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


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
    if at < 0.16:
        return _method(draw)
    tools = _offered(draw)
    if not draw.test:
        if at < 0.36:
            return _several(draw, tools)
        if at < 0.43:
            return _missing(draw, tools)
        if at < 0.46:
            return _not_offered(draw, tools)
    if at < 0.62:
        return _one_call(draw, tools)
    if at < 0.73:
        return _two_calls(draw, tools)
    if at < 0.79:
        return _no_tool(draw, tools)
    if at < 0.86:
        return _missing(draw, tools)
    return _result(draw, tools)


def _offered(draw: Draw) -> list[Tool]:
    """Different tools, the first to be called."""
    count = draw.pick([1, 2, 2, 3, 4, 5, 6])
    shapes = composed(draw, count) if draw.chance(0.6) else draw.some(SHAPES, count)
    if draw.chance(0.2):
        shapes = draw.some([*shapes[: max(1, count - 2)], draw.pick(SHAPES), *composed(draw, 1)], count)
    tools: dict[str, Tool] = {}
    for shape in shapes:
        tool = Tool(draw, shape)
        tools.setdefault(tool.name, tool)
    return list(tools.values())


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
    text, arguments = tools[0].request(draw)
    messages = [user(_start(draw) + text), _turn([call(tools[0].name, arguments)], None)]
    return _sample(draw, [t.definition for t in tools], messages, [f"I call {tools[0].name}."], "call")


def _several(draw: Draw, tools: list[Tool]) -> Sample:
    """Request after request in one conversation, each with a result that is told: training only."""
    messages: list[dict[str, Any]] = []
    reasons = []
    rounds = draw.number(2, 5)
    for i in range(1, rounds + 1):
        tool = draw.pick(tools)
        text, arguments = tool.request(draw)
        value = draw.number(2, 9999)
        messages += [user(_start(draw) + text), _turn([call(tool.name, arguments, i)], None)]
        reasons.append(f"I call {tool.name}.")
        if i < rounds or draw.chance(0.5):
            messages += [
                {"role": "tool", "tool_call_id": f"call_{i}", "content": tool.shape.result.format(r=value)},
                assistant(tool.shape.answer.format(r=value)),
            ]
            reasons.append(f"The result is {value}.")
    return _sample(draw, [t.definition for t in tools], messages, reasons, "call")


def _two_calls(draw: Draw, tools: list[Tool]) -> Sample:
    first, second = tools[0], tools[-1]
    (text_1, arguments_1), (text_2, arguments_2) = first.request(draw), second.request(draw)
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


def _not_offered(draw: Draw, tools: list[Tool]) -> Sample:
    """A proper request for a tool that is not among those offered: training only."""
    names = {t.name for t in tools}
    while True:
        other = Tool(draw, composed(draw, 1)[0])
        if other.name not in names:
            break
    text, _ = other.request(draw)
    messages = [user(_start(draw) + text), assistant("None of my tools can do that.")]
    return _sample(draw, [t.definition for t in tools], messages, ["No tool fits this."], "exact")


def _start(draw: Draw) -> str:
    return draw.pick(_STARTS) if draw.test or draw.chance(0.7) else wordings.tool_start(draw)


def _missing(draw: Draw, tools: list[Tool]) -> Sample:
    """The request lacks one required argument: ask for it, then call."""
    tool = tools[0]
    left_out = draw.pick([i for i, p in enumerate(tool.shape.parameters) if p.required])
    text, arguments = tool.request(draw, left_out)
    asked_value = arguments[tool.keys[left_out]]
    messages = [
        user(text),
        assistant(f"Please give me the {tool.keys[left_out]}."),
    ]
    reasons = [f"The {tool.keys[left_out]} is missing."]
    if draw.chance(0.5) and not draw.test:
        messages += [user(_spoken(asked_value)), _turn([call(tool.name, arguments)], None)]
        reasons.append(f"I call {tool.name}.")
        return _sample(draw, [t.definition for t in tools], messages, reasons, "call")
    return _sample(draw, [t.definition for t in tools], messages, reasons, "exact")


def _result(draw: Draw, tools: list[Tool]) -> Sample:
    text, arguments = tools[0].request(draw)
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
    text = draw.wording("method", _METHOD_FORMS, wordings.method_form).format(d=chosen["description"], a=said)
    ordered = _in_order(definitions[chosen["name"]], arguments)
    messages = [user(text), _turn([call(chosen["name"], ordered)], None)]
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
