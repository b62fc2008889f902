"""The nine task families: each a function from a Draw to a conversation. Nothing here knows token ids or files."""

from __future__ import annotations

from collections.abc import Callable

from ..render import Sample
from . import arithmetic, chat, coding, copying, extraction, facts, needle, passages, tools
from .world import Draw

# name: (generator, share of the task tokens)
FAMILIES: dict[str, tuple[Callable[[Draw], Sample], float]] = {
    "chat": (chat.make, 0.09),
    "passages": (passages.make, 0.18),
    "extraction": (extraction.make, 0.15),
    "tools": (tools.make, 0.18),
    "needle": (needle.make, 0.17),
    "arithmetic": (arithmetic.make, 0.05),
    "facts": (facts.make, 0.05),
    "copying": (copying.make, 0.09),
    "coding": (coding.make, 0.04),
}
