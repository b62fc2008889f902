"""Conversations to token ids and loss masks, by the engine's own renderer: `deepinfer render --api chat`.

The last message of a sample is the assistant's. Without thinking, or with tools, it is rendered as a turn of the
history, and what the renderer appends after its EOS is cut. While thinking without tools earlier reasoning is never
written, so there it goes in as a continuation prefix, which is written whole, and only EOS is added.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .codec import Codec
from .fetch import DataError

_IDS = '"token_ids":['


@dataclass
class Sample:
    """`thinking` is the effort, or None when it is off. `check` says how an answer is compared (see evaluation.py)."""

    messages: list[dict[str, Any]]
    thinking: int | None = None
    tools: list[dict[str, Any]] | None = None
    response_format: dict[str, Any] | None = None
    check: str = "exact"
    note: dict[str, Any] = field(default_factory=dict)  # what the evaluation's record keeps besides

    def request(self, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": "mini", "messages": list(messages)}
        if self.thinking is None:
            body["thinking"] = {"type": "disabled"}
        elif self.thinking != 75:
            body["reasoning_effort"] = self.thinking
        if self.tools:
            body["tools"] = self.tools
        if self.response_format:
            body["response_format"] = self.response_format
        return body

    def is_prefix(self) -> bool:
        return self.thinking is not None and not self.tools

    def training_request(self) -> dict[str, Any]:
        if self.is_prefix():
            return self.request([*self.messages[:-1], {**self.messages[-1], "prefix": True}])
        calls = self.messages[-1].get("tool_calls") or []
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "-"} for call in calls]
        return self.request([*self.messages, *results])


class Renderer:
    """One tokenizer, one program; a batch is one run of it."""

    def __init__(self, program: Path, model: Path) -> None:
        self.command = [str(program), "render", "--api", "chat", "--model", str(model)]
        self.codec = Codec(model / "tokenizer.json")

    def render(self, samples: Sequence[Sample]) -> list[tuple[np.ndarray, np.ndarray]]:
        """(ids, loss) of each sample; loss is true on what the assistant writes: reasoning, answer, calls, EOS."""
        lines = self.answers([s.training_request() for s in samples])
        return [self._finished(sample, line) for sample, line in zip(samples, lines, strict=True)]

    def answers(self, requests: Sequence[dict[str, Any]]) -> list[str]:
        text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in requests)
        done = subprocess.run(self.command, input=text.encode(), capture_output=True, check=False)
        lines = done.stdout.decode().split("\n")[:-1]
        if done.returncode or len(lines) != len(requests):
            raise DataError(
                f"deepinfer render: exit {done.returncode}, {len(lines)} answers: {done.stderr.decode()[:500]}"
            )
        for request, line in zip(requests, lines, strict=True):
            if line.startswith('{"error"'):
                raise DataError(f"deepinfer render refused {json.dumps(request)[:1500]}: {line[:300]}")
        return lines

    def _finished(self, sample: Sample, line: str) -> tuple[np.ndarray, np.ndarray]:
        start = line.index(_IDS) + len(_IDS)  # quotes inside strings are escaped: found only where it is meant
        ids = np.fromstring(line[start : line.index("]", start)], np.int64, sep=",").astype(np.uint16)
        eos = self.codec.eos
        if sample.is_prefix():
            ids = np.append(ids, np.uint16(eos))
        else:
            ids = ids[: np.flatnonzero(ids == eos)[-1] + 1]
        return ids, self.loss_of(ids)

    def loss_of(self, ids: np.ndarray) -> np.ndarray:
        """True from after each assistant's think token to its EOS."""
        loss = np.zeros(len(ids), bool)
        ends = np.flatnonzero(ids == self.codec.eos)
        for start in np.flatnonzero(ids == self.codec.assistant):
            later = ends[ends > start]
            if len(later):
                loss[start + 2 : later[0] + 1] = True
        return loss
