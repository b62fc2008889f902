"""HTML pages to plain text: the main region only, a blank line between blocks, code kept as it is laid out."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = {"p", "div", "section", "h1", "h2", "h3", "h4", "h5", "h6", "li", "dt", "dd", "tr", "table", "ul", "ol", "dl",
           "blockquote", "pre", "br", "hr", "article", "main", "body", "center"}  # fmt: skip
_DROPPED = {"script", "style", "nav", "header", "footer", "head", "button", "svg", "form"}
_VOID = {"br", "hr", "img", "input", "meta", "link", "col", "area", "base", "wbr", "source"}


class _Reader(HTMLParser):
    def __init__(self, start: tuple[str, str, str] | None, dropped: re.Pattern[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.start, self.dropped = start, dropped
        self.inside = start is None
        self.open: list[tuple[str, bool]] = []  # (tag, whether its content is dropped)
        self.hidden = 0
        self.pre = 0
        self.blocks: list[str] = []
        self.run: list[str] = []
        self.item = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {k: v or "" for k, v in attrs}
        if not self.inside and self.start is not None:
            want_tag, key, want = self.start
            self.inside = tag == want_tag and want in values.get(key, "")
            if self.inside:
                self.open.clear()
                self.hidden = 0
        if tag in _BLOCKS:
            self.flush()
        if tag in _VOID:
            return
        marks = f"{values.get('class', '')} {values.get('id', '')}"
        hides = tag in _DROPPED or bool(self.dropped.search(marks))
        self.open.append((tag, hides))
        self.hidden += hides
        if tag == "pre":
            self.pre += 1
        self.item = tag == "li" or (self.item and tag not in _BLOCKS)
        if tag in ("td", "th") and self.run and not self.hidden:
            self.run.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.flush()
        if tag == "pre":
            self.pre = max(0, self.pre - 1)
        for i in range(len(self.open) - 1, max(-1, len(self.open) - 12), -1):
            if self.open[i][0] == tag:
                self.hidden -= sum(hides for _, hides in self.open[i:])
                del self.open[i:]
                break

    def handle_data(self, data: str) -> None:
        if self.inside and not self.hidden:
            self.run.append(data)

    def flush(self) -> None:
        text, self.run = "".join(self.run), []
        text = text.strip("\n").rstrip() if self.pre else " ".join(text.split())
        if text.strip():
            self.blocks.append(("- " if self.item and not self.pre else "") + text)
            self.item = False


def page_text(content: bytes, start: tuple[str, str, str] | None, dropped: str) -> str:
    """`start` is (tag, attribute, value it contains) of the main region; elements whose class or id match go."""
    reader = _Reader(start, re.compile(dropped))
    reader.feed(content.decode("utf-8", "replace"))
    reader.close()
    reader.flush()
    text = "\n\n".join(reader.blocks).replace("\u00b6", "").replace("\u00a0", " ")
    return re.sub(r"\n\n(?=- )", "\n", text)
