"""First look at a GPU machine: correctness of kernels and compiled parts, speed of a step, where the time goes, a loss
that falls. `python -m train_mini.smoke --config ../models/mini` from tools/; device_smoke.sh wraps it.

Needs no data: documents are drawn from a random bigram table, so there is something to learn.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from pathlib import Path

import numpy as np
import torch

from reference.config import Config

from .batches import Batch, Packer
from .draft_trainer import DraftTrainer
from .generate import generate
from .losses import logits_of
from .model import Model
from .ops import Ops, TritonOps
from .rows import Rows
from .trainer import Trainer


class Toy:
    """Documents of a sparse random bigram language with a repeated passage in each."""

    def __init__(self, vocab: int, seed: int = 0):
        self.g = np.random.default_rng(seed)
        self.vocab = vocab
        self.next = self.g.integers(3, vocab, (vocab, 4))

    def document(self, n: int) -> np.ndarray:
        choice = self.g.integers(0, 4, n)
        tokens = np.empty(n, np.int64)
        token = 0
        for i in range(n):
            tokens[i] = token
            token = self.next[token, choice[i]]
        if n >= 256:
            tokens[n - n // 4 :] = tokens[n // 8 : n // 8 + n // 4]
        return tokens

    def batch(self, n_seq: int, length: int, window: int) -> Batch:
        """A few documents, reused in every sequence from a rotating offset, so that making them costs little."""
        packer = Packer(n_seq, length, pad=2)
        pool = [self.document(int(n)) for n in self.g.integers(length // 8, length + 1, 24)]
        while packer.free.max() >= 64:
            tokens = pool[self.g.integers(len(pool))]
            cut = len(tokens) // 2 if self.g.random() < 0.3 else 0
            packer.place(tokens, np.ones(len(tokens), bool), cut, may_cut=True)
        return packer.batch(window)


def fake_token_map(vocab: int) -> np.ndarray:
    return np.arange(vocab)


def section(name: str):
    print(f"\n== {name} ({time.monotonic() - BEGAN:.0f} s)", flush=True)


def guarded(name: str, function, *arguments):
    """Runs one section; a failure is printed and the others go on."""
    section(name)
    try:
        return function(*arguments)
    except Exception:
        traceback.print_exc(limit=6)
        return None


def make(config: Config, **more) -> Trainer:
    trainer = Trainer(config, fake_token_map(config.vocab_size), "cuda", 0, **more)
    return trainer


def check_kernels(config: Config, toy: Toy) -> None:
    """Loss and gradients with the Triton kernels against the plain forms, uncompiled, on a small batch."""
    batch = toy.batch(2, 1024, config.sliding_window).to("cuda")
    gradients = {}
    for name in ("plain", "triton"):
        trainer = make(config, compiled=False)
        if name == "plain":
            trainer.model.ops = Ops(config, trainer.model.nx)
        for dense in (True, False):
            loss, _, out = trainer.loss(batch, trainer.probe(batch, 0), dense)
            index_loss = out.index_loss
            (loss + index_loss).backward()
            gradients[name, dense] = {k: p.grad for k, p in trainer.parameters.items() if p.grad is not None}
            trainer.optimizer.zero_grad()
            kind = "dense" if dense else "sparse"
            print(f"{name:8} {kind:7} loss {loss.item():.5f} index {index_loss.item():.5f}")
    for dense in (True, False):
        want, got = gradients["plain", dense], gradients["triton", dense]
        errors = sorted((((got[k] - g).norm() / (g.norm() + 1e-9)).item(), k) for k, g in want.items())
        median = errors[len(errors) // 2][0]
        worst = ", ".join(f"{k} {e:.3f}" for e, k in reversed(errors[-5:]))
        print(f"{'dense' if dense else 'sparse'}: relative gradient difference, median {median:.3f}, largest {worst}")


def check_compiled(trainer: Trainer, batch: Batch) -> None:
    """Losses of the compiled parts against the same parts uncompiled, at full size (forward only)."""
    compiled_ops = trainer.model.ops
    for dense in (True, False):
        losses = {}
        for name, ops in (
            ("eager", TritonOps(trainer.config, trainer.model.nx, compiled=False)),
            ("compiled", compiled_ops),
        ):
            trainer.model.ops, trainer.model.parts = ops, ops.parts
            with torch.set_grad_enabled(name == "compiled"):  # so that the code compiled for training serves
                loss, _, out = trainer.loss(batch, trainer.probe(batch, 0), dense)
            losses[name] = f"{loss.item():.5f} + {out.index_loss.item():.5f}"
        print(f"{'dense' if dense else 'sparse'}: loss + index loss {losses}")


def timed_steps(trainer: Trainer, batch: Batch, n: int, dense: bool) -> float:
    torch.cuda.synchronize()
    began = time.monotonic()
    for i in range(n):
        trainer.step(batch, i, 0.1, dense)
    torch.cuda.synchronize()
    return (time.monotonic() - began) / n


def measure(config: Config, toy: Toy) -> Trainer:
    """Tokens per second of whole training steps; returns the trainer with everything compiled."""
    trainer = make(config)
    n_rows = 131_072
    rates = {}
    for length in (2048, 8192):
        batch = toy.batch(n_rows // length, length, config.sliding_window).to("cuda")
        for dense in (True, False):
            name = f"{n_rows // length}x{length} {'dense' if dense else 'sparse'}"
            try:
                began = time.monotonic()
                trainer.step(batch, 0, 0.1, dense)
                torch.cuda.synchronize()
                first = time.monotonic() - began
                timed_steps(trainer, batch, 2, dense)
                torch.cuda.reset_peak_memory_stats()
                seconds = timed_steps(trainer, batch, 5, dense)
                rates[name] = round(n_rows / seconds)
                memory = torch.cuda.max_memory_allocated() / 2**30
                print(f"{name:16} {n_rows / seconds:10,.0f} tokens/s  {1e3 * seconds:7.1f} ms  {memory:5.1f} GiB"
                      f"  first call {first:.1f} s", flush=True)  # fmt: skip
            except Exception:
                print(f"{name} failed")
                traceback.print_exc(limit=8)
                torch.cuda.empty_cache()
    print(json.dumps(rates))
    return trainer


def profile(trainer: Trainer, toy: Toy, length: int) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as run_profiler

    batch = toy.batch(131_072 // length, length, trainer.config.sliding_window).to("cuda")
    trainer.step(batch, 0, 0.1, False)
    torch.cuda.synchronize()
    with run_profiler(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
        trainer.step(batch, 1, 0.1, False)
        torch.cuda.synchronize()
    events = [e for e in p.key_averages() if e.self_device_time_total > 0 and "cuda" in str(e.device_type).lower()]
    total = sum(e.self_device_time_total for e in events)
    print(f"kernels {total / 1e3:.1f} ms, {sum(e.count for e in events)} launches")
    for e in sorted(events, key=lambda e: -e.self_device_time_total)[:32]:
        milliseconds, each = e.self_device_time_total / 1e3, e.self_device_time_total / e.count
        print(f"{milliseconds:8.2f} ms {e.count:5} x {each:8.1f} us  {e.key[:90]}")
    out = os.environ.get("OUT")
    if out:
        table = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=120, max_name_column_width=100)
        (Path(out) / f"profile_{length}.txt").write_text(table)


def train(config: Config, toy: Toy, trainer: Trainer | None, seconds: float) -> None:
    """Loss over time on the toy language: dense warm-up, then sparse."""
    trainer = trainer or make(config)
    trainer.reset()
    pool = [toy.batch(64, 2048, config.sliding_window).to("cuda") for _ in range(12)]
    began = time.monotonic()
    step, tokens = 0, 0
    while (elapsed := time.monotonic() - began) < seconds:
        progress = elapsed / seconds
        factor = min(1.0, step / 20) * min(1.0, (1 - progress) / 0.3)
        show = step % 25 == 0
        result = trainer.step(pool[step % len(pool)], step, factor, dense=progress < 0.1)
        tokens += 131_072
        if show:
            recall = " ".join(f"{layer}:{value.item():.2f}" for layer, value in result.recall.items())
            loads = trainer.loads.clone()
            trainer.loads.zero_()
            print(f"step {step:4} loss {result.loss.item():.3f} index {result.index_loss.item():.3f} "
                  f"norm {result.grad_norm.item():.2f} recall {recall} "
                  f"load max/mean {(loads.max(1).values / loads.mean(1)).mean().item():.2f}", flush=True)  # fmt: skip
        step += 1
    torch.cuda.synchronize()
    print(f"{step} steps, {tokens / (time.monotonic() - began):,.0f} tokens/s with logging")


def check_generation(trainer: Trainer) -> None:
    """Greedy text by cached decoding, its speed, and how often the forward pass would have chosen the same token."""
    ops = TritonOps(trainer.config, trainer.model.nx, compiled=False)
    model = Model(trainer.config, trainer.model.nx, ops, fake_token_map(trainer.config.vocab_size), "cuda")
    g = np.random.default_rng(0)
    n_seq, n = 1024, 160
    prompts = [[0, *g.integers(3, trainer.config.vocab_size, 7).tolist()] for _ in range(n_seq)]
    with torch.no_grad():
        w = model.prepare(trainer.parameters, model.specs.all())
        began = time.monotonic()
        out = generate(model, w, prompts, torch.zeros(n_seq, device="cuda"), n, 0, "cuda")
        torch.cuda.synchronize()
        seconds = time.monotonic() - began
        start = (torch.arange(n_seq * n, device="cuda") // n * n).int()
        hidden = model.forward(w, Rows(out.flatten(), start, n)).hidden
        same = []
        for i in range(0, n_seq * n, 16384):
            same.append(logits_of(hidden[i : i + 16384], w["head"][0]).argmax(1))
        best = torch.cat(same).view(n_seq, n)
    agreement = (best[:, 8:-1] == out[:, 9:]).float().mean().item()
    print(f"{n_seq} x {n} tokens in {seconds:.1f} s; forward pass agrees on {agreement:.1%}")


def check_drafter(trainer: Trainer, batch: Batch) -> None:
    drafter = DraftTrainer(trainer)
    for i in range(12):
        began = time.monotonic()
        result, norm = drafter.step(batch, i, min(1.0, (i + 1) / 5))
        loss = result.loss.item()
        if i < 2 or i % 4 == 3:
            print(f"step {i} loss {loss:.4f} round length {result.round_length().item():.2f} norm {norm.item():.2f}"
                  f"  {1e3 * (time.monotonic() - began):.0f} ms")  # fmt: skip


BEGAN = time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--config", type=Path, required=True, help="folder of config.json")
    parser.add_argument("--train-seconds", type=float, default=100)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    config = Config.read(args.config)
    toy = Toy(config.vocab_size)
    print(torch.cuda.get_device_name(), torch.__version__)
    guarded("Triton kernels against plain forms", check_kernels, config, toy)
    torch.cuda.empty_cache()
    trainer = guarded("speed", measure, config, toy)
    if trainer is not None:
        batch = toy.batch(64, 2048, config.sliding_window).to("cuda")
        guarded("compiled against eager", check_compiled, trainer, batch)
        guarded("profile 64x2048", profile, trainer, toy, 2048)
        guarded("profile 16x8192", profile, trainer, toy, 8192)
    torch.cuda.empty_cache()
    guarded("training", train, config, toy, trainer, args.train_seconds)
    if trainer is not None:
        guarded("generation", check_generation, trainer)
        guarded("drafter", check_drafter, trainer, batch)
    section("end")


if __name__ == "__main__":
    main()
