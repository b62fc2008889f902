"""Progress: a bar that is redrawn on a terminal, nothing elsewhere but a line now and then, nothing when it is not wanted."""

import os
import pty
import subprocess

import pytest

from conftest import MODEL, PROGRAM, TIMEOUT_S, ok

# Long enough to outlast the tenth of a second before the first bar.
SLOW = ["generate", "--model", str(MODEL), "--backend", "ref", "--threads", "1", "--max-batch-tokens", "16", "--max-tokens", "1",
        "--json", "--tokens", ",".join(str(i % 500) for i in range(800))]


def terminal_output(*arguments):
    """What the program writes to standard error when that is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([PROGRAM, *SLOW, *arguments], stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
        assert process.wait(TIMEOUT_S) == 0
    os.close(ours)
    return written.decode()


def test_a_terminal_shows_a_bar_and_is_left_clean():
    written = terminal_output()
    assert "prompt [" in written and "of 800" in written
    assert written.endswith("\r\x1b[K") and "\n" not in written


@pytest.mark.parametrize("level", ["quiet", "error", "warning"])
def test_other_levels_show_none(level):
    assert terminal_output("--log-level", level) == ""


def test_a_pipe_gets_no_bar_but_lines_now_and_then():
    assert ok(*SLOW).errors == []
