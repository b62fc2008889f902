"""Training data from the command line; run from the repository's root.

python -m tools.train_mini.data text  --out DIR [--cache DIR] [--retrain]   packages -> tokenizer, packed text parts
python -m tools.train_mini.data vocab --out DIR [--cache DIR]               packages -> word lists
python -m tools.train_mini.data tasks --carried DIR --out DIR --tokens N    packed text -> all parts for the trainer
python -m tools.train_mini.data eval  --carried DIR --out FILE              evaluation cases
python -m tools.train_mini.data check --out DIR                             every hash of a data set
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from .fetch import DataError

_ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.train_mini.data", description="Training data of the mini model")
    parser.add_argument("command", choices=["text", "vocab", "tasks", "eval", "held-out", "check"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--carried", type=Path, help="folder that `text` wrote")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/deepinfer-data-cache"), help="downloaded packages")
    parser.add_argument("--model", type=Path, default=_ROOT / "models" / "mini", help="folder of tokenizer.json")
    parser.add_argument("--program", type=Path, default=_ROOT / "build" / "deepinfer")
    parser.add_argument("--retrain", action="store_true", help="train tokenizer.json anew")
    parser.add_argument("--tokens", type=int, default=160_000_000, help="task tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--cases", type=int, default=500, help="a family and grade")
    options = parser.parse_args()
    if options.command in ("tasks", "eval", "held-out") and options.carried is None:
        parser.error(f"{options.command} needs --carried")
    start = time.monotonic()
    try:
        print(_run(options), f"in {time.monotonic() - start:.0f} s")
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _run(o: argparse.Namespace) -> str:
    if o.command == "text":
        from . import text

        return str(text.write_text(o.out, o.model, o.cache, o.retrain))
    if o.command == "vocab":
        from . import text

        return text.write_words(o.out, o.cache)
    if o.command == "check":
        from . import parts

        return f"{len(parts.check(o.out)['parts'])} parts are whole"
    from . import evaluation, generate

    if o.command == "tasks":
        return "fingerprint " + generate.write_all(o.carried, o.out, o.model, o.program, o.tokens, o.seed, o.workers)
    if o.command == "held-out":
        return f"{evaluation.write_texts(o.out, generate.load_world(o.carried, o.model), o.seed)} texts"
    return f"{evaluation.write(o.out, generate.load_world(o.carried, o.model), o.seed, o.cases)} cases"


if __name__ == "__main__":
    sys.exit(main())
