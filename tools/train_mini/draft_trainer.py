"""One training step of the drafter on a frozen backbone."""

from __future__ import annotations

import torch
from torch import Tensor

from .batches import Batch
from .drafter import DraftResult, draft_step, draw_anchors
from .optimizer import Optimizer, balance
from .trainer import Trainer

RATES = {"muon": 4e-3, "adam": 3e-3, "table": 0.0, "index": 0.0, "decay": 0.0}
BIAS_RATE = 1e-3


class DraftTrainer:
    def __init__(self, trainer: Trainer):
        self.trainer, self.model = trainer, trainer.model
        self.stacks = self.model.specs.drafter
        self.optimizer = Optimizer({k: trainer.parameters[k] for k in self.stacks}, self.stacks, dict(RATES))

    def step(self, batch: Batch, step: int, factor: float) -> tuple[DraftResult, Tensor]:
        """The result and the gradient norm. Draft rows are as many as the batch has rows, so compiled parts serve."""
        model, parameters = self.model, self.trainer.parameters
        # With gradients enabled although none is used: the code compiled for training runs.
        backbone = model.prepare(parameters, model.specs.backbone)
        out = model.forward(backbone, batch.rows, want_taps=True)
        hidden, taps = out.hidden.detach(), out.taps
        del out
        w = {key: tuple(t.detach() for t in value) for key, value in backbone.items()}
        w |= model.prepare(parameters, self.stacks)
        generator = torch.Generator(hidden.device).manual_seed(self.trainer.seed * 104_729 + step)
        counted = batch.weight > 0
        n_rows = len(counted)
        anchors = draw_anchors(counted & next_counted(counted), n_rows // model.config.dspark_block_size, generator)
        result = draft_step(model, w, batch.rows, taps, hidden, counted, anchors, n_rows)
        result.loss.backward()
        norm = self.optimizer.step(torch.tensor(factor, device=hidden.device))
        self.optimizer.zero_grad()
        balance(parameters["mtp/ffn.gate.bias"], result.loads, BIAS_RATE)
        return result, norm


def next_counted(counted: Tensor) -> Tensor:
    """bool [R]: the next row's next token counts too."""
    moved = counted.roll(-1)
    moved[-1] = False
    return moved
