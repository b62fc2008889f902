"""The picture of an evaluation as SVG: share right by family, needle recall over length and depth, the drafter."""

from xml.sax.saxutils import escape

KNOWN, NEW, DRAFT = "#4878a8", "#e0a458", "#6aa56a"
ROW = 26


def picture(summary):
    parts = [_families(summary["families"], 20, 40), _needle(summary["needle"], 440, 40)]
    if "drafts" in summary:
        parts.append(_drafts(summary["drafts"], 440, 240))
    shapes = "\n".join(line for part in parts for line in part)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 400" font-family="sans-serif" font-size="12">\n'
            f'<rect width="900" height="400" fill="white"/>\n{shapes}\n</svg>\n')  # fmt: skip


def _text(x, y, text, anchor="start", **more):
    style = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{style}>{escape(str(text))}</text>'


def _bar(x, y, width, height, colour):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"/>'


def _families(families, x, y):
    """A family's checks of one grade are counted together."""
    lines = [_text(x, y - 16, "% right, greedy", font_weight="bold"), _bar(x + 140, y - 26, 10, 10, KNOWN), _text(x + 154, y - 17, "known wordings"),
             _bar(x + 260, y - 26, 10, 10, NEW), _text(x + 274, y - 17, "new wordings")]  # fmt: skip
    for i, name in enumerate(dict.fromkeys(key.split()[0] for key in families)):
        top = y + i * (ROW + 12)
        lines.append(_text(x + 80, top + 17, name, "end"))
        for j, (grade, colour) in enumerate((("known", KNOWN), ("new", NEW))):
            entries = [entry for key, entry in families.items() if key.split()[:2] == [name, grade]]
            if entries:
                share = sum(e["share"] * e["n"] for e in entries) / sum(e["n"] for e in entries)
                lines.append(_bar(x + 88, top + 13 * j, 260 * share, 12, colour))
                lines.append(_text(x + 92 + 260 * share, top + 13 * j + 10, f"{100 * share:.0f}", font_size=10))
    return lines


def _needle(needle, x, y):
    lengths = sorted({int(key.split()[0]) for key in needle})
    depths = sorted({float(key.split()[1]) for key in needle})
    lines = [_text(x, y - 16, "needle recall, %: text length (tokens) and depth", font_weight="bold")]
    width = 360 / max(1, len(depths))
    cells = {(int(a), float(b)): entry["share"] for (a, b), entry in ((key.split(), entry) for key, entry in needle.items())}
    for i, length in enumerate(lengths):
        lines.append(_text(x + 50, y + i * ROW + 18, length, "end"))
        for j, depth in enumerate(depths):
            if (length, depth) in cells:
                share = cells[length, depth]
                at = x + 58 + j * width
                lines.append(_bar(at, y + i * ROW, width - 1, ROW - 1, _shade(share)))
                lines.append(_text(at + width / 2, y + i * ROW + 17, f"{100 * share:.0f}", "middle", font_size=10, fill="white" if share > 0.6 else "black"))  # fmt: skip
    for j, depth in enumerate(depths):
        lines.append(_text(x + 58 + (j + 0.5) * width, y + len(lengths) * ROW + 14, f"{depth:g}", "middle", font_size=10))
    return lines


def _shade(share):
    """White to blue."""
    return "#" + "".join(f"{round(255 + (end - 255) * share):02x}" for end in (0x20, 0x58, 0x90))


def _drafts(drafts, x, y):
    lines = [_text(x, y - 10, "drafts: accepted length, the bonus token included", font_weight="bold")]
    for i, (name, entry) in enumerate([*drafts["domains"].items(), ("all", drafts)]):
        width = 260 * entry["accepted_length"] / 6
        lines += [_text(x + 100, y + i * ROW + 14, name, "end"), _bar(x + 108, y + i * ROW, width, 18, DRAFT), _text(x + 112 + width, y + i * ROW + 14, f"{entry['accepted_length']:.2f}")]  # fmt: skip
    errors = ", ".join(f"{100 * error:.1f}" for error in drafts["ece_after"])
    lines.append(_text(x, y + (len(drafts["domains"]) + 1) * ROW + 18, f"calibration error at the positions: {errors} %"))
    return lines
