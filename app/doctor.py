"""What may be wrong on this computer, each finding in a sentence that says what to do."""

from __future__ import annotations

import enum
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import psutil
import sqlite_utils

from app import desktop
from app.models.library import ModelLibrary
from app.paths import AppPaths
from app.settings import load_prefix_settings
from app.store.connection import connect_for_reading, refuse_newer
from app.store.errors import DamagedStoreError, StoreError, store_errors
from app.store.migrations import CONVERSATIONS
from app.store.prefixes.examination import count_sound_pages
from app.store.prefixes.housekeeping import most_nbytes, taken_nbytes
from engine.backend import Device, start_backend
from engine.blas import BlasReport
from engine.errors import OctavoError
from engine.memory import available_nbytes
from engine.prefixes.records import SaveMode
from engine.wording import format_nbytes

PACKAGES = ("mlx", "mlx-lm", "PySide6_Essentials", "huggingface_hub", "pypdfium2")
LOW_MEMORY_NBYTES = 2_000_000_000
LOW_DISK_NBYTES = 1_000_000_000


class Status(enum.Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """Something works less well than it could."""
    FAIL = "fail"
    """Something that is needed does not work."""


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, how it is, and in a sentence what to do where it is not well."""

    name: str
    status: Status
    sentence: str


def examine(paths: AppPaths) -> Iterator[Check]:
    """Yield all checks, each as soon as it is done; nothing is changed, in the data folder or elsewhere."""
    yield _python()
    yield _packages()
    yield from _backend()
    yield _memory()
    yield _data_folder(paths)
    yield _conversations(paths)
    yield _prefix_cache(paths)
    yield _models(paths)
    yield _display()
    yield _qt()
    yield Check("Log", Status.OK, f"What happens is written to {paths.logs}.")


def _python() -> Check:
    where = "in a bundle" if getattr(sys, "frozen", False) else sys.executable
    return Check("Python", Status.OK, f"{platform.python_version()} ({where}) on {platform.platform()}.")


def _packages() -> Check:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        sentence = f"{', '.join(missing)} are missing. Install Octavo again."
        return Check("Packages", Status.FAIL, sentence)
    return Check("Packages", Status.OK, f"{', '.join(found)}.")


def _backend() -> Iterator[Check]:
    try:
        backend = start_backend()
    except (ImportError, OSError, RuntimeError) as error:
        yield Check("Backend", Status.FAIL, f"MLX does not start: {error}. Install Octavo again.")
        return
    yield Check("Backend", Status.OK, f"MLX computes on {backend.device.value}.")
    if backend.blas and backend.device is Device.CPU:
        yield _blas(backend.blas)


def _blas(blas: BlasReport) -> Check:
    sentences = " ".join([blas.reason, *blas.rejected])
    if not blas.loaded:
        return Check("OpenBLAS", Status.WARN, f"{sentences} {_blas_remedy()}")
    return Check("OpenBLAS", Status.WARN if blas.rejected else Status.OK, sentences)


def _blas_remedy() -> str:
    if importlib.util.find_spec("ngsolve_openblas") is None and platform.machine() == "x86_64":
        return f"To mend it: {sys.executable} -m pip install ngsolve-openblas"
    if shutil.which("apt-get"):
        return "To mend it: sudo apt-get install libopenblas0-pthread"
    return "To mend it, install your system's package with libopenblas.so.0."


def _memory() -> Check:
    memory, swap, available = psutil.virtual_memory(), psutil.swap_memory(), available_nbytes()
    sentence = f"{format_nbytes(available)} of {format_nbytes(memory.total)} are free"
    if swap.total:
        sentence += f", {format_nbytes(swap.used)} of {format_nbytes(swap.total)} swap are in use"
    if available < LOW_MEMORY_NBYTES:
        return Check("Memory", Status.WARN, f"{sentence}. Close other programs before you load a model.")
    return Check("Memory", Status.OK, f"{sentence}.")


def _data_folder(paths: AppPaths) -> Check:
    home = paths.home.absolute()
    existing = next(folder for folder in [home, *home.parents] if folder.exists())
    try:
        if existing == home:
            with tempfile.TemporaryFile(dir=home):
                pass
        elif not existing.is_dir():
            raise NotADirectoryError(f"{existing} is no folder")
        elif not os.access(existing, os.W_OK):
            raise PermissionError(f"{existing} is write-protected")
        free_nbytes = shutil.disk_usage(existing).free
    except OSError as error:
        sentence = f"{home} cannot be written ({error}). Give yourself the right, or set OCTAVO_HOME."
        return Check("Data folder", Status.FAIL, sentence)
    sentence = f"{home} can be written" if existing == home else f"{home} will be made"
    sentence += f", {format_nbytes(free_nbytes)} are free there."
    if free_nbytes < LOW_DISK_NBYTES:
        return Check("Data folder", Status.WARN, f"{sentence} Models will not fit; delete something.")
    return Check("Data folder", Status.OK, sentence)


def _conversations(paths: AppPaths) -> Check:
    path = paths.conversations_db.absolute()
    if not path.exists():
        return Check("Conversations", Status.OK, "There are none yet.")
    try:
        with store_errors(path), closing(connect_for_reading(path)) as conn:
            (result,) = conn.execute("PRAGMA quick_check(1)").fetchone()
            database = sqlite_utils.Database(conn, execute_plugins=False)
            refuse_newer(path, {one.name for one in CONVERSATIONS.applied(database)}, CONVERSATIONS)
            count = database["conversations"].count
    except StoreError as error:
        return Check("Conversations", Status.FAIL, str(error))
    if result != "ok":
        sentence = f"{path} is damaged. Start Octavo: it keeps the file and rescues what can be read."
        return Check("Conversations", Status.FAIL, sentence)
    return Check("Conversations", Status.OK, f"{path} is sound; {count:,} conversations are in it.")


def _prefix_cache(paths: AppPaths) -> Check:
    """Nothing about it is a failure: without it text is read again."""
    path, settings = paths.prefixes_db.absolute(), load_prefix_settings(paths.settings_file)
    is_off = settings.mode is SaveMode.NEVER
    if not path.exists():
        sentence = (
            "It is off, and nothing is kept." if is_off else f"Nothing is kept yet; {path} will be made."
        )
        return Check("Prefix cache", Status.OK, sentence)
    try:
        taken, most = taken_nbytes(path), most_nbytes(path, settings.most_nbytes)
        num_pages = count_sound_pages(path)
    except DamagedStoreError:
        sentence = f"{path} is damaged, or another program's. Octavo begins a new one when it next needs it."
        return Check("Prefix cache", Status.WARN, f"{sentence} Text is then read again; no words are lost.")
    except StoreError as error:
        return Check("Prefix cache", Status.WARN, str(error))
    sizes = f"{format_nbytes(taken)} of at most {format_nbytes(most)}"
    sentence = f"{path} is sound and takes {sizes}; {num_pages:,} pages are in it."
    return Check("Prefix cache", Status.OK, f"{sentence} It is off." if is_off else sentence)


def _models(paths: AppPaths) -> Check:
    try:
        models = ModelLibrary(paths).installed()
    except OctavoError as error:
        return Check("Models", Status.WARN, str(error))
    if not models:
        sentence = "No model is installed yet. Get a small one with: octavo models get starter"
        return Check("Models", Status.WARN, sentence)
    return Check("Models", Status.OK, f"{', '.join(model.title for model in models)}.")


def _display() -> Check:
    if desktop.has_display():
        return Check("Display", Status.OK, "There is one.")
    sentence = "There is none, so no window can open; `octavo ask` answers in a terminal."
    return Check("Display", Status.WARN, sentence)


def _qt() -> Check:
    """Without a display a Qt that does not start is no failure: the terminal commands do without it."""
    status = Status.FAIL if desktop.has_display() else Status.WARN
    folder = desktop.qt_folder()
    if folder is None:
        return Check("Qt", status, "PySide6_Essentials is missing. Install Octavo again.")
    if missing := desktop.missing_libraries(folder):
        remedy = desktop.install_line(missing)
        mend = f"To mend it: {remedy}" if remedy else "Install your system's packages that hold them."
        return Check("Qt", status, f"These system libraries are missing: {', '.join(missing)}. {mend}")
    if said := desktop.start_failure():
        return Check("Qt", status, f"Qt does not start: {said}")
    return Check("Qt", Status.OK, "Its libraries are complete and it starts.")
