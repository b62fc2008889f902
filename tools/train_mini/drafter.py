"""DSpark: draft blocks over the backbone's taps, their losses, and confidence temperatures.

A draft row is (anchor a, slot k): five rows per anchor, tokens [token at a, noise x 4], positions a .. a+4. Every row
of an anchor sees the W context rows before a and all five rows of its block. Row k predicts the token at a+1+k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .losses import logits_of
from .model import Model, Weights
from .rows import Rows

CHUNK = 8192


@dataclass
class Draft:
    """Result of the blocks for A anchors, G slots each."""

    z: Tensor  # [A*G, d] collapsed streams, not normalised
    hidden: Tensor  # [A*G, d] normalised, input of the shared head
    loads: Tensor  # int64 [stages, E]


def context(model: Model, w: Weights, taps: Tensor) -> Tensor:
    """main_x [R, d] from the taps of R rows."""
    fused = model.nx.linear_fp8(taps, w["mtp/main_proj"][0])
    return model.nx.rms_norm(fused, w["mtp/main_norm"][0], model.config.rms_norm_eps)


def draft_blocks(
    model: Model, w: Weights, rows: Rows, taps: Tensor, anchors: Tensor, n_rows: int | None = None
) -> Draft:
    """anchors int64 [A]: flat rows. n_rows: pad the draft rows to this number (a shape that is compiled already)."""
    c, parts = model.config, model.parts
    slots, width, device = c.dspark_block_size, c.sliding_window, taps.device
    main_x = context(model, w, taps)
    row_cos_sin = model.angles(0, rows.position)

    n_anchors = len(anchors)
    n = n_rows or n_anchors * slots
    ids = torch.full((n,), c.dspark_noise_token_id, device=device)
    ids[: n_anchors * slots : slots] = rows.tokens[anchors]
    slot = torch.arange(slots, device=device)
    position = torch.zeros(n, dtype=torch.int64, device=device)
    position[: n_anchors * slots] = (rows.position[anchors].long()[:, None] + slot).flatten()
    cos_sin = model.angles(0, position)
    near, own = _key_lists(rows, anchors, width, slots, n)

    x = F.embedding(ids, w["embed"][0])
    streams = x[:, None, :].expand(-1, c.hc_mult, -1).contiguous()
    carried = torch.zeros(n, c.hc_mult, device=device)
    carried[:, 0] = 1
    loads = []
    for stage in range(c.num_nextn_predict_layers):
        past = parts.window_latent(main_x, w["mtp/attn.wkv"][stage], w["mtp/attn.kv_norm"][stage], *row_cos_sin)

        def attention(x: Tensor, stage: int = stage, past: Tensor = past) -> Tensor:
            _, q, latent = model.project(w, "mtp/", stage, x, cos_sin)
            o = model.ops.attend_lists(q, past, near, latent, own, w["mtp/attn.attn_sink"][stage])
            return parts.project_output(o, w["mtp/attn.wo_a"][stage], w["mtp/attn.wo_b"][stage], *cos_sin)

        streams, carried, load = model.block(
            w, "mtp/", stage, streams, carried, attention, c.dspark_num_experts_per_tok
        )
        loads.append(load)
    z, hidden = parts.final(streams, carried, w["mtp/norm"][0])
    used = n_anchors * slots
    return Draft(z[:used], hidden[:used], torch.stack(loads))


def _key_lists(rows: Rows, anchors: Tensor, width: int, slots: int, n: int) -> tuple[Tensor, Tensor]:
    """int32 [n, width] context rows max(start, a-W) .. a-1 and int32 [n, slots] block rows of every draft row."""
    device = anchors.device
    before = anchors[:, None] - width + torch.arange(width, device=device)
    before = torch.where(before >= rows.start[anchors].long()[:, None], before, -1)
    near = torch.full((n, width), -1, dtype=torch.int32, device=device)
    near[: len(anchors) * slots] = before.repeat_interleave(slots, 0, output_size=len(anchors) * slots).int()
    first = torch.arange(n, device=device) // slots * slots
    own = first[:, None] + torch.arange(slots, device=device)
    return near, torch.where(own < n, own, -1).int()


def draw_anchors(valid: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` rows of bool [R], uniformly, ascending (with repetition if there are fewer)."""
    (candidates,) = valid.nonzero(as_tuple=True)
    if len(candidates) == 0:
        raise ValueError("no row of the batch can be an anchor")
    if len(candidates) < count:
        chosen = torch.randint(len(candidates), (count,), generator=generator, device=valid.device)
    else:
        chosen = torch.randperm(len(candidates), generator=generator, device=valid.device)[:count]
    return candidates[chosen].sort().values


