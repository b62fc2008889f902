"""The nine task families: each a function from a Draw to a conversation. Nothing here knows token ids or files."""

from __future__ import annotations

from collections.abc import Callable

from ..render import Sample
from . import arithmetic, chat, coding, copying, extraction, facts, needle, passages, tools
from .world import Draw

# name: (generator, share of the task tokens)
FAMILIES: dict[str, tuple[Callable[[Draw], Sample], float]] = {
    "chat": (chat.make, 0.08),
    "passages": (passages.make, 0.15),
    "extraction": (extraction.make, 0.15),
    "tools": (tools.make, 0.19),
    "needle": (needle.make, 0.22),
    "arithmetic": (arithmetic.make, 0.04),
    "facts": (facts.make, 0.04),
    "copying": (copying.make, 0.10),
    "coding": (coding.make, 0.03),
}
