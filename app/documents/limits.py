"""The bounds of reading one document, all in one place.

They keep a hostile or broken file from taking the machine with it, and lie far above what any model can read:
50 million characters are some 12 million tokens.
"""

from __future__ import annotations

from app.documents.formats import Format

MAX_TEXT_CHARS = 50_000_000
"""Characters of the extracted text."""

MAX_FILE_NBYTES = {
    Format.PDF: 1_000_000_000,
    Format.DOCX: 1_000_000_000,
    Format.EPUB: 1_000_000_000,
    Format.HTML: 50_000_000,
    Format.MARKDOWN: 50_000_000,
    Format.TEXT: 50_000_000,
    Format.CODE: 50_000_000,
}
"""Bytes of a file. Text is read whole; of the first three only the text is, so pictures cost nothing."""

MAX_MEMBER_NBYTES = 64_000_000
"""Unpacked bytes of one part of a DOCX or EPUB."""

MAX_UNPACKED_NBYTES = 200_000_000
"""Unpacked bytes of all the parts of a DOCX or EPUB that are read."""

TIME_LIMIT_S = 300
"""Seconds for one file, by the clock and of processor time."""

OPEN_LIMIT_S = 30
"""Seconds until the first bytes of a file are there: a disk that sleeps takes some of them."""

RESIDENT_NBYTES = 2 * 1024**3
"""Memory that the reader process may hold."""

ADDRESS_SPACE_NBYTES = 4 * 1024**3
"""Memory that the reader process may ask for: the system refuses more (Linux only)."""
