"""The table of an evaluation."""


def percent(share):
    return "–" if share is None else f"{100 * share:.1f} %"


def table(summary):
    """Markdown."""
    lines = ["| what | share right | cases |", "| --- | --- | --- |"]
    lines += [f"| {name} | {percent(entry['share'])} | {entry['n']} |" for name, entry in summary["families"].items()]
    lines += [f"| {name} | {percent(entry['share'])} | {entry['n']} |" for name, entry in summary["arithmetic"].items()]
    lines.append(f"| answers that keep the format (greedy) | {percent(summary['well_formed'])} | |")
    if "format" in summary:
        lines.append(f"| answers that keep the format (temperature 1) | {percent(summary['format']['share'])} | {summary['format']['n']} |")
    if summary.get("needle_grades"):
        lengths = sorted({int(key.split()[0]) for key in summary["needle_grades"]})
        lines += ["", "| needle, tokens | known | new | cases |", "| --- | --- | --- | --- |"]
        for length in lengths:
            known, new = (summary["needle_grades"].get(f"{length} {grade}") for grade in ("known", "new"))
            shares = [percent(entry and entry["share"]) for entry in (known, new)]
            lines.append(f"| {length} | {' | '.join(shares)} | {sum(entry['n'] for entry in (known, new) if entry)} |")
    if "drafts" in summary:
        drafts = summary["drafts"]
        lines += ["", "| drafts of | accepted length | rounds |", "| --- | --- | --- |"]
        lines += [f"| {name} | {entry['accepted_length']:.2f} | {entry['rounds']} |" for name, entry in drafts["domains"].items()]
        lines += [f"| all | {drafts['accepted_length']:.2f} | {drafts['rounds']} |", "", "| position | calibration error |", "| --- | --- |"]
        lines += [f"| {i} | {percent(error)} |" for i, error in enumerate(drafts["ece_after"], 1)]
    if "bits_per_byte" in summary:
        lines += ["", "| held-out text | bits per byte |", "| --- | --- |"]
        lines += [f"| {domain} | {value:.3f} |" for domain, value in summary["bits_per_byte"].items()]
    if summary["needle"]:
        lengths = sorted({int(key.split()[0]) for key in summary["needle"]})
        depths = sorted({float(key.split()[1]) for key in summary["needle"]})
        lines += ["", "| needle: length \\ depth | " + " | ".join(f"{depth:g}" for depth in depths) + " |",
                  "| --- |" + " --- |" * len(depths)]
        for length in lengths:
            row = [percent(entry_at(summary["needle"], length, depth)) for depth in depths]
            lines.append(f"| {length} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def entry_at(needle, length, depth):
    for key, entry in needle.items():
        a, b = key.split()
        if int(a) == length and float(b) == depth:
            return entry["share"]
    return None
