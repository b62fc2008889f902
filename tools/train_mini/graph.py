"""Runs a training step as a CUDA graph: thousands of launches become one, which is what a small step costs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from .batches import Batch
from .probe import Probe

WARM_STEPS = 3  # run as they are before a shape is captured: compilation, autotuning, workspaces
Step = Callable[[Batch, Probe, bool], Any]


class GraphRunner:
    """Calls `step(batch, probe, dense)`; from the fourth call of a shape on, as a graph over inputs of its own.

    A step that cannot be captured goes on as it is, and that is printed. Everything runs on one stream of its own,
    because a graph must not touch the default stream.
    """

    def __init__(self, step: Step):
        self.step = step
        self.calls: dict[tuple[Any, ...], int] = {}
        self.graphs: dict[tuple[Any, ...], _Graph] = {}
        self.broken = False
        self.stream = torch.cuda.Stream()

    def __call__(self, batch: Batch, probe: Probe, dense: bool) -> Any:
        key = (batch.rows.length, batch.rows.late_floor is None, dense)
        count = self.calls[key] = self.calls.get(key, 0) + 1
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            if count > WARM_STEPS and not self.broken and key not in self.graphs:
                self._capture(key, batch, probe, dense)
            result = self.graphs[key](batch, probe) if key in self.graphs else self.step(batch, probe, dense)
        torch.cuda.current_stream().wait_stream(self.stream)
        return result

    def _capture(self, key: tuple[Any, ...], batch: Batch, probe: Probe, dense: bool) -> None:
        try:
            self.graphs[key] = _Graph(self.step, batch, probe, dense, self.stream)
        except Exception as error:  # slower, not wrong
            self.broken = True
            print(f"steps run without a graph: {type(error).__name__}: {str(error)[:400]}", file=sys.stderr)


class _Graph:
    def __init__(self, step: Step, batch: Batch, probe: Probe, dense: bool, stream: torch.cuda.Stream):
        self.batch, self.probe = batch.clone(), Probe(probe.rows.clone())
        self.graph = torch.cuda.CUDAGraph()
        # Other threads fetch batches meanwhile: only this one must keep to what can be captured.
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            self.result = step(self.batch, self.probe, dense)

    def __call__(self, batch: Batch, probe: Probe) -> Any:
        for mine, given in zip(self.batch.tensors(), batch.tensors()):
            mine.copy_(given, non_blocking=True)
        self.probe.rows.copy_(probe.rows, non_blocking=True)
        self.graph.replay()
        return self.result
