"""Whether an answer is right. A check takes the choice of a Chat Completions body and the expected answer of a case."""

import json
import re

# What must never be seen in an answer: control tokens and the markup of calls, spelt out.
MARKUP = re.compile(r"<｜|｜DSML｜|</?think>")


def content(choice):
    return choice["message"].get("content") or ""


def exact(choice, answer):
    """The same words; blanks at the ends do not count."""
    return choice["finish_reason"] == "stop" and content(choice).strip() == answer.strip()


def same_json(choice, answer):
    """The content is JSON and means the same (order of members is free)."""
    try:
        return choice["finish_reason"] == "stop" and json.loads(content(choice)) == json.loads(answer)
    except ValueError:
        return False


def calls_of(choice):
    """[{"name", "arguments"}...], or nothing where some arguments are no JSON object."""
    calls = []
    for call in choice["message"].get("tool_calls") or []:
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            return None
        if not isinstance(arguments, dict):
            return None
        calls.append({"name": call["function"]["name"], "arguments": arguments})
    return calls


def same_calls(choice, answer):
    """Names and arguments of all calls, in order."""
    return choice["finish_reason"] == "tool_calls" and calls_of(choice) == answer


def is_well_formed(choice):
    """The conversation's format was kept: it ended by itself, says something, leaks no markup, calls are JSON."""
    message = choice["message"]
    calls = calls_of(choice)
    texts = [content(choice), message.get("reasoning_content") or ""]
    return (choice["finish_reason"] in ("stop", "tool_calls") and calls is not None and not any(map(MARKUP.search, texts))
            and bool(content(choice).strip() or calls))


# `code` is a line of real code, which has no single right form: counted as exact, and not part of any target.
CHECKS = {"exact": exact, "code": exact, "json": same_json, "call": same_calls}
