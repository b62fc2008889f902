"""Options, environment variables and bad model directories: exit codes and the one line that says why."""

import json
import os
import shutil

import pytest

from conftest import MODEL, generate, ok, refused, run

PROMPT = ["--prompt", "hi"]

# arguments of generate besides the model, exit code, pieces of the message
BAD_GENERATE = [
    ([*PROMPT, "--top-p", "1.5"], 2, ["--top-p 1.5", "between 0 and 1"]),
    ([*PROMPT, "--top-p", "-0.1"], 2, ["--top-p -0.1"]),
    ([*PROMPT, "--top-p", "nan"], 2, ["--top-p nan", "between 0 and 1"]),
    ([*PROMPT, "--min-p", "1.1"], 2, ["--min-p 1.1", "between 0 and 1"]),
    ([*PROMPT, "--min-p", "NaN"], 2, ["--min-p NaN"]),
    ([*PROMPT, "--temperature", "nan"], 2, ["--temperature nan", "finite"]),
    ([*PROMPT, "--temperature", "inf"], 2, ["--temperature inf", "finite"]),
    ([*PROMPT, "--temperature", "-1"], 2, ["--temperature -1", "at least 0"]),
    ([*PROMPT, "--temperature", "1e39"], 2, ["--temperature 1e39"]),
    ([*PROMPT, "--temperature", "1e999"], 2, ["--temperature 1e999"]),
    ([*PROMPT, "--temperature", "0.5x"], 2, ["--temperature 0.5x"]),
    ([*PROMPT, "--temperature", ""], 2, ["--temperature"]),
    ([*PROMPT, "--top-k", "-2"], 2, ["--top-k -2", "-1"]),
    ([*PROMPT, "--top-k", "1.5"], 2, ["--top-k 1.5", "whole number"]),
    ([*PROMPT, "--max-tokens", "-1"], 2, ["--max-tokens -1", "between 0 and 16777216"]),
    ([*PROMPT, "--max-tokens", "99999999999999999999"], 2, ["--max-tokens", "between"]),
    ([*PROMPT, "--seed", "x"], 2, ["--seed x", "18446744073709551615"]),
    ([*PROMPT, "--seed", "-1"], 2, ["--seed -1"]),
    ([*PROMPT, "--seed", "18446744073709551616"], 2, ["--seed 18446744073709551616"]),
    ([*PROMPT, "--n", "0"], 2, ["--n 0", "between 1 and 128"]),
    ([*PROMPT, "--n", "129"], 2, ["--n 129"]),
    ([*PROMPT, "--json", "--logprobs", "1000000"], 2, ["--logprobs 1000000", "1024"]),
    ([*PROMPT, "--json", "--logprobs", "-1"], 2, ["--logprobs -1"]),
    ([*PROMPT, "--logprobs", "2"], 2, ["--logprobs 2", "--json"]),
    ([*PROMPT, "--stop", ""], 2, ["--stop", "between 1 and 4096"]),
    ([*PROMPT, "--stop", "x" * 4097], 2, ["--stop", "4096"]),
    ([*PROMPT, "--stop-id", "-1"], 2, ["--stop-id -1"]),
    ([*PROMPT, "--stop-id", "151645"], 2, ["stop id", "151645", "511"]),
    ([*PROMPT, "--threads", "0"], 2, ["--threads 0", "1024"]),
    ([*PROMPT, "--context", "0"], 2, ["--context 0"]),
    ([*PROMPT, "--context", "5000"], 2, ["5000", "4096"]),
    ([*PROMPT, "--kv-bytes", "12Q"], 2, ["--kv-bytes 12Q"]),
    ([*PROMPT, "--kv-bytes", "0"], 2, ["--kv-bytes 0"]),
    ([*PROMPT, "--kv-bytes", "9999999999G"], 2, ["--kv-bytes 9999999999G"]),
    ([*PROMPT, "--kv-bytes", "1"], 4, ["kv-bytes", "1"]),
    ([*PROMPT, "--max-batch-tokens", "0"], 2, ["--max-batch-tokens 0", "65536"]),
    ([*PROMPT, "--backend", "cuda"], 2, ["cuda", "not in this build", "cpu", "ref"]),
    ([*PROMPT, "--backend", "tpu"], 2, ["--backend tpu", "cpu"]),
    ([*PROMPT, "--numerics", "exact"], 2, ["--numerics exact", "deterministic"]),
    ([*PROMPT, "--numerics", "reference", "--backend", "cpu"], 2, ["cpu", "reference"]),
    ([*PROMPT, "--prefill-tail", "half"], 2, ["--prefill-tail half", "compact"]),
    ([*PROMPT, "--compact-rows", "0"], 2, ["--compact-rows 0", "65536"]),
    ([*PROMPT, "--spec", "auto"], 2, ["--spec auto", "off"]),
    ([*PROMPT, "--spec", "fixed:3"], 2, ["--spec fixed:3", "off"]),
    ([*PROMPT, "--verify", "coupled"], 2, ["--verify", "not available"]),
    ([*PROMPT, "--prefix-replay", "exact"], 2, ["--prefix-replay exact", "off"]),
    ([*PROMPT, "--max-seqs", "4"], 2, ["--max-seqs 4", "1"]),
    ([*PROMPT, "--log-level", "loud"], 2, ["--log-level loud", "quiet"]),
    ([*PROMPT, "--frobnicate"], 2, ["unknown option --frobnicate", "--help"]),
    ([*PROMPT, "stray"], 2, ["unexpected argument stray", "--help"]),
    ([*PROMPT, "--seed", "1", "--seed", "2"], 2, ["--seed is given twice"]),
    ([*PROMPT, "--seed"], 2, ["--seed needs a value"]),
    ([*PROMPT, "--json=yes"], 2, ["--json takes no value"]),
    ([], 2, ["exactly one of --prompt"]),
    ([*PROMPT, "--tokens", "1"], 2, ["exactly one of --prompt"]),
    (["--prompt", ""], 2, ["--prompt", "empty"]),
    (["--prompt", b"ab\xff"], 2, ["--prompt", "UTF-8 at byte 2"]),
    (["--prompt", b"\xe2\x82"], 2, ["--prompt", "UTF-8 at byte 0"]),
    (["--prompt-file", "/no/such/file"], 2, ["--prompt-file /no/such/file", "No such file"]),
    (["--prompt-file", "/"], 2, ["--prompt-file /", "directory"]),
    (["--prompt-file", "/dev/null"], 2, ["--prompt-file /dev/null", "empty"]),
    (["--tokens", ""], 2, ["--tokens"]),
    (["--tokens", "1,,2"], 2, ["--tokens 1,,2", "position 1"]),
    (["--tokens", "1,-1"], 2, ["-1", "position 1"]),
    (["--tokens", "1,1000000000"], 2, ["1000000000", "position 1", "511"]),
    (["--tokens", "1,99999999999"], 2, ["99999999999"]),
    (["--tokens", "1,512"], 2, ["512", "511"]),
    (["--tokens", ",".join(["5"] * 9), "--context", "8"], 2, ["9 tokens", "8"]),
    ([*PROMPT, "--image"], 2, ["--image", "not available"]),
    ([*PROMPT, "--regex", "a", "--json-object"], 2, ["--regex", "--json-object", "exclude"]),
    ([*PROMPT, "--regex", b"\xff"], 2, ["--regex", "UTF-8 at byte 0"]),
    ([*PROMPT, "--regex", "a", "--format", "assert"], 2, ["--format", "schema"]),
    ([*PROMPT, "--json-object", "--whitespace", "-1,2"], 2, ["--whitespace -1,2", "between 0 and 1000"]),
    *[([*PROMPT, option, "on"], 2, [option, "needs --chat"]) for option in ("--system", "--thinking", "--tools")],
    (["--chat", "--tokens", "1"], 2, ["--chat", "--tokens"]),
    ([*PROMPT, "--chat", "--no-special"], 2, ["--no-special", "--chat"]),
    ([*PROMPT, "--chat", "--thinking", "0"], 2, ["--thinking 0", "between 1 and 100"]),
    ([*PROMPT, "--chat", "--thinking", "101"], 2, ["--thinking 101", "between 1 and 100"]),
    ([*PROMPT, "--chat", "--system", b"\xff"], 2, ["--system", "UTF-8 at byte 0"]),
    ([*PROMPT, "--chat", "--tools", "/no/such/file"], 2, ["--tools /no/such/file", "No such file"]),
    ([*PROMPT, "--chat", "--tools", "/dev/null"], 2, ["--tools /dev/null", "not valid JSON"]),
]


