"""Training the indexer: on a few rows per sequence, its scores against the attention that its group really pays.

The target of an index source is the attention of its own layer and of the layers that reuse its selection: softmax over
window, sink and every visible entry, summed over heads and layers, normalised over the entries. It has no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Probe:
    """rows int64 [B, P]: flat row ids, the same number in every sequence."""

    rows: Tensor


def draw_probe(favoured: Tensor, length: int, per_sequence: int, generator: torch.Generator) -> Probe:
    """favoured bool [R]: every other row of a sequence is drawn from these, if it has any. On the CPU."""
    choice = favoured.view(-1, length)
    n_seq = len(choice)
    offset = torch.randint(length, (n_seq, per_sequence), generator=generator)
    some = choice.any(1)
    if some.any():
        half = torch.multinomial(choice[some].float(), per_sequence // 2 + 1, replacement=True, generator=generator)
        offset[some, : per_sequence // 2 + 1] = half
    return Probe(offset + torch.arange(n_seq)[:, None] * length)


class IndexTask:
    """The loss of one index source. q [R, Hi, Di], g [R, Hi], keys [B*N, Di]; N entries per sequence."""

    def __init__(self, layer: int, probe: Probe, q: Tensor, g: Tensor, keys: Tensor, e_range, n_entries: int):
        self.layer, self.rows = layer, probe.rows
        n_seq, per_sequence = probe.rows.shape
        self.n_entries = n_entries
        flat = probe.rows.flatten()
        base = torch.arange(n_seq, device=q.device)[:, None] * n_entries
        lo, hi = (r.long()[flat].view(n_seq, per_sequence) - base for r in e_range)
        column = torch.arange(n_entries, device=q.device)
        self.visible = (column >= lo[..., None]) & (column < hi[..., None])
        keys = keys.view(n_seq, n_entries, -1).float()
        dots = torch.einsum("bphd,bnd->bphn", q[flat].view(n_seq, per_sequence, *q.shape[1:]).float(), keys)
        weighted = dots.relu() * g[flat].view(n_seq, per_sequence, -1, 1).float()
        self.scores = weighted.sum(2).masked_fill(~self.visible, -torch.inf)
        self.target = torch.zeros_like(self.scores, requires_grad=False)

    @torch.no_grad()
    def add_attention(self, q: Tensor, window: Tensor, w_range, width: int, entries: Tensor, sink: Tensor) -> None:
        """q [R, H, D] of a layer that reads this selection."""
        n_seq, per_sequence = self.rows.shape
        flat = self.rows.flatten()
        scale = q.shape[-1] ** -0.5
        q = q.detach()[flat]
        lo, hi = (r.long()[flat] for r in w_range)
        near = lo[:, None] + torch.arange(width, device=q.device)
        hidden = near >= hi[:, None]
        k = window.detach()[near.clamp(max=len(window) - 1)]
        s_window = torch.bmm(q, k.transpose(1, 2)).float() * scale
        s_window = s_window.masked_fill(hidden[:, None, :], -torch.inf)
        local = torch.logaddexp(s_window.logsumexp(-1), sink.detach().float())  # [B*P, H]
        far = entries.detach().view(n_seq, self.n_entries, -1)
        s = torch.bmm(q.view(n_seq, -1, q.shape[-1]), far.transpose(1, 2)).float() * scale
        s = s.view(n_seq, per_sequence, -1, self.n_entries).masked_fill(~self.visible[:, :, None], -torch.inf)
        total = torch.logaddexp(local.view(*s.shape[:3]), s.logsumexp(-1))
        self.target += torch.exp(s - total[..., None]).sum(2)

    def _normalised(self) -> Tensor:
        return self.target / self.target.sum(-1, keepdim=True).clamp(min=1e-12)

    def loss(self) -> Tensor:
        """Mean KL(target || softmax of the scores) over rows that see at least two entries."""
        p = self._normalised()
        usable = self.visible.sum(-1) > 1
        log_q = self.scores.masked_fill(~usable[..., None], 0.0).log_softmax(-1).masked_fill(~self.visible, 0.0)
        kl = torch.special.xlogy(p, p) - p * log_q
        return (kl.sum(-1) * usable).sum() / usable.sum().clamp(min=1)

    @torch.no_grad()
    def recall(self, k: int) -> Tensor:
        """Share of the target's mass in the k best scores, over rows that see more than k entries."""
        k = min(k, self.n_entries)
        usable = self.visible.sum(-1) > k
        kept = self._normalised().gather(-1, self.scores.topk(k, -1).indices).sum(-1)
        return (kept * usable).sum() / usable.sum().clamp(min=1)
