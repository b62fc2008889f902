"""`deepinfer grammar check` as a function, and where the public suites lie."""

import json
import lzma
import os
import pathlib
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("DEEPINFER_BIN", str(ROOT / "build" / "deepinfer"))
MINI = ROOT / "models" / "mini"
DATA = pathlib.Path(os.environ["DEEPINFER_TEST_DATA"]) if "DEEPINFER_TEST_DATA" in os.environ else None
OUTER = {name: value for name, value in os.environ.items() if not name.startswith("DEEPINFER_")}


def run(*options, stdin=b"", model=MINI, timeout=600):
    """The finished process. What the program itself calls a bug is one, whatever it answers."""
    done = subprocess.run([PROGRAM, "grammar", "check", "--model", str(model), *map(str, options)], input=stdin,
                          capture_output=True, timeout=timeout, check=False, env=OUTER)
    assert "BUG" not in done.stderr.decode(), done.stderr.decode()[:5000]
    return done


def answers(cases, *options, **keywords):
    """One answer a case: {"name"?, "schema", "tests"?}, or its line."""
    lines = [case if isinstance(case, str) else json.dumps(case, ensure_ascii=False) for case in cases]
    done = run("--input", "-", *options, stdin="".join(line.rstrip("\n") + "\n" for line in lines).encode(), **keywords)
    assert done.returncode == 0, done.stderr.decode()[:2000] + done.stdout.decode()[:2000]
    result = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    assert len(result) == len(lines)
    return result


def judge(schema, valid=(), invalid=(), *options):
    """The schema is accepted, and so are the valid instances and no invalid one."""
    (answer,) = answers([{"schema": schema, "tests": [{"data": data} for data in [*valid, *invalid]]}], *options)
    assert answer["accepted"], answer
    wanted = [True] * len(valid) + [False] * len(invalid)
    wrong = [data for data, got, want in zip([*valid, *invalid], answer["results"], wanted) if got != want]
    assert not wrong, wrong
    return answer


def refusal(schema, *options):
    (answer,) = answers([{"schema": schema}], *options)
    assert not answer["accepted"], answer
    return answer["refused"]


def texts(folder, option, value, *names_of_texts, raw=True, options=()):
    """Whether each text is accepted under one constraint; the texts are files, tried as they are."""
    files = []
    for i, text in enumerate(names_of_texts):
        file = folder / f"text{i}"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        files += ["--instance", file]
    done = run(option, value, "--json", *files, *(["--raw"] if raw and files else []), *options)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def maskbench():
    """The lines of the development set."""
    with lzma.open(DATA / "maskbench-dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        return lines.read().rstrip("\n").split("\n")


def unpack_suite(folder):
    with tarfile.open(DATA / "json-schema-test-suite.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder
