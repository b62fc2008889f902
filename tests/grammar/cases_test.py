"""Small cases that real users hit (group 1 of the case list), through `deepinfer grammar check`."""

import json
import os
import subprocess
import time

import checks
import pytest


def accepted(folder, option, value, texts, options=()):
    """Which texts, as they are, the constraint accepts; None where it is refused."""
    answer = checks.texts(folder, option, value, *texts, options=options)
    return [text for text, result in zip(texts, answer["results"]) if result] if answer["accepted"] else None


def judge_raw(folder, schema, valid, invalid, options=()):
    file = folder / "schema.json"
    file.write_text(json.dumps(schema), encoding="utf-8")
    assert accepted(folder, "--json-schema", file, [*valid, *invalid], options) == list(valid)


def test_dc_01_pattern_and_length_hold_together():
    schema = {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3}
    checks.judge(schema, ["ab", "abc"], ["a", "abcd", "ab1", ""])


def test_dc_02_bounded_strings_take_escapes(tmp_path):
    valid = [r'"\n"', r'"\""', r'"\\"', r'"\u0041b"', r'"\ud83d\ude00"', '"😀😀"']
    invalid = ['""', '"abc"', '"😀😀😀"', '"\x01"', '"\n"', r'"\ud83d"', r'"\ude00"', r'"\ud83d\n"']
    judge_raw(tmp_path, {"type": "string", "minLength": 1, "maxLength": 2}, valid, invalid)


def nested(pattern):
    return {"type": "object", "properties": {"p": {"type": "string", "pattern": pattern}}, "required": ["p"],
            "additionalProperties": False}


def test_dc_03_patterns_search_and_anchors_bind_to_one_alternative(tmp_path):
    def values(texts):
        return [{"p": text} for text in texts]
    checks.judge(nested(r"\S"), values(["a", " a ", "x y"]), values(["", "   "]))
    checks.judge(nested("^a|b$"), values(["axx", "xxb", "a", "b"]), values(["xax", "bx", ""]))
    # The option of its own is a match of the whole text.
    assert accepted(tmp_path, "--regex", "^a|b$", ["a", "b", "axx", "xxb"]) == ["a", "b"]


def test_dc_04_reference_cycles():
    def ring(n):
        return {"$ref": "#/$defs/n0", "$defs": {f"n{i}": {"$ref": f"#/$defs/n{(i + 1) % n}"} for i in range(n)}}
    for schema in [ring(1), ring(2), ring(3), {"$ref": "#/$defs/missing"}]:
        refusal = checks.refusal(schema)
        assert refusal["keyword"] == "$ref" and "$ref" in refusal["pointer"] and refusal["reason"]
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
    checks.judge({"$ref": "#/$defs/n", "$defs": {"n": node}}, [{}, {"next": {}}, {"next": {"next": {}}}],
                 [{"next": 1}, {"x": {}}])


@pytest.mark.parametrize("pattern,valid,invalid", [
    (r"^a(?=b)c$", [], ["ac", "abc"]), (r"^(a)\1$", ["aa"], ["a", "ab"]), (r"^ok\!$", ["ok!"], ["ok", r"ok\!"]),
    ("^[z-a]$", [], ["z", "a", "-"]), ("^(a$", [], ["a", "(a"])])
def test_dc_05_a_pattern_is_enforced_or_refused_by_place(pattern, valid, invalid):
    schema = nested(pattern)
    (answer,) = checks.answers([{"schema": schema, "tests": [{"data": {"p": text}} for text in [*valid, *invalid]]}])
    if answer["accepted"]:
        assert answer["results"] == [True] * len(valid) + [False] * len(invalid)
    else:
        assert answer["refused"]["pointer"] == "#/properties/p/pattern" and answer["refused"]["keyword"] == "pattern"
        assert answer["refused"]["reason"]