class DraftLoss(torch.autograd.Function):
    """0.1 cross entropy + 0.9 total variation of draft rows against the frozen target, gradients made in forward.

    hidden [n, d] and e [n, r] (Markov embedding of the previous token) give logits hidden head^T + e markov^T.
    target_hidden [n, d] gives the target distribution; token int64 [n]; weight float32 [n], summing to 1.
    Returns the loss and the acceptance 1 - TV/2 of every row.
    """

    @staticmethod
    def forward(ctx, hidden, e, head, markov, target_hidden, token, weight):
        d_hidden, d_e = torch.empty_like(hidden), torch.empty_like(e)
        d_markov = torch.zeros(markov.shape, device=markov.device)
        accept = torch.empty(len(hidden), device=hidden.device)
        loss = torch.zeros((), device=hidden.device)
        for i in range(0, len(hidden), CHUNK):
            at = slice(i, i + CHUNK)
            logits = logits_of(hidden[at], head) + logits_of(e[at], markov)
            log_draft = logits.log_softmax(-1)
            draft = log_draft.exp()
            target = logits_of(target_hidden[at], head).softmax(-1)
            difference = draft - target
            distance = difference.abs().sum(-1)
            ce = -log_draft.gather(1, token[at, None])[:, 0]
            loss += ((0.1 * ce + 0.9 * distance) * weight[at]).sum()
            accept[at] = (1 - 0.5 * distance).clamp(0, 1)
            sign = difference.sign()
            grad = 0.9 * draft * (sign - (draft * sign).sum(-1, keepdim=True)) + 0.1 * draft
            grad.scatter_add_(1, token[at, None], torch.full_like(ce, -0.1)[:, None])
            grad = (grad * weight[at, None]).to(head.dtype)
            d_hidden[at], d_e[at] = grad @ head, grad @ markov
            d_markov += (grad.t() @ e[at]).float()
        ctx.save_for_backward(d_hidden, d_e, d_markov)
        ctx.mark_non_differentiable(accept)
        return loss, accept

    @staticmethod
    def backward(ctx, grad, _):
        d_hidden, d_e, d_markov = ctx.saved_tensors
        return d_hidden * grad, d_e * grad, None, (d_markov * grad).to(d_e.dtype), None, None, None


@dataclass
class DraftResult:
    loss: Tensor
    accept: Tensor  # [A, G] acceptance of each slot under teacher forcing
    confidence: Tensor  # [A, G] logits
    valid: Tensor  # bool [A, G]
    loads: Tensor

    def round_length(self) -> Tensor:
        """Expected tokens per round, bonus included."""
        survival = (self.accept * self.valid).cumprod(1)
        return 1 + survival.sum(1).mean()


