"""How a reader process hands a document over: one JSON object a line.

{"type": "opened"}                                     the file's first bytes are there
{"type": "progress", "done": 3, "total": 14}
{"type": "text", "text": "..."}                       a piece of the text, as many as it takes
{"type": "document", "title": ..., "kind": ..., ...}   the other fields of `Document`; the last line
{"type": "error", "message": "..."}                   the last line instead, when it cannot be read
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

from app.child_process import JsonLines
from app.documents.document import Document, DocumentError

_PIECE_CHARS = 65_536


def opened_line() -> bytes:
    """Return the line that says that the file could be opened."""
    return _line({"type": "opened"})


def progress_line(done: int, total: int) -> bytes:
    """Return the line that tells of progress."""
    return _line({"type": "progress", "done": done, "total": total})


def document_lines(document: Document) -> Iterator[bytes]:
    """Yield the lines of a finished document."""
    for start in range(0, len(document.text), _PIECE_CHARS):
        yield _line({"type": "text", "text": document.text[start : start + _PIECE_CHARS]})
    fields = dataclasses.asdict(dataclasses.replace(document, text=""))
    del fields["text"]
    yield _line({"type": "document", **fields})


def error_line(error: DocumentError) -> bytes:
    """Return the line that says why there is no document."""
    return _line({"type": "error", "message": str(error)})


class DocumentReceiver:
    """Puts a document together from the lines of a reader process, which may arrive in any pieces.

    Attributes:
        document: the document, once its last line has come.
    """

    def __init__(self, on_progress: Callable[[int, int], None] | None = None) -> None:
        self._on_progress = on_progress
        self._lines = JsonLines()
        self._texts: list[str] = []
        self.document: Document | None = None

    def feed(self, data: bytes) -> None:
        """Take what has arrived; raise `DocumentError` when it says that there is no document."""
        for message in self._lines.feed(data):
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        """Take one line."""
        kind = message.pop("type")
        if kind == "progress":
            if self._on_progress is not None:
                self._on_progress(message["done"], message["total"])
        elif kind == "opened":
            pass
        elif kind == "text":
            self._texts.append(message["text"])
        elif kind == "document":
            page_starts = tuple(message.pop("page_starts"))
            self.document = Document(text="".join(self._texts), page_starts=page_starts, **message)
        else:
            raise DocumentError(message["message"])


def _line(message: dict[str, Any]) -> bytes:
    """Return one line; text of a document holds no newline that JSON would not escape."""
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"