DEEP = 60_000
HOSTILE_GRAMMARS = {
    "groups": ("root ::= " + "(" * DEEP + '"a"' + ")" * DEEP, ["a"], ["b", ""]),
    "chain": ("root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(5000)) + 'r5000 ::= "a"\n', ["a"], ["b"]),
    "left": ('root ::= root "a" | "b"', ["b", "ba", "baa"], ["a", "ab"]),
    "nullable": ('root ::= ("a"*)* "b"', ["b", "ab", "aaab"], ["a", ""]),
}


@pytest.mark.parametrize("name", HOSTILE_GRAMMARS)
def test_dc_06_hostile_grammars(tmp_path, name):
    source, valid, invalid = HOSTILE_GRAMMARS[name]
    file = tmp_path / "grammar.ebnf"
    file.write_text(source, encoding="utf-8")
    start = time.monotonic()
    found = accepted(tmp_path, "--ebnf", file, [*valid, *invalid])
    assert time.monotonic() - start < 5  # a second and the start of the program on a busy machine
    assert found in (valid, None) and (found == valid or name != "nullable")


def test_dc_06_deep_schemas():
    schema = '{"items":' * 10_000 + "{}" + "}" * 10_000
    (answer,) = checks.answers(['{"schema":' + schema + "}"])
    assert answer["accepted"] or "deep" in answer["refused"]["reason"]


def test_dc_07_hostile_schemas_are_answered_in_time():
    choice = {"type": "integer"}
    for i in range(16):
        choice = {"oneOf": [choice, {"type": "object", "properties": {f"p{i}": choice}, "required": [f"p{i}"]}]}
    words = [f"word {i} of many" for i in range(20_000)]
    cases = [
        {"schema": choice, "tests": [{"data": 1}, {"data": {"p15": 1}}, {"data": "x"}]},
        {"schema": {"type": "string", "maxLength": 1_000_000}, "tests": [{"data": "x" * 1000}, {"data": 1}]},
        {"schema": {"enum": words}, "tests": [{"data": words[0]}, {"data": words[-1]}, {"data": "word 20000 of many"}]},
        {"schema": {"type": "string", "pattern": "^(a|b)*a(a|b){24}$"}},
    ]
    expected = [[True, True, False], [True, False], [True, True, False], []]
    for answer, results in zip(checks.answers(cases), expected):
        assert answer["compile_us"] < 2e6  # 250 ms on an idle machine
        assert not answer["accepted"] or answer["results"] == results
    done = checks.run("--regex", "(a|b)*a(a|b){24}", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["compile_us"] < 2e6


def peak_megabytes(folder, lines):
    """The answers, and how much memory the program had at most."""
    file, answers = folder / "lines.jsonl", folder / "answers.jsonl"
    env = {**checks.OUTER, "ASAN_OPTIONS": "quarantine_size_mb=8"}
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with answers.open("wb") as out:
        process = subprocess.Popen([checks.PROGRAM, "grammar", "check", "--model", str(checks.MINI), "--input", str(file)],
                                   stdout=out, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 2)  # 2: some line can't be read
    return [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()], usage.ru_maxrss / 1024


def test_dc_07_many_schemas_leave_nothing_behind(tmp_path):
    def line(i):
        schema = {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": i + 1}, "k": {"enum": ["a", i]}},
                  "required": ["k"], "additionalProperties": False}
        return json.dumps({"schema": schema, "tests": [{"data": {"k": i}}, {"data": {"k": i + 1}}]})
    _, few = peak_megabytes(tmp_path, map(line, range(100)))
    answers, many = peak_megabytes(tmp_path, map(line, range(2000)))
    assert [answer["results"] for answer in answers] == [[True, False]] * 2000
    assert many < few + 40


def chain(n, link, last):
    """Definitions of which each is made of a reference to the next."""
    ends = {f"n{i}": link({"$ref": f"#/$defs/n{i + 1}"}) for i in range(n)}
    return {"$ref": "#/$defs/n0", "$defs": {**ends, f"n{n}": last}}


# Schema text, and what its refusal says; None: accepted.
HOSTILE_SCHEMAS = {
    "endless list": ('{"type":"array","minItems":1,"items":{"$ref":"#"}}', None),
    "cycle": (json.dumps(chain(20_000, lambda ref: ref, {"$ref": "#"})), "leads back to itself"),
    "long chain": (json.dumps(chain(5000, lambda ref: ref, {"type": "integer"})), None),
    "repeats": ('{"type":"string","pattern":"^(a{1,100000}){1,100000}$"}', None),
    "too many repeats": ('{"type":"string","pattern":"a{99999999999999999999}"}', "count"),
    "long pattern": (json.dumps({"type": "string", "pattern": "(a|b)*" * 600_000}), "longer"),
    "alternatives": (json.dumps({"type": "string", "pattern": "|".join(f"w{i}" for i in range(5000))}), None),
    "long schema": (json.dumps({"description": "x" * 5_000_000}), "bytes"),
    "many items": ('{"type":"array","minItems":1000000000}', None),
    "texts": (json.dumps({"enum": [f"word number {i}" for i in range(50_000)]}), None),
    "long length": ('{"type":"string","maxLength":9223372036854775808}', None),
    "longer than possible": ('{"type":"string","minLength":9223372036854775808}', "minLength"),
    "small steps": ('{"type":"number","multipleOf":1e-300}', None),
    "long exponent": ('{"minimum":1e-999999999}', "digits"),
    "long number": ('{"minimum":0.' + "123456789" * 1000 + "}", "digits"),
    "NUL": ('{"const":"a\\u0000b"}', None),
}
UNREADABLE = ['{"schema":' + '{"items":' * 100_000 + "{}" + "}" * 100_001, '{"schema":{"const":"a\0b"}}',
              '{"schema":{"const":"\\ud800"}}', '{"schema":{"minimum":1e999999999}}']


def judge_answer(answer, why):
    """In time, and what was expected; a slow machine may refuse for the time."""
    assert answer["compile_us"] < 2e6  # 250 ms on an idle machine
    reason = answer["refused"]["reason"] if not answer["accepted"] else None
    is_late = reason is not None and ("250 ms" in reason or "more work" in reason)
    assert is_late or (reason is None if why is None else why in (reason or "")), answer


def test_hostile_schemas_are_answered_by_name(tmp_path):
    lines = ['{"schema":' + schema + "}" for schema, _ in HOSTILE_SCHEMAS.values()]
    answers, peak = peak_megabytes(tmp_path, lines + UNREADABLE)
    for (_, why), answer in zip(HOSTILE_SCHEMAS.values(), answers):
        judge_answer(answer, why)
    for answer in answers[len(HOSTILE_SCHEMAS):]:
        assert answer["error"]["message"], answer
    assert len(answers) == len(lines) + len(UNREADABLE)
    assert peak < 500
    for bytes_of_schema in [b'{"const":"\xff"}', b"", b"\0\0"]:
        file = tmp_path / "schema.json"
        file.write_bytes(bytes_of_schema)
        done = checks.run("--json-schema", file)
        assert done.returncode == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1


HOSTILE_PATTERNS = {
    "repeats": ("(a{1,100000}){1,100000}", None),
    "groups": ("(" * 30_000 + "a" + ")*" * 30_000, None),
    "look-aheads": ("(?=.*a)(?=.*b)(?=.*c).*", None),
    "prefixes": ("|".join("a" * i for i in range(300)), None),
    "empty loops": ("(()*|(|a)*)*" * 50, None),
    "borders": (r"(\ba|\Bb)*", "repeat"),
    "lengths": ("(?=(.{7})*$)(?=(.{11})*$)(?=(.{13})*$)(?=(.{17})*$)(?=(.{19})*$).+", "steps"),
    "unclosed": ("[" * 30_000, "closed"),
}


@pytest.mark.parametrize("name", HOSTILE_PATTERNS)
def test_hostile_patterns_are_answered_by_name(name):
    pattern, why = HOSTILE_PATTERNS[name]
    judge_answer(json.loads(checks.run("--regex", pattern, "--json").stdout), why)


def test_a_member_that_takes_too_long_hinders_no_other():
    """What compilation looks at ahead has a smaller budget than a mask; this pattern takes more."""
    schema = {"properties": {"a": {"type": "string", "pattern": "^.*a.{18}$", "maxLength": 100}, "b": {"type": "integer"}}}
    checks.judge(schema, [{"b": 1}, {}, 3], [{"b": "x"}])


def test_dc_08_blanks_are_bounded(tmp_path):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    valid = ['{"a":1}', '{' + " " * 40 + '"a":1}', '{\n\n"a" : 1\t}', '{"a":' + "\n \n" + " " * 39 + "1}"]
    invalid = ["{" + " " * 41 + '"a":1}', '{\n\n\n"a":1}', '{"a":1} ', '{"a":1}\n', ' {"a":1}', '{"a":' + "\t" * 41 + "1}"]
    judge_raw(tmp_path, schema, valid, invalid)
    judge_raw(tmp_path, schema, ['{"a":1}'], ['{ "a":1}', '{"a": 1}', '{"a":1\n}'], ["--whitespace", "0,0"])
    judge_raw(tmp_path, schema, ['{   "a":1}'], ['{    "a":1}', '{\n"a":1}'], ["--whitespace", "0,3"])


def test_no_keyword_is_dropped():
    answer = checks.judge({"type": "object", "foo": 1, "properties": {"s": {"format": "color", "widget": "x"}}}, [{}], [1])
    assert {item["pointer"] for item in answer["ignored"]} == {"#/foo", "#/properties/s/format", "#/properties/s/widget"}


def test_property_order():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    checks.judge(schema, [{"a": 1, "b": 2}, {"b": 2, "a": 1}])
    checks.judge(schema, [{"a": 1, "b": 2}], [{"b": 2, "a": 1}], "--property-order", "schema")


def test_formats_are_asserted_or_annotations():
    schema = {"type": "string", "format": "date"}
    checks.judge(schema, ["2022-02-28"], ["2022-02-31", "x"])
    checks.judge(schema, ["2022-02-31", "x"], [1], "--format", "annotate")


def test_remotes(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "n.json").write_text('{"type":"integer"}', encoding="utf-8")
    schema = {"$ref": "http://example.com/s/deep/n.json"}
    refusal = checks.refusal(schema)
    assert refusal["pointer"] == "#/$ref" and refusal["keyword"] == "$ref"
    checks.judge(schema, [1], ["x"], "--remotes", f"http://example.com/s/={tmp_path}")


def test_a_schema_that_nothing_satisfies_is_no_refusal():
    checks.judge(False, [], [1, None, {}])


def test_lines_that_cannot_be_read_are_answered_by_name():
    lines = ['{"name":"a","schema":{},"tests":[{"data":1}]}', '{"name":"b","schema":{},"extra":1}', '{"name":"c"', "[]",
             '{"name":"d","schema":{},"tests":[{"data":1,"why":2}]}', '{"name":"e","schema":{}}', '{"name":"f"}']
    done = checks.run("--input", "-", stdin="\n".join(lines).encode())
    assert done.returncode == 2
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [answer.get("name") for answer in answers] == ["a", "b", None, None, "d", "e", "f"]
    assert ["error" in answer for answer in answers] == [False, True, True, True, True, False, True]
    assert "extra" in answers[1]["error"]["message"] and "why" in answers[4]["error"]["message"]


@pytest.mark.parametrize("arguments,words", [
    ([], "exactly one"), (["--regex", "a", "--json-object"], "exclude"), (["--regex", "a", "--dialect", "2020-12"], "--dialect"),
    (["--regex", "a", "--raw"], "--raw"), (["--json-schema", "/nowhere"], "/nowhere"), (["--json-object", "--dialect", "5"], "2019-09"),
    (["--json-object", "--whitespace", "3"], "--whitespace"), (["--json-object", "--remotes", "x"], "--remotes"),
    (["--input", "-", "--instance", "x"], "--instance"), (["--json-object", "--instance", "/nowhere"], "/nowhere"),
    (["--input", "-", "--property-order", "x"], "--property-order")])
def test_bad_usage_is_one_line(arguments, words):
    done = checks.run(*arguments)
    assert done.returncode == 2 and done.stdout == b""
    assert words in done.stderr.decode() and done.stderr.count(b"\n") == 1
