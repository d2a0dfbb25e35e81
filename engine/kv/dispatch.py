"""Attention of mlx-lm's models led to the paged cache.

A model imports `scaled_dot_product_attention` by name into the modules that its layers are written in. There
it is replaced by one that hands views of the paged cache to their layer and everything else to mlx-lm's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from engine.kv.layer import PagedLayer, PagedView

_NAME = "scaled_dot_product_attention"


@dataclass(frozen=True)
class _Dispatching:
    """Attention that hands views of the paged cache to their layer and everything else to `original`."""

    original: Callable[..., mx.array]

    def __call__(
        self,
        queries: mx.array,
        keys: Any,
        values: Any,
        cache: Any,
        scale: float,
        mask: Any,
        sinks: mx.array | None = None,
    ) -> mx.array:
        if isinstance(keys, PagedView) and isinstance(cache, PagedLayer):
            return cache.attend(queries, scale, mask, sinks)
        return self.original(queries, keys, values, cache, scale=scale, mask=mask, sinks=sinks)


def dispatch_attention(model: nn.Module) -> None:
    """Lead the attention of all layers of a model through the paged cache; a second time changes nothing."""
    for name in {type(module).__module__ for module in model.modules()}:
        module = sys.modules[name]
        original = getattr(module, _NAME, None)
        if name.startswith("mlx_lm.") and original is not None and not isinstance(original, _Dispatching):
            setattr(module, _NAME, _Dispatching(original))
