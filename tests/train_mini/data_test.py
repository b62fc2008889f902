"""Training data: the shipped tokenizer, scratchpads, splits, and task samples as the engine's renderer writes them."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from train_mini.data import evaluation, parts, render, tokenizer  # noqa: E402
from train_mini.data.carried import TextPart  # noqa: E402
from train_mini.data.codec import Codec  # noqa: E402
from train_mini.data.fetch import DataError  # noqa: E402
from train_mini.data.tasks import (
    FAMILIES,
    arithmetic,
    attributes,
    copying,
    extraction,
    facts,
    layouts,
    lookup,
    needle,
    passages,
    tool_parts,
    tools,
    wordings,
    world,
)  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("DEEPINFER_BIN", ROOT / "build" / "deepinfer"))
MODEL = ROOT / "models" / "mini"
SAMPLES = [
    "The capital of France is", "  5", "1234567", "1,000,000.50", "\n\n  x", "\r\n\r\n", "abc   ", "你好abc123世界", "½ Ⅻ ² ⅓", "x\0y", "emoji 👍🏽 test",
    "def f(x):\n    return [n + 1 for n in x]  # ok", "<｜User｜> is text here, ｜DSML｜ too", "0 00 000 07 123 999 1000", '{"a": [1, null, "ü"]}',
]  # fmt: skip
TEXT = (
    "The river runs past the old mill. In 1820 the miller had 47 sacks. People came from Harwich to buy flour.\n\nNobody asked why it was blue. A second mill stood on the hill."
    * 6
)
CODE = 'def area(width, height):\n    """The area of a rectangle."""\n    if width < 0:\n        return None\n    result = width * height\n    return result\n'


@pytest.fixture(scope="module")
def small_world():
    """A few words and texts, in the form of the real ones."""
    codec = Codec(MODEL / "tokenizer.json")

    def part(name, texts, sources):
        ids = [np.array([codec.bos, *encode(t), codec.eos], np.uint16) for t in texts]
        return TextPart(name, np.cumsum([0, *map(len, ids)]), np.array(sources, np.uint8), np.concatenate(ids))

    kinds = ["literature", "docs", "glosses", "code"]
    texts = {kind: part(kind, [CODE * 3 if kind == "code" else TEXT] * 3, [i] * 3) for i, kind in enumerate(kinds)}
    held = part("heldout", [TEXT, TEXT, TEXT, CODE * 3], range(4))
    corpus = world.Corpus(texts, held, kinds, codec)
    words = [
        a + b
        for a in ("bar", "mil", "ton", "ram", "sel", "dor", "fen", "gul", "hap", "kir")
        for b in ("ner", "let", "wick", "sey", "der", "gan", "low", "mer", "nix", "pod")
    ]
    names = [w.capitalize() for w in words]
    country = {
        "name": "Barland",
        "iso": "BL",
        "capital": "Barton",
        "continent": "Europe",
        "code": "BAR",
        "currency": "Bar",
        "phone": "99",
        "population": 5,
        "neighbours": ["Millia"],
    }
    method = {
        "description": "Lists the things of a place.",
        "parameters": {
            "place": {"type": "string", "description": "Where.", "required": True},
            "count": {"type": "integer", "required": False},
        },
    }
    vocab = {
        "first_names": names, "last_names": names, "jobs": [f"{n} maker" for n in names], "verbs": words, "adjectives": words, "adverbs": words, "nouns": words,
        "cities": [[n, "Barland"] for n in names], "glosses": [[w, "noun", f"a thing like {w}"] for w in words], "methods": [{"name": f"{w}_list", **method} for w in words],
        "countries": [country, country | {"name": "Millia", "iso": "ML", "capital": "Milton", "code": "MIL", "currency": "Mil", "phone": "98", "continent": "Asia"}],
        "street_suffixes": ["Road"], "company_suffixes": ["Ltd"],
    }  # fmt: skip
    return world.World.of(vocab, corpus)


def encode(text):
    lines = json.dumps({"text": text, "special": False}) + "\n"
    done = subprocess.run(
        [str(PROGRAM), "tokenize", "--json", "--model", str(MODEL)],
        input=lines.encode(),
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)["ids"]


def test_tokenizer_agrees_with_the_tokenizers_package():
    pytest.importorskip("tokenizers")
    encoder = tokenizer.plain_encoder(MODEL / "tokenizer.json")
    for text in SAMPLES:
        assert encode(text) == encoder.encode(text, add_special_tokens=False).ids, text


def test_every_digit_run_is_a_token():
    runs = [f"{n:0{width}}" for width in (1, 2, 3) for n in range(10**width)]
    for run, ids in zip(runs, (encode_many(runs)), strict=True):
        assert len(ids) == 1, run


def encode_many(texts):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    done = subprocess.run(
        [str(PROGRAM), "tokenize", "--json", "--model", str(MODEL)],
        input=lines.encode(),
        capture_output=True,
        check=True,
    )
    return [json.loads(line)["ids"] for line in done.stdout.splitlines()]


def test_ids_fit_and_control_tokens_are_where_they_are_expected():
    codec = Codec(MODEL / "tokenizer.json")
    assert codec.vocab_size == 8192
    assert (codec.bos, codec.eos, codec.control["<｜▁pad▁｜>"]) == (0, 1, 2)
    assert {
        "<｜System｜>",
        "<think>",
        "</think>",
        "｜DSML｜",
        "<｜image｜>",
        "<｜latest_reminder｜>",
    } <= codec.control.keys()


def test_scratchpads_end_in_the_result():
    random_numbers = random.Random(3)
    for _ in range(500):
        a, b = random_numbers.randrange(1000), random_numbers.randrange(1000)
        assert arithmetic.add_steps(a, b).endswith(f"{' '.join(str(a + b))} is {a + b}."), (a, b)
        low, high = min(a, b), max(a, b)
        assert arithmetic.subtract_steps(high, low).endswith(f"is {high - low}.")
        written = arithmetic.subtract_steps(high, low).split(". ")[1].split(" is ")[0].replace(" ", "")
        assert int(written) == high - low, (high, low)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("grade", [None, world.KNOWN, world.NEW])
def test_samples_render(family, grade, small_world):
    draw = world.Draw(small_world, random.Random(5), grade)
    samples = [FAMILIES[family][0](draw) for _ in range(60)]
    codec = small_world.corpus.codec
    for sample, (ids, loss) in zip(samples, render.Renderer(PROGRAM, MODEL).render(samples), strict=True):
        assert ids[0] == codec.bos and ids[-1] == codec.eos and loss[-1] and not loss[0]
        written = codec.text(ids[loss])
        assert sample.messages[-1]["content"] in written
        if sample.thinking is not None:
            assert sample.messages[-1]["reasoning_content"] in written
        for call in sample.messages[-1].get("tool_calls", []):
            assert f'invoke name="{call["function"]["name"]}"' in written


def test_training_and_test_values_are_apart(small_world):
    training = world.Draw(small_world, random.Random(1))
    test = world.Draw(small_world, random.Random(1), world.NEW)
    assert not {training.entity("cities") for _ in range(500)} & {test.entity("cities") for _ in range(500)}
    assert not {training.number(1000, 9999) for _ in range(500)} & {test.number(1000, 9999) for _ in range(500)}
    known = world.Draw(small_world, random.Random(1), world.KNOWN)
    forms = list(range(10))
    assert not {known.template("x", forms) for _ in range(200)} & {test.template("x", forms) for _ in range(200)}


def asked_text(sample):
    """All that is not the assistant's own."""
    return "\n".join(m["content"] for m in sample.messages if m["role"] != "assistant")


