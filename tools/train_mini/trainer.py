"""One training step of the backbone, and what belongs to it: model, parameters, optimizer, router balance.

The loss is cross entropy plus the indexer's own loss, whose gradient reaches only indexer parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reference.config import Config

from .batches import Batch
from .graph import GraphRunner
from .losses import cross_entropy
from .model import Model, Output
from .numerics import Numerics
from .ops import Ops, TritonOps
from .optimizer import Optimizer, balance
from .probe import Probe, draw_probe
from .specs import initial_parameters

RATES = {"muon": 6e-3, "adam": 4e-3, "table": 1e-2, "index": 1e-2, "decay": 0.05}
BIAS_RATE = 2e-3
PROBES_PER_2048 = 48


@dataclass
class StepResult:
    """Scalars and rows of the step; overwritten by the next step where steps run as a graph."""

    loss: Tensor
    index_loss: Tensor
    grad_norm: Tensor
    recall: dict[int, Tensor]
    hit: Tensor  # bool [R]: the target was the best token


class Trainer:
    def __init__(
        self, config: Config, token_map: np.ndarray | None, device: str, seed: int,
        compiled: bool = True, without: frozenset[str] = frozenset(), rates: dict[str, float] | None = None,
    ):  # fmt: skip
        self.config, self.device, self.seed = config, device, seed
        nx = Numerics()
        on_gpu = device != "cpu"
        ops = TritonOps(config, nx, compiled, without) if on_gpu else Ops(config, nx)
        self.model = Model(config, nx, ops, token_map, device)
        specs = self.model.specs
        self.parameters = {
            key: p.to(device).requires_grad_(specs.all()[key].optimizer != "router")
            for key, p in initial_parameters(specs, seed).items()
        }
        self.optimizer = Optimizer({k: self.parameters[k] for k in specs.backbone}, specs.backbone, RATES | (rates or {}))
        self.loads = torch.zeros(config.num_hidden_layers, config.n_routed_experts, device=device)
        self.factor = torch.zeros((), device=device)
        self.runner = GraphRunner(self._step) if on_gpu and compiled else self._step

    def probe(self, batch: Batch, step: int) -> Probe:
        length = batch.rows.length
        generator = torch.Generator().manual_seed(self.seed * 7_919 + step)
        asked = torch.zeros(len(batch.target), dtype=torch.bool)
        if batch.notes is not None:
            asked = torch.from_numpy(batch.notes.asked)
        probe = draw_probe(asked, length, max(2, PROBES_PER_2048 * length // 2048), generator)
        return Probe(probe.rows.to(self.device, non_blocking=True))

    def loss(self, batch: Batch, probe: Probe, dense: bool) -> tuple[Tensor, Tensor, Output]:
        """Cross entropy, bool [R] (the target was the best token), and the model's output with the index loss."""
        w = self.model.prepare(self.parameters, self.model.specs.backbone)
        has_index = bool(self.config.index_source_layer_ids)
        out = self.model.forward(w, batch.rows, dense=dense, probe=probe if has_index else None)
        loss, hit = cross_entropy(out.hidden, w["head"][0], batch.target, batch.weight)
        return loss, hit, out

    def step(self, batch: Batch, step: int, factor: float, dense: bool) -> StepResult:
        self.factor.fill_(factor)
        return self.runner(batch, self.probe(batch, step), dense)

    def _step(self, batch: Batch, probe: Probe, dense: bool) -> StepResult:
        """Nothing in here waits for the device or depends on values the host knows, but the shapes."""
        self.optimizer.zero_grad()
        loss, hit, out = self.loss(batch, probe, dense)
        (loss + out.index_loss).backward()  # with Adam the index loss needs no weight of its own
        norm = self.optimizer.step(self.factor)
        balance(self.parameters["ffn.gate.bias"], out.loads, BIAS_RATE * (self.factor + 0.05).clamp(max=1.0))
        self.loads += out.loads
        recall = {layer: value.detach() for layer, value in out.recall.items()}
        return StepResult(loss.detach(), out.index_loss.detach(), norm, recall, hit)

    @torch.no_grad()
    def reset(self) -> None:
        """Back to the initial parameters, without compiling anything again."""
        for key, p in initial_parameters(self.model.specs, self.seed).items():
            self.parameters[key].copy_(p)
        for value in self.optimizer.state.values():
            value.zero_()
        self.optimizer.steps.zero_()

    def state_dict(self) -> dict[str, Any]:
        return {
            "parameters": {k: p.detach() for k, p in self.parameters.items()},
            "optimizer": self.optimizer.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, saved: dict[str, Any]) -> None:
        for key, p in self.parameters.items():
            p.copy_(saved["parameters"][key])
        self.optimizer.load_state_dict(saved["optimizer"])
