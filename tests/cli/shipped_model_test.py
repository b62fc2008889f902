"""The model that comes with the program: found from where the program lies, used when none is named, checked by doctor."""

import json
import pathlib
import shutil

import pytest

from conftest import MINI, MODEL, PROGRAM, ok, refused, run

ANSWER = ["generate", "--prompt", "The capital of France is", "--max-tokens", 4, "--json"]
SHARD = "model-00002-of-00003.safetensors"
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Tells the weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}  # fmt: skip


def lay_out(root, program, model):
    """A copy of the program, and the model's folder with links to its files; each at its place below `root`."""
    program, model = root / program, root / model
    program.parent.mkdir(parents=True)
    shutil.copy2(PROGRAM, program)
    model.mkdir(parents=True)
    for file in MINI.iterdir():
        (model / file.name).symlink_to(file)
    return program, model


@pytest.fixture(scope="module")
def source_tree(tmp_path_factory):
    return lay_out(tmp_path_factory.mktemp("source"), "build/deepinfer", "models/mini")


@pytest.fixture(scope="module")
def expected():
    return ok(*ANSWER, "--model", MINI).out


@pytest.fixture
def damaged(tmp_path):
    program, model = lay_out(tmp_path, "build/deepinfer", "models/mini")

    def replace(name, content):
        (model / name).unlink()
        if content is not None:
            (model / name).write_bytes(content)

    return program, model, replace


@pytest.fixture
def alone(tmp_path):
    """A program without a model."""
    program = tmp_path / "bin" / "deepinfer"
    program.parent.mkdir()
    return pathlib.Path(shutil.copy2(PROGRAM, program))


# --- where it lies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [[], ["--model", "mini"]], ids=["no --model", "--model mini"])
def test_a_source_tree_and_an_installed_program_find_it(tmp_path, source_tree, expected, model):
    program, _ = source_tree
    installed, _ = lay_out(tmp_path, "usr/bin/deepinfer", "usr/share/deepinfer/models/mini")
    assert ok(*ANSWER, *model, program=program, folder="/").out == expected
    assert ok(*ANSWER, *model, program=installed, folder=tmp_path).out == expected


def test_a_link_to_the_program_finds_it(tmp_path, source_tree, expected):
    link = tmp_path / "deepinfer"
    link.symlink_to(source_tree[0])
    assert ok(*ANSWER, program=link, folder=tmp_path).out == expected


def test_a_directory_called_mini_is_named_with_its_path(tmp_path, source_tree):
    program, model = source_tree
    (tmp_path / "mini").symlink_to(MODEL)

    def model_of(*arguments, **environment):
        done = ok("inspect", "--json", *arguments, program=program, folder=tmp_path, environment=environment)
        return json.loads(done.out)["model"]

    assert model_of("--model", "./mini") == "./mini"
    assert model_of("--model", "mini") == str(model)
    assert model_of(DEEPINFER_HF_MODEL_DIR="mini") == str(model)
    assert model_of(DEEPINFER_HF_MODEL_DIR=str(MODEL)) == str(MODEL)
    assert model_of("--model", "mini", DEEPINFER_HF_MODEL_DIR=str(MODEL)) == str(model)


# --- every command ----------------------------------------------------------------------------------------------------

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
COMMANDS = [
    (ANSWER, ""),
    (["batch", "--input", "-", "--output", "-"], '{"prompt":"a","max_tokens":1}'),
    (["score", "--input", "-"], '{"tokens":[0,1,2]}'),
    (["tokenize", "--json"], '{"text":"Hello"}'),
    (["render", "--api", "chat"], BODY),
    (["parse", "--api", "chat"], json.dumps({"request": json.loads(BODY), "chunks": ["Hi"], "finish": "stop"})),
    (["inspect", "--json"], ""),
    (["bench", "prefill", "--tokens", 4], ""),
    (["bench", "decode", "--tokens", 4, "--steps", 1], ""),
]


@pytest.mark.parametrize("arguments,line", COMMANDS, ids=lambda x: None if isinstance(x, str) else " ".join(map(str, x[:2])))
def test_a_command_uses_it_when_none_is_named(tmp_path, source_tree, arguments, line):
    assert ok(*arguments, stdin=line, program=source_tree[0], folder=tmp_path).objects()


@pytest.mark.parametrize("arguments", [*[a for a, _ in COMMANDS], ["bench", "protocol"]], ids=lambda x: " ".join(map(str, x[:2])))
def test_a_command_says_where_it_looked(alone, arguments):
    root = alone.parent.parent
    for model in ([], ["--model", "mini"]):
        done = run(*arguments, *model, program=alone)
        refused(done, 3, f"{root}/models/mini", f"{root}/share/deepinfer/models/mini", "--model DIR")
        assert done.out == ""


