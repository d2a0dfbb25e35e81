"""What a reader makes of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OnProgress = Callable[[int, int], None]
"""Called with the parts done and all parts: pages of a PDF, chapters of an EPUB."""


@dataclass(frozen=True)
class Extracted:
    """The text of one file and what its format says about it; the fields are those of `Document`."""

    text: str
    title: str | None = None
    num_pages: int | None = None
    num_textless_pages: int = 0
    encoding: str | None = None
    encoding_guessed: bool = False
    page_starts: tuple[int, ...] = ()
