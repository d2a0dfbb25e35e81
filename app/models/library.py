"""The models on this computer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.models.imports import ImportedModel, read_imports, write_imports
from app.models.inspection import inspect
from app.models.source import CONFIG, GGUF_SUFFIX, STARTER_ID, HubSource
from app.models.staging import STAGING_NAME, Staging, discard, disk_errors, unfinished_ids
from app.models.starter import STARTER_FILE, STARTER_TITLE
from app.paths import AppPaths
from engine.errors import ModelError
from engine.wording import format_nbytes


@dataclass(frozen=True)
class InstalledModel:
    """A model that is complete on this computer.

    Attributes:
        id: the name for commands: `starter`, a name on Hugging Face, or the name of a file or folder.
        path: its folder or GGUF file.
        title: its name for people.
        nbytes: bytes on disk.
        managed: whether it lies in Octavo's own folder; other models stay where they are.
    """

    id: str
    path: Path
    title: str
    nbytes: int
    managed: bool


class ModelLibrary:
    """The models in Octavo's folder and those that were imported from elsewhere.

    Attributes:
        paths: where Octavo keeps its files.
    """

    def __init__(self, paths: AppPaths) -> None:
        self.paths = paths

    def installed(self) -> list[InstalledModel]:
        """Return all models, by title; imported ones that are gone are left out until they come back."""
        models = [*self._managed(), *self._imported()]
        return sorted(models, key=lambda model: (model.title.casefold(), model.id))

    def unfinished(self) -> list[str]:
        """Return the ids of downloads that were begun and can be gone on with."""
        return unfinished_ids(self.paths.models)

    def find(self, name_or_path: str) -> InstalledModel:
        """Return the model with an id, a title or a path, else raise a `ModelError` with the known names.

        A path to a model that was not imported works as well.
        """
        models = self.installed()
        wanted = name_or_path.strip()
        for model in models:
            if model.id == wanted or (wanted and model.path == Path(wanted).expanduser().absolute()):
                return model
        titled = [
            model for model in models if wanted.casefold() in (model.title.casefold(), model.id.casefold())
        ]
        if len(titled) == 1:
            return titled[0]
        path = Path(wanted).expanduser()
        if wanted and path.exists():
            info = inspect(path)
            return InstalledModel(str(path), path.absolute(), info.name, _nbytes(path), managed=False)
        self._refuse_gone(wanted)
        known = ", ".join(model.id for model in models)
        raise ModelError(
            f"There is no model “{wanted}” here. " + (f"Installed are: {known}." if known else _FIRST_MODEL)
        )

    def only(self) -> InstalledModel | None:
        """Return the one model that there is, None where there is none or a choice."""
        models = self.installed()
        return models[0] if len(models) == 1 else None

    def named_or_default(self, name_or_path: str | None) -> InstalledModel:
        """Return the model that a command means: the named one, else the only one there is, else the starter.

        Raises:
            ModelError: there is no such model.
        """
        if name_or_path is not None:
            return self.find(name_or_path)
        return self.only() or self.find(STARTER_ID)

    def import_path(self, path: Path) -> InstalledModel:
        """Register a model folder or GGUF file where it lies; a `ModelError` says when it cannot run."""
        path = path.expanduser().absolute()
        for model in self.installed():
            if model.path == path:
                return model
        info = inspect(path)
        imports = read_imports(self.paths.models)
        taken = {model.id for model in self.installed()} | {model.id for model in imports}
        new = ImportedModel(_free_id(info.name, taken), path, info.name)
        with disk_errors(self.paths.models):
            write_imports(self.paths.models, [*imports, new])
        return _installed(new)

    def remove(self, id: str) -> str:
        """Delete a model from Octavo's folder, or forget an imported one; return a sentence that says which.

        The beginning of a download is deleted by its id as well. An unknown id raises a `ModelError`.
        """
        with disk_errors(self.paths.models):
            return self._removal(id)()

    def check_removable(self, id: str) -> None:
        """Raise the `ModelError` with which `remove` would refuse an id, and remove nothing."""
        self._removal(id)

    def _managed(self) -> Iterator[InstalledModel]:
        """Yield the models in Octavo's folder, the unfinished ones not among them."""
        for path in _children(self.paths.models):
            if path.suffix == GGUF_SUFFIX and path.is_file():
                is_starter = path.name == STARTER_FILE
                id, title = (STARTER_ID, STARTER_TITLE) if is_starter else (path.stem, path.stem)
                yield InstalledModel(id, path, title, _nbytes(path), managed=True)
            elif path.is_dir() and path.name != STAGING_NAME:
                yield from _models_in_folder(path)

    def _imported(self) -> Iterator[InstalledModel]:
        for model in read_imports(self.paths.models):
            if model.path.exists():
                yield _installed(model)

    def _refuse_gone(self, wanted: str) -> None:
        """Raise a `ModelError` when an imported model is meant that is no longer where it was."""
        for model in read_imports(self.paths.models):
            if wanted in (model.id, model.title, str(model.path)):
                raise ModelError(
                    f"{model.title} is no longer at {model.path}. Bring it back or connect its disk, or "
                    f"remove it with `octavo models remove {model.id}`."
                )

    def _removal(self, id: str) -> Callable[[], str]:
        """Return what removes `id` and says so in a sentence."""
        for imported in read_imports(self.paths.models):
            if id in (imported.id, imported.title, str(imported.path)):
                return partial(self._forget, imported)
        if id in self.unfinished():
            return partial(self._remove_unfinished, id)
        model = self.find(id)
        if not model.managed:
            raise ModelError(f"{model.path} was not imported; Octavo leaves it alone.")
        return partial(self._delete, model)

    def _forget(self, imported: ImportedModel) -> str:
        imports = read_imports(self.paths.models)
        write_imports(self.paths.models, [other for other in imports if other != imported])
        return f"{imported.title} is forgotten; its files stay at {imported.path}."

    def _remove_unfinished(self, id: str) -> str:
        staging = Staging(self.paths.models, id)
        with staging.claim():
            staging.discard()
        return f"The beginning of {id} is deleted."

    def _delete(self, model: InstalledModel) -> str:
        """Delete a model at once, so that no half of it is ever taken for one, and folders left empty."""
        discard(self.paths.models, model.path)
        folder = model.path.parent
        while folder != self.paths.models and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent
        return f"{model.title} is deleted; {format_nbytes(model.nbytes)} are free again."


_FIRST_MODEL = f"Get one with `octavo models get {STARTER_ID}`."


def _children(folder: Path) -> list[Path]:
    """Return what lies in a folder that may not exist."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _models_in_folder(folder: Path) -> Iterator[InstalledModel]:
    """Yield the MLX model in a folder, and the GGUF files in and below it."""
    source = HubSource.from_folder_name(folder.name)
    id = source.id if source else folder.name
    if (folder / CONFIG).is_file():
        yield InstalledModel(id, folder, id.rpartition("/")[2], _nbytes(folder), managed=True)
    for path in sorted(folder.rglob(f"*{GGUF_SUFFIX}")):
        file_id = f"{id}/{path.relative_to(folder).as_posix()}"
        yield InstalledModel(file_id, path, path.stem, _nbytes(path), managed=True)


def _installed(model: ImportedModel) -> InstalledModel:
    return InstalledModel(model.id, model.path, model.title, _nbytes(model.path), managed=False)


def _nbytes(path: Path) -> int:
    """Return the bytes of a file, or of a folder's files."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _free_id(name: str, taken: set[str]) -> str:
    """Return a name, with a number where it is taken."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}-{number}", number + 1
    return candidate
