"""Quality of the mini model through the engine's command line: one table (Markdown) and one picture.

    python -m tools.eval_mini --model models/mini --cases cases.jsonl --texts held_out.jsonl --out DIR

`cases.jsonl` comes from `python -m tools.train_mini.data eval`: a line a case, {"id", "family", "grade", "request" (a Chat
Completions body), "answer", "check"}; needle cases have "length" and "depth" too. `held_out.jsonl`: {"domain", "text"} a line, from
`python -m tools.train_mini.data held-out`. `--drafts` is the trainer's log.jsonl: its calibration line has the drafter's part.
DIR gets results.json, table.md and picture.svg. Greedy, but for the format test, which samples at temperature 1.
Errors end it by name: a case with an unknown check, a body the engine refuses, a file that lacks a family.
"""

import argparse
import collections
import json
import pathlib
import sys

from . import checks, report
from .picture import picture
from .program import Program

FAMILIES = ("chat", "passages", "extraction", "tools", "needle", "arithmetic", "facts", "copying", "coding")
N_FORMAT_SAMPLES = 1000
MAX_TOKENS = 400


def read_lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").split("\n") if line]


def read_cases(path):
    cases = read_lines(path)
    missing = set(FAMILIES) - {case["family"] for case in cases}
    if missing:
        sys.exit(f"{path}: no case of {', '.join(sorted(missing))}; the evaluation set is partial")
    unknown = {case["check"] for case in cases} - checks.CHECKS.keys()
    if unknown:
        sys.exit(f"{path}: unknown check {', '.join(sorted(unknown))}")
    return cases


def run_cases(program, cases):
    """{"id", ..., "right": bool, "well_formed": bool, "said"} a case."""
    choices = program.chat([case["request"] for case in cases], MAX_TOKENS)
    return [
        {key: case.get(key) for key in ("id", "family", "grade", "check", "kind", "length", "depth")}
        | {"right": checks.CHECKS[case["check"]](choice, case["answer"]), "well_formed": checks.is_well_formed(choice),
           "said": choice["message"]}
        for case, choice in zip(cases, choices)
    ]


def share(results, key="right"):
    return sum(result[key] for result in results) / len(results) if results else None


def by(results, *keys):
    groups = collections.defaultdict(list)
    for result in results:
        groups[tuple(result[key] for key in keys)].append(result)
    return {" ".join(map(str, group)): {"share": share(members), "n": len(members)} for group, members in sorted(groups.items(), key=str)}


def format_test(program, cases):
    """How many of a thousand sampled answers keep the conversation's format."""
    bodies = [cases[i * len(cases) // N_FORMAT_SAMPLES]["request"] for i in range(N_FORMAT_SAMPLES)]
    choices = program.chat(bodies, MAX_TOKENS, temperature=1.0, seed=1)
    return {"share": sum(map(checks.is_well_formed, choices)) / len(choices), "n": len(choices)}


def limited(cases, limit, needle_limit):
    """The first cases of each kind."""
    seen = collections.Counter()
    kept = []
    for case in cases:
        kind = tuple(case.get(key) for key in ("family", "grade", "check", "length", "depth", "kind"))
        seen[kind] += 1
        bound = needle_limit if case["family"] == "needle" else limit
        if bound is None or seen[kind] <= bound:
            kept.append(case)
    return kept


def drafts(log):
    """The calibration line of a training log: accepted lengths and calibration errors."""
    lines = [line for line in read_lines(log) if line.get("stage") == "calibration"]
    if not lines:
        sys.exit(f"{log}: no line of the calibration; the run is not finished")
    return {key: lines[-1][key] for key in ("accepted_length", "rounds", "domains", "ece_after")}


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.eval_mini", description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--texts", help="held-out texts for bits per byte")
    parser.add_argument("--drafts", help="log.jsonl of the training run: accepted lengths and calibration of the drafter")
    parser.add_argument("--out", required=True)
    parser.add_argument("--program", default="build/deepinfer")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=int, help="cases of each family, grade, check and kind (all)")
    parser.add_argument("--needle-limit", type=int, help="cases of each length, depth and grade (all)")
    parser.add_argument("--format-samples", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    program = Program(arguments.program, arguments.model, arguments.threads)
    cases = read_cases(arguments.cases)
    cases = limited(cases, arguments.limit, arguments.needle_limit)
    results = run_cases(program, cases)
    summary = {
        "families": by(results, "family", "grade", "check"),
        "arithmetic": by([result for result in results if result["kind"]], "kind", "grade"),
        "needle_grades": by([result for result in results if result["family"] == "needle"], "length", "grade"),
        "needle": by([result for result in results if result["family"] == "needle"], "length", "depth"),
        "well_formed": share(results, "well_formed"),
    }
    if arguments.format_samples:
        summary["format"] = format_test(program, cases)
    if arguments.texts:
        domains = collections.defaultdict(list)
        for line in read_lines(arguments.texts):
            domains[line["domain"]].append(line["text"])
        summary["bits_per_byte"] = {domain: program.bits_per_byte(texts) for domain, texts in sorted(domains.items())}
    if arguments.drafts:
        summary["drafts"] = drafts(arguments.drafts)
    folder = pathlib.Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps({"summary": summary, "cases": results}, ensure_ascii=False, indent=1))
    (folder / "table.md").write_text(report.table(summary))
    (folder / "picture.svg").write_text(picture(summary))
    print(report.table(summary))


if __name__ == "__main__":
    main()
