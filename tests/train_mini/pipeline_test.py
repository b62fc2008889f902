"""The one command on a toy: all stages, resumption, refusals, and what is exported."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import small
from equality_test import fast_logits, random_tokens, share_equal
from reference.config import Config
from reference.model import Model as Reference
from safetensors_io import SafetensorsFile
from train_mini import train
from train_mini.batches import DataSet, Notes, Packer
from train_mini.probe import draw_probe
from train_mini.rows import one_document

ENGINE = os.environ.get("DEEPINFER_BIN", str(small.ROOT / "build" / "deepinfer"))


def arguments(folder, *more):
    return train.arguments().parse_args([
        "--config", str(folder / "model"), "--data", str(folder / "data"), "--tokenizer",
        str(folder / "model/tokenizer.json"), "--run", str(folder / "run"), "--out", str(folder / "out"), "--cpu",
        "--rows", "128", "--length", "64", "--final-length", "128", "--text-sequences", "6", "--text-length", "24",
        "--calibration-batches", "1", "--max-steps", "2", "--max-waves", "1", "--log-every", "1", *more,
    ])  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("train")
    top = small.write_model_folder(folder / "model")
    tokenizer = (folder / "model/tokenizer.json").read_bytes()
    small.write_data(folder / "data", tokenizer, top["text_config"]["vocab_size"])
    train.Run(arguments(folder)).main()
    return folder


def test_all_stages_ran(trained):
    log = [json.loads(line) for line in (trained / "run/log.jsonl").read_text().splitlines()]
    assert [s for s in train.STAGES if any(line["stage"] == s for line in log)] == list(train.STAGES)
    assert all(np.isfinite(line["loss"]) for line in log if "loss" in line)
    stored = json.loads((trained / "out/dspark_temperatures.json").read_text())
    assert len(stored["temperatures"]) == 5


def test_drafts_are_counted_by_domain(trained):
    log = [json.loads(line) for line in (trained / "run/log.jsonl").read_text().splitlines()]
    (line,) = [line for line in log if line["stage"] == "calibration" and "rounds" in line]
    assert sum(group["rounds"] for group in line["domains"].values()) == line["rounds"]
    run = train.Run(arguments(trained))
    run.data.parts[0].name, run.data.parts[1].name = "code", "literature"
    got = run.by_domain(np.array([2, 4, 3]), np.array([0, 0, 1]))
    assert got == {
        "code and JSON": {"accepted_length": 3.0, "rounds": 2},
        "prose": {"accepted_length": 3.0, "rounds": 1},
    }


def test_reference_reads_the_export(trained):
    """tools/reference on the exported folder and the trainer's own rounding of its parameters: the same logits."""
    tokens = random_tokens(40, 512)
    want = Reference.load(trained / "out").forward(tokens)
    saved = train.load_state(trained / "run/last.pt")
    from reference.engram_hash import read_token_map
    from train_mini.model import Model
    from train_mini.numerics import Numerics
    from train_mini.ops import Ops

    config, nx = Config(saved["config"]), Numerics(exact=True)
    token_map = read_token_map(trained / "out", config.vocab_size, config.engram_compressed_vocab_size)
    model = Model(config, nx, Ops(config, nx), token_map)
    w = model.prepare(saved["trainer"]["parameters"], model.specs.backbone)
    with torch.no_grad():
        got = nx.linear32(model.forward(w, one_document(torch.tensor(tokens))).hidden, w["head"][0])
    assert share_equal(got, want) > 0.9
    assert share_equal(fast_logits(trained / "out", one_document(torch.tensor(tokens))), want) > 0.9


def test_engine_reads_the_export(trained, tmp_path):
    assert pathlib.Path(ENGINE).exists(), f"build the engine first: there is no {ENGINE}"
    tokens = random_tokens(40, 512)
    (tmp_path / "in.jsonl").write_text(json.dumps({"name": "a", "tokens": tokens}) + "\n")
    command = [ENGINE, "score", "--model", trained / "out", "--input", tmp_path / "in.jsonl"]
    command += ["--output", tmp_path / "scores.jsonl", "--dump-logits", tmp_path / "logits.safetensors"]
    subprocess.run(command, check=True, timeout=120)
    got = torch.from_numpy(np.array(SafetensorsFile(tmp_path / "logits.safetensors").raw("a").data))
    assert share_equal(got, Reference.load(trained / "out").forward(tokens)) > 0.3  # float32 sums


