"""Writes trained parameters as a released-format folder: config.json, tokenizer, shards, temperatures, checksums.

`python -m train_mini.export --run RUN_DIR --out DIR` from tools/.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from reference.config import Config

from .checkpoint_io import write_checkpoint
from .specs import Specs

SHARD_BYTES = 15_000_000
TOTAL_BYTES = 40_000_000
TEMPERATURES = "dspark_temperatures.json"


def export(
    out: Path, config: dict[str, Any], parameters: dict[str, Tensor], tokenizer: Path,
    temperatures: dict[str, Any] | None, limit: int = TOTAL_BYTES,
) -> dict[str, int]:  # fmt: skip
    """Returns the size of every file. Refuses a result above `limit` bytes."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("model-*.safetensors"), out / TEMPERATURES]:
        old.unlink(missing_ok=True)
    write_checkpoint(out, config, Specs(Config(config)), parameters, SHARD_BYTES)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        source = tokenizer.parent / name
        if source.exists() and source.resolve() != (out / name).resolve():
            shutil.copyfile(source, out / name)
    generation = {"bos_token_id": 0, "eos_token_id": 1, "do_sample": True, "temperature": 1.0, "top_p": 1.0}
    (out / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n")
    if temperatures is not None:
        (out / TEMPERATURES).write_text(json.dumps(temperatures, indent=1) + "\n")
    files = sorted(
        p for p in out.iterdir()
        if p.suffix in (".json", ".safetensors")
    )  # fmt: skip
    sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files]
    (out / "SHA256SUMS").write_text("".join(sums))
    sizes = {p.name: p.stat().st_size for p in [*files, out / "SHA256SUMS"]}
    if sum(sizes.values()) > limit:
        raise ValueError(f"{out} has {sum(sizes.values()):,} bytes, more than {limit:,}")
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="folder of a finished training run")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    args = parser.parse_args()
    from .train import load_state

    saved = load_state(args.run / "last.pt")
    temperatures = saved.get("temperatures")
    sizes = export(args.out, saved["config"], saved["trainer"]["parameters"], args.tokenizer, temperatures)
    for name, size in sizes.items():
        print(f"{size:12,} {name}")
    print(f"{sum(sizes.values()):12,} of {TOTAL_BYTES:,}")


if __name__ == "__main__":
    main()