def test_every_looked_up_answer_stands_in_the_text_before_it(small_world):
    draw = world.Draw(small_world, random.Random(2))
    n_answers = 0
    for _ in range(300):
        before = ""
        for message in lookup.make(draw).messages:
            if message["role"] == "assistant":
                n_answers += 1
                for line in message["content"].split("\n"):
                    assert line.strip() in before, (line, before[-500:])
            before += message["content"] + "\n"
    assert n_answers > 900


@pytest.mark.parametrize("grade", [None, world.KNOWN, world.NEW])
def test_extracted_values_stand_in_the_document(grade, small_world):
    draw = world.Draw(small_world, random.Random(4), grade)
    for _ in range(300):
        sample = extraction.make(draw)
        text = asked_text(sample)
        for message in sample.messages:
            values = json.loads(message["content"]) if message["role"] == "assistant" else {}
            for value in values.values():
                if not isinstance(value, bool) and value is not None:
                    assert all(str(v) in text for v in (value if isinstance(value, list) else [value])), (value, text)


def test_keys_unlike_their_labels_are_explained_when_they_are_held_out(small_world):
    draw = world.Draw(small_world, random.Random(4), world.NEW)
    for _ in range(300):
        _, fields = extraction._listed(draw)
        assert all(extraction._norm(f.key) == extraction._norm(f.label) for f in fields)


