"""The list of models that stay where the user keeps them: `imported.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from app.durable_files import write_whole
from engine.errors import ModelError

IMPORTS_FILE = "imported.toml"


@dataclass(frozen=True)
class ImportedModel:
    """A model outside Octavo's folder."""

    id: str
    path: Path
    title: str


def read_imports(models: Path) -> list[ImportedModel]:
    """Return the imported models; a damaged list raises a `ModelError` that names the file."""
    file = models / IMPORTS_FILE
    if not file.exists():
        return []
    try:
        entries = tomllib.loads(file.read_text("utf-8")).get("model", [])
        return [ImportedModel(entry["id"], Path(entry["path"]), entry["title"]) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"The list of imported models is damaged: {error}. Correct {file}, or delete it and import anew."
        ) from error


def write_imports(models: Path, imports: Sequence[ImportedModel]) -> None:
    """Replace the list of imported models at once, or leave the old one as it is."""
    entries = [{"id": model.id, "path": str(model.path), "title": model.title} for model in imports]
    write_whole(models / IMPORTS_FILE, tomli_w.dumps({"model": entries}).encode())
