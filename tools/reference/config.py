"""config.json of a released checkpoint: the numbers of the text model and the plan of its layers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class LayerPlan:
    """What one layer does. A source id equal to the layer's own id means "makes it itself"."""

    layer: int
    ratio: int  # 0: window only; 1 or 2 tokens per compressed entry
    kv_source: int | None  # whose compressed KV and index keys it reads
    index_source: int | None  # whose selected entries it reads
    uses_candidates: bool  # its indexer sees only the published candidate blocks
    makes_candidates: bool
    engram: int | None  # index into engram_layer_ids

    @property
    def mode(self) -> str:
        if self.ratio == 0:
            return "window"
        if self.kv_source == self.layer:
            return "full"
        return "reindex" if self.index_source == self.layer else "reuse"


class Config:
    """Attributes are the keys of `text_config`; `top` is the whole file."""

    def __init__(self, top: dict[str, Any]):
        self.top = top
        self.text: dict[str, Any] = top["text_config"]
        self.has_vision = bool(top.get("vision_config"))
        self.layers = [self._plan(layer) for layer in range(self.num_hidden_layers)]
        self._check()

    def __getattr__(self, key: str) -> Any:
        try:
            return self.__dict__["text"][key]
        except KeyError:
            raise AttributeError(f"text_config has no key {key!r}") from None

    @classmethod
    def read(cls, folder: Path) -> Config:
        return cls(json.loads((folder / "config.json").read_text()))

    @property
    def last_kv_source(self) -> int:
        return max(self.kv_source_layer_ids, default=-1)

    def _plan(self, layer: int) -> LayerPlan:
        ratio = self.compress_ratios[layer]
        kv_source = max((s for s in self.kv_source_layer_ids if s <= layer), default=None)
        index_source = max((s for s in self.index_source_layer_ids if s <= layer), default=None)
        if ratio == 0:
            kv_source = index_source = None
        return LayerPlan(
            layer=layer,
            ratio=ratio,
            kv_source=kv_source,
            index_source=index_source,
            uses_candidates=index_source == layer != kv_source and kv_source == self.candidate_source_layer_id,
            makes_candidates=layer == self.candidate_source_layer_id,
            engram=self.engram_layer_ids.index(layer) if layer in self.engram_layer_ids else None,
        )

    def _check(self) -> None:
        """The rules that make a layer plan meaningful; a config that breaks one is refused."""

        def need(condition: bool, rule: str) -> None:
            if not condition:
                raise ValueError(f"config.json: {rule}")

        need(len(self.compress_ratios) >= self.num_hidden_layers, "compress_ratios is shorter than the model")
        need(self.num_attention_heads % self.o_groups == 0, "num_attention_heads is not a multiple of o_groups")
        need(self.head_dim % 32 == 0, "head_dim is not a multiple of 32")
        for ids in (self.kv_source_layer_ids, self.index_source_layer_ids):
            need(all(a < b for a, b in zip(ids, ids[1:])), "source layer ids are not strictly increasing")
        need(set(self.kv_source_layer_ids) <= set(self.index_source_layer_ids), "a kv source is not an index source")
        for plan in self.layers:
            at = f"layer {plan.layer}"
            need(plan.ratio in (0, 1, 2), f"{at}: compress ratio {plan.ratio} is not 0, 1 or 2")
            if plan.ratio == 0:
                need(plan.layer not in self.index_source_layer_ids, f"{at}: a window-only layer cannot be a source")
                continue
            need(plan.kv_source is not None, f"{at}: no kv source at or before it")
            need(plan.ratio == self.compress_ratios[plan.kv_source], f"{at}: its ratio differs from its kv source's")
        if self.candidate_source_layer_id >= 0:
            need(self.candidate_source_layer_id in self.kv_source_layer_ids, "the candidate source is not a kv source")