@pytest.mark.parametrize("arguments,code,fragments", BAD_GENERATE, ids=lambda x: None if not isinstance(x, list) else str(x)[:60])
def test_bad_generate(arguments, code, fragments):
    refused(run_raw(arguments), code, *fragments)


def run_raw(arguments):
    """Arguments may be bytes that are no text."""
    return run("generate", "--model", MODEL, *[a.decode("utf-8", "surrogateescape") if isinstance(a, bytes) else a for a in arguments])


@pytest.mark.parametrize(
    "arguments,code,fragments",
    [
        ([], 2, ["command", "--help"]),
        (["frobnicate"], 2, ["unknown command frobnicate"]),
        (["--frobnicate"], 2, ["--frobnicate"]),
        *[([name], 2, [name, "not available"]) for name in ("chat", "serve")],
        (["grammar"], 2, ["grammar check"]),
        (["grammar", "compile"], 2, ["grammar compile", "check"]),
        (["grammar", "check"], 2, ["exactly one", "--json-schema"]),
        (["bench", "grammar"], 2, ["--input"]),
        (["render"], 2, ["--api"]),
        (["render", "--api", "smoke"], 2, ["--api smoke", "chat, messages, responses"]),
        (["bench"], 2, ["kernels", "prefill", "decode"]),
        (["bench", "all"], 2, ["all", "kernels"]),
        *[(["bench", name], 2, [name, "not available"]) for name in ("sweep", "serve")],
        (["bench", "kernels", "--plot", "x.png"], 2, ["--plot", "not available"]),
        (["bench", "kernels", "--small", "--filter", "no such case"], 2, ["no such case"]),
        (["bench", "prefill", "--model", MODEL, "--tokens", "0"], 2, ["--tokens 0"]),
        (["bench", "prefill", "--model", MODEL, "--tokens", "5000"], 2, ["5000", "4096"]),
        (["bench", "decode", "--model", MODEL, "--runs", "1"], 2, ["--runs 1"]),
        (["generate", "--model", "", *PROMPT], 2, ["--model"]),
        (["batch", "--model", MODEL, "--input", "x"], 2, ["--output"]),
        (["batch", "--model", MODEL, "--output", "x"], 2, ["--input"]),
        (["batch", "--model", MODEL, "--input", "/no/such", "--output", "/dev/null"], 2, ["--input /no/such"]),
        (["score", "--model", MODEL], 2, ["--input"]),
        (["score", "--model", MODEL, "--input", "-", "--prefill-tail", "compact"], 2, ["--prefill-tail compact", "full"]),
        (["tokenize", "--model", MODEL, "--special", "--no-special"], 2, ["--special"]),
        (["inspect", "--model", MODEL, "--context", "5000"], 2, ["5000", "4096"]),
        (["doctor", "--model", MODEL], 2, ["unknown option --model"]),
    ],
    ids=lambda x: " ".join(map(str, x))[:60] if isinstance(x, list) else None,
)
def test_bad_usage(arguments, code, fragments):
    refused(run(*arguments), code, *fragments)


