"""Command line of the reference; run from tools/:

python -m reference score       --model DIR --input FILE.jsonl [--output FILE.jsonl] [--dump-logits FILE.safetensors]
                                [--trace FILE.npz] [--prefill-tail full|compact] [--keep K] [--accumulate f64|f32]
python -m reference check-trace --model DIR --trace FILE.npz       compares layer by layer with a recorded trace

Input lines are {"name"?, "tokens": [...]} (ids as given) or {"name"?, "text"} (BOS in front); dumped tensors are called
by name, else by line number from 0: F32 [tokens, vocab], row i = logits after token i. Under `compact`, rows that were
not computed are NaN.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import weight_formats as formats
from safetensors_io import Raw, write_file

from .config import Config
from .model import Model
from .numerics import Arithmetic

# Trace arrays that hold bf16 values and are stored as bit patterns.
BF16_ARRAYS = {
    "streams_in", "streams_out", "engram_out", "attn_in", "attn_out", "qr", "window_kv", "compressed_kv",
    "index_k", "index_q", "ffn_in", "ffn_out", "tap",
}  # fmt: skip
INT16_ARRAYS = {"experts", "topk"}


def read_inputs(path: Path, model_dir: Path) -> list[tuple[str, list[int]]]:
    result = []
    for i, line in enumerate(path.read_text().splitlines()):
        item = json.loads(line)
        tokens = item["tokens"] if "tokens" in item else _encode(model_dir, item["text"])
        if not tokens:
            raise ValueError(f"{path} line {i}: no tokens")
        result.append((item.get("name", str(i)), tokens))
    names = [name for name, _ in result]
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: duplicate names")
    return result


def _encode(model_dir: Path, text: str) -> list[int]:
    from tokenizers import Tokenizer  # only text inputs need it

    bos = Config.read(model_dir).top["bos_token_id"]
    ids = Tokenizer.from_file(str(model_dir / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    return ids if ids[:1] == [bos] else [bos, *ids]


def as_recorded(name: str, value: Tensor) -> np.ndarray:
    kind = name.split("/")[-1]
    array = value.detach().numpy()
    if kind in BF16_ARRAYS:
        return formats.encode_bf16(array)
    return array.astype(np.int16) if kind in INT16_ARRAYS else array


def as_values(array: np.ndarray) -> np.ndarray:
    return formats.decode_bf16(array) if array.dtype == np.uint16 else array


def score(args: argparse.Namespace) -> None:
    model = Model.load(args.model, _arithmetic(args))
    inputs = read_inputs(args.input, args.model)
    keep = _keep(args, model.config)
    dumped: dict[str, Raw] = {}
    recorded: dict[str, np.ndarray] = {}
    answers = []
    for name, tokens in inputs:
        began = time.monotonic()
        trace: dict[str, Tensor] | None = {} if args.trace else None
        with torch.no_grad():
            logits = model.forward(tokens, keep=keep, trace=trace)
        print(f"{name}: {len(tokens)} tokens, {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        full = np.full((len(tokens), model.config.vocab_size), np.nan, np.float32)
        full[len(tokens) - len(logits) :] = logits.numpy()
        dumped[name] = Raw("F32", full)
        answers.append(_answer(name, tokens, full))
        prefix = f"{name}/" if len(inputs) > 1 else ""
        if trace is not None:
            recorded |= {prefix + key: as_recorded(key, value) for key, value in trace.items()}
            recorded[prefix + "tokens"] = np.array(tokens, np.int32)
    if args.dump_logits:
        write_file(args.dump_logits, dumped)
    if args.trace:
        np.savez_compressed(args.trace, **recorded)
    if args.output:
        args.output.write_text("".join(json.dumps(a) + "\n" for a in answers))


def _answer(name: str, tokens: list[int], logits: np.ndarray) -> dict[str, Any]:
    logprobs = torch.from_numpy(logits).double().log_softmax(-1).numpy()
    picked = [float(logprobs[i, t]) for i, t in enumerate(tokens[1:])]
    nll = -sum(picked)
    ppl = math.exp(nll / len(picked)) if picked else None
    return {"name": name, "tokens": tokens, "logprobs": [None, *picked], "nll": nll, "ppl": ppl}


def check_trace(args: argparse.Namespace) -> None:
    """One line per array: share of equal values, free-running and with every layer's input taken from the record."""
    record = np.load(args.trace)
    tokens = record["tokens"].tolist()
    model = Model.load(args.model, _arithmetic(args))
    forced = {
        layer: (torch.from_numpy(as_values(record[f"L{layer}/streams_in"])), torch.from_numpy(record[f"L{layer}/p_in"]))
        for layer in range(model.config.num_hidden_layers)
    }
    free: dict[str, Tensor] = {}
    each: dict[str, Tensor] = {}
    with torch.no_grad():
        model.forward(tokens, trace=free)
        model.forward(tokens, trace=each, forced=forced)
    print(f"{'array':22} {'free equal':>11} {'max diff':>9} | {'forced equal':>12} {'max diff':>9}")
    total = {"free": [0, 0], "forced": [0, 0]}
    for name in record.files:
        if name == "tokens":
            continue
        want = as_values(record[name])
        columns = []
        for label, trace in (("free", free), ("forced", each)):
            got = as_values(as_recorded(name, trace[name]))
            equal = got == want
            difference = np.abs(np.where(equal, 0, got.astype(np.float64) - np.where(equal, 0, want))).max()
            columns.append((100 * equal.mean(), difference))
            if name.split("/")[-1] in BF16_ARRAYS | INT16_ARRAYS:
                total[label][0] += int(equal.sum())
                total[label][1] += equal.size
        print(f"{name:22} {columns[0][0]:10.3f}% {columns[0][1]:9.2g} | {columns[1][0]:11.3f}% {columns[1][1]:9.2g}")
    for label, (same, size) in total.items():
        print(f"bf16 and integer arrays, {label}: {100 * same / size:.4f} % of {size} values equal")


def _arithmetic(args: argparse.Namespace) -> Arithmetic:
    return Arithmetic({"f64": torch.float64, "f32": torch.float32}[args.accumulate])


def _keep(args: argparse.Namespace, config: Config) -> int | None:
    if args.prefill_tail == "full":
        return None
    return args.keep or config.sliding_window + 2 * (config.dspark_block_size + 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="reference", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, run in (("score", score), ("check-trace", check_trace)):
        p = commands.add_parser(name)
        p.set_defaults(run=run)
        p.add_argument("--model", type=Path, required=True)
        p.add_argument("--accumulate", choices=["f64", "f32"], default="f64")
        p.add_argument("--threads", type=int, default=1, help="more pays off only on an otherwise idle machine")
        p.add_argument("--trace", type=Path, required=name == "check-trace")
        if name == "score":
            p.add_argument("--input", type=Path, required=True)
            p.add_argument("--output", type=Path)
            p.add_argument("--dump-logits", type=Path)
            p.add_argument("--prefill-tail", choices=["full", "compact"], default="full")
            p.add_argument("--keep", type=int, help="rows of the compact tail; default window + 2 (block + 1)")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.run(args)


if __name__ == "__main__":
    main()
