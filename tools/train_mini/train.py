#!/usr/bin/env python3
"""Trains the mini model: backbone, text of its own, drafter, calibration; then writes the released format.

Run from tools/:

python -m train_mini.train --config ../models/mini --data DIR --tokenizer FILE --run DIR --minutes 18 [--out DIR]

One command, resumable: started again with the same --run it goes on from the last checkpoint (every 5 minutes). The
learning rate follows tokens seen over tokens expected by the deadline, and reaches zero there. --run gets last.pt and
log.jsonl.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reference.config import Config

from .batches import Batch, DataSet, Packer, Sampler, prefetched
from .checkpoint_io import complete_config, fingerprint
from .draft_trainer import DraftTrainer
from .drafter import draw_anchors, fit_temperatures, greedy_rounds
from .export import export
from .generate import generate
from .model import Model, Weights
from .numerics import Numerics
from .ops import Ops, TritonOps
from .trainer import RATES, StepResult, Trainer

CHECKPOINT_SECONDS = 300
WARMUP_STEPS = 200
DENSE_SHARE = 0.45  # of the backbone's schedule, all entries attended
FINAL_SHARE = 0.27  # of the backbone's schedule, the final phase
DECAY_SHARE = 0.45  # of a schedule, the linear way to zero
ANSWER_WEIGHT = 4.0  # of the loss on what an assistant says in a task; on text it is 1
CONTEXT_WEIGHT = 0.3  # of the loss on the rest of a task in the main phase, mostly unforeseeable; 0 in the final one
DRAFT_DOMAINS: dict[str, list[str]] = {  # data parts by what their text is like; the last one is the rest
    "code and JSON": ["code", "tasks-coding", "tasks-extraction", "tasks-tools"],
    "prose": ["literature", "docs", "glosses"],
    "other tasks": [],
}
STAGES = ("backbone", "text", "drafter", "calibration", "done")


class Clock:
    """Progress of a stage in 0..1: tokens seen over tokens expected when its time is up."""

    def __init__(self, seconds: float, spent: float, tokens: int):
        self.seconds, self.spent, self.tokens = seconds, spent, tokens
        self.began = time.monotonic()
        self.marks: list[tuple[float, int]] = []

    @property
    def elapsed(self) -> float:
        return self.spent + time.monotonic() - self.began

    def rate(self) -> float:
        """Tokens per second over the last marks."""
        if len(self.marks) < 2:
            return 0.0
        (t0, n0), (t1, n1) = self.marks[0], self.marks[-1]
        return (n1 - n0) / max(t1 - t0, 1e-9)

    def mark(self, tokens: int) -> None:
        self.tokens = tokens
        self.marks = [*self.marks[-39:], (self.elapsed, tokens)]

    def progress(self) -> float:
        left = max(0.0, self.seconds - self.elapsed)
        if left == 0:
            return 1.0
        rate = self.rate()
        if rate == 0:
            return min(1.0, self.elapsed / self.seconds)
        return self.tokens / (self.tokens + rate * left)


def rate_factor(step: int, progress: float) -> float:
    """Warm-up, constant, linear decay to zero."""
    return min(1.0, (step + 1) / WARMUP_STEPS) * min(1.0, max(0.0, 1 - progress) / DECAY_SHARE)


class Run:
    """Everything of one training run; `stage` and `step` say where it stands."""

    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.device = "cuda" if torch.cuda.is_available() and not args.cpu else "cpu"
        tokenizer = args.tokenizer.read_bytes()
        top = json.loads((args.config / "config.json").read_text())
        Config(top)  # refuses what it does not know
        self.top, token_map = complete_config(top, json.loads(tokenizer))
        self.config = Config(self.top)
        self.data = DataSet(args.data, self.config.vocab_size, hashlib.sha256(tokenizer).hexdigest())
        rates = {name: rate for name in RATES if (rate := getattr(args, f"{name}_rate", None)) is not None}
        compiled = self.device != "cpu"
        self.trainer = Trainer(self.config, token_map, self.device, args.seed, compiled=compiled, rates=rates)
        self.token_map = token_map
        args.run.mkdir(parents=True, exist_ok=True)
        self.log_file = args.run / "log.jsonl"
        self.stage, self.step, self.tokens, self.spent = "backbone", 0, 0, 0.0
        self.own_text: list[tuple[Tensor, int, bool, int]] = []  # document, length of its prompt, greedy, data part
        self.temperatures: dict[str, Any] | None = None
        self.last_save = time.monotonic()
        self.tallies: deque[Counter[tuple[str, str]]] = deque(maxlen=10)
        self.resume()

    # -- checkpoints and log

    def save(self) -> None:
        state = self.trainer.state_dict()
        saved = {
            "config": self.top, "data": self.data.fingerprint, "stage": self.stage, "step": self.step,
            "tokens": self.tokens, "spent": self.spent, "trainer": state, "text": self.own_text,
            "temperatures": self.temperatures, "seed": self.args.seed,
            "fingerprint": fingerprint(self.top, state["parameters"]),
        }  # fmt: skip
        path = self.args.run / "last.pt"
        torch.save(saved, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)
        self.last_save = time.monotonic()

    def save_if_due(self) -> None:
        if time.monotonic() - self.last_save > CHECKPOINT_SECONDS:
            self.save()

    def resume(self) -> None:
        path = self.args.run / "last.pt"
        if not path.exists():
            return
        saved = load_state(path)
        for name, mine in (("config", self.top), ("data", self.data.fingerprint), ("seed", self.args.seed)):
            if saved[name] != mine:
                raise ValueError(f"{path} is of another {name} than this run")
        self.trainer.load_state_dict(saved["trainer"])
        self.stage, self.step, self.tokens, self.spent = (saved[k] for k in ("stage", "step", "tokens", "spent"))
        self.own_text, self.temperatures = saved["text"], saved["temperatures"]
        self.log(resumed=self.stage)

    def log(self, **values: Any) -> None:
        rounded = {k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()}
        line = json.dumps({"stage": self.stage, "step": self.step, **rounded})
        with open(self.log_file, "a") as f:
            f.write(line + "\n")
        print(line, file=sys.stderr, flush=True)

    def next_stage(self) -> None:
        self.stage = STAGES[STAGES.index(self.stage) + 1]
        self.step, self.spent = 0, 0.0
        self.save()

    def main(self) -> None:
        while self.stage != "done":
            getattr(self, self.stage)()
            self.next_stage()
        if self.args.out:
            sizes = export(
                self.args.out, self.top, self.trainer.parameters, self.args.tokenizer, self.temperatures,
                limit=self.args.limit_bytes,
            )  # fmt: skip
            self.log(exported=sum(sizes.values()))

    # -- (a), (b): the backbone

    def sampler(self, phase: str) -> Sampler:
        a, c = self.args, self.config
        final = phase == "final"
        return Sampler(
            self.data, phase, a.rows, a.final_length if final else a.length, a.seed, c.top["bos_token_id"],
            c.top["pad_token_id"], c.sliding_window, answer_weight=ANSWER_WEIGHT,
            context_weight=0.0 if final else CONTEXT_WEIGHT, replay_share=0.5 if final else 0.0,
        )  # fmt: skip

    def backbone(self) -> None:
        clock = Clock(60 * self.args.minutes, self.spent, self.tokens)
        phase, batches = "", iter(())
        while (progress := clock.progress()) < 1 and self.step < self.args.max_steps:
            wanted = "final" if progress >= 1 - FINAL_SHARE else "main"
            if wanted != phase:
                phase = wanted
                batches = prefetched(self.sampler(phase).batch, self.step, self.device)
            factor, dense = rate_factor(self.step, progress), progress < DENSE_SHARE
            show = self.step % self.args.log_every == 0
            batch = next(batches)
            result = self.trainer.step(batch, self.step, factor, dense)
            self.step, self.tokens = self.step + 1, self.tokens + self.args.rows
            if show:
                # Reading the loss waits for the device, so the clock's rate is real.
                self.log_backbone(result, batch, phase, dense, factor, progress, clock)
                self.spent = clock.elapsed
                self.save_if_due()

    def log_backbone(
        self, result: StepResult, batch: Batch, phase: str, dense: bool, factor: float, progress: float, clock: Clock
    ) -> None:
        loss = result.loss.item()
        if not np.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss} at step {self.step}")
        clock.mark(self.tokens)
        if batch.notes:
            self.tallies.append(batch.notes.tally(result.hit.cpu().numpy(), [p.name for p in self.data.parts]))
        loads = self.trainer.loads
        mean = loads.mean(1, keepdim=True).clamp(min=1e-9)
        self.log(
            phase=phase + (" dense" if dense else ""), loss=loss, index_loss=result.index_loss.item(), lr=factor,
            progress=progress, tokens=self.tokens, rate=round(clock.rate()), norm=result.grad_norm.item(),
            recall={layer: round(v.item(), 3) for layer, v in result.recall.items()},
            load_max=(loads / mean).max().item(), load_min=(loads / mean).min().item(), seconds=clock.elapsed,
            whole=self.whole_answers(),
        )  # fmt: skip
        loads.zero_()

    def whole_answers(self) -> dict[str, float]:
        """Share of recent task documents with every answer token right (given the ones before), by part."""
        total = sum(self.tallies, Counter())
        names = sorted({name for name, _ in total})
        return {n.removeprefix("tasks-"): round(total[n, "whole"] / total[n, "documents"], 3) for n in names}

    # -- (c): text of the model's own

    def eager_model(self) -> tuple[Model, Weights]:
        """For shapes that are not worth compiling; weights of the whole model, without gradients."""
        nx = Numerics()
        ops = TritonOps(self.config, nx, compiled=False) if self.device != "cpu" else Ops(self.config, nx)
        model = Model(self.config, nx, ops, self.token_map, self.device)
        with torch.no_grad():
            return model, model.prepare(self.trainer.parameters, model.specs.all())

    def text_prompts(self, count: int, g: np.random.Generator) -> tuple[list[list[int]], list[int]]:
        """Beginnings of training documents, with their parts: up to the answer in tasks, some tokens of text."""
        shares = np.array([p.weights["main"] + p.weights["final"] for p in self.data.parts])
        prompts: list[list[int]] = []
        numbers: list[int] = []
        while len(prompts) < count:
            number = int(g.choice(len(shares), p=shares / shares.sum()))
            part = self.data.parts[number]
            tokens, mask = part.document(int(g.integers(part.n_documents)))
            if part.kind == "tasks":
                end = int(mask.argmax()) if mask.any() and not mask.all() else 8
            else:
                end = int(g.integers(4, 65))
            if end < self.args.text_length * 3 // 4:
                prompts.append(tokens[: max(end, 1)].tolist())
                numbers.append(number)
        return prompts, numbers

    def text(self) -> None:
        model, w = self.eager_model()
        began, wave = time.monotonic(), 0
        eos = self.config.top["eos_token_id"]
        while True:
            g = np.random.default_rng([self.args.seed, 3, wave])
            prompts, numbers = self.text_prompts(self.args.text_sequences, g)
            temperature = torch.from_numpy(g.choice([0.0, 0.0, 0.7, 1.0], len(prompts)).astype(np.float32))
            out = generate(
                model,
                w,
                prompts,
                temperature.to(self.device),
                self.args.text_length,
                self.args.seed + wave,
                self.device,
            ).cpu()
            for row, prompt, t, number in zip(out, prompts, temperature.tolist(), numbers):
                (ends,) = (row[len(prompt) :] == eos).nonzero(as_tuple=True)
                length = len(prompt) + int(ends[0]) + 1 if len(ends) else len(row)
                self.own_text.append((row[:length].to(torch.int16), len(prompt), t == 0, number))
            wave += 1
            made = sum(len(t) - n for t, n, *_ in self.own_text)
            self.log(waves=wave, tokens=made, seconds=time.monotonic() - began)
            spent = time.monotonic() - began
            if spent + spent / wave > 60 * self.args.text_minutes or wave >= self.args.max_waves:
                return

    # -- (d), (e): the drafter

    def own_batch(self, i: int, held_out: bool) -> Batch:
        """Generated documents, packed; weight 1 on generated tokens. Of the greedy ones every 20th is held out."""
        g = np.random.default_rng([self.args.seed, 4, int(held_out), i])
        a, c = self.args, self.config
        greedy = [n for n, document in enumerate(self.own_text) if document[2]]
        apart = set(greedy[::20])
        pool = [d for n, d in enumerate(self.own_text) if (n in apart) == held_out]
        packer = Packer(a.rows // a.length, a.length, c.top["pad_token_id"])
        misses = 0
        while misses < 20 and packer.free.max() >= 64:
            tokens, n_prompt, _, part = pool[int(g.integers(len(pool)))]
            tokens = tokens.numpy().astype(np.int64)
            counted = np.arange(len(tokens)) >= n_prompt
            placed = packer.place(tokens[: a.length], counted[: a.length], 0, may_cut=False, part=part)
            misses = 0 if placed else misses + 1
        return packer.batch(c.sliding_window)

    def drafter(self) -> None:
        a, trainer = self.args, DraftTrainer(self.trainer)
        clock = Clock(60 * a.drafter_minutes, self.spent, self.step * a.rows)
        batches = prefetched(lambda i: self.own_batch(i, False), self.step, self.device)
        while (progress := clock.progress()) < 1 and self.step < a.max_steps:
            factor = rate_factor(self.step, progress)
            result, norm = trainer.step(next(batches), self.step, factor)
            self.step += 1
            if (self.step - 1) % a.log_every == 0:
                loss = result.loss.item()
                clock.mark(self.step * a.rows)
                self.log(
                    loss=loss, lr=factor, progress=progress, rate=round(clock.rate()), norm=norm.item(),
                    accept=[round(x, 3) for x in result.accept.mean(0).tolist()],
                    round_length=result.round_length().item(), seconds=clock.elapsed,
                )  # fmt: skip

    def calibration(self) -> None:
        model, w = self.eager_model()
        logits, accepted, parts = [], [], []
        slots = self.config.dspark_block_size
        for i in range(self.args.calibration_batches):
            batch = self.own_batch(i, held_out=True).to(self.device)
            with torch.no_grad():
                out = model.forward(w, batch.rows, want_taps=True)
            counted = batch.weight > 0
            far = torch.ones_like(counted)
            for k in range(1, slots):  # the whole block lies inside the document
                far &= counted.roll(-k)
            far[-slots:] = False
            generator = torch.Generator(self.device).manual_seed(self.args.seed + i)
            anchors = draw_anchors(counted & far, max(32, self.args.rows // 16 // 32 * 32), generator)
            c, ok = greedy_rounds(model, w, batch.rows, out.taps, out.hidden, anchors)
            logits.append(c)
            accepted.append(ok)
            parts.append(batch.notes.part[anchors.cpu().numpy()])
        all_logits, all_accepted = torch.cat(logits), torch.cat(accepted)
        temperatures, before, after = fit_temperatures(all_logits, all_accepted)
        lengths = 1 + all_accepted.sum(1).float()
        self.temperatures = {"method": "sequential temperature scaling", "temperatures": temperatures}
        self.log(
            temperatures=[round(t, 3) for t in temperatures], ece_before=[round(x, 4) for x in before],
            ece_after=[round(x, 4) for x in after], accepted_length=lengths.mean().item(), rounds=len(lengths),
            domains=self.by_domain(lengths.cpu().numpy(), np.concatenate(parts)),
        )  # fmt: skip

    def by_domain(self, lengths: np.ndarray, parts: np.ndarray) -> dict[str, dict[str, float]]:
        """Accepted length and number of rounds: code and JSON, prose, other tasks."""
        names = np.array([p.name for p in self.data.parts])[parts]
        listed = [name for members in DRAFT_DOMAINS.values() for name in members]
        groups = {}
        for domain, members in DRAFT_DOMAINS.items():
            mine = lengths[np.isin(names, members) if members else ~np.isin(names, listed)]
            if len(mine):
                groups[domain] = {"accepted_length": round(float(mine.mean()), 3), "rounds": len(mine)}
        return groups


def load_state(path: Path) -> dict[str, Any]:
    """A checkpoint of a run; refused if its bytes are not those its fingerprint was made of."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if fingerprint(saved["config"], saved["trainer"]["parameters"]) != saved["fingerprint"]:
        raise ValueError(f"{path} has another fingerprint than its config and tensors")
    return saved


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--config", type=Path, required=True, help="folder of config.json")
    parser.add_argument("--data", type=Path, required=True, help="folder of manifest.json")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json the data was made with")
    parser.add_argument("--run", type=Path, required=True, help="checkpoints and log")
    parser.add_argument("--out", type=Path, help="released-format result")
    parser.add_argument("--minutes", type=float, default=19.4, help="of the backbone")
    parser.add_argument("--text-minutes", type=float, default=1.2)
    parser.add_argument("--drafter-minutes", type=float, default=3.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=65_536, help="tokens of a step")
    for name in ("muon", "adam", "index"):
        parser.add_argument(f"--{name}-rate", type=float, help=f"learning rate of the backbone ({RATES[name]})")
    parser.add_argument("--length", type=int, default=4096, help="sequence length of the main phase")
    parser.add_argument("--final-length", type=int, default=8192)
    parser.add_argument("--text-sequences", type=int, default=2048)
    parser.add_argument("--text-length", type=int, default=640)
    parser.add_argument("--calibration-batches", type=int, default=8)
    parser.add_argument("--max-steps", type=int, default=10**9, help="of each trained stage")
    parser.add_argument("--max-waves", type=int, default=10**9)
    parser.add_argument("--log-every", type=int, default=25)
    parser.add_argument("--limit-bytes", type=int, default=40_000_000)
    parser.add_argument("--cpu", action="store_true", help="for tests")
    return parser


def main() -> int:
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        Run(arguments().parse_args()).main()
    except (ValueError, KeyError, OSError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
