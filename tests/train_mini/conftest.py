"""Paths, and one small random checkpoint shared by the tests. Needs tools/requirements-train.txt; no GPU."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


def make_checkpoint(folder: pathlib.Path, **changes: object) -> pathlib.Path:
    """A random checkpoint of the tiny12 preset with some keys of its text_config changed."""
    preset = json.loads((ROOT / "tools/presets/tiny12.json").read_text())
    preset["text_config"].update(changes)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "given.json"
    config.write_text(json.dumps(preset))
    command = [sys.executable, ROOT / "tools/make_checkpoint.py", "--config", config, "--out", folder, "--seed", "3"]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="session")
def tiny12(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny12"))