@pytest.mark.parametrize("command", ["generate", "batch", "score", "tokenize", "inspect", "doctor", "bench kernels", "bench prefill", "bench decode"])
def test_help_names_its_options(command):
    text = ok(*command.split(), "--help").out
    assert text.startswith(f"usage: deepinfer {command} ")
    assert all(line.startswith("  ") for line in text.splitlines()[1:])


def test_program_help_and_version():
    for command in ("generate", "batch", "score", "tokenize", "inspect", "doctor", "bench"):
        assert f"\n  {command} " in ok("--help").out
    assert ok("--version").out.startswith("deepinfer ")


def test_what_follows_an_option_is_its_value():
    assert generate("--prompt", "--help", "--max-tokens", 1)[0]["usage"]["prompt_tokens"] > 1
    assert generate("--prompt=[a,b]", "--max-tokens=1") == generate("--prompt", "[a,b]", "--max-tokens", "1")


# --- environment variables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variable,value,code,fragments",
    [
        ("DEEPINFER_ACCELERATOR", "nvidia", 2, ["cuda", "not in this build"]),
        ("DEEPINFER_ACCELERATOR", "ascend", 2, ["DEEPINFER_ACCELERATOR=ascend"]),
        ("DEEPINFER_HF_MODEL_DIR", "/no/such/model", 3, ["/no/such/model"]),
        ("DEEPINFER_BATCH_INVARIANT", "yes", 2, ["DEEPINFER_BATCH_INVARIANT=yes", "0, 1"]),
        ("DEEPINFER_ENABLE_MTP_VARLEN", "1", 2, ["DEEPINFER_ENABLE_MTP_VARLEN=1", "speculation"]),
        ("DEEPINFER_USE_NEXTN_DECODE", "5", 2, ["DEEPINFER_USE_NEXTN_DECODE=5", "speculation"]),
        ("DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE", "some", 2, ["DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE=some", "compact"]),
        ("DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", "0", 2, ["DEEPINFER_YOCO_PREFILL_KEEP_TOKENS=0", "65536"]),
    ],
)
def test_bad_variables(variable, value, code, fragments):
    model = [] if variable == "DEEPINFER_HF_MODEL_DIR" else ["--model", MODEL]
    refused(run("generate", *model, *PROMPT, environment={variable: value}), code, *fragments)


