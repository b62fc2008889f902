"""A flat batch: R = B*T rows, several documents in each of the B sequences of T rows.

Every document starts at a multiple of ALIGN rows inside its sequence, so that compressed entries (ratio 2) and
candidate blocks never straddle two documents; the gap behind a document holds pad tokens, each a document of its own
that nobody reads. Row t of a document that starts at row s has position t - s.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ALIGN = 8


@dataclass
class Rows:
    tokens: Tensor  # int64 [R]
    start: Tensor  # int32 [R]   row of the first token of the document
    length: int  # T
    late_floor: Tensor | None = None  # int32 [R]  layers after the last kv source see no window row before it

    @property
    def position(self) -> Tensor:
        return torch.arange(len(self.start), device=self.start.device, dtype=torch.int32) - self.start

    def window_range(self, width: int, late: bool) -> tuple[Tensor, Tensor]:
        """int32 [R] each: row t sees window rows lo..hi-1."""
        t = torch.arange(len(self.start), device=self.start.device, dtype=torch.int32)
        floor = self.late_floor if late and self.late_floor is not None else self.start
        return torch.maximum(t - width + 1, floor).contiguous(), t + 1

    def entry_range(self, ratio: int) -> tuple[Tensor, Tensor]:
        """int32 [R] each: row t sees compressed entries lo..hi-1 (entry e covers rows e*ratio ..)."""
        t = torch.arange(len(self.start), device=self.start.device, dtype=torch.int32)
        return (self.start // ratio).contiguous(), (t + 1) // ratio


def one_document(tokens: Tensor) -> Rows:
    """A single sequence without padding (tests, scoring); length a multiple of ALIGN unless nothing is compressed."""
    n = len(tokens)
    return Rows(tokens.long(), torch.zeros(n, dtype=torch.int32, device=tokens.device), n)


def with_replay(rows: Rows, cut: Tensor, width: int) -> Rows:
    """Bounded replay: `cut` int32 [R] is the prompt length N of each row's document (0: no cut). In late layers rows
    from N-W on see no window row before N-W."""
    first = rows.start + (cut - width).clamp(min=0)
    t = torch.arange(len(rows.start), device=rows.start.device, dtype=torch.int32)
    floor = torch.where((cut > 0) & (t >= first), first, rows.start)
    return Rows(rows.tokens, rows.start, rows.length, floor.contiguous())
