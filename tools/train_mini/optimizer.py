"""Muon for matrices, Adam for the rest, and router biases by load.

Muon: Nesterov momentum, orthogonalised by five Newton-Schulz steps, scaled so that an update has the root mean square
of an Adam update (0.2), so one learning rate serves both. Stacks are orthogonalised in one batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .specs import Stack

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalised(m: Tensor, steps: int = 5) -> Tensor:
    """m [N, n, k] -> the nearest matrices with singular values about 1 (bf16 inside)."""
    a, b, c = COEFFICIENTS
    x = m.bfloat16()
    if wide := m.shape[-2] > m.shape[-1]:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if wide else x).float()


class Optimizer:
    """Moves parameters (key -> float32 leaf) by their gradients; state lives in `self.state`.

    Learning rate and step number are tensors, so a step captured as a graph can be run again with other values.
    """

    def __init__(self, parameters: dict[str, Tensor], stacks: dict[str, Stack], rates: dict[str, float]):
        """rates: "muon", "adam", "table", "index" relative learning rates; "decay" weight decay of Muon matrices."""
        self.parameters, self.stacks, self.rates = parameters, stacks, rates
        device = next(iter(parameters.values())).device
        self.steps = torch.zeros((), device=device)
        self.state: dict[str, Tensor] = {}
        self.groups: dict[str, list[str]] = {"muon": [], "adam": [], "table": [], "index": []}
        for key, stack in stacks.items():
            if stack.optimizer in self.groups:
                self.groups[stack.optimizer].append(key)
                self.state[key + "/m"] = torch.zeros_like(parameters[key])
                if stack.optimizer != "muon":
                    self.state[key + "/v"] = torch.zeros_like(parameters[key])

    @torch.no_grad()
    def step(self, factor: Tensor, clip: float = 1.0) -> Tensor:
        """One update with learning rates `factor` (scalar) * rate. Returns the gradient norm before clipping."""
        self.steps += 1
        keys = [k for g in self.groups.values() for k in g if self.parameters[k].grad is not None]
        grads = [self.parameters[k].grad for k in keys]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        torch._foreach_mul_(grads, (clip / (norm + 1e-6)).clamp(max=1.0))
        for key in self.groups["muon"]:
            if self.parameters[key].grad is not None:
                self._muon(key, factor * self.rates["muon"])
        for group, beta2 in (("adam", 0.95), ("table", 0.99), ("index", 0.95)):
            self._adam([k for k in self.groups[group] if self.parameters[k].grad is not None], factor, group, beta2)
        return norm

    def _muon(self, key: str, rate: Tensor) -> None:
        p, m = self.parameters[key], self.state[key + "/m"]
        m.lerp_(p.grad, 0.05)
        update = p.grad.lerp(m, 0.95)
        n, k = p.shape[-2:]
        update = orthogonalised(update.reshape(-1, n, k)).view_as(p)
        p.mul_(1 - rate * self.rates["decay"])
        p.sub_(update * (rate * (0.2 * max(n, k) ** 0.5)))

    def _adam(self, keys: list[str], factor: Tensor, group: str, beta2: float) -> None:
        if not keys:
            return
        p = [self.parameters[k] for k in keys]
        grads = [x.grad for x in p]
        m, v = ([self.state[f"{k}/{s}"] for k in keys] for s in "mv")
        torch._foreach_lerp_(m, grads, 0.1)
        torch._foreach_mul_(v, beta2)
        torch._foreach_addcmul_(v, grads, grads, 1 - beta2)
        bias1, bias2 = 1 - 0.9**self.steps, 1 - beta2**self.steps
        denominator = torch._foreach_sqrt(torch._foreach_div(v, bias2))
        torch._foreach_add_(denominator, 1e-9)
        update = torch._foreach_div(m, denominator)
        torch._foreach_mul_(update, factor * (self.rates[group] / bias1))
        torch._foreach_sub_(p, update)

    def zero_grad(self) -> None:
        for p in self.parameters.values():
            p.grad = None

    def state_dict(self) -> dict[str, object]:
        return {"steps": self.steps, "state": self.state}

    def load_state_dict(self, saved: dict[str, object]) -> None:
        self.steps.fill_(float(saved["steps"]))
        for key, value in saved["state"].items():
            self.state[key].copy_(value)


@torch.no_grad()
def balance(bias: Tensor, loads: Tensor, rate: Tensor | float) -> None:
    """Router biases [L, E] move towards equal loads int64 [L, E]."""
    mean = loads.float().mean(-1, keepdim=True)
    bias.add_(torch.sign(mean - loads.float()) * rate)
    bias.sub_(bias.mean(-1, keepdim=True))
