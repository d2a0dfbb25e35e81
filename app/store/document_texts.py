"""The texts of documents that were read last, each once for all threads of the process.

A path is read again after every message, and a text may have 50 MB: it is copied out of SQLite once. What a
digest names never changes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping

import sqlite_utils

MOST_CHARACTERS = 64_000_000
"""So many characters of all texts together are kept."""


class DocumentTexts:
    """Texts by their digests, those that were used longest ago given up first."""

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._most_characters = most_characters
        self._lock = threading.Lock()
        self._texts: OrderedDict[bytes, str] = OrderedDict()

    def read(self, db: sqlite_utils.Database, digests: Collection[bytes]) -> Mapping[bytes, str]:
        """Return the texts with these digests; those that are not there are not among them."""
        with self._lock:
            found = {digest: self._texts[digest] for digest in digests if digest in self._texts}
        missing = [digest for digest in digests if digest not in found]
        if missing:
            places = ", ".join("?" * len(missing))
            rows = db.execute(f"SELECT digest, text FROM documents WHERE digest IN ({places})", missing)
            found |= {row["digest"]: row["text"] for row in rows}
        self._keep(found)
        return found

    def forget(self) -> None:
        """Give all of them up, as when documents were deleted for good."""
        with self._lock:
            self._texts.clear()

    def _keep(self, used: Mapping[bytes, str]) -> None:
        with self._lock:
            for digest, text in used.items():
                self._texts[digest] = text
                self._texts.move_to_end(digest)
            size = sum(map(len, self._texts.values()))
            while size > self._most_characters:
                _, text = self._texts.popitem(last=False)
                size -= len(text)


TEXTS = DocumentTexts()
"""Those of this process; a digest names the same text in every file."""
