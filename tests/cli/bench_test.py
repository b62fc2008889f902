"""`deepinfer bench`: the lines are complete and add up. Speed itself is no test."""

import json

import pytest

from conftest import MODEL, ok

COMMON = {"bench", "commit", "machine", "backend", "isa", "threads", "runs", "flops", "bytes", "gflops", "gbps",
          "ceiling_read_gbps", "ceiling_fma_gflops", "limit", "ratio"}


@pytest.mark.parametrize("kind,extra", [("prefill", []), ("decode", ["--steps", 3])])
def test_model(kind, extra):
    lines = ok("bench", kind, "--model", MODEL, "--tokens", "16,32", "--max-batch-tokens", 8, *extra).objects()
    assert [line["tokens"] for line in lines] == [16, 32]
    for line in lines:
        assert COMMON | {"seconds_min", "seconds_median", "seconds_p90", "tokens_per_second", "rows_per_step"} <= set(line)
        assert line["bench"] == kind and line["runs"] == 5 and line["backend"].startswith("cpu")
        assert 0 < line["seconds_min"] <= line["seconds_median"] <= line["seconds_p90"]
        n_tokens = line["tokens"] if kind == "prefill" else 1
        assert line["tokens_per_second"] == pytest.approx(n_tokens / line["seconds_median"])
        assert line["rows_per_step"] == (8 if kind == "prefill" else 1)
        limits = (line["flops"] / (line["ceiling_fma_gflops"] * 1e9), line["bytes"] / (line["ceiling_read_gbps"] * 1e9))
        assert line["ratio"] == pytest.approx(max(limits) / line["seconds_median"], rel=1e-6)
    if kind == "prefill":
        assert 1.9 < lines[1]["flops"] / lines[0]["flops"] < 2.2


def test_kernels():
    done = ok("bench", "kernels", "--small", "--warm", "--filter", "head", "--threads", 1)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert lines and all(COMMON <= set(line) and line["runs"] >= 5 for line in lines)
