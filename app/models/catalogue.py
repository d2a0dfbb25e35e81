"""The models that Octavo offers for download."""

from __future__ import annotations

import functools
import importlib.resources
import tomllib
from dataclasses import dataclass


@dataclass(frozen=True)
class CatalogueEntry:
    """A model that can be downloaded by its `id`.

    Attributes:
        nbytes: about how many bytes it takes on disk.
        context_tokens: positions that the model was made for.
        description: one line on what it is good for.
    """

    id: str
    title: str
    nbytes: int
    licence: str
    context_tokens: int
    description: str


@functools.cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return the models of `resources/models.toml`, the starter first."""
    text = importlib.resources.files("resources").joinpath("models.toml").read_text("utf-8")
    return tuple(CatalogueEntry(**model) for model in tomllib.loads(text)["model"])
