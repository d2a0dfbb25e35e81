"""The title that a conversation gets from its first message."""

from __future__ import annotations

import unicodedata

DEFAULT_TITLE = "New conversation"
MAX_TITLE_CHARS = 60
_JOINERS = "\u200d\ufe0e\ufe0f"


def title_of(text: str, fallback: str | None) -> str:
    """Return a title from the first line of a message that has words, else from `fallback`."""
    lines = (" ".join(line.split()) for line in (*text.splitlines(), fallback or ""))
    return _shortened(next(filter(None, lines), DEFAULT_TITLE))


def _shortened(line: str) -> str:
    if len(line) <= MAX_TITLE_CHARS:
        return line
    end = line.rfind(" ", 0, MAX_TITLE_CHARS + 1)
    if end < MAX_TITLE_CHARS // 2:
        end = MAX_TITLE_CHARS
        while end > 1 and _belongs_to_previous(line, end):
            end -= 1
    return line[:end].rstrip(" ,.;:-") + "…"


def _belongs_to_previous(line: str, index: int) -> bool:
    char = line[index]
    return bool(unicodedata.combining(char)) or char in _JOINERS or line[index - 1] == "\u200d"
