"""Random requests and model outputs through `deepinfer render` and `parse` and through the model authors' own package.

Whatever differs fails, but for KNOWN: where this project decides otherwise. A failure names each kind of difference once,
with its smallest example. Case i of a seed is always the same one, however many there are.

DEEPINFER_DIFFERENTIAL_CASES: how many requests, and as many outputs (600). DEEPINFER_DIFFERENTIAL_SEED: 1.
"""

import base64
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import os
import random
import re
import zlib

import pytest
import wire
from lines import APIS, answers
from generator import conversation
from json_values import dumps, smaller, spell_plainly
from outputs import answered
from recipe import Recipe
from tokenizers import Tokenizer

N_CASES = int(os.environ.get("DEEPINFER_DIFFERENTIAL_CASES", "600"))
SEED = os.environ.get("DEEPINFER_DIFFERENTIAL_SEED", "1")
N_LONG = 20_000  # from here on it is said which known differences did not occur
BATCH = 1000
KNOWN_SHARE_MAX = 0.15
CUT_OTHERWISE = " cut otherwise"  # ends the name of a case whose chunks the package did not get


@dataclasses.dataclass
class Case:
    name: str
    api: str
    value: object  # a body; of outputs {"request", "chunks" or "ids", "finish"}
    body: dict = None  # the request as a JSON reader sees it, {} when it is no object
    text: str = ""  # the output
    theirs: dict = None
    ours: dict = None
    fault: tuple = None  # (kind, what is here, what is there)

    @property
    def crashed(self):
        return "crash" in self.ours

    @property
    def is_refused_here(self):
        return "error" in self.ours

    @property
    def is_refused_there(self):
        return "refused" in self.theirs

    @property
    def param(self):
        """What is refused here."""
        return (self.ours["error"].get("param") or "") if self.is_refused_here else ""


# --- where this project decides otherwise ---


