"""`deepinfer tokenize`: plain lines and JSON lines, one answer each. The tokenizer itself has its own tests."""

import subprocess

from conftest import MODEL, PROGRAM, ok, run

TEXTS = ["hello world", "", "  two  spaces ", "naïve 😀", "<｜begin▁of▁sentence｜>x", "tab\there"]


def tokenize(*arguments, stdin):
    return run("tokenize", "--model", MODEL, *arguments, stdin=stdin)


def test_text_to_ids_and_back():
    done = tokenize(stdin="\n".join(TEXTS))
    assert done.code == 0 and len(done.out.splitlines()) == len(TEXTS) and done.out.splitlines()[1] == ""
    back = tokenize("--decode", stdin=done.out)
    assert back.code == 0 and back.out == "".join(text + "\n" for text in TEXTS)


def test_added_tokens_are_found_unless_told_otherwise():
    found = tokenize("--special", stdin=TEXTS[4]).out.split()
    assert found[0] == "0" and tokenize(stdin=TEXTS[4]).out.split() == found
    assert len(tokenize("--no-special", stdin=TEXTS[4]).out.split()) > len(found)


def test_a_bad_line_is_told_and_the_others_go_on():
    done = tokenize(stdin=b"good\nb\xffd\ngood\n")
    lines = done.out.split("\n")
    assert done.code == 2 and lines[0] == lines[2] != "" and lines[1] == ""
    assert "line 2" in done.errors[0] and "1 of 3 lines" in done.errors[1]
    done = tokenize("--decode", stdin="5 6\n5 x\n512\n5  6 \n")
    lines = done.out.split("\n")
    assert done.code == 2 and lines[0] == lines[3] and lines[1:3] == ["", ""]
    assert "line 2" in done.errors[0] and "position 1" in done.errors[0] and "line 3" in done.errors[1]


def test_json_lines():
    stdin = '{"text":"hello"}\n{"text":"a","special":1}\n\n{"ids":[0,300]}\n{"ids":[512]}'
    done = tokenize("--json", stdin=stdin)
    answers = done.objects()
    assert done.code == 2 and ["ids" in answers[0], "text" in answers[3]] == [True, True]
    assert all(set(answers[i]) == {"error"} and set(answers[i]["error"]) == {"kind", "message"} for i in (1, 2, 4))


def test_each_line_is_answered_before_the_next_is_read():
    with subprocess.Popen([PROGRAM, "tokenize", "--model", MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for text in ("one", "two"):
            process.stdin.write(text.encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().split()
        process.stdin.close()
        assert process.wait() == 0


def test_only_the_tokenizer_is_needed(tmp_path):
    (tmp_path / "tokenizer.json").symlink_to(MODEL / "tokenizer.json")
    assert ok("tokenize", "--model", tmp_path, stdin="hello\n").out == tokenize(stdin="hello\n").out
    assert run("tokenize", "--model", tmp_path / "nothing").code == 3
