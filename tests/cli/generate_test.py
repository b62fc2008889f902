"""`deepinfer generate`: shape of the answers, determinism, stopping, and what the numbers mean."""

import json
import os
import subprocess

import pytest

from conftest import MODEL, PROGRAM, TIMEOUT_S, generate, golden_inputs, json_lines, ok, refused, run

LONG = next(item["tokens"] for item in golden_inputs() if item["name"] == "len-64")
IDS = ["--tokens", ",".join(map(str, LONG))]
SAMPLED = [*IDS, "--temperature", 1, "--seed", 7, "--max-tokens", 24]


def token_ids(*arguments):
    return [answer["token_ids"] for answer in generate(*arguments)]


def pieces_of(ids):
    """Text that each id adds."""
    line = json.dumps({"ids": ids, "stream": True})
    return ok("tokenize", "--model", MODEL, "--json", stdin=line + "\n").objects()[0]["pieces"]


@pytest.mark.parametrize("backend", ["cpu", "ref"])
def test_json_has_the_promised_members_in_order(backend):
    answer = generate("--prompt", "hello", "--max-tokens", 3, "--backend", backend)[0]
    assert list(answer) == ["text", "token_ids", "finish_reason", "usage"]
    assert list(answer["usage"]) == ["prompt_tokens", "completion_tokens"]
    assert answer["finish_reason"] == "length" and answer["usage"]["completion_tokens"] == len(answer["token_ids"]) == 3
    answer = generate("--prompt", "hello", "--max-tokens", 3, "--logprobs", 2, "--stats", "--backend", backend)[0]
    assert list(answer) == ["text", "token_ids", "finish_reason", "usage", "logprobs", "stats"]
    assert [entry["token_id"] for entry in answer["logprobs"]] == answer["token_ids"]
    for entry in answer["logprobs"]:
        assert len(entry["top"]) == 2 and entry["top"][0] == {"token_id": entry["token_id"], "logprob": entry["logprob"]}
    assert answer["stats"]["decode_steps"] == 2


def test_text_prompt_gets_one_begin_token():
    plain = generate("--prompt", "hello", "--max-tokens", 0)[0]["usage"]["prompt_tokens"]
    given = generate("--prompt", "<｜begin▁of▁sentence｜>hello", "--max-tokens", 0)[0]["usage"]["prompt_tokens"]
    ordinary = generate("--prompt", "<｜begin▁of▁sentence｜>hello", "--no-special", "--max-tokens", 0)[0]["usage"]["prompt_tokens"]
    assert given == plain < ordinary
    assert generate("--tokens", "5,6,7", "--max-tokens", 0)[0]["usage"]["prompt_tokens"] == 3


def test_prompt_file_is_the_prompt(tmp_path):
    file = tmp_path / "prompt.txt"
    file.write_text("naïve\n")
    expected = generate("--prompt", "naïve\n", "--max-tokens", 4)
    assert generate("--prompt-file", file, "--max-tokens", 4) == expected
    assert generate("--prompt-file", "-", "--max-tokens", 4, stdin="naïve\n") == expected
    file.write_bytes(b"ab\xc3")
    refused(run("generate", "--model", MODEL, "--prompt-file", file), 2, "--prompt-file", "UTF-8 at byte 2")


def test_running_text_equals_the_text_of_json():
    text = generate(*SAMPLED)[0]["text"]
    done = ok("generate", "--model", MODEL, *SAMPLED)
    assert done.out == text + "\n" and done.errors == []
    answers = [answer["text"] for answer in generate(*SAMPLED, "--n", 3)]
    expected = "\n".join(f"--- answer {i + 1} of 3 ---\n{text}" for i, text in enumerate(answers))
    assert ok("generate", "--model", MODEL, *SAMPLED, "--n", 3).out == expected + "\n"


def test_stats_go_to_standard_error():
    done = ok("generate", "--model", MODEL, *SAMPLED, "--stats", "--log-level", "quiet")
    assert len(done.errors) == 1 and "prompt 64 tokens" in done.errors[0]


# --- determinism ------------------------------------------------------------------------------------------------------


def test_same_seed_same_tokens_and_another_seed_others():
    assert token_ids(*SAMPLED) == token_ids(*SAMPLED)
    assert token_ids(*SAMPLED) != token_ids(*SAMPLED[:-3], 8, *SAMPLED[-2:])


def test_sequences_of_n_differ_and_the_first_is_that_of_the_seed():
    four = token_ids(*SAMPLED, "--n", 4)
    assert len({tuple(ids) for ids in four}) == 4
    assert four[0] == token_ids(*SAMPLED)[0]
    assert token_ids(*SAMPLED, "--n", 4) == four


@pytest.mark.parametrize("backend", ["cpu", "ref"])
def test_tokens_and_logprobs_do_not_depend_on_threads_or_chunks(backend):
    common = [*SAMPLED, "--logprobs", 3, "--backend", backend]
    expected = generate(*common)
    for arguments in (["--threads", 1], ["--threads", 2], ["--max-batch-tokens", 1], ["--max-batch-tokens", 7],
                      ["--max-batch-tokens", 64], ["--context", 200], ["--kv-bytes", "16M"], ["--prefill-tail", "exact"]):
        assert generate(*common, *arguments) == expected, arguments


