"""The documents in a folder, as of a project of code."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.documents.document import DocumentError
from app.documents.encodings import is_binary
from app.documents.formats import SUFFIXES, Format
from app.documents.source import quoted_name
from app.valid_unicode import valid_unicode
from engine.cancel import CancelToken

MAX_FILES = 200
"""So many documents are taken of a folder."""
MAX_LOOKED_AT = 50_000
"""So many files are looked at; a folder with more of them is not looked through to its end."""
MAX_TEXT_NBYTES = 1_000_000
"""Text and code larger than this is data or generated, and left out."""

_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "__MACOSX"})
_PACKED = (Format.PDF, Format.DOCX, Format.EPUB)
_HEAD_NBYTES = 4096


@dataclass(frozen=True)
class FolderFile:
    """A document in a folder.

    Attributes:
        path: where it lies.
        title: its path from the folder on, the folder's own name first.
    """

    path: Path
    title: str


@dataclass(frozen=True)
class FolderDocuments:
    """What is taken of a folder.

    Attributes:
        name: the folder's name, in quotes.
        files: the documents, folder by folder.
        left_out: what is not taken and why, such as `12 files that are no text`; empty where nothing is.
    """

    name: str
    files: tuple[FolderFile, ...]
    left_out: tuple[str, ...]

    @property
    def summary(self) -> str:
        """What was taken, and what was not, in a sentence or two."""
        taken = f"{_files(len(self.files))} of {self.name} {_were(len(self.files))} attached."
        return f"{taken} Left out: {', '.join(self.left_out)}." if self.left_out else taken


def folder_documents(folder: Path, cancel: CancelToken) -> FolderDocuments:
    """Return the documents in a folder and the folders in it.

    Links are not followed; hidden files, and folders of other people's code, are left out.

    Raises:
        DocumentError: there is nothing to take.
        Cancelled: when `cancel` is.
    """
    name, left_out, files = quoted_name(folder), Counter[str](), list[FolderFile]()
    for number, path in enumerate(_paths(folder, left_out, cancel)):
        if number >= MAX_LOOKED_AT:
            left_out[f"what comes after the first {MAX_LOOKED_AT:,} files"] = 0
            break
        reason = _reason_against(path)
        if not reason and len(files) >= MAX_FILES:
            reason = f"more than {MAX_FILES}"
        if reason:
            left_out[reason] += 1
        else:
            title = valid_unicode(path.relative_to(folder.parent).as_posix())
            files.append(FolderFile(path, title))
    words = tuple(f"{_files(count)} ({reason})" if count else reason for reason, count in left_out.items())
    if not files:
        said = f" Left out: {', '.join(words)}." if words else ""
        raise DocumentError(f"{name} holds no document that can be read.{said}")
    return FolderDocuments(name, tuple(files), words)


def _paths(folder: Path, left_out: Counter[str], cancel: CancelToken) -> Iterator[Path]:
    """Yield the files in a folder, and note the folders that are left out or cannot be read."""

    def unreadable(error: OSError) -> None:
        left_out[f"the folder {quoted_name(Path(error.filename or folder))}, which cannot be opened"] = 0

    for root, folders, names in os.walk(folder, onerror=unreadable):
        cancel.check()
        skipped = {each for each in folders if each.startswith(".") or each in _SKIPPED_FOLDERS}
        for each in sorted(skipped):
            left_out[each] = 0
        folders[:] = sorted(set(folders) - skipped)
        for name in sorted(names):
            cancel.check()
            yield Path(root, name)


def _reason_against(path: Path) -> str:
    """Return why a file is not taken; empty where it is."""
    if path.name.startswith("."):
        return "hidden"
    form = SUFFIXES.get(path.suffix.lower())
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return "links and devices"
        if not status.st_size:
            return "empty"
        if form in _PACKED:
            return ""
        if status.st_size > MAX_TEXT_NBYTES:
            return "larger than 1 MB"
        with path.open("rb") as file:
            return "no text" if is_binary(file.read(_HEAD_NBYTES)) else ""
    except OSError:
        return "could not be opened"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
