"""The core records: request bodies with the prompt or refusal they must give, model outputs with what clients must see.

Expected values come from the model authors' own package, or from rules of this project where `source` is `rule`.
core.jsonl.xz holds them; its fields: `kind` render: `body` and `expect` (parts, text, token_ids, parse, max_tokens,
images, constraint, or an error and words its message may hold); `kind` parse: `request`, `output`, `finish` and
`expect` (body, and streams of chunks with the events that came after each).
"""

import base64
import json
import random

import pytest
import wire
from lines import APIS, answers, records


def image_of(image):
    """Source and detail; the records keep the first 80 characters of a source."""
    return (image.get("source") or image["url"])[:80], image["detail"]


def render_fault(record, got):
    """Why `got` is not what the record asks for, or nothing."""
    expect = record["expect"]
    if "error" in expect:
        error = got.get("error")
        if not error:
            return f"not refused ({record['why']})"
        if error.get("status") != 400 or error.get("type") != "invalid_request_error":
            return f"refused as {error}"
        words = record["about"]
        if not any(word.lower() in error["message"].lower() for word in words):
            return f"message {error['message']!r} holds none of {words}"
        return None
    if "error" in got:
        return f"refused: {got['error']['message']}"
    for field in ("text", "parts", "token_ids", "parse", "stream", "max_tokens"):
        if got[field] != expect[field]:
            return f"{field}: {got[field]!r} is not {expect[field]!r}"
    if list(map(image_of, got["images"])) != list(map(image_of, expect.get("images", []))):
        return f"images: {got['images']} are not {expect.get('images')}"
    if got.get("constraint", {}).get("kind") != (expect.get("constraint") or {}).get("kind"):
        return f"constraint: {got.get('constraint')} is not {expect.get('constraint')}"
    return None


@pytest.mark.parametrize("api", APIS)
def test_render(api, model_dir):
    wanted = [record for record in records("render") if record["api"] == api]
    got = answers("render", api, model_dir, [record["body"] for record in wanted])
    faults = {r["id"]: fault for r, answer in zip(wanted, got) if (fault := render_fault(r, answer))}
    assert not faults, f"{len(faults)} of {len(wanted)}: {faults}"


def chunkings(record):
    """(member of the line, chunks, expected events or None) of every cutting that is tried."""
    streams = record["expect"]["streams"]
    output = record["output"]
    if "ids" in output:
        ids = output["ids"]
        for stream in streams:
            yield "ids", stream["chunks"], stream["events"]
        yield "ids", [ids], None
        yield "ids", [[i] for i in ids], None
        return
    text = output["text"]
    raw = text.encode()
    for stream in streams:
        yield "chunks", stream["chunks"], stream["events"]
    yield "chunks", list(text), None
    yield "bytes", [base64.b64encode(raw[i : i + 1]).decode() for i in range(len(raw))], None
    cuts = random.Random(record["id"])
    for _ in range(2):
        points = sorted(cuts.sample(range(len(raw) + 1), min(len(raw) + 1, cuts.randint(1, 8))))
        pieces = [raw[a:b] for a, b in zip([0, *points], [*points, len(raw)])]
        yield "bytes", [base64.b64encode(piece).decode() for piece in pieces], None


def blocks_of(record, view):
    return view.without_blanks() if record["json_mode"] else view.blocks


def parse_fault(record, got, expected_events):
    api = record["api"]
    if "error" in got:
        return f"refused: {got['error']}"
    stream, body = wire.fold(api, got["events"]), wire.of_body(api, got["body"])
    wanted = wire.of_body(api, record["expect"]["body"])
    for name, view in (("stream", stream), ("body", body)):
        if not wire.same_blocks(blocks_of(record, view), blocks_of(record, wanted)):
            return f"{name}: {view.blocks} is not {wanted.blocks}"
        if view.finish != wanted.finish:
            return f"{name}: finish {view.finish} is not {wanted.finish}"
    if expected_events:
        wanted_stream = wire.fold(api, expected_events)
        if not wire.same_blocks(blocks_of(record, stream), blocks_of(record, wanted_stream)):
            return f"stream: {stream.blocks} is not {wanted_stream.blocks}"
    return None


def is_late(api, got, expected):
    """Whether some reasoning, text or call came after a later chunk than in the expected events."""
    for i in range(1, len(expected)):
        here, there = wire.fold(api, got[:i]), wire.fold(api, expected[:i])
        for kind in ("reasoning", "text"):
            if here.released(kind) < there.released(kind):
                return True
        calls_here = [b for b in here.blocks if b[0] == "call"]
        calls_there = [b for b in there.blocks if b[0] == "call"]
        if len(calls_here) < len(calls_there):
            return True
        if any(len(a[2]) < len(b[2]) for a, b in zip(calls_here, calls_there)):
            return True
    return False


@pytest.mark.parametrize("api", APIS)
def test_parse(api, model_dir):
    cases = [(record, *case) for record in records("parse") if record["api"] == api for case in chunkings(record)]
    lines = [json.dumps({"request": record["request"], member: chunks, "finish": record["finish"]}, ensure_ascii=False)
             for record, member, chunks, _ in cases]
    faults, n_late, n_timed = {}, [], 0
    for (record, member, chunks, events), got in zip(cases, answers("parse", api, model_dir, lines)):
        fault = parse_fault(record, got, events)
        if fault:
            faults[f"{record['id']} {record['group']} {member} in {len(chunks)}"] = fault
        elif events and not record["json_mode"]:
            n_timed += 1
            if is_late(api, got["events"], events):
                n_late.append(record["id"])
    assert not faults, f"{len(faults)} of {len(cases)}: {faults}"
    assert not n_late, f"released later than by the package: {n_late} of {n_timed} streams"
