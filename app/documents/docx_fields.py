"""Links that Word keeps as fields: an instruction such as `HYPERLINK "https://…"`, then what is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from app.documents import markup

_LINK = re.compile(r'\s*HYPERLINK\s+(?:"([^"]*)"|([^\s"\\]+))', re.IGNORECASE)


@dataclass
class _Field:
    """A field that has begun.

    Attributes:
        instruction: as far as it has been read.
        pieces: the text that what is shown belongs to, once that has begun.
        start: where in it.
    """

    instruction: str = ""
    pieces: list[str] | None = None
    start: int = 0


@dataclass
class Fields:
    """The fields of one paragraph that are open, the innermost last."""

    _open: list[_Field] = field(default_factory=list)

    def mark(self, kind: str, pieces: list[str]) -> None:
        """Take a `fldChar`: where a field begins, its instruction ends, or it ends."""
        if kind == "begin":
            self._open.append(_Field())
        elif kind == "separate" and self._open:
            self._open[-1].pieces, self._open[-1].start = pieces, len(pieces)
        elif kind == "end" and self._open:
            ended = self._open.pop()
            if ended.pieces is pieces:
                pieces[ended.start :] = [field_text("".join(pieces[ended.start :]), ended.instruction)]

    def instruct(self, text: str) -> None:
        """Take some of the innermost field's instruction."""
        if self._open:
            self._open[-1].instruction += text


def field_text(shown: str, instruction: str) -> str:
    """Return what a field shows, with the address where it is a link."""
    match = _LINK.match(instruction)
    return markup.link(shown, match[1] or match[2] or "") if match else shown