def objects(value):
    """All objects of a body."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from objects(item)


def dict_at(body, key):
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def effort_of(case):
    if case.api == "chat":
        return case.body.get("reasoning_effort")
    return dict_at(case.body, "reasoning" if case.api == "responses" else "output_config").get("effort")


def is_effort_number(case):
    return case.is_refused_there and type(effort_of(case)) is int and 1 <= effort_of(case) <= 100


def has_developer(case):
    return (
        case.api == "chat" and case.is_refused_there and any(o.get("role") == "developer" for o in objects(case.body))
    )


def wants_several_choices(case):
    return case.api == "chat" and case.is_refused_there and type(case.body.get("n")) is int and case.body["n"] > 1


def wants_call_in_thinking(case):
    return case.is_refused_there and "Thinking mode does not support this tool_choice" in case.theirs["refused"]


def has_other_model(case):
    return case.is_refused_there and case.body.get("model") != "m" and isinstance(case.body.get("model"), str)


def has_many_stops(case):
    stops = case.body.get("stop_sequences" if case.api == "messages" else "stop")
    return case.is_refused_there and isinstance(stops, list) and 16 < len(stops) <= 64


def value_at(body, path):
    """What stands at a path such as messages[0].content."""
    for key in re.findall(r"[^.\[\]]+", path):
        if isinstance(body, list):
            body = body[int(key)]
        else:
            body = body.get(key) if isinstance(body, dict) else None
    return body


def has_unsupported_kind(case):
    if not case.is_refused_here or case.is_refused_there:
        return False
    value = value_at(case.body, case.param)
    return isinstance(value, str) if case.param.endswith(".type") else dict_at({"": value}, "").get("type") == "custom"


def has_choice_without_tools(case):
    return case.param == "tool_choice" and not case.is_refused_there and not case.body.get("tools")


def wants_any_call(case):
    is_any = case.api == "messages" and dict_at(case.body, "tool_choice").get("type") == "any"
    return is_any and case.fault[0] in ("text", "parse", "constraint")


def is_strict(case):
    return not case.is_refused_here and any(o.get("strict") is True for o in objects(case.body))


def defers_loading(case):
    return case.param.endswith("defer_loading") and any(o.get("defer_loading") is True for o in objects(case.body))


def has_refused_field(case):
    return not case.is_refused_there and case.param.rsplit(".", 1)[-1] in (
        "encrypted_content",
        "store",
        "truncation",
        "background",
        "include",
        "previous_response_id",
        "conversation",
        "prompt",
        "audio",
        "modalities",
        "prediction",
        "functions",
        "function_call",
        "web_search_options",
        "mcp_servers",
        "container",
        "output_format",
    )


def is_first_prefix(case):
    messages = case.body.get("messages") if case.api == "chat" else None
    if not isinstance(messages, list) or case.fault[0] not in ("text", "parts", "token_ids", "parse"):
        return False
    shown = [m for m in messages if m.get("role") != "system" or m.get("content") not in ("", [])]
    return len(shown) == 1 and bool(shown[0].get("prefix")) and bool(shown[0].get("reasoning_content"))


def message_here(case):
    return case.ours["error"]["message"] if case.is_refused_here else ""


def names_custom_type(case):
    return case.is_refused_there and case.api == "messages" and "server tools" in case.theirs["refused"]


def has_output_format(case):
    is_read = case.fault[0] in ("text", "parts", "constraint") or case.param.startswith("output_config.format")
    return case.api == "messages" and is_read and dict_at(case.body, "output_config").get("format") is not None


def has_completion_limit(case):
    is_read = case.fault[0] == "max_tokens" or case.param == "max_completion_tokens"
    return case.api == "chat" and is_read and case.body.get("max_completion_tokens") is not None


def has_null_for_absent(case):
    return case.is_refused_there and ": null, expected" in case.theirs["refused"]


def has_odd_image_url(case):
    return not case.is_refused_there and "image" in message_here(case) and "http" in str(value_at(case.body, case.param))


def has_wrong_type_of_ignored_field(case):
    is_ignored = re.fullmatch(r"metadata|user|messages\[\d+\]\.name|top_k|min_p|parallel_tool_calls|.*\.strict|.*defer_loading|input\[\d+\]\.content\[\d+\]\.type", case.param)
    return not case.is_refused_there and is_ignored is not None


def has_bad_tools_with_choice_none(case):
    choice = case.body.get("tool_choice")
    is_none = choice == "none" or (isinstance(choice, dict) and choice.get("type") == "none")
    return not case.is_refused_there and is_none and case.param.startswith("tools")


def gives_a_field_twice(case):
    return not case.is_refused_there and "given twice" in message_here(case)


def has_loose_base64(case):
    return not case.is_refused_there and case.param.endswith("source.data")


def has_bad_pattern(case):
    return case.is_refused_there and 'is not a "regex"' in case.theirs["refused"]


def has_billing_line_in_chat(case):
    is_text = case.api == "chat" and case.fault[0] in ("text", "parts", "token_ids")
    return is_text and "x-anthropic-billing-header" in json.dumps(case.body.get("messages"))


def has_input_that_is_no_object(case):
    inputs = [o.get("input") for o in objects(case.body) if o.get("type") == "tool_use"]
    return case.api == "messages" and case.fault[0] == "text" and any(not isinstance(value, dict) for value in inputs)


def is_first_empty_prefix(case):
    messages = case.body.get("messages") if case.api == "chat" else None
    if case.fault[0] != "parse" or not isinstance(messages, list):
        return False
    shown = [m for m in messages if m.get("role") != "system" or m.get("content") not in ("", [])]
    return len(shown) == 1 and bool(shown[0].get("prefix"))


RENDER_RULES = {
    "effort is a number": (is_effort_number, "1 to 100 is the scale the model was trained on"),
    "role developer in chat": (has_developer, "means system"),
    "n above 1": (wants_several_choices, "several choices are generated"),
    "required call in thinking mode": (wants_call_in_thinking, "a grammar enforces it after the reasoning"),
    "Messages' any": (wants_any_call, "requires a call; to the package it means auto"),
    "choice without tools": (has_choice_without_tools, "no call can be made"),
    "any model name": (has_other_model, "the loaded model answers"),
    "17 to 64 stop strings": (has_many_stops, "the limit is ours"),
    "unsupported kind": (has_unsupported_kind, "refused by name where the package drops or replaces it"),
    "strict": (is_strict, "schemas are not rewritten"),
    "defer_loading": (defers_loading, "every tool is in the prompt"),
    "refused field": (has_refused_field, "not honoured, so refused"),
    "custom tool of Messages": (names_custom_type, "the API's own word for a tool of the client"),
    "output_config.format": (has_output_format, "honoured; the package ignores it"),
    "max_completion_tokens": (has_completion_limit, "honoured; the package ignores it"),
    "null": (has_null_for_absent, "counts as absent"),
    "image URL": (has_odd_image_url, "more than its first letters is checked"),
    "ignored field": (has_wrong_type_of_ignored_field, "a wrong type is refused anywhere"),
    "tools with choice none": (has_bad_tools_with_choice_none, "checked all the same"),
    "field given twice": (gives_a_field_twice, "nobody knows which was meant"),
    "base64 without its padding": (has_loose_base64, "data is handed on as it is"),
    "pattern": (has_bad_pattern, "read by the grammar, not by the request reader"),
    "billing line in chat": (has_billing_line_in_chat, "dropped in Messages only, where clients put it"),
    "input that is no object": (has_input_that_is_no_object, "a small number is spelt as in the rest of the prompt"),
    "start of a first empty prefix": (is_first_empty_prefix, "the package's contradicts its own prompt"),
    "reasoning of a first prefix": (is_first_prefix, "the answer goes on from it; the package drops it"),
}


def agrees_up_to_the_calls(case):
    """What came late were arguments, too."""
    if case.fault[0] == "released late":
        return True
    before = []
    for blocks in case.fault[1:3]:
        if not isinstance(blocks, list):
            return False
        texts = itertools.takewhile(lambda block: block[0] != "call", blocks)
        before.append([[kind, text.strip()] for kind, text in texts if text.strip()])
    return before[0] == before[1]


def has_key_with_blank(case):
    return agrees_up_to_the_calls(case) and re.search(r'parameter name="[^"]*\s', case.text) is not None


SHOWN_SPECIALS = {128822, 128825, *range(129271, 129279)}


def has_other_special(case):
    ids = [i for chunk in case.value.get("ids", []) for i in chunk]
    return any((i < 3 or 128000 <= i) and i not in SHOWN_SPECIALS for i in ids)


def has_key_that_json_forbids(case):
    """A backslash or control character in a key, or one that holds or lacks its quotes."""
    return agrees_up_to_the_calls(case) and re.search(r'parameter name=(?!"[^"\\\x00-\x1f]*" string=)', case.text) is not None


def ends_inside_a_character(case):
    return "ids" in case.value and "\ufffd" in json.dumps(case.fault[1], ensure_ascii=False)


def stops_inside_a_token(case):
    stops = case.body.get("stop") or case.body.get("stop_sequences")
    return "ids" in case.value and bool(stops) and any(special in case.text for special in ("<｜", "｜DSML｜", "</think>"))


def has_long_integer(case):
    """Numbers of a Messages body keep their spelling."""
    as_floats = [json.loads(json.dumps(blocks), parse_int=float) for blocks in case.fault[1:3]]
    return case.fault[0] == "body" and case.api == "messages" and as_floats[0] == as_floats[1]


PARSE_RULES = {
    "key with blanks": (has_key_with_blank, "kept exactly; the package breaks off at the first blank"),
    "key that JSON forbids": (has_key_that_json_forbids, "escaped, or no parameter; the package copies it into broken JSON"),
    "unfinished character": (ends_inside_a_character, "becomes U+FFFD; the package drops it and what it held"),
    "stop string in a token": (stops_inside_a_token, "matched by spelling; the package never looks into a token"),
    "long integer": (has_long_integer, "kept as spelt"),
    "other special token": (has_other_special, "a control event, not text"),
}


# --- comparing ---


def in_short(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) < 1500 else text[:700] + " ... " + text[-700:]


def around_difference(here, there):
    """Two texts without most of what they have in common."""
    start = next((i for i, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))
    return here[max(0, start - 60) : start + 120], there[max(0, start - 60) : start + 120]


def render_fault(case):
    ours, theirs = case.ours, case.theirs
    if case.is_refused_here and case.is_refused_there:
        error = ours["error"]
        if error.get("status") == theirs["status"] == 400 and error.get("type") == "invalid_request_error":
            return None
        return "refused otherwise", ours, theirs
    if case.is_refused_here:
        return "refused here", ours["error"], "accepted"
    if case.is_refused_there:
        return "refused there", "accepted", theirs["refused"]
    for field in ("text", "parse", "stream", "max_tokens", "images"):
        if ours[field] != theirs[field]:
            differing = around_difference if field == "text" else lambda *both: both
            return field, *differing(ours[field], theirs[field])
    parts = [{key: part[key] for key in part if key != "id"} for part in ours["parts"]]
    if parts != theirs["parts"]:
        return "parts", *next((a, b) for a, b in zip([*parts, None], [*theirs["parts"], None]) if a != b)
    if ours["token_ids"] != theirs["token_ids"]:
        return "token_ids", ours["token_ids"], theirs["token_ids"]
    here, there = ((side.get("constraint") or {}).get("kind") for side in (ours, theirs))
    return None if here == there else ("constraint", here, there)


def released(view):
    calls = [block for block in view.blocks if block[0] == "call"]
    return view.released("reasoning"), view.released("text"), len(calls), [len(call[2]) for call in calls]


def first_lateness(api, ours, theirs):
    """What the client has seen after the first chunk with which something comes later than there, or nothing."""
    here, there = wire.FOLDS[api](), wire.FOLDS[api]()
    for i, (group, its_group) in enumerate(zip(ours[:-1], theirs[:-1])):
        for event in group:
            here.push(event)
        for event in its_group:
            there.push(event)
        a, b = released(here.view), released(there.view)
        if a[0] < b[0] or a[1] < b[1] or a[2] < b[2] or any(x < y for x, y in zip(a[3], b[3])):
            return [f"after chunk {i}", here.view.blocks], there.view.blocks
    return None


def blocks_of(case, view):
    return view.without_blanks() if is_json_mode(case.body) else view.blocks


def is_json_mode(body):
    form = body.get("response_format") or dict_at(body, "text").get("format") or {}
    return form.get("type") == "json_object"


def parse_fault(case):
    ours, theirs, api = case.ours, case.theirs, case.api
    if case.is_refused_here or case.is_refused_there:
        return "refused", ours.get("error", "accepted"), theirs.get("refused", "accepted")
    try:
        here = wire.fold(api, ours["events"]), wire.of_body(api, ours["body"])
    except AssertionError as error:
        return "malformed stream", str(error), ours["events"]
    there = wire.fold(api, theirs["events"]), wire.of_body(api, theirs["body"])
    for name, a, b in zip(("stream", "body"), here, there):
        if not wire.same_blocks(blocks_of(case, a), blocks_of(case, b)):
            return name, a.blocks, b.blocks
        if a.finish != b.finish:
            return f"finish of the {name}", a.finish, b.finish
    if is_json_mode(case.body) or case.name.endswith(CUT_OTHERWISE):
        return None
    late = first_lateness(api, ours["events"], theirs["events"])
    return late and ("released late", *late)


# --- running ---


class Render:
    command = "render"
    rules = RENDER_RULES
    fault = staticmethod(render_fault)

    def __init__(self, recipe, _):
        self.recipe = recipe

    def cases(self, api, index):
        name = f"{SEED}/render/{api}/{index}"
        return [Case(name, api, conversation(api, random.Random(name)))]

    @staticmethod
    def line(case):
        return dumps(case.value, spell_plainly if zlib.crc32(case.name.encode()) % 2 else json.dumps)

    def ask(self, case):
        line = self.line(case)
        body = json.loads(line)
        case.body = body if isinstance(body, dict) else {}
        case.theirs = self.recipe.render(case.api, line)

    @staticmethod
    def is_whole(value):
        return True


class Parse:
    command = "parse"
    rules = PARSE_RULES
    fault = staticmethod(parse_fault)

    def __init__(self, recipe, model_dir):
        self.recipe = recipe
        self.decoder = Tokenizer.from_file(str(model_dir / "tokenizer.json"))

    def cases(self, api, index):
        """One output cut as for the package, and once more otherwise."""
        name = f"{SEED}/parse/{api}/{index}"
        rng = random.Random(name)
        request, chunks, finish = answered(api, rng, self.recipe.tokenizer.encode)
        has_ids = bool(chunks) and not isinstance(chunks[0], str)
        value = {"request": request, "ids" if has_ids else "chunks": chunks, "finish": finish}
        other = dict(value)
        if has_ids:
            other["ids"] = [[i] for chunk in chunks for i in chunk]
        else:
            data = "".join(other.pop("chunks")).encode()
            points = (
                range(len(data))
                if rng.random() < 0.3
                else sorted(rng.choices(range(len(data) + 1), k=rng.randint(0, 9)))
            )
            pieces = [data[a:b] for a, b in zip([0, *points], [*points, len(data)])]
            other["bytes"] = [base64.b64encode(piece).decode() for piece in pieces]
        return [Case(name, api, value), Case(name + CUT_OTHERWISE, api, other)]

    @staticmethod
    def line(case):
        return dumps(case.value, spell_plainly)

    def ask(self, case):
        value = case.value
        case.body = json.loads(dumps(value["request"]))
        if "ids" in value:
            chunks = value["ids"]
            case.text = self.decoder.decode([i for chunk in chunks for i in chunk], skip_special_tokens=False)
        else:
            chunks = value.get("chunks") or [b"".join(map(base64.b64decode, value.get("bytes", []))).decode()]
            case.text = "".join(chunks)
        case.theirs = self.recipe.parse(case.api, dumps(value["request"]), chunks, value["finish"])

    @staticmethod
    def is_whole(value):
        return {"request", "finish"} < value.keys() and len(value) == 3


def answers_or_crash(command, api, model_dir, lines):
    """Halves the lines to find one that the program does not survive. The others are not asked then."""
    try:
        return answers(command, api, model_dir, lines)
    except AssertionError as error:
        if len(lines) == 1:
            return [{"crash": str(error)[:500]}]
    half = len(lines) // 2
    found = answers_or_crash(command, api, model_dir, lines[:half])
    if any(it and "crash" in it for it in found):
        return found + [None] * (len(lines) - half)
    return [None] * half + answers_or_crash(command, api, model_dir, lines[half:])


def compare(side, api, cases, model_dir):
    """Fills in what came out on both sides. The program works while this asks the package."""
    with concurrent.futures.ThreadPoolExecutor(1) as program:
        ours = program.submit(answers_or_crash, side.command, api, model_dir, [side.line(case) for case in cases])
        for case in cases:
            side.ask(case)
        for case, answer in zip(cases, ours.result()):
            case.ours = answer
            if answer:
                case.fault = ("crash", answer["crash"], "none") if "crash" in answer else side.fault(case)


def known_by(side, case):
    return None if case.crashed else next((name for name, (applies, _) in side.rules.items() if applies(case)), None)


def kind_of(case):
    """Differences of one kind look alike: the words of a refusal without what they quote."""
    what, here, there = case.fault
    if not what.startswith("refused"):
        return case.api, what
    message = here.get("message", "") if isinstance(here, dict) else str(there)
    return case.api, what, re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\d+|\[[^\]]*\]", "_", message)[:90]


def smallest(side, case, model_dir):
    """The case with all left out that its fault does not need."""
    kind = kind_of(case)
    while True:
        tries = [Case(case.name, case.api, value) for value in smaller(case.value) if side.is_whole(value)]
        random.Random(0).shuffle(tries)
        tries = tries[:250]
        compare(side, case.api, tries, model_dir)
        tries = [
            t
            for t in tries
            if t.fault and not known_by(side, t) and kind_of(t) == kind and len(side.line(t)) < len(side.line(case))
        ]
        if not tries:
            return case
        case = min(tries, key=lambda t: len(side.line(t)))


def report(side, faults, model_dir):
    groups = collections.defaultdict(list)
    for case in faults:
        groups[kind_of(case)].append(case)
    lines = [f"{len(faults)} differences of {len(groups)} kinds"]
    for n, (kind, cases) in enumerate(sorted(groups.items(), key=lambda group: -len(group[1]))):
        case = min(cases, key=lambda c: len(side.line(c)))
        if n < int(os.environ.get("DEEPINFER_DIFFERENTIAL_SHRUNK", "5")):
            case = smallest(side, case, model_dir)
        lines.append(
            f"\n{len(cases)} times {kind}, as in {case.name}:\n  {in_short(side.line(case))}\n"
            f"  here:  {in_short(case.fault[1])}\n  there: {in_short(case.fault[2])}"
        )
    return "\n".join(lines)


@pytest.fixture(scope="session")
def recipe(model_dir):
    return Recipe(model_dir)


def check_agreement(side, model_dir):
    known, faults, n_cases, n_accepted = collections.Counter(), [], 0, 0
    for api in APIS:
        n = N_CASES // len(APIS)
        for start in range(0, n, BATCH):
            cases = [case for index in range(start, min(start + BATCH, n)) for case in side.cases(api, index)]
            compare(side, api, cases, model_dir)
            n_cases += len(cases)
            n_accepted += sum(not case.is_refused_there for case in cases)
            for case in cases:
                rule = case.fault and known_by(side, case)
                if rule:
                    known[rule] += 1
                elif case.fault:
                    faults.append(case)
    summary = f"{n_cases} cases, {n_accepted} accepted, {len(faults)} differ; known differences: {dict(known)}"
    print(summary)
    if faults:
        pytest.fail(summary + "\n" + report(side, faults, model_dir), pytrace=False)
    assert sum(known.values()) <= KNOWN_SHARE_MAX * n_cases, f"too much is left out: {summary}"
    if N_CASES >= N_LONG:
        print(f"known differences that did not occur this time: {side.rules.keys() - known.keys() or 'none'}")


def test_render(recipe, model_dir):
    check_agreement(Render(recipe, model_dir), model_dir)


def test_parse(recipe, model_dir):
    check_agreement(Parse(recipe, model_dir), model_dir)