def draft_step(
    model: Model, w: Weights, rows: Rows, taps: Tensor, hidden: Tensor, counted: Tensor, anchors: Tensor,
    n_rows: int | None = None,
) -> DraftResult:  # fmt: skip
    """hidden [R, d]: normalised backbone states; counted bool [R]: the token after this row is text to learn."""
    slots = model.config.dspark_block_size
    draft = draft_blocks(model, w, rows, taps, anchors, n_rows)
    device = taps.device
    at = anchors[:, None] + torch.arange(slots, device=device)
    inside = at < len(rows.tokens) - 1
    at = at.clamp(max=len(rows.tokens) - 2)
    inside &= rows.start[at] == rows.start[anchors][:, None]
    valid = (inside & counted[at]).cumprod(1).bool()
    flat = at.flatten()
    previous, token = rows.tokens[flat], rows.tokens[flat + 1]
    decay = torch.exp(-torch.arange(slots, device=device).float() / slots)
    weight = (valid * decay).flatten()
    weight = weight / (weight.sum() + 1e-6)

    e = F.embedding(previous, w["mtp/markov.embed"][0])
    loss, accept = DraftLoss.apply(
        draft.hidden, e, w["head"][0].detach(), w["mtp/markov.head"][0], hidden[flat], token, weight
    )
    confidence = F.linear(torch.cat([draft.z, e], 1).float(), w["mtp/confidence"][0].float())[:, 0]
    bce = F.binary_cross_entropy_with_logits(confidence, accept, reduction="none")
    loss = loss + (bce * weight).sum()
    shape = (len(anchors), slots)
    return DraftResult(loss, accept.view(shape), confidence.detach().view(shape), valid, draft.loads)


@torch.no_grad()
def greedy_rounds(
    model: Model, w: Weights, rows: Rows, taps: Tensor, hidden: Tensor, anchors: Tensor
) -> tuple[Tensor, Tensor]:
    """Drafts as the engine makes them at temperature 0: (confidence logits [A, G], prefix accepted bool [A, G]).

    The text must be greedy: then a draft is accepted where it equals the target's best token given the text, and after
    the first difference the prefix has ended.
    """
    slots = model.config.dspark_block_size
    draft = draft_blocks(model, w, rows, taps, anchors)
    z, h = (t.unflatten(0, (-1, slots)) for t in (draft.z, draft.hidden))
    previous = rows.tokens[anchors]
    logits, equal = [], []
    for k in range(slots):
        e = F.embedding(previous, w["mtp/markov.embed"][0])
        logits.append(F.linear(torch.cat([z[:, k], e], 1).float(), w["mtp/confidence"][0].float())[:, 0])
        scores = logits_of(h[:, k].contiguous(), w["head"][0]) + logits_of(e, w["mtp/markov.head"][0])
        previous = scores.argmax(1)
        at = (anchors + k).clamp(max=len(rows.tokens) - 1)
        inside = rows.start[at] == rows.start[anchors]
        equal.append((logits_of(hidden[at], w["head"][0]).argmax(1) == previous) & inside)
    return torch.stack(logits, 1), torch.stack(equal, 1).cumprod(1).bool()


def calibration_error(survival: Tensor, accepted: Tensor, bins: int = 20) -> float:
    """Expected calibration error of float64 [n] against bool [n] over equal bins."""
    bin_of = (survival * bins).long().clamp(max=bins - 1)
    error = 0.0
    for i in range(bins):
        inside = bin_of == i
        if inside.any():
            gap = survival[inside].mean() - accepted[inside].double().mean()
            error += gap.abs().item() * inside.double().mean().item()
    return error


def fit_temperatures(logits: Tensor, accepted: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Sequential temperature scaling of logits [n, G] to prefixes accepted bool [n, G].

    For each slot in order, the T that makes the survival product best calibrated, earlier ones fixed. Returns the
    temperatures and the calibration errors before and after.
    """
    logits, accepted = logits.double().cpu(), accepted.cpu()
    grid = [math.exp(x) for x in torch.linspace(math.log(1 / 8), math.log(8), 97).tolist()]
    survival = torch.ones(len(logits), dtype=torch.float64)
    raw = torch.sigmoid(logits).cumprod(1)
    temperatures, before, after = [], [], []
    for k in range(logits.shape[1]):
        options = [(calibration_error(survival * torch.sigmoid(logits[:, k] / t), accepted[:, k]), t) for t in grid]
        error, best = min(options)
        survival = survival * torch.sigmoid(logits[:, k] / best)
        temperatures.append(best)
        before.append(calibration_error(raw[:, k], accepted[:, k]))
        after.append(error)
    return temperatures, before, after
