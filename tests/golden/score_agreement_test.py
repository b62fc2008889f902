"""`deepinfer score --dump-logits` against the third party's logits, by the measure of golden-v41/README.md.

Limits are those of thresholds.json; tools/compare_logits.py computes the measure. Run:

    DEEPINFER_BIN=build/deepinfer python -m pytest tests/golden/score_agreement_test.py
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import compare_logits  # noqa: E402
from safetensors_io import SafetensorsFile  # noqa: E402

PROGRAM = os.environ.get("DEEPINFER_BIN", str(ROOT / "build" / "deepinfer"))
GOLDEN = ROOT / "tests" / "golden" / "golden-v41"
SHORT = 40  # tokens, of the inputs that `same` and `late` count


@pytest.mark.parametrize(
    "arguments",
    [["--backend", "ref"], ["--backend", "cpu"], ["--backend", "cpu", "--max-batch-tokens", "5"]],
    ids=["ref", "cpu", "cpu-chunks-of-5"],
)
def test_agreement(tmp_path, arguments, capsys):
    dump = tmp_path / "logits.safetensors"
    command = [PROGRAM, "score", "--model", GOLDEN / "checkpoint", "--input", GOLDEN / "inputs.jsonl", "--output",
               tmp_path / "scores.jsonl", "--dump-logits", dump, *arguments]
    subprocess.run(command, check=True, timeout=600)
    summary = compare_logits.summarise(compare_logits.against_golden(GOLDEN, SafetensorsFile(dump)), SHORT)
    with capsys.disabled():
        print("\n ", " ".join(arguments), " ".join(f"{name} {value:.4g}" for name, value in summary.items()))
    assert not compare_logits.failures(summary, json.loads((GOLDEN / "thresholds.json").read_text()))
