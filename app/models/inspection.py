"""Whether a model on disk can be run.

The engine is imported when it is asked, because what only lists models should not wait for it.
"""

from __future__ import annotations

from pathlib import Path

from engine.model_info import ModelInfo


def inspect(path: Path) -> ModelInfo:
    """Read a model's config or metadata; a `ModelError` says why it cannot run."""
    from engine.inspection import inspect_model

    return inspect_model(path)


def require_known_config(folder: Path) -> None:
    """Raise a `ModelError` when a folder's config, still without weights, is of no model that can run."""
    from engine.folder import read_config, require_model_type

    require_model_type(folder.name, read_config(folder))
