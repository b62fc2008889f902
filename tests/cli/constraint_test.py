"""`generate` and `batch` under a constraint: every answer is a text of it, or the request ends with a named cause."""

import json
import re

import pytest

from conftest import MINI, json_lines, ok, refused, run

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
          "kind": {"enum": ["cat", "dog"]}}, "required": ["name", "age", "kind"], "additionalProperties": False}  # fmt: skip
HOT = ["--temperature", 2, "--max-tokens", 150]
LIST = """root ::= "- " item ("\\n- " item)*
item ::= word (" " word){0,2}
word ::= [a-z]{1,8}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("constraints")
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    (folder / "list.ebnf").write_text(LIST)
    return folder


def answers(*arguments, prompt="List: "):
    return ok("generate", "--model", MINI, "--prompt", prompt, "--json", *arguments).objects()


def holds_schema(text):
    value = json.loads(text)
    assert list(value) == ["name", "age", "kind"]
    assert len(value["name"]) <= 12 and value["age"] == int(value["age"]) and 0 <= value["age"] <= 150 and value["kind"] in ("cat", "dog")


def holds_object(text):
    assert isinstance(json.loads(text), dict)


def holds(pattern):
    return lambda text: re.fullmatch(pattern, text) or pytest.fail(text)


KINDS = {
    "regex": (["--regex", "[A-Z][a-z]{2,8}( (and|or) [A-Z][a-z]{2,8}){0,3}"], holds("[A-Z][a-z]{2,8}( (and|or) [A-Z][a-z]{2,8}){0,3}")),
    "json_schema": (["--json-schema", "schema.json", "--whitespace", "0,1"], holds_schema),
    "json_object": (["--json-object", "--whitespace", "1,4"], holds_object),
    "ebnf": (["--ebnf", "list.ebnf"], holds(r"- [a-z]{1,8}( [a-z]{1,8}){0,2}(\n- [a-z]{1,8}( [a-z]{1,8}){0,2})*")),
}


def options_of(kind, files):
    return [files / word if word in ("schema.json", "list.ebnf") else word for word in KINDS[kind][0]]


@pytest.mark.parametrize("kind", KINDS)
def test_every_finished_answer_holds(kind, files):
    judge = KINDS[kind][1]
    done = [*answers(*options_of(kind, files), *HOT, "--n", 12, "--seed", 3), *answers(*options_of(kind, files), "--max-tokens", 150)]
    finished = [answer["text"] for answer in done if answer["finish_reason"] == "stop"]
    assert len(finished) >= (10 if kind in ("regex", "json_schema") else 3)  # objects and lists of any length may reach the limit
    for text in finished:
        judge(text)


@pytest.mark.parametrize("kind", KINDS)
def test_same_request_same_tokens(kind, files):
    arguments = [*options_of(kind, files), "--temperature", 1, "--max-tokens", 24, "--n", 3, "--seed", 5]
    first = answers(*arguments)
    assert answers(*arguments, "--threads", 1) == first
    alone = answers(*options_of(kind, files), "--temperature", 1, "--max-tokens", 24, "--n", 1, "--seed", 5)
    assert alone[0]["token_ids"] == first[0]["token_ids"]


def test_a_text_that_is_complete_ends_by_itself():
    (answer,) = answers("--regex", "yes|no", "--max-tokens", 50)
    assert answer["text"] in ("yes", "no") and answer["finish_reason"] == "stop"
    (answer,) = answers("--regex", "", "--max-tokens", 50)
    assert answer["text"] == "" and answer["finish_reason"] == "stop"


def test_thinking_is_free_and_the_answer_is_not():
    arguments = ["generate", "--model", MINI, "--chat", "--prompt", "What is 47 + 38?", "--regex", "[0-9]{2}", "--max-tokens", 200]
    free = ok(*arguments, "--thinking", "on")
    assert re.fullmatch("[0-9]{2}", free.out.rstrip("\n"))
    plain = ok(*arguments[:-4], "--max-tokens", 200, "--thinking", "on")
    thought = [line for line in free.errors if line]
    assert thought == [line for line in plain.errors if line]  # the constraint begins behind the thought
    assert re.fullmatch("[0-9]{2}", ok(*arguments, "--thinking", "off").out.rstrip("\n"))


def test_batch_lines_have_their_own_constraints(tmp_path, files):
    lines = [
        {"id": 1, "prompt": "Hi", "regex": "a{3}", "max_tokens": 9},
        {"id": 2, "prompt": "Hi", "json_schema": SCHEMA, "max_tokens": 900},  # blanks between tokens are bounded
        {"id": 3, "prompt": "Hi", "ebnf": LIST, "max_tokens": 60, "seed": 2, "temperature": 1},
        {"id": 4, "messages": [{"role": "user", "content": "Hi"}], "thinking": "off", "json_object": True, "max_tokens": 60},
        {"id": 5, "prompt": "Hi", "max_tokens": 5},
        {"id": 6, "prompt": "Hi", "regex": "a(?<=b)\\1", "max_tokens": 5},
        {"id": 7, "prompt": "Hi", "regex": "a", "json_object": True},
        {"id": 8, "messages": [{"role": "user", "content": "Hi"}], "tools": [], "regex": "a"},
        {"id": 9, "prompt": "Hi", "json_object": False},
    ]
    out = tmp_path / "out.jsonl"
    done = run("batch", "--model", MINI, "--input", json_lines(tmp_path / "in.jsonl", lines), "--output", out)
    got = {answer["id"]: answer for answer in map(json.loads, out.read_text().splitlines())}
    assert sorted(got) == list(range(1, 10)) and done.code != 0
    assert got[1]["text"] == "aaa"
    holds_schema(got[2]["text"])
    assert answers("--ebnf", files / "list.ebnf", "--max-tokens", 60, "--seed", 2, "--temperature", 1, prompt="Hi")[0]["token_ids"] == got[3]["token_ids"]
    assert "error" not in got[5]
    for i, word in {6: "regex", 7: "exclude", 8: "tools", 9: "json_object"}.items():
        assert word in got[i]["error"]["message"], got[i]


def test_what_cannot_be_enforced_is_refused_by_name(tmp_path):
    def schema(value):
        file = tmp_path / "s.json"
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return run("generate", "--model", MINI, "--prompt", "Hi", "--json-schema", file)

    refused(schema({"properties": {"a": {"pattern": "(a)\\1"}}}), 2, "#/properties/a/pattern", "back-references")
    refused(schema({"$ref": "http://example.com/x"}), 2, "#/$ref", "nothing is fetched")
    refused(schema(False), 2, "no value is valid")
    refused(schema('{"type":'), 2, "--json-schema", "line 1 column 9")
    grammar = tmp_path / "g.ebnf"
    grammar.write_text("root ::= missing")
    refused(run("generate", "--model", MINI, "--prompt", "Hi", "--ebnf", grammar), 2, "missing")
    refused(run("generate", "--model", MINI, "--prompt", "Hi", "--regex", "a("), 2, "not closed")
    refused(run("generate", "--model", MINI, "--prompt", "Hi", "--regex", "a", "--json-object"), 2, "exclude")
    refused(run("generate", "--model", MINI, "--chat", "--tools", "x", "--prompt", "Hi", "--regex", "a"), 2, "--tools")
    refused(run("generate", "--model", MINI, "--prompt", "Hi", "--json-schema", tmp_path / "none"), 2, "none")
