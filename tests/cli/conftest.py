"""What the black-box tests of the program share: the program, the golden checkpoint, a way to run one on the other."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

PROGRAM = os.environ.get("DEEPINFER_BIN", str(ROOT / "build" / "deepinfer"))
GOLDEN = ROOT / "tests" / "golden" / "golden-v41"
MODEL = GOLDEN / "checkpoint"
MINI = ROOT / "models" / "mini"
TIMEOUT_S = 300


# A line of progress, which a slow machine shows every few seconds.
PROGRESS = re.compile(r"(loading|prompt|tokens|requests) (\d+%  )?[\d.]+( GB)?( of .*)?")


class Done:
    """Exit code, standard output as text, standard error as lines without those of progress."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout.decode()
        self.errors = [line for line in process.stderr.decode().splitlines() if not PROGRESS.fullmatch(line)]

    def objects(self):
        return [json.loads(line) for line in self.out.split("\n") if line]


def run(*arguments, stdin=b"", environment=None, program=PROGRAM, folder=None):
    """Variables of the outer shell that the program reads do not count."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("DEEPINFER_")}
    return Done(
        subprocess.run(
            [program, *map(str, arguments)],
            input=stdin if isinstance(stdin, bytes) else stdin.encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            cwd=folder,
            env={**outer, **(environment or {})},
            check=False,
        )
    )


def ok(*arguments, **keywords):
    """The same, where only success will do."""
    done = run(*arguments, **keywords)
    assert done.code == 0, done.errors
    return done


def refused(done, code, *fragments):
    """One line on standard error, with these pieces in it, and that exit code."""
    assert done.code == code, (done.code, done.out, done.errors)
    assert len(done.errors) == 1, done.errors
    assert done.errors[0].startswith("deepinfer: ")
    for fragment in fragments:
        assert fragment in done.errors[0], done.errors[0]


def generate(*arguments, **keywords):
    """Answers of `generate --json` on the golden checkpoint."""
    return ok("generate", "--model", MODEL, "--json", *arguments, **keywords).objects()


def json_lines(path, objects):
    path.write_text("".join((o if isinstance(o, str) else json.dumps(o)) + "\n" for o in objects))
    return path


def golden_inputs():
    return [json.loads(line) for line in (GOLDEN / "inputs.jsonl").read_text().splitlines()]


@pytest.fixture
def model_copy(tmp_path):
    """A folder of links to the golden checkpoint's files, for tests that damage one of them."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in MODEL.iterdir():
        (folder / file.name).symlink_to(file)

    def replace(name, content):
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)

    return folder, replace