@pytest.mark.parametrize("grade", [None, world.KNOWN, world.NEW])
def test_arguments_are_copied_from_the_request_in_the_order_of_the_schema(grade, small_world):
    draw = world.Draw(small_world, random.Random(6), grade)
    for _ in range(300):
        sample = tools.make(draw)
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in sample.tools}
        assert len(schemas) == len(sample.tools)
        for call in [c for m in sample.messages for c in m.get("tool_calls", [])]:
            schema, arguments = schemas[call["function"]["name"]], json.loads(call["function"]["arguments"])
            assert list(arguments) == [key for key in schema["properties"] if key in arguments]
            assert set(schema["required"]) <= arguments.keys()
            for value in arguments.values():
                if not isinstance(value, bool):
                    values = value if isinstance(value, list) else [value]
                    assert all(str(v) in asked_text(sample) for v in values), (value, asked_text(sample))


def test_tools_put_together_are_nearly_never_the_same(small_world):
    draw = world.Draw(small_world, random.Random(8))
    names = [t["function"]["name"] for _ in range(200) for t in tools.make(draw).tools]
    assert len(set(names)) > len(names) // 2


def test_no_fact_question_has_two_answers(small_world):
    answers = {}
    for _, questions, value, _ in facts._table(small_world):
        for question in questions:
            assert answers.setdefault(question, value) == value, question


def test_the_needle_asked_for_is_in_the_text(small_world):
    draw = world.Draw(small_world, random.Random(9), world.NEW)
    for _ in range(100):
        sample = needle.make_at(draw, 200, 0.5)
        assert sample.messages[-1]["content"] in asked_text(sample)


def test_no_held_out_wording_is_trained_under_another_index():
    lists = [arithmetic._ADD, arithmetic._SUBTRACT, arithmetic._TIMES, arithmetic._SUM3, extraction._WORDS, extraction._PLAIN, layouts._LAYOUTS,
             passages._HEADS, needle.FORMS, tool_parts._FRAMES, tool_parts._PHRASES, tool_parts._THINGS, attributes.STATEMENTS, attributes.QUESTIONS]  # fmt: skip
    assert all(len(set(options)) == len(options) for options in lists)
    for name, _, plan in passages.PLANS:
        assert len(plan) == len(passages._NAMES[name][1])
        assert all(len(set(passages._questions(name, fact))) == len(passages._questions(name, fact)) for fact in plan)


COMPOSED = [
    ("attribute-statement", attributes.STATEMENTS, wordings.statement, "akv"), ("attribute-question", attributes.QUESTIONS, wordings.question, "ak"), ("repeat", copying._REPEAT, wordings.repeat, "t"),
    ("quote", copying._QUOTE, wordings.quote, "tn"), ("form", copying._FORMS, wordings.form, "fv"), ("continue", copying._CONTINUE, wordings.carry_on, "t"),
    ("extract-words", extraction._WORDS, wordings.extract_words, "kt"), ("extract-plain", extraction._PLAIN, wordings.extract_plain, "t"), ("needle-head", needle._HEADS, wordings.around_text, "tq"),
    ("qa-head", passages._HEADS, wordings.around_text, "tq"), ("method", tools._METHOD_FORMS, wordings.method_form, "da"), ("tool-phrase", tool_parts._PHRASES, wordings.tool_phrase, "wv"),
]  # fmt: skip