def test_settings_that_mean_greedy_are_greedy():
    greedy = token_ids(*IDS, "--max-tokens", 12)
    for arguments in (["--temperature", "1e-30"], ["--temperature", "1e-6"], ["--temperature", 1, "--top-k", 1],
                      ["--temperature", 1, "--top-p", 0], ["--temperature", 1, "--min-p", 1], ["--seed", 2**64 - 1]):
        assert token_ids(*IDS, "--max-tokens", 12, *arguments) == greedy, arguments


def test_settings_that_mean_off_are_off():
    expected = token_ids(*SAMPLED)
    for arguments in (["--top-k", 0], ["--top-k", -1], ["--top-k", 512], ["--top-k", 513], ["--top-k", 2**31],
                      ["--top-p", 1], ["--min-p", 0]):
        assert token_ids(*SAMPLED, *arguments) == expected, arguments
    assert token_ids(*SAMPLED[:2], "--temperature", "1e9", "--max-tokens", 4)


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_max_tokens_zero_and_one():
    answer = generate(*IDS, "--max-tokens", 0, "--logprobs", 1)[0]
    assert answer == {"text": "", "token_ids": [], "finish_reason": "length",
                      "usage": {"prompt_tokens": 64, "completion_tokens": 0}, "logprobs": []}
    assert ok("generate", "--model", MODEL, *IDS, "--max-tokens", 0).out == "\n"
    assert len(token_ids(*IDS, "--max-tokens", 1)[0]) == 1


def test_the_context_bounds_the_answer():
    answer = generate(*IDS, "--context", 70, "--max-tokens", 100)[0]
    assert answer["finish_reason"] == "length" and len(answer["token_ids"]) == 6
    assert generate(*IDS, "--context", 64)[0]["token_ids"] == []


def test_stop_ids_end_and_are_left_out():
    full = generate(*SAMPLED, "--logprobs", 0)[0]
    for position in (0, 5):
        stop = full["token_ids"][position]
        first = full["token_ids"].index(stop)
        answer = generate(*SAMPLED, "--logprobs", 0, "--stop-id", 511, "--stop-id", stop)[0]
        if 511 in full["token_ids"][:first]:
            continue
        assert answer["finish_reason"] == "stop" and answer["token_ids"] == full["token_ids"][:first]
        assert answer["logprobs"] == full["logprobs"][:first]


def test_stop_strings_are_found_across_tokens_and_left_out():
    full = generate(*SAMPLED)[0]
    pieces = pieces_of(full["token_ids"])
    n_tried = 0
    for left in range(2, len(pieces) - 2):
        if not pieces[left] or not pieces[left + 1]:
            continue
        stop = pieces[left][-1] + pieces[left + 1][0]
        end = full["text"].find(stop)
        if "\ufffd" in stop or end < 0:
            continue
        n_tried += 1
        answer = generate(*SAMPLED, "--stop", "never there", "--stop", stop)[0]
        assert answer["finish_reason"] == "stop" and answer["text"] == full["text"][:end]
        kept = answer["token_ids"]
        assert kept == full["token_ids"][: len(kept)]
        assert answer["usage"]["completion_tokens"] == len(kept)
        assert answer["text"].startswith("".join(pieces[: len(kept)]))
        assert ok("generate", "--model", MODEL, *SAMPLED, "--stop", stop).out == answer["text"] + "\n"
        if n_tried == 4:
            break
    assert n_tried > 0


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["cpu", "ref"])
def test_logprobs_are_those_of_score(tmp_path, backend):
    answer = generate(*SAMPLED, "--logprobs", 0, "--backend", backend)[0]
    file = json_lines(tmp_path / "in.jsonl", [{"tokens": LONG + answer["token_ids"]}])
    scored = ok("score", "--model", MODEL, "--input", file, "--backend", backend).objects()[0]
    assert [entry["logprob"] for entry in answer["logprobs"]] == scored["logprobs"][64:]


def test_prefill_policies_run():
    assert len(token_ids(*IDS, "--prefill-tail", "compact", "--max-tokens", 4)[0]) == 4
    assert len(token_ids(*IDS, "--numerics", "reference", "--max-tokens", 4)[0]) == 4
    assert len(token_ids(*IDS, "--numerics", "fast", "--max-tokens", 4)[0]) == 4


# --- when nobody listens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_closed_pipe_ends_the_program_with_one_line(form):
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run([PROGRAM, "generate", "--model", MODEL, *map(str, SAMPLED), *form],
                             stdout=write_end, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    os.close(write_end)
    assert process.returncode == 2 and process.stderr.decode().splitlines() == ["deepinfer: standard output: Broken pipe"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_is_told():
    with open("/dev/full", "wb") as full:
        process = subprocess.run([PROGRAM, "generate", "--model", MODEL, *map(str, SAMPLED)],
                                 stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    assert process.returncode == 2 and b"No space left" in process.stderr


def test_compact_rows_change_what_compact_sees_and_a_variable_sets_them_too():
    """On 60 tokens, 4 kept rows are too few for the late layers' window of 8; 15 are all that the last token needs."""
    tokens = ["--tokens", ",".join(str(3 + 7 * i % 450) for i in range(60)), "--max-tokens", 1, "--logprobs", 4]
    full = generate(*tokens)[0]["logprobs"]
    compact = [*tokens, "--prefill-tail", "compact"]
    assert generate(*compact, "--compact-rows", 15)[0]["logprobs"] == full
    few = generate(*compact, "--compact-rows", 4)[0]["logprobs"]
    assert few != full
    assert generate(*compact, environment={"DEEPINFER_YOCO_PREFILL_KEEP_TOKENS": "4"})[0]["logprobs"] == few
