#!/usr/bin/env python3
"""Compares dumped logits with a golden folder, or two dumps with each other.

compare_logits.py GOLDEN_DIR DUMP.safetensors          expected.npz, inputs.jsonl, thresholds.json decide: PASS or FAIL
compare_logits.py DUMP.safetensors DUMP.safetensors    the first is the expectation; limits by --min-same and so on
                  [--per-input] [--json]

Rounding noise re-rolls a position's errors after a few layers, so the first number that means something is the share of
positions that are *equal* (rms difference of the expectation's 20 largest logits below 1e-3):
  same  share over positions of inputs of at most --short tokens (40)      late  those of them at position >= 16
  top1  share of positions with the expected best id                       kl    mean KL(expected || got)
  rms   median over positions of the rms difference of the 20 largest
`all` and `late_all` are same and late over every input. Against a golden folder kl uses the positions whose full rows
are recorded. NaN rows of a dump (not computed) are skipped. Exit 0: within limits, 1: not, 2: bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from safetensors_io import SafetensorsFile

EQUAL_RMS = 1e-3
TOP = 20
LATE = 16


class Positions(NamedTuple):
    """Per-position measures of one input."""

    rms: np.ndarray  # [T], NaN where not computed
    top1: np.ndarray  # [T] bool
    kl: np.ndarray  # one value per position with a full row


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def kl_divergence(expected: np.ndarray, got: np.ndarray) -> np.ndarray:
    p, q = log_softmax(expected), log_softmax(got)
    return (np.exp(p) * (p - q)).sum(-1)


def measure(ids: np.ndarray, values: np.ndarray, positions: np.ndarray, full: np.ndarray, got: np.ndarray) -> Positions:
    """ids, values [T, 20]: the expectation's largest logits; full [P, V]: its rows at `positions`; got [T, V]."""
    at_ids = np.take_along_axis(got, ids.astype(np.int64), 1).astype(np.float64)
    rms = np.sqrt(((at_ids - values) ** 2).mean(1))
    return Positions(rms, np.nan_to_num(got).argmax(1) == ids[:, 0], kl_divergence(full, got[positions]))


def against_golden(folder: Path, dump: SafetensorsFile) -> dict[str, Positions]:
    expected = np.load(folder / "expected.npz")
    result = {}
    for line in (folder / "inputs.jsonl").read_text().splitlines():
        item = json.loads(line)
        name, got = item["name"], dump.raw(item["name"]).data
        if len(got) != len(item["tokens"]):
            raise ValueError(f"{name}: {len(got)} rows dumped, {len(item['tokens'])} tokens given")
        ids, val, pos, full = (expected[f"{name}/{part}"] for part in ("ids", "val", "pos", "full"))
        result[name] = measure(ids, val, pos, full, got)
    return result


def against_dump(expected: SafetensorsFile, dump: SafetensorsFile) -> dict[str, Positions]:
    result = {}
    for name in expected.names():
        want, got = expected.raw(name).data, dump.raw(name).data
        if want.shape != got.shape:
            raise ValueError(f"{name}: shapes {list(want.shape)} and {list(got.shape)} differ")
        ids = np.argsort(-want, axis=1, kind="stable")[:, :TOP]
        result[name] = measure(ids, np.take_along_axis(want, ids, 1), np.arange(len(want)), want, got)
    return result


def summarise(inputs: dict[str, Positions], short: int) -> dict[str, float]:
    def share_equal(parts: list[np.ndarray]) -> float:
        rms = np.concatenate(parts) if parts else np.empty(0)
        rms = rms[~np.isnan(rms)]
        return float((rms < EQUAL_RMS).mean()) if len(rms) else float("nan")

    shorts = [p.rms for p in inputs.values() if len(p.rms) <= short]
    rms = np.concatenate([p.rms for p in inputs.values()])
    top1 = np.concatenate([p.top1 for p in inputs.values()])
    kl = np.concatenate([p.kl for p in inputs.values()])
    return {
        "same": share_equal(shorts),
        "late": share_equal([r[LATE:] for r in shorts]),
        "top1": float(top1[~np.isnan(rms)].mean()),
        "kl": float(np.nanmean(kl)),
        "kl_max": float(np.nanmax(kl)),
        "rms": float(np.nanmedian(rms)),
        "all": share_equal([p.rms for p in inputs.values()]),
        "late_all": share_equal([p.rms[LATE:] for p in inputs.values()]),
        "positions": int((~np.isnan(rms)).sum()),
    }


def failures(summary: dict[str, float], limits: dict[str, float]) -> list[str]:
    """`same`, `late` and `top1` are lower limits, `kl` and `rms` upper ones."""
    result = []
    for name, limit in limits.items():
        value = summary[name]
        if np.isnan(value):
            continue
        if (value < limit) if name in ("same", "late", "top1", "all", "late_all") else (value > limit):
            result.append(f"{name} {value:.4g} against the limit {limit:g}")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("expected", type=Path)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--short", type=int, default=40)
    parser.add_argument("--per-input", action="store_true")
    parser.add_argument("--json", action="store_true")
    for name in ("same", "late", "top1", "all"):
        parser.add_argument(f"--min-{name}", type=float)
    for name in ("kl", "rms"):
        parser.add_argument(f"--max-{name}", type=float)
    args = parser.parse_args()

    limits: dict[str, float] = {}
    try:
        dump = SafetensorsFile(args.dump)
        if args.expected.is_dir():
            limits = json.loads((args.expected / "thresholds.json").read_text())
            inputs = against_golden(args.expected, dump)
        else:
            inputs = against_dump(SafetensorsFile(args.expected), dump)
    except (OSError, KeyError, ValueError) as error:
        print(f"compare_logits: {error}", file=sys.stderr)
        return 2
    for name in ("same", "late", "top1", "all", "kl", "rms"):
        given = getattr(args, f"min_{name}", None), getattr(args, f"max_{name}", None)
        limits.update({name: limit for limit in given if limit is not None})

    summary = summarise(inputs, args.short)
    failed = failures(summary, limits)
    if args.json:
        numbers = {name: None if np.isnan(value) else value for name, value in summary.items()}
        print(json.dumps({**numbers, "limits": limits, "pass": not failed}))
    else:
        print_summary(summary, inputs if args.per_input else {}, failed)
    return 1 if failed else 0


def print_summary(summary: dict[str, float], inputs: dict[str, Positions], failed: list[str]) -> None:
    for name, p in inputs.items():
        equal = 100 * (p.rms < EQUAL_RMS).mean()
        top1, rms = 100 * p.top1.mean(), np.nanmedian(p.rms)
        print(f"{name:24} {len(p.rms):6} rows  equal {equal:5.1f} %  top-1 {top1:5.1f} %  median rms {rms:.2e}")
    print(
        "same {same:.1%}  late {late:.1%}  top-1 {top1:.1%}  mean KL {kl:.2e}  max KL {kl_max:.2e}  "
        "median rms {rms:.2e}  (every input: same {all:.1%}, late {late_all:.1%}; {positions} positions)".format(
            **summary
        )
    )
    print("FAIL: " + "; ".join(failed) if failed else "PASS")


if __name__ == "__main__":
    sys.exit(main())
