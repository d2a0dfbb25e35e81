"""A model for a bench, loaded as for a chat."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import TYPE_CHECKING

from engine.backend import Backend, start_backend

if TYPE_CHECKING:
    from engine.model import Model


def load_for_bench(path: Path) -> tuple[Model, str]:
    """Prepare MLX and load a model that never ends an answer; also return what it runs on, in words."""
    backend = start_backend()

    # Nothing may import MLX before the backend is prepared.
    from engine.budget import MIN_CONTEXT_TOKENS, plan_load
    from engine.cancel import CancelToken
    from engine.inspection import inspect_model
    from engine.kv.precision import KVSpec
    from engine.loader import load_model
    from engine.memory import available_nbytes

    plan = plan_load(
        inspect_model(path), backend, KVSpec.parse("16"), available_nbytes(), context=MIN_CONTEXT_TOKENS
    )
    model = load_model(
        path, backend, dequantize=plan.dequantize, cancel=CancelToken(), on_progress=lambda progress: None
    )
    model.tokenizer.eos_token_ids = ()
    return model, setup_words(backend, plan.dequantize)


def setup_words(backend: Backend, dequantized: bool) -> str:
    """Return what a loaded model runs on, in words."""
    blas = f", BLAS {backend.blas.path or 'of MLX'}" if backend.blas else ""
    weights = "weights in float32" if dequantized else "weights as stored"
    return f"{backend.device.value}{blas}, {weights}"


def package_versions() -> str:
    """Return the versions of the packages that compute, in words."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("mlx", "mlx-lm"))