@pytest.mark.parametrize("family, options, compose, names", COMPOSED, ids=[c[0] for c in COMPOSED])
def test_composed_wordings_have_their_placeholders_and_are_never_held_out(family, options, compose, names, small_world):
    draw = world.Draw(small_world, random.Random(3))
    held_out = {options[i] for i in world.split_templates(family, len(options))[1]}
    texts = {draw.wording(family, options, compose, 0.9) for _ in range(1500)}
    assert not texts & held_out and len(texts) > 60
    for text in texts:
        assert all(text.count("{" + name + "}") == 1 for name in names), text
        assert not set("{}") & set(text.format(**dict.fromkeys("akvtnfdqCcw", "x"))), text


def test_evaluation_never_sees_composed_wordings_or_invented_words(small_world):
    for grade in (world.KNOWN, world.NEW):
        draw = world.Draw(small_world, random.Random(3), grade)
        assert all(draw.wording("repeat", copying._REPEAT, wordings.repeat, 1.0) in copying._REPEAT for _ in range(100))
        assert all(draw.entity("nouns") in small_world.lists["nouns"][1] for _ in range(100))
    training = world.Draw(small_world, random.Random(3))
    invented = {w for w in (training.entity("nouns") for _ in range(300)) if w not in small_world.lists["nouns"][0]}
    assert 20 < len(invented) and not any(map(world.is_test_entity, invented))


@pytest.mark.parametrize("layout", layouts._MORE_LAYOUTS)
def test_layouts_of_the_training_keep_every_value(layout, small_world):
    draw = world.Draw(small_world, random.Random(3))
    pairs = [("door colour", "navy"), ("index", "4711"), ("owner", "Ann Barner")]
    for _ in range(50):
        text = layout(draw, "file", pairs)
        assert all(v in text and k.replace(" ", "") in re.sub("[ _]", "", text.lower()) for k, v in pairs), text


def test_several_questions_at_once_are_answered_line_by_line(small_world):
    draw = world.Draw(small_world, random.Random(9))
    for _ in range(50):
        needles = needle._needles(draw, 5)
        sample = needle._all_at_once(draw, " ".join(n[0] for n in needles), needles)
        asked = asked_text(sample)
        expected = sorted((asked.index(n[1]), n[2]) for n in needles if n[1] in asked)
        assert [value for _, value in expected] == sample.messages[-1]["content"].split("\n")


def test_held_out_texts_are_of_the_held_out_part(tmp_path, small_world):
    assert evaluation.write_texts(tmp_path / "texts.jsonl", small_world, 1, per_domain=3, tokens=20) == 9
    lines = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
    assert [line["domain"] for line in lines] == [d for d in evaluation.TEXT_DOMAINS for _ in range(3)]
    assert all((CODE if line["domain"] == "code" else TEXT).startswith(line["text"]) and line["text"] for line in lines)


def test_sentences_joined_by_blanks_can_be_told_apart():
    text = (
        'The U.S. Army came. It left at noon. Changed in\nversion 3.8: Added this\nNobody saw it. "Who did." He left.'
    )
    lines = world.prose(text, 5, 200)
    assert world.sentences(" ".join(lines)) == lines == ["It left at noon.", "Nobody saw it."]


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_follow_from_the_seed(family, small_world):
    twice = [[FAMILIES[family][0](world.Draw(small_world, random.Random(11))) for _ in range(20)] for _ in range(2)]
    assert twice[0] == twice[1]


def test_a_changed_part_is_refused_by_name(tmp_path):
    writer = parts.PartWriter(tmp_path, "docs", "text", parts.Weights(1, 1), False)
    writer.add(np.array([0, 5, 1], np.uint16), [3])
    parts.write_manifest(tmp_path, "0" * 64, 8192, [writer.close()])
    parts.check(tmp_path)
    (tmp_path / "docs.tokens").write_bytes(b"\0\0\6\0\1\0")
    with pytest.raises(DataError, match="part docs is partial or changed"):
        parts.check(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(DataError, match="partial"):
        parts.check(tmp_path)