def test_variables_are_honoured_and_options_win():
    environment = {
        "DEEPINFER_HF_MODEL_DIR": str(MODEL),
        "DEEPINFER_ACCELERATOR": "ref",
        "DEEPINFER_BATCH_INVARIANT": "1",
        "DEEPINFER_ENABLE_MTP_VARLEN": "0",
        "DEEPINFER_USE_NEXTN_DECODE": "0",
        "DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE": "compact",
        "DEEPINFER_YOCO_PREFILL_KEEP_TOKENS": "140",
    }
    arguments = ["generate", *PROMPT, "--max-tokens", 2, "--stats"]
    assert any("backend ref" in line for line in ok(*arguments, environment=environment).errors)
    assert any("backend cpu" in line for line in ok(*arguments, "--backend", "cpu", environment=environment).errors)
    bad = {**environment, "DEEPINFER_ENABLE_MTP_VARLEN": "1", "DEEPINFER_ACCELERATOR": "ascend"}
    ok(*arguments, "--spec", "off", "--backend", "cpu", environment=bad)
    ok(*arguments, environment={**environment, "DEEPINFER_BATCH_INVARIANT": ""})


# --- model directories ------------------------------------------------------------------------------------------------


def damaged_index():
    index = json.loads((MODEL / "model.safetensors.index.json").read_text())
    name = next(iter(index["weight_map"]))
    index["weight_map"][name] = "../outside.safetensors"
    return json.dumps(index).encode()


def damaged_config(**changes):
    config = json.loads((MODEL / "config.json").read_text())
    config["text_config"].update(changes)
    return json.dumps(config).encode()