def test_a_bad_option_is_told_first(alone):
    refused(run(*ANSWER, "--top-p", 2, program=alone), 2, "--top-p 2")


def test_weights_that_are_not_there(damaged):
    program, model, replace = damaged
    replace(SHARD, None)
    refused(run(*ANSWER, program=program), 3, SHARD)
    replace("model.safetensors.index.json", None)
    refused(run(*ANSWER, program=program), 3, "weights", f"{model}/model.safetensors.index.json")


# --- what it is trained for -------------------------------------------------------------------------------------------


def test_a_turn_with_thinking(source_tree):
    done = ok("generate", "--chat", "--prompt", "What is 47 + 38?", "--max-tokens", 256, "--json", program=source_tree[0])
    (answer,) = done.objects()
    assert answer["text"] or answer["reasoning"]
    assert answer["finish_reason"] in ("stop", "length")


def test_a_turn_with_a_tool(tmp_path, source_tree):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([WEATHER]))
    arguments = ["--thinking", "off", "--tools", tools, "--prompt", "What is the weather in Oslo?", "--max-tokens", 128]
    (answer,) = ok("generate", "--chat", "--json", *arguments, program=source_tree[0]).objects()
    plain = ok("generate", "--chat", "--stats", *arguments, program=source_tree[0])
    assert answer["finish_reason"] in ("stop", "length", "tool_calls")
    calls = answer.get("tool_calls", [])
    assert calls or answer["finish_reason"] != "tool_calls"
    assert all(set(call) == {"name", "arguments"} for call in calls)
    lines = plain.out.removeprefix(answer["text"]).removesuffix("\n").splitlines()
    assert [json.loads(line) for line in lines if line or not answer["text"]] == calls
    assert plain.errors[-1].startswith("backend ") and plain.errors[-1].endswith(" tokens/s)")


# --- doctor -----------------------------------------------------------------------------------------------------------


def listed_files():
    return [MINI / line.split()[1] for line in (MINI / "SHA256SUMS").read_text().splitlines()]


def test_doctor_finds_it_complete(source_tree):
    program, model = source_tree
    facts = json.loads(ok("doctor", "--json", program=program, folder="/").out)
    assert set(facts["backends"]) >= {"cpu", "ref"}
    n_bytes = sum(file.stat().st_size for file in listed_files())
    assert facts["shipped_model"] == {"directory": str(model), "files": len(listed_files()), "bytes": n_bytes, "problems": []}
    (line,) = [line for line in ok("doctor", program=program).out.splitlines() if line.startswith("shipped_model")]
    assert line.startswith(f"shipped_model: complete and right ({len(listed_files())} files, ")


def test_the_list_covers_what_the_model_needs():
    shards = json.loads((MINI / "model.safetensors.index.json").read_text())["weight_map"].values()
    assert {file.name for file in listed_files()} >= {"config.json", "tokenizer.json", "model.safetensors.index.json", *shards}


def test_doctor_names_what_is_damaged(damaged):
    program, model, replace = damaged
    content = bytearray((MINI / SHARD).read_bytes())
    content[-1] ^= 1
    replace(SHARD, bytes(content))
    replace("tokenizer.json", None)
    problems = [f"{SHARD} is changed", "tokenizer.json is missing"]
    done = run("doctor", program=program)
    refused(done, 3, str(model), "2 of", "SHA256SUMS")
    assert [line.strip() for line in done.out.splitlines()][-2:] == problems
    done = run("doctor", "--json", program=program)
    refused(done, 3, str(model))
    assert json.loads(done.out)["shipped_model"]["problems"] == problems


@pytest.mark.parametrize("content", [None, b"", b"no sums\n", b"0" * 64 + b"  ../config.json\n"])
def test_doctor_needs_the_list(damaged, content):
    program, model, replace = damaged
    replace("SHA256SUMS", content)
    done = run("doctor", program=program)
    refused(done, 3, f"{model}/SHA256SUMS")
    assert "backends" in done.out


def test_doctor_without_it(alone):
    done = run("doctor", "--json", program=alone)
    refused(done, 3, f"{alone.parent.parent}/models/mini")
    facts = json.loads(done.out)
    assert "backends" in facts and len(facts["shipped_model"]["problems"]) == 1
    assert "directory" not in facts["shipped_model"]
