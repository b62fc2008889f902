"""The table and the picture of an evaluation."""


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


def picture(summary, path):
    """Share right by family, and needle recall over length and depth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5), width_ratios=(3, 2))
    names = list(summary["families"])
    left.barh(names, [100 * summary["families"][name]["share"] for name in names], color="#4878a8")
    left.set_xlim(0, 100)
    left.set_xlabel("% right")
    left.invert_yaxis()
    lengths = sorted({int(key.split()[0]) for key in summary["needle"]})
    depths = sorted({float(key.split()[1]) for key in summary["needle"]})
    grid = [[100 * (entry_at(summary["needle"], length, depth) or 0) for depth in depths] for length in lengths]
    image = right.imshow(grid, vmin=0, vmax=100, aspect="auto", cmap="viridis")
    right.set_xticks(range(len(depths)), [f"{depth:g}" for depth in depths])
    right.set_yticks(range(len(lengths)), lengths)
    right.set_xlabel("depth")
    right.set_ylabel("length, tokens")
    right.set_title("needle recall, %")
    figure.colorbar(image, ax=right)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
