"""Files that may be gone in a moment, kept until they have been read.

Browsers and mail programs hand over temporary files, and may delete them when the drop has ended.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

from PySide6.QtCore import QStandardPaths

from ui.chat.drop import FileData

_MOST_COPIED_NBYTES = 200_000_000
"""A larger file is not copied: that would take longer than the window can wait."""

log = logging.getLogger(__name__)


class KeptFiles:
    """Copies of temporary files, in a folder that goes with the program."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._places = tuple(_temporary_places())

    def kept(self, path: Path) -> Path:
        """Return where a file can be read later: a copy where it is a temporary one, else the file itself."""
        if not any(path.is_relative_to(place) for place in self._places):
            return path
        try:
            if not path.is_file():
                return path
            target = self._place(path.name)
            try:
                os.link(path, target)  # at once, and it stays when the other program deletes its own
            except OSError:
                if path.stat().st_size > _MOST_COPIED_NBYTES:
                    return path
                shutil.copyfile(path, target)
        except OSError as error:
            log.info("%s was not copied before it is read: %s", path, error)
            return path
        return target

    def written(self, data: FileData) -> Path:
        """Return a file with the content that another program handed over without one.

        Raises:
            OSError: it could not be written.
        """
        target = self._place(data.name)
        target.write_bytes(data.content)
        return target

    def let_go(self, path: Path) -> None:
        """Delete a copy, once its document is no longer a draft; other files are left alone."""
        if self._folder is not None and path.is_relative_to(self._folder.name):
            shutil.rmtree(path.parent, ignore_errors=True)

    def clear(self) -> None:
        """Delete all copies."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.cleanup()
            self._folder = None

    def _place(self, name: str) -> Path:
        """Return where a file of this name can be put: in a folder of its own, as names may be the same."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="octavo-dropped-", ignore_cleanup_errors=True)
        return Path(tempfile.mkdtemp(dir=self._folder.name)) / name


def _temporary_places() -> list[Path]:
    """Return where other programs put files that they delete soon."""
    locations = (
        QStandardPaths.StandardLocation.TempLocation,
        QStandardPaths.StandardLocation.GenericCacheLocation,
    )
    found = [Path(each) for location in locations for each in QStandardPaths.standardLocations(location)]
    return [Path(tempfile.gettempdir()), *found]