def tokenizer_with_duplicate_id():
    data = json.loads((MODEL / "tokenizer.json").read_text())
    first, second = list(data["model"]["vocab"])[:2]
    data["model"]["vocab"][second] = data["model"]["vocab"][first]
    return json.dumps(data).encode()


SHARD = "model-00001-of-00002.safetensors"


@pytest.mark.parametrize(
    "name,content,fragments",
    [
        ("config.json", None, ["config.json"]),
        ("config.json", b"{", ["config.json"]),
        ("config.json", damaged_config(kv_source_layer_ids=[1, 9]), ["kv_source_layer_ids"]),
        ("config.json", damaged_config(compress_ratios=[0, 2]), ["compress_ratios"]),
        ("config.json", damaged_config(hidden_size=-160), ["hidden_size", "-160"]),
        ("model.safetensors.index.json", damaged_index(), ["outside.safetensors"]),
        (SHARD, None, [SHARD]),
        (SHARD, b"\x00" * 7, [SHARD]),
        (SHARD, b"\xff" * 8 + b"{}", [SHARD]),
        (SHARD, (MODEL / SHARD).read_bytes()[:-100], [SHARD]),
        ("tokenizer.json", None, ["tokenizer.json"]),
        ("tokenizer.json", tokenizer_with_duplicate_id(), ["tokenizer.json"]),
    ],
    ids=lambda x: None if isinstance(x, (bytes, list)) else str(x),
)
def test_bad_model_directory(model_copy, name, content, fragments):
    folder, replace = model_copy
    replace(name, content)
    refused(run("generate", "--model", folder, *PROMPT), 3, *fragments)


def test_hub_cache_layout_works(tmp_path):
    """snapshots/<commit>/ holds links into blobs/, as the Hugging Face cache does."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for i, file in enumerate(sorted(MODEL.iterdir())):
        shutil.copy(file, blobs / f"{i:064x}")
        (snapshot / file.name).symlink_to(f"../../blobs/{i:064x}")
    arguments = ["--json", *PROMPT, "--max-tokens", 4]
    assert ok("generate", "--model", snapshot, *arguments).out == ok("generate", "--model", MODEL, *arguments).out


def test_inspect():
    facts = json.loads(ok("inspect", "--model", MODEL, "--json").out)
    assert facts["config"]["vocab_size"] == 512 and len(facts["layer_plan"]) == 6
    assert "layer_plan" in ok("inspect", "--model", MODEL).out
    refused(run("inspect", "--model", "/no/such/model"), 3, "/no/such/model")


@pytest.mark.parametrize(
    "tensor,bad",
    [
        ("layers.3.attn.wq_a.weight", b"\x7f"),  # E4M3 NaN
        ("layers.3.attn.wq_a.scale", b"\xff"),  # E8M0 NaN
        ("norm.weight", b"\xc0\x7f"),  # bf16 NaN
        ("layers.0.hc_attn_base", b"\x00\x00\x80\x7f"),  # fp32 infinity
    ],
)
@pytest.mark.parametrize("backend", ["ref", "cpu"])
def test_a_weight_that_is_no_number_is_refused_by_name(model_copy, backend, tensor, bad):
    folder, replace = model_copy
    shard = json.loads((MODEL / "model.safetensors.index.json").read_text())["weight_map"][tensor]
    content = bytearray((MODEL / shard).read_bytes())
    n_header = int.from_bytes(content[:8], "little")
    at = 8 + n_header + json.loads(content[8 : 8 + n_header])[tensor]["data_offsets"][0]
    content[at : at + len(bad)] = bad
    replace(shard, bytes(content))
    refused(run("generate", "--model", folder, *PROMPT, "--backend", backend), 3, tensor, "finite")


def test_a_pipe_in_place_of_the_tokenizer_is_refused(model_copy):
    folder, replace = model_copy
    replace("tokenizer.json", None)
    os.mkfifo(folder / "tokenizer.json")
    refused(run("generate", "--model", folder, *PROMPT), 3, "tokenizer.json")