def test_finished_run_only_exports_again(trained):
    run = train.Run(arguments(trained))
    assert run.stage == "done"


def test_refusals(trained, tmp_path):
    with pytest.raises(ValueError, match="another seed"):
        train.Run(arguments(trained, "--seed", "9"))
    vocab = 512
    data = trained / "data"
    with pytest.raises(ValueError, match="vocab_size"):
        DataSet(data, vocab + 1)
    with pytest.raises(ValueError, match="another tokenizer"):
        DataSet(data, vocab, "0" * 64)
    for name, change in (("text.tokens", lambda b: b[:-2]), ("tasks.loss", lambda b: bytes([b[0] ^ 1]) + b[1:])):
        copy = tmp_path / name
        copy.mkdir()
        for file in data.iterdir():
            (copy / file.name).write_bytes(file.read_bytes())
        (copy / name).write_bytes(change((copy / name).read_bytes()))
        with pytest.raises(ValueError, match="partial"):
            DataSet(copy, vocab)
    saved = torch.load(trained / "run/last.pt", weights_only=True)
    saved["trainer"]["parameters"]["norm"][0] += 1
    torch.save(saved, tmp_path / "last.pt")
    with pytest.raises(ValueError, match="another fingerprint"):
        train.load_state(tmp_path / "last.pt")


def test_command_reports_by_name(tmp_path):
    small.write_model_folder(tmp_path / "model")
    command = [sys.executable, "-m", "train_mini.train", "--config", tmp_path / "model", "--data", tmp_path / "none"]
    command += ["--tokenizer", tmp_path / "model/tokenizer.json", "--run", tmp_path / "run", "--cpu"]
    done = subprocess.run(command, cwd=small.ROOT / "tools", capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "manifest.json" in done.stderr


def test_packing():
    """Documents keep their tokens, start at multiples of 8, and targets never cross into the next."""
    packer = Packer(2, 32, pad=2)
    docs = [np.arange(10, 21), np.arange(30, 50), np.arange(60, 69), np.arange(80, 100)]
    for doc in docs:
        packer.place(doc, np.ones(len(doc), bool), cut=0, may_cut=True)
    batch = packer.batch(window=4)
    starts = sorted(set(batch.rows.start[batch.weight > 0].tolist()))
    assert all(s % 8 == 0 for s in starts)
    t = torch.arange(64)
    counted = batch.weight > 0
    assert torch.equal(batch.target[counted], batch.rows.tokens[(t + 1)[counted]])
    assert torch.equal(batch.rows.start[counted], batch.rows.start[(t + 1)[counted]])


def test_tally_counts_answers_and_whole_documents():
    """Two documents of part 0, of which one misses a token, and one of part 1; text rows never count."""
    start = np.array([0] * 4 + [4] * 4 + [8] * 4, np.int32)
    part = np.array([0] * 8 + [1] * 4, np.int16)
    asked = np.array([0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0], bool)
    hit = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0], bool)
    counts = Notes(part, asked, start).tally(hit, ["a", "b"])
    assert [counts["a", k] for k in ("tokens", "right", "documents", "whole")] == [4, 3, 2, 1]
    assert [counts["b", k] for k in ("tokens", "right", "documents", "whole")] == [1, 1, 1, 1]


def test_half_of_the_probe_rows_are_favoured():
    favoured = torch.zeros(2 * 64, dtype=torch.bool)
    favoured[[5, 9]] = True  # of the first sequence; the second has none
    rows = draw_probe(favoured, 64, 8, torch.Generator().manual_seed(0)).rows
    assert rows.shape == (2, 8) and bool((rows[0] < 64).all()) and bool((rows[1] >= 64).all())
    assert int(favoured[rows[0]].sum()) >= 5
