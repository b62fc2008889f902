"""Row-wise pieces of the model: functions of [R, ..] tensors that know nothing of sequences, each compiled by itself.

R stays the same through all phases of training, so a part is compiled once whatever the sequence length.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from reference.config import Config

from . import plain_kernels as plain
from .numerics import Numerics, quantize_fp8_rows, straight_through

torch._dynamo.config.recompile_limit = 64  # a part sees a few shapes, with and without gradients


def rotate(nx: Numerics, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [R, .., C], cos and sin float32 [R, n]: turns the last 2n channels, adjacent pairs, and rounds them."""
    n = cos.shape[-1]
    shape = (len(x), *([1] * (x.dim() - 2)), n)
    c, s = cos.view(shape), sin.view(shape)
    keep, turn = x[..., : x.shape[-1] - 2 * n], x[..., x.shape[-1] - 2 * n :].float().unflatten(-1, (n, 2))
    a, b = turn[..., 0], turn[..., 1]
    turned = torch.stack([a * c - b * s, a * s + b * c], dim=-1).flatten(-2)
    return torch.cat([keep, nx.store(turned)], dim=-1)


class Parts:
    """The pieces, bound to a config and a way to round. `compiled` wraps each with torch.compile."""

    def __init__(self, config: Config, nx: Numerics, compiled: bool = False):
        self.config, self.nx = config, nx
        heads = config.text.get("index_n_heads", 1) * config.text.get("index_head_dim", 1)
        self.index_scale = torch.tensor(heads**-0.5, dtype=torch.float32).item()
        names = [n for n in vars(type(self)) if not n.startswith("_")]
        for name in names:
            function = getattr(self, name)
            if compiled:
                setattr(self, name, CompiledPart(name, function))

    def project(self, x, wq_a, q_norm, wq_b, wkv, kv_norm, cos, sin) -> tuple[Tensor, Tensor, Tensor]:
        """qr [R, Rq], q [R, H, D] and the window latent [R, D] on the FP8 grid."""
        nx, c = self.nx, self.config
        x = nx.fp8(x)
        qr = nx.rms_norm(nx.linear(x, wq_a), q_norm, c.rms_norm_eps)
        q = nx.linear_fp8(qr, wq_b).unflatten(1, (c.num_attention_heads, c.head_dim))
        k = nx.rms_norm(nx.linear(x, wkv), kv_norm, c.rms_norm_eps)
        return qr, rotate(nx, q, cos, sin), nx.fp8(rotate(nx, k, cos, sin))

    def window_latent(self, x, wkv, kv_norm, cos, sin) -> Tensor:
        nx = self.nx
        k = nx.rms_norm(nx.linear_fp8(x, wkv), kv_norm, self.config.rms_norm_eps)
        return nx.fp8(rotate(nx, k, cos, sin))

    def compress1(self, x, wkv, norm) -> Tensor:
        """Latents [R, D] of entries that cover one row."""
        return self.nx.rms_norm(self.nx.linear(x, wkv), norm, self.config.rms_norm_eps)

    def compress2(self, x, wkv, wgate, norm) -> Tensor:
        """Latents [R/2, D] of entries that cover two rows."""
        nx = self.nx
        c = nx.linear32(x, wkv).unflatten(0, (-1, 2))
        z = nx.linear32(x, wgate).unflatten(0, (-1, 2))
        share = torch.exp(z - z.amax(1, keepdim=True))
        share = share / share.sum(1, keepdim=True)
        return nx.rms_norm(nx.store((share * c).sum(1)), norm, self.config.rms_norm_eps)

    def entries(self, latents, cos, sin) -> Tensor:
        return self.nx.nvfp4(rotate(self.nx, latents, cos, sin))

    def index_keys(self, latents, wk, k_norm, cos, sin) -> Tensor:
        nx = self.nx
        k = nx.rms_norm(nx.linear(latents, wk), k_norm, self.config.rms_norm_eps)
        return nx.mxfp4(rotate(nx, k, cos, sin))

    def index_queries(self, x, qr, wq_b, weights_proj, cos, sin) -> tuple[Tensor, Tensor]:
        """Queries [R, Hi, Di] and head weights [R, Hi]."""
        nx, c = self.nx, self.config
        heads, width = c.index_n_heads, c.index_head_dim
        q = nx.linear_fp8(qr, wq_b).unflatten(1, (heads, width))
        g = nx.store(nx.linear(x, weights_proj).float() * self.index_scale)
        return nx.mxfp4(rotate(nx, q, cos, sin)), g

    def project_output(self, o, wo_a, wo_b, cos, sin) -> Tensor:
        """o [R, H, D] attended values -> [R, d]."""
        nx, c = self.nx, self.config
        o = rotate(nx, o, cos, -sin)
        grouped = o.flatten(1).unflatten(1, (c.o_groups, -1)).transpose(0, 1)
        wo_a = wo_a.unflatten(0, (c.o_groups, c.o_lora_rank)).transpose(1, 2)
        if nx.exact:
            low = nx.store((grouped.double() @ wo_a.double()).float())
        else:
            low = torch.bmm(grouped, wo_a)
        return nx.linear_fp8(low.transpose(0, 1).flatten(1), wo_b)

    def join(self, o_window, lse_window, o_entries, lse_entries, sink) -> Tensor:
        """One softmax out of two partial ones ([R, H, D] with log-sum-exp [R, H]) and the sink [H]."""
        total = torch.logaddexp(torch.logaddexp(lse_window, lse_entries), sink)
        o = o_window.float() * torch.exp(lse_window - total)[..., None]
        return self.nx.store(o + o_entries.float() * torch.exp(lse_entries - total)[..., None])

    def join_window(self, o_window, lse_window, sink) -> Tensor:
        total = torch.logaddexp(lse_window, sink.expand_as(lse_window))
        return self.nx.store(o_window.float() * torch.exp(lse_window - total)[..., None])

    def route(self, x, gate, bias, n_chosen: int) -> tuple[Tensor, Tensor]:
        """Experts int64 [R, e] and their weights float32 [R, e]."""
        score = F.softplus(self.nx.linear32(x, gate)).sqrt()
        chosen = (score.detach() + bias).topk(n_chosen, dim=1).indices
        weight = score.gather(1, chosen)
        return chosen, weight / (weight.sum(1, keepdim=True) + 1e-20) * self.config.routed_scaling_factor

    def quantize(self, x) -> Tensor:
        return self.nx.fp8(x)

    def swiglu(self, gu, weight) -> Tensor:
        """gu [N, 2*inner] (gate, up) and routing weights [N, 1] -> input of w2 on the FP8 grid."""
        limit = self.config.swiglu_limit
        g, u = gu.float().chunk(2, dim=-1)
        a = F.silu(g.clamp(max=limit)) * u.clamp(-limit, limit) * weight
        return self.nx.fp8(self.nx.store(a))

    def shared_expert(self, xq, w1, w3, w2) -> Tensor:
        nx, limit = self.nx, self.config.swiglu_limit
        g = nx.linear(xq, w1).float().clamp(max=limit)
        u = nx.linear(xq, w3).float().clamp(-limit, limit)
        return nx.linear_fp8(nx.store(F.silu(g) * u), w2)

    def sum_experts(self, routed, shared) -> Tensor:
        """routed [R, e, d] + shared [R, d]."""
        total = routed[:, 0].float()
        for i in range(1, routed.shape[1]):
            total = total + routed[:, i].float()
        return self.nx.store(total + shared.float())

    def engram(self, streams, looked_up, wkv, q_weight, k_weight) -> Tensor:
        """streams [R, S, d], looked_up float32 [R, columns, width] (master table rows)."""
        nx = self.nx
        _, s, d = streams.shape
        looked_up = straight_through(quantize_fp8_rows(looked_up), looked_up).to(nx.dtype).flatten(1)
        kv = nx.linear_fp8(looked_up, wkv)
        keys, value = kv[:, : s * d].unflatten(1, (s, d)).float(), kv[:, s * d :].float()
        x = streams.float()
        eps = self.config.rms_norm_eps
        inverse_rms = torch.rsqrt(nx.mean_square(x) + eps) * torch.rsqrt(nx.mean_square(keys) + eps)
        product = x * (q_weight.float() * k_weight.float()) * keys
        dot = product.double().sum(-1, keepdim=True).float() if nx.exact else product.sum(-1, keepdim=True)
        dot = dot * inverse_rms * d**-0.5
        # sign * sqrt: copysign with a gradient that stays finite at 0.
        magnitude = dot.abs().clamp(min=1e-6).sqrt()
        gate = torch.sigmoid(torch.where(torch.signbit(dot), -magnitude, magnitude))
        return nx.store(x + gate * value[:, None, :])

    def mix(self, streams, carried, fn, base, scale, norm) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        c = self.config
        return plain.mix(
            self.nx, streams, carried, fn, base, scale, norm, c.rms_norm_eps, c.hc_eps, c.hc_sinkhorn_iters
        )

    def expand(self, y, streams, post, comb) -> Tensor:
        return plain.expand(self.nx, y, streams, post, comb)

    def tap(self, streams) -> Tensor:
        return self.nx.store(streams.float().sum(1) / self.config.hc_mult)

    def final(self, streams, carried, norm) -> tuple[Tensor, Tensor]:
        """Collapsed streams [R, d], as they are and normalised."""
        z = plain.collapse(self.nx, streams, carried)
        return z, self.nx.rms_norm(z, norm, self.config.rms_norm_eps)


class CompiledPart:
    """A part under torch.compile. The first call tries forward and backward; what fails runs as it is, and says so."""

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name, self.eager = name, function
        self.compiled = torch.compile(function, dynamic=False, fullgraph=True)
        self.seen: set[tuple[Any, ...]] = set()
        self.broken = False

    def __call__(self, *arguments: Any) -> Any:
        if self.broken:
            return self.eager(*arguments)
        key = tuple(tuple(a.shape) if isinstance(a, Tensor) else a for a in arguments)
        key = (*key, torch.is_grad_enabled())
        if key not in self.seen:
            self.seen.add(key)
            try:
                self._try(arguments)
            except Exception as error:  # whatever the compiler raises: the part still has its plain form
                self.broken = True
                print(f"part {self.name} runs uncompiled: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
                return self.eager(*arguments)
        return self.compiled(*arguments)

    def _try(self, arguments: tuple[Any, ...]) -> None:
        def copy(a: Any) -> Any:
            return a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a

        copies = [copy(a) for a in arguments]
        out = self.compiled(*copies)
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad]
        if outs:
            torch.autograd.backward(outs, [torch.ones_like(o) for o in outs])
