"""Small pieces that several families share: turns, thinking modes, system messages."""

from __future__ import annotations

from typing import Any

from ..render import Sample
from .world import Draw

SYSTEMS = [
    "You are a helpful assistant.", "You are a careful assistant.", "You answer questions briefly and exactly.",
    "You are an assistant that reads carefully.", "Answer with what is asked for and nothing else.",
    "You are a friendly assistant. Keep answers short.", "You are deepinfer's small model. Be exact.",
    "Be precise and concise.", "You help people with text and numbers.", "You are a patient assistant who gives short answers.",
]  # fmt: skip


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, reasoning: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"reasoning_content": reasoning} if reasoning else {})}


def effort(draw: Draw) -> int:
    """Mostly the default; the other named ones and any number now and then."""
    return 75 if draw.chance(0.75) else draw.pick([50, 100, draw.number(1, 100)])


def with_system(draw: Draw, messages: list[dict[str, Any]], p: float = 0.25) -> list[dict[str, Any]]:
    return [{"role": "system", "content": draw.pick(SYSTEMS)}, *messages] if draw.chance(p) else messages


def turn(
    draw: Draw, question: str, answer: str, reasoning: str | None, p_thinking: float, check: str = "exact"
) -> Sample:
    """One question, one answer; thinking with the given probability if there is a reasoning."""
    messages = with_system(draw, [user(question)])
    if reasoning and draw.chance(p_thinking):
        return Sample([*messages, assistant(answer, reasoning)], thinking=effort(draw), check=check)
    return Sample([*messages, assistant(answer)], check=check)
