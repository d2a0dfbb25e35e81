"""A document as text."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import OctavoError


class DocumentError(OctavoError):
    """A file that cannot be read as a document; the message names the file, what is wrong and what to do."""


@dataclass(frozen=True)
class Document:
    """The text of one file.

    Attributes:
        title: the document's own title where it has one, else the file's name.
        source: the path it was read from.
        kind: `pdf`, `docx`, `epub`, `html`, `markdown`, `text` or `code`.
        text: plain text or Markdown, newline-separated, never empty.
        num_pages: pages of a PDF, None where the format has none.
        num_textless_pages: pages of a PDF that hold no text, such as scans.
        encoding: the text encoding that was used, None where the format has its own.
        encoding_guessed: whether that encoding is a guess that the user may change.
        page_starts: where each page begins in `text`, in characters; a page without text begins where the
            next one does, or at the end of the text. Empty where the format has no pages.
    """

    title: str
    source: str
    kind: str
    text: str
    num_pages: int | None = None
    num_textless_pages: int = 0
    encoding: str | None = None
    encoding_guessed: bool = False
    page_starts: tuple[int, ...] = ()
