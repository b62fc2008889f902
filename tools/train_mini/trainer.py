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
from .losses import cross_entropy
from .model import Model
from .numerics import Numerics
from .ops import Ops, TritonOps
from .optimizer import Optimizer, balance
from .probe import draw_probe
from .specs import initial_parameters

RATES = {"muon": 3e-3, "adam": 2e-3, "table": 1e-2, "decay": 0.05}
BIAS_RATE = 2e-3
PROBES_PER_2048 = 16


@dataclass
class StepResult:
    loss: Tensor
    index_loss: Tensor
    grad_norm: Tensor
    loads: Tensor
    recall: dict[int, Tensor]


class Trainer:
    def __init__(
        self, config: Config, token_map: np.ndarray | None, device: str, seed: int,
        compiled: bool = True, without: frozenset[str] = frozenset(),
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
        self.optimizer = Optimizer({k: self.parameters[k] for k in specs.backbone}, specs.backbone, dict(RATES))
        self.loads = torch.zeros(config.num_hidden_layers, config.n_routed_experts, device=device)

    def loss(self, batch: Batch, step: int, dense: bool, measure: bool = False) -> tuple[Tensor, Tensor, Any]:
        """Cross entropy, index loss, and the model's output."""
        w = self.model.prepare(self.parameters, self.model.specs.backbone)
        length = batch.rows.length
        generator = torch.Generator(self.device).manual_seed(self.seed * 7_919 + step)
        per_sequence = max(1, PROBES_PER_2048 * length // 2048)
        probe = draw_probe(len(batch.target), length, per_sequence, generator, self.device, measure)
        has_index = bool(self.config.index_source_layer_ids)
        out = self.model.forward(w, batch.rows, dense=dense, probe=probe if has_index else None)
        return cross_entropy(out.hidden, w["head"][0], batch.target, batch.weight), out.index_loss, out

    def step(self, batch: Batch, step: int, factor: float, dense: bool, measure: bool = False) -> StepResult:
        loss, index_loss, out = self.loss(batch, step, dense, measure)
        (loss + index_loss).backward()
        norm = self.optimizer.step(factor)
        self.optimizer.zero_grad()
        balance(self.parameters["ffn.gate.bias"], out.loads, BIAS_RATE * min(1.0, factor + 0.05))
        self.loads += out.loads
        return StepResult(loss.detach(), index_loss.detach(), norm, out.loads, out.recall)

    @torch.no_grad()
    def reset(self) -> None:
        """Back to the initial parameters, without compiling anything again."""
        for key, p in initial_parameters(self.model.specs, self.seed).items():
            self.parameters[key].copy_(p)
        for value in self.optimizer.state.values():
            value.zero_()
        self.optimizer.steps = 0

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
