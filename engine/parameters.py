"""The parameters of an mlx-lm model."""

from __future__ import annotations

from typing import cast

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten


def named_parameters(model: nn.Module) -> list[tuple[str, mx.array]]:
    """Return all parameters with their names, such as `model.layers.0.mlp.up_proj.weight`."""
    return cast(list[tuple[str, mx.array]], tree_flatten(model.parameters()))
