"""`deepinfer batch`: answers equal those of generate, bad lines do not stop the rest, and an ended run goes on."""

import json

import pytest

from conftest import MODEL, generate, json_lines, ok, refused, run

REQUESTS = [
    {"id": "a", "prompt": "hello", "max_tokens": 4},
    {"id": 2, "tokens": [0, 5, 6], "max_tokens": 5, "temperature": 1, "seed": 3, "n": 3, "logprobs": 1},
    {"prompt": "no id here", "max_tokens": 0},
    {"id": "bad", "prompt": "x", "top_p": 1.5},
    {"id": "é\n", "prompt": "stop", "max_tokens": 6, "stop": ["zz", "qq"], "stop_id": [5], "top_k": 4, "top_p": 0.9,
     "min_p": 0.1, "temperature": 0.5, "no_special": True},
    {"id": "last", "tokens": [0, 9], "max_tokens": 3, "stop": "x", "stop_id": 7},
]


def batch(tmp_path, requests, *arguments, output="out.jsonl", code=None):
    source = json_lines(tmp_path / "in.jsonl", requests)
    done = run("batch", "--model", MODEL, "--input", source, "--output", tmp_path / output, *arguments)
    if code is not None:
        assert done.code == code, done.errors
    return done


def answers(tmp_path, output="out.jsonl"):
    return [json.loads(line) for line in (tmp_path / output).read_text().splitlines()]


def test_answers_are_those_of_generate_in_order(tmp_path):
    done = batch(tmp_path, REQUESTS)
    refused(done, 2, "1 of 6 requests")
    got = answers(tmp_path)
    assert [answer.get("id") for answer in got] == ["a", 2, 2, 2, None, "bad", "é\n", "last"]
    without_id = [{key: value for key, value in answer.items() if key != "id"} for answer in got]
    assert without_id[0] == generate("--prompt", "hello", "--max-tokens", 4)[0]
    assert without_id[1:4] == generate("--tokens", "0,5,6", "--max-tokens", 5, "--temperature", 1, "--seed", 3, "--n", 3, "--logprobs", 1)
    assert list(got[0]) == ["id", "text", "token_ids", "finish_reason", "usage"]
    assert got[4]["token_ids"] == []
    assert got[5] == {"id": "bad", "error": {"kind": "invalid_argument", "message": got[5]["error"]["message"]}}
    assert without_id[6] == generate("--prompt", "stop", "--max-tokens", 6, "--stop", "zz", "--stop", "qq", "--stop-id", 5, "--top-k", 4,
                                     "--top-p", 0.9, "--min-p", 0.1, "--temperature", 0.5, "--no-special")[0]


# a line, pieces of its error
BAD_LINES = [
    ("{", ["not valid JSON"]),
    ("[1]", ["not a JSON object"]),
    ('{"prompt":"x","temperature":NaN}', ["not valid JSON"]),
    ('{"prompt":"\\ud800"}', ["not valid JSON", "surrogate"]),
    ('{"prompt":"x","prompt":"y"}', ['"prompt" is given twice']),
    ('{"prompt":"x","seed":1,"seed":1}', ['"seed" is given twice']),
    ("{}", ["exactly one of prompt, messages and tokens"]),
    ('{"prompt":"x","tokens":[1]}', ["exactly one of prompt, messages and tokens"]),
    ('{"prompt":""}', ["prompt is empty"]),
    ('{"prompt":3}', ["prompt is 3", "string"]),
    ('{"tokens":[]}', ["tokens", "at least one"]),
    ('{"tokens":[1,-1]}', ["tokens[1] is -1"]),
    ('{"tokens":[1,1.5]}', ["tokens[1] is 1.5"]),
    ('{"tokens":[1000000000]}', ["1000000000", "511"]),
    ('{"tokens":[99999999999999999999]}', ["tokens[0]"]),
    ('{"prompt":"x","temperature":"1"}', ['temperature is "1"']),
    ('{"prompt":"x","temperature":-1}', ["temperature is -1", "at least 0"]),
    ('{"prompt":"x","temperature":1e39}', ["temperature", "finite"]),
    ('{"prompt":"x","temperature":1e999}', ["not valid JSON"]),
    ('{"prompt":"x","top_p":1.1}', ["top_p is 1.1", "between 0 and 1"]),
    ('{"prompt":"x","min_p":-0.1}', ["min_p is -0.1"]),
    ('{"prompt":"x","top_k":-2}', ["top_k is -2"]),
    ('{"prompt":"x","max_tokens":-1}', ["max_tokens is -1", "between 0"]),
    ('{"prompt":"x","max_tokens":2.0}', ["max_tokens is 2.0"]),
    ('{"prompt":"x","max_tokens":true}', ["max_tokens is true"]),
    ('{"prompt":"x","max_tokens":null}', ["max_tokens is null"]),
    ('{"prompt":"x","seed":-1}', ["seed is -1"]),
    ('{"prompt":"x","n":0}', ["n is 0", "128"]),
    ('{"prompt":"x","logprobs":1000000}', ["logprobs is 1000000", "1024"]),
    ('{"prompt":"x","stop":""}', ["stop string"]),
    ('{"prompt":"x","stop":[1]}', ["stop is [1]"]),
    ('{"prompt":"x","stop_id":151645}', ["stop id", "151645"]),
    ('{"prompt":"x","stop_id":-1}', ["stop_id is -1"]),
    ('{"prompt":"x","id":null}', ["id is null"]),
    ('{"prompt":"x","maxtokens":5}', ['unknown member "maxtokens"']),
    ('{"messages":[]}', ["messages", "empty"]),
    ('{"messages":[{"role":"robot","content":"x"}]}', ["messages[0].role", "robot"]),
    ('{"messages":[{"role":"user","content":"x"}],"prompt":"x"}', ["exactly one of prompt, messages and tokens"]),
    ('{"messages":[{"role":"user","content":"x"}],"thinking":0}', ["thinking is 0"]),
    ('{"messages":[{"role":"user","content":"x"}],"thinking":"max"}', ["thinking is \"max\""]),
    ('{"messages":[{"role":"user","content":"x"}],"no_special":true}', ["no_special"]),
    ('{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/b"}}]}]}', ["images"]),
    ('{"prompt":"x","tools":[]}', ["tools goes with messages"]),
    ('{"prompt":"x","image":"a.png"}', ["image", "not available"]),
    ('{"prompt":"x","regex":1}', ["regex", "a string"]),
    ('{"tokens":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}', ["33 tokens", "32"]),
]


