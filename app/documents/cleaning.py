"""Text as every reader hands it on: valid Unicode, `\\n` for newlines, no control characters."""

from __future__ import annotations

import re

from app.valid_unicode import valid_unicode

_NEWLINES = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_FILE_NAME = re.compile(
    r"^(/|\\\\|[a-z]:\\|file:)|\.(docx?|dotx?|pdf|indd|qxd|tex|dvi|ps|rtf|odt|html?|pptx?|xlsx?|txt|md)$",
    re.IGNORECASE,
)
_PROGRAM_PREFIX = re.compile(r"^(Microsoft (Word|PowerPoint|Excel)|Word|PowerPoint) ?- ", re.IGNORECASE)
_NO_TITLES = frozenset(
    ("untitled", "unknown", "document", "document1", "title", "powerpoint presentation", "slide 1")
)
_MAX_TITLE_CHARS = 200


def clean_text(text: str) -> str:
    """Return `text` with newlines made alike and control characters taken out; the rest is kept as it is."""
    text = _NEWLINES.sub("\n", text.removeprefix("\ufeff"))
    return valid_unicode(_CONTROLS.sub("", text))


def tidy_text(text: str) -> str:
    """Return clean text for prose: no soft hyphens, no blanks at line ends, one blank line at most."""
    text = clean_text(text).replace("\u00ad", "")
    text = re.sub(r"[ \t\u00a0]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def sensible_title(raw: str | None) -> str | None:
    """Return a title from a file's metadata in one line, None when it says nothing or is a file's name."""
    title = " ".join(clean_text(raw or "").split())
    is_name = _PROGRAM_PREFIX.match(title) or _FILE_NAME.search(title)
    if is_name or title.lower() in _NO_TITLES or not any(char.isalnum() for char in title):
        return None
    return title if len(title) <= _MAX_TITLE_CHARS else f"{title[: _MAX_TITLE_CHARS - 1]}…"
