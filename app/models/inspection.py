"""Whether a model on disk can be run."""

from __future__ import annotations

from pathlib import Path

from engine.model_info import ModelInfo


def inspect(path: Path) -> ModelInfo:
    """Read a model's config or metadata; a `ModelError` says why it cannot run.

    The engine is imported here, because what only lists models should not wait for it.
    """
    from engine.backend import start_backend

    start_backend()
    from engine.loader import inspect_model

    return inspect_model(path)