def test_every_bad_line_is_answered_by_name_and_the_rest_goes_on(tmp_path):
    good = {"id": "good", "prompt": "x", "max_tokens": 1}
    lines = [line for pair in BAD_LINES for line in (pair[0], good)]
    refused(batch(tmp_path, lines, "--context", 32), 2, f"{len(BAD_LINES)} of {2 * len(BAD_LINES)}")
    got = answers(tmp_path)
    assert len(got) == len(lines)
    assert all(answer["id"] == "good" and len(answer["token_ids"]) == 1 for answer in got[1::2])
    for (line, fragments), answer in zip(BAD_LINES, got[::2]):
        assert list(answer) == ["error"] and answer["error"]["kind"] == "invalid_argument", line
        for fragment in fragments:
            assert fragment in answer["error"]["message"], (line, answer)


def test_invalid_utf8_and_blank_lines(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(b'{"prompt":"a\xff"}\n\n  \n{"prompt":"x","max_tokens":1}')
    done = run("batch", "--model", MODEL, "--input", tmp_path / "in.jsonl", "--output", tmp_path / "out.jsonl")
    refused(done, 2, "1 of 2 requests")
    assert "UTF-8" in answers(tmp_path)[0]["error"]["message"] and len(answers(tmp_path)) == 2


def test_an_ended_run_goes_on_where_it_stopped(tmp_path):
    batch(tmp_path, REQUESTS, code=2)
    whole = (tmp_path / "out.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    cuts = {0, 1, *ends, *(end - 1 for end in ends), *(end + 9 for end in ends[:-1])}
    for cut in sorted(cuts):
        (tmp_path / "out.jsonl").write_bytes(whole[:cut])
        refused(batch(tmp_path, REQUESTS), 2, "1 of 6 requests")
        assert (tmp_path / "out.jsonl").read_bytes() == whole, f"cut at {cut}"


def test_finished_requests_are_not_done_again(tmp_path):
    batch(tmp_path, REQUESTS[:2], code=0)
    first = (tmp_path / "out.jsonl").read_text()
    marked = first.replace('"finish_reason":"length"', '"finish_reason":"kept"')
    (tmp_path / "out.jsonl").write_text(marked)
    batch(tmp_path, REQUESTS[:3], code=0)
    assert (tmp_path / "out.jsonl").read_text().startswith(marked) and len(answers(tmp_path)) == 5


@pytest.mark.parametrize(
    "change,fragments",
    [
        (lambda r: [{**r[0], "id": "b"}, *r[1:]], ["line 1", '"a"', '"b"']),
        (lambda r: [{**r[0], "prompt": "quite another prompt"}, *r[1:]], ["line 1", "tokens"]),
        (lambda r: [{k: v for k, v in r[0].items() if k != "id"}, *r[1:]], ["line 1", "none"]),
        (lambda r: [r[0], {**r[1], "n": 2}, *r[2:]], ["line 4"]),
        (lambda r: [r[0], {**r[1], "top_p": 7}, *r[2:]], ["line 2", "error"]),
        (lambda r: r[:1], ["more answers"]),
        (lambda r: [], ["more answers"]),
    ],
)
def test_answers_to_other_requests_are_refused_and_kept(tmp_path, change, fragments):
    requests = [r for r in REQUESTS if r.get("id") != "bad"]
    batch(tmp_path, requests, code=0)
    before = (tmp_path / "out.jsonl").read_bytes()
    refused(batch(tmp_path, change(requests)), 2, "--output", *fragments)
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_file_that_holds_no_answers_is_refused_and_kept(tmp_path):
    (tmp_path / "out.jsonl").write_text("my notes\n")
    refused(batch(tmp_path, REQUESTS), 2, "--output", "line 1", "is no answer")
    assert (tmp_path / "out.jsonl").read_text() == "my notes\n"


def test_input_and_output_must_differ(tmp_path):
    refused(batch(tmp_path, REQUESTS, output="in.jsonl"), 2, "same file")
    assert len((tmp_path / "in.jsonl").read_text().splitlines()) == len(REQUESTS)


def test_standard_input_and_output():
    done = run("batch", "--model", MODEL, "--input", "-", "--output", "-", "--stats", stdin=json.dumps(REQUESTS[0]) + "\n")
    assert done.code == 0 and done.objects()[0]["id"] == "a" and "stats" in done.objects()[0]


def test_options_hold_for_all_requests(tmp_path):
    text = "<｜begin▁of▁sentence｜>hello"
    request = {"prompt": text, "max_tokens": 8, "temperature": 1}
    batch(tmp_path, [request], "--no-special", "--stop-id", 300, code=0)
    assert answers(tmp_path) == generate("--prompt", text, "--max-tokens", 8, "--temperature", 1, "--no-special", "--stop-id", 300)


def test_an_empty_input_leaves_an_empty_output(tmp_path):
    batch(tmp_path, [], code=0)
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    ok("batch", "--model", MODEL, "--input", "/dev/null", "--output", tmp_path / "other.jsonl")


@pytest.mark.parametrize("member", ["max_tokens", "stop", "id", "tokens", "unknown"])
def test_deeply_nested_values_are_refused_and_the_rest_goes_on(tmp_path, member):
    deep = '{"%s":%s%s}' % (member, "[" * 200_000, "]" * 200_000)
    done = batch(tmp_path, [deep, {"tokens": [0, 5], "max_tokens": 1}])
    refused(done, 2, "1 of 2 requests")
    bad, good = answers(tmp_path)
    assert "nested deeper than" in bad["error"]["message"] and len(good["token_ids"]) == 1


@pytest.mark.parametrize(
    "line", [b'{"prompt":"\xff"}', '{"max_tokens":"a%s","tokens":[1]}'.__mod__("\u20ac" * 40).encode()]
)
def test_an_error_about_odd_text_can_be_resumed(tmp_path, line):
    source = tmp_path / "in.jsonl"
    source.write_bytes(line + b'\n{"tokens":[0,17],"max_tokens":1}\n')
    for _ in range(2):
        done = run("batch", "--model", MODEL, "--input", source, "--output", tmp_path / "out.jsonl")
        refused(done, 2, "1 of 2 requests")
        assert len(answers(tmp_path)) == 2


def test_somebody_elses_file_is_not_overwritten(tmp_path):
    (tmp_path / "out.jsonl").write_text("notes without a line end")
    refused(batch(tmp_path, [{"tokens": [0, 5]}]), 2, "is no answer")
    assert (tmp_path / "out.jsonl").read_text() == "notes without a line end"


def test_a_file_called_dash_is_not_standard_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_text("mine")
    done = ok("batch", "--model", MODEL, "--input", "-", "--output", "-", stdin='{"tokens":[0,5],"max_tokens":1}\n')
    assert len(done.objects()) == 1 and (tmp_path / "-").read_text() == "mine"


def test_an_id_that_would_be_changed_is_refused(tmp_path):
    done = batch(tmp_path, ['{"id":123456789012345678901234567890,"tokens":[0]}', '{"id":1.5,"tokens":[0]}'])
    refused(done, 2, "2 of 2 requests")
    assert all("64 bits" in answer["error"]["message"] for answer in answers(tmp_path))


def test_messages_are_the_conversation_that_chat_has(tmp_path):
    tools = tmp_path / "tools.json"
    tools.write_text('[{"type":"function","function":{"name":"f","parameters":{"type":"object","x":1E2}}}]')
    chat = ok("generate", "--model", MODEL, "--chat", "--system", "Be brief.", "--thinking", "30", "--tools", tools,
              "--prompt", "hello", "--max-tokens", "6", "--json").objects()[0]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"}],"thinking":30,'
                      f'"max_tokens":6,"tools":{tools.read_text()}}}\n')
    ok("batch", "--model", MODEL, "--input", source, "--output", target)
    assert [json.loads(line) for line in target.read_text().splitlines()] == [chat]
