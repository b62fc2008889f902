"""`deepinfer score`: log-probabilities, perplexity, dumped logits, and whole-file validation."""

import json
import math

import numpy as np
import pytest

from conftest import GOLDEN, MODEL, generate, golden_inputs, json_lines, ok, refused, run
from safetensors_io import SafetensorsFile

INPUTS = [{"name": "one", "tokens": [0, 5, 6, 7, 8]}, {"text": "hello"}, {"name": "single", "tokens": [145]}]


def score(tmp_path, lines, *arguments):
    return run("score", "--model", MODEL, "--input", json_lines(tmp_path / "in.jsonl", lines), *arguments)


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows = rows - rows.max(-1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(-1, keepdims=True))


def test_answers(tmp_path):
    output = tmp_path / "out.jsonl"
    done = score(tmp_path, INPUTS, "--output", output)
    assert done.code == 0 and done.out == "" and done.errors == []
    one, text, single = map(json.loads, output.read_text().splitlines())
    assert list(one) == ["name", "tokens", "logprobs", "nll", "ppl"] and one["tokens"] == INPUTS[0]["tokens"]
    assert list(text) == ["tokens", "logprobs", "nll", "ppl"]
    assert text["tokens"][0] == 0 and len(text["tokens"]) == generate("--prompt", "hello", "--max-tokens", 0)[0]["usage"]["prompt_tokens"]
    for answer in (one, text):
        assert answer["logprobs"][0] is None and len(answer["logprobs"]) == len(answer["tokens"])
        assert math.isclose(answer["nll"], -sum(answer["logprobs"][1:]))
        assert math.isclose(answer["ppl"], math.exp(answer["nll"] / (len(answer["tokens"]) - 1)))
    assert single == {"name": "single", "tokens": [145], "logprobs": [None], "nll": 0, "ppl": None}
    assert score(tmp_path, INPUTS).out == output.read_text()


@pytest.mark.parametrize("backend", ["cpu", "ref"])
def test_dumped_logits_give_the_logprobs_and_the_greedy_tokens(tmp_path, backend):
    dump = tmp_path / "logits.safetensors"
    done = score(tmp_path, INPUTS, "--dump-logits", dump, "--backend", backend)
    assert done.code == 0, done.errors
    file = SafetensorsFile(dump)
    assert sorted(file.names()) == ["1", "one", "single"]
    for name, answer in zip(["one", "1", "single"], done.objects()):
        rows = file.raw(name).data
        assert rows.dtype == np.float32 and rows.shape == (len(answer["tokens"]), 512)
        logprobs = log_softmax(rows)[np.arange(len(rows) - 1), answer["tokens"][1:]]
        assert np.allclose(logprobs, answer["logprobs"][1:], rtol=0, atol=1e-9)
    greedy = generate("--tokens", "0,5,6,7,8", "--max-tokens", 1, "--backend", backend)[0]["token_ids"][0]
    assert file.raw("one").data[-1].argmax() == greedy


def test_chunks_and_threads_give_the_same_bytes(tmp_path):
    line = [next(item for item in golden_inputs() if item["name"] == "len-64")]
    dumps = []
    for i, arguments in enumerate((["--threads", 1], ["--threads", 2, "--max-batch-tokens", 1], ["--max-batch-tokens", 7])):
        dump = tmp_path / f"{i}.safetensors"
        assert score(tmp_path, line, "--dump-logits", dump, *arguments).code == 0
        dumps.append(dump.read_bytes())
    assert dumps[0] == dumps[1] == dumps[2]


@pytest.mark.parametrize(
    "line,fragments",
    [
        ("{", ["not valid JSON"]),
        ('{"tokens":[]}', ["tokens", "at least one"]),
        ('{"tokens":[1,512]}', ["tokens[1] is 512", "512"]),
        ('{"tokens":[-1]}', ["tokens[0] is -1"]),
        ('{"tokens":[1],"text":"x"}', ["exactly one"]),
        ('{"name":"a"}', ["exactly one"]),
        ('{"name":"one","tokens":[1]}', ['"one"', "line 1"]),
        ('{"name":1,"tokens":[1]}', ["name is 1"]),
        ('{"tokens":[1],"weight":2}', ['"weight"']),
        ('{"tokens":[1],"tokens":[2]}', ["twice"]),
        ('{"text":"\\udc00"}', ["not valid JSON"]),
        (json.dumps({"tokens": [1] * 17}), ["17 tokens", "16"]),
    ],
)
def test_the_whole_input_is_checked_before_any_work(tmp_path, line, fragments):
    output, dump = tmp_path / "out.jsonl", tmp_path / "logits.safetensors"
    done = score(tmp_path, [*INPUTS, line], "--output", output, "--dump-logits", dump, "--context", 16)
    refused(done, 2, "--input", "line 4", *fragments)
    assert not output.exists() and not dump.exists()


def test_names_of_a_dump_must_differ_from_line_numbers(tmp_path):
    lines = [{"tokens": [1]}, {"name": "0", "tokens": [2]}]
    refused(score(tmp_path, lines, "--dump-logits", tmp_path / "x"), 2, "line 2", '"0"')
    assert score(tmp_path, lines).code == 0
    refused(score(tmp_path, [{"name": "", "tokens": [2]}], "--dump-logits", tmp_path / "x"), 2, "--dump-logits")


def test_files_that_cannot_be_written_are_told(tmp_path):
    refused(score(tmp_path, INPUTS, "--output", "/no/such/out"), 2, "--output /no/such/out")
    refused(score(tmp_path, INPUTS, "--dump-logits", "/no/such/dump"), 2, "/no/such/dump")


def test_golden_inputs_are_read_as_they_are(tmp_path):
    answers = ok("score", "--model", MODEL, "--input", GOLDEN / "inputs.jsonl").objects()
    assert [(a["name"], a["tokens"]) for a in answers] == [(i["name"], i["tokens"]) for i in golden_inputs()]


def test_no_file_is_overwritten_by_accident(tmp_path):
    source = json_lines(tmp_path / "in.jsonl", INPUTS)
    before = source.read_text()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for arguments in (
        ["--output", source],
        ["--dump-logits", source],
        ["--output", tmp_path / "o", "--dump-logits", tmp_path / "o"],
        ["--dump-logits", tmp_path / "link"],
        ["--dump-logits", tmp_path],
        ["--dump-logits", "-"],
    ):
        done = run("score", "--model", MODEL, "--input", source, *arguments)
        assert done.code == 2 and len(done.errors) == 1, (arguments, done.errors)
        assert source.read_text() == before and not (tmp_path / "o").exists() and (tmp_path / "link").is_symlink()


def test_deeply_nested_lines_are_refused(tmp_path):
    refused(score(tmp_path, ['{"tokens":%s%s}' % ("[" * 200_000, "]" * 200_000)]), 2, "line 1", "nested deeper than")
