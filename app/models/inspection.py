"""What a model on disk is, and whether it can be run.

The engine is imported when it is asked, because what only lists models should not wait for it.
"""

from __future__ import annotations

from pathlib import Path

from app.models.source import CONFIG
from engine.model_info import ModelInfo


def inspect(path: Path) -> ModelInfo:
    """Read a model's config or metadata; a `ModelError` says why it cannot run."""
    from engine.inspection import inspect_model

    return inspect_model(path)


def is_bare_config(path: Path) -> bool:
    """Whether a path is a config.json, or a folder that has one and no weights."""
    if path.is_dir():
        return (path / CONFIG).is_file() and not any(path.glob("*.safetensors"))
    return path.is_file() and path.suffix == ".json"


def inspect_without_weights(path: Path) -> ModelInfo:
    """Read what a bare config says of its model; a `ModelError` says why no model can be made of it."""
    from engine.inspection import inspect_config

    return inspect_config(path)


def require_known_config(folder: Path) -> None:
    """Raise a `ModelError` when a folder's config, still without weights, is of no model that can run."""
    from engine.folder import read_config, require_model_type

    require_model_type(folder.name, read_config(folder))
