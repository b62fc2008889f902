"""Chooses how the heavy operations run: plain PyTorch (CPU, tests) or Triton kernels (GPU)."""

from __future__ import annotations

import torch
from torch import Tensor

from reference.config import Config

from . import plain_kernels as plain
from .numerics import Numerics
from .parts import CompiledPart, Parts


class Ops:
    """Plain form. Shapes as in plain_kernels; `selected` holds flat entry ids."""

    def __init__(self, config: Config, nx: Numerics, compiled: bool = False):
        from .model import round_weight

        self.config, self.nx = config, nx
        self.parts = Parts(config, nx, compiled)
        self.mix, self.expand = self.parts.mix, self.parts.expand
        self._round = CompiledPart("round_weight", lambda s, p: round_weight(nx, s, p)) if compiled else None

    def round_weight(self, storage: str, p: Tensor) -> Tensor:
        from .model import round_weight

        return (
            self._round(storage, p) if self._round and storage in ("fp8", "fp4") else round_weight(self.nx, storage, p)
        )

    def attend_window(self, q, window, w_range, sink) -> Tensor:
        return plain.attend(self.nx, q, window, w_range, self.config.sliding_window, None, None, sink)

    def attend_selected(self, q, window, w_range, entries, selected, sink) -> Tensor:
        return plain.attend(self.nx, q, window, w_range, self.config.sliding_window, entries, selected, sink)

    def attend_lists(self, q, near, near_list, far, far_list, sink) -> Tensor:
        """Rows of two key arrays by int32 lists [R, K] (-1: none); far may be None. One softmax over both."""
        empty = (torch.zeros(len(q), dtype=torch.int32, device=q.device),) * 2
        keys, listed = near, near_list
        if far is not None:
            shifted = torch.where(far_list < 0, -1, far_list + len(near))
            keys, listed = torch.cat([near, far]), torch.cat([near_list, shifted], 1)
        return plain.attend(self.nx, q, keys[:0], empty, 0, keys, listed, sink)

    def attend_dense(self, q, window, w_range, entries, e_range, ratio: int, length: int, sink) -> Tensor:
        everything = plain.all_entries(e_range, length // ratio)
        return plain.attend(self.nx, q, window, w_range, self.config.sliding_window, entries, everything, sink)

    def index_scores(self, q, g, keys, n_seq: int, ratio: int) -> Tensor:
        return plain.index_scores(self.nx, q, g, keys, n_seq)

    candidate_blocks = staticmethod(plain.candidate_blocks)
    select = staticmethod(plain.select)


class TritonOps(Ops):
    """The kernels of triton_*.py around compiled parts; falls back to the plain form kernel by kernel (`without`)."""

    def __init__(self, config: Config, nx: Numerics, compiled: bool = True, without: frozenset[str] = frozenset()):
        super().__init__(config, nx, compiled)
        from . import triton_attention, triton_mix, triton_select

        self._attention, self._select = triton_attention, triton_select
        if "mix" not in without:
            numbers = (config.rms_norm_eps, config.hc_eps, config.hc_sinkhorn_iters)
            self.mix = lambda *arguments: triton_mix.Mix.apply(*arguments, *numbers)
        if "expand" not in without:
            self.expand = triton_mix.Expand.apply
        if "select" not in without:
            self.index_scores = triton_select.index_scores
            self.candidate_blocks, self.select = triton_select.candidate_blocks, triton_select.select

    def attend_window(self, q, window, w_range, sink) -> Tensor:
        return self.parts.join_window(*self._window(q, window, w_range), sink)

    def attend_selected(self, q, window, w_range, entries, selected, sink) -> Tensor:
        far = self._attention.gather_attention(q, entries, selected)
        return self.parts.join(*self._window(q, window, w_range), *far, sink)

    def attend_dense(self, q, window, w_range, entries, e_range, ratio: int, length: int, sink) -> Tensor:
        far = self._attention.dense_attention(q, entries, e_range, ratio, length)
        return self.parts.join(*self._window(q, window, w_range), *far, sink)

    def attend_lists(self, q, near, near_list, far, far_list, sink) -> Tensor:
        first = self._attention.gather_attention(q, near, near_list)
        if far is None:
            return self.parts.join_window(*first, sink)
        return self.parts.join(*first, *self._attention.gather_attention(q, far, far_list), sink)

    def _window(self, q, window, w_range) -> tuple[Tensor, Tensor]:
        return self._attention.window_attention(q, window, w_range, len(q), self.config.sliding_window)
