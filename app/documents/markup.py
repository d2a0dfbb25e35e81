"""Markdown as the readers write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MAX_COLUMNS = 200
_MAX_ADDRESS_CHARS = 500
_ADDRESS = re.compile(r"(https?://|mailto:)[^\s<>]+$", re.IGNORECASE)
_ESCAPED_IN_ADDRESS = str.maketrans({"(": "%28", ")": "%29"})
_LOOKS_LIKE_MARKUP = re.compile(r"^( {0,3})(#{1,6}[ \t]|```|~~~)", re.MULTILINE)
_SUPERSCRIPTS = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")


def heading(text: str, level: int) -> str:
    """Return a heading; Markdown knows levels 1 to 6."""
    return f"{'#' * min(max(level, 1), 6)} {text}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row is the head; shorter rows are filled up, empty ones dropped."""
    rows = [[_cell(cell) for cell in row[:MAX_COLUMNS]] for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return ""
    num_columns = max(len(row) for row in rows)
    filled = [[*row, *[""] * (num_columns - len(row))] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in filled]
    return "\n".join([lines[0], f"|{' --- |' * num_columns}", *lines[1:]])


def link(words: str, address: str) -> str:
    """Return words that lead to an address of the web or of mail; other addresses lead nowhere from here."""
    shown = words.strip()
    if not shown or len(address) > _MAX_ADDRESS_CHARS or not _ADDRESS.match(address):
        return words
    if "".join(shown.split()).rstrip("/") in address:
        return words
    start = len(words) - len(words.lstrip())
    before, after = words[:start], words[start + len(shown) :]
    return f"{before}[{shown}]({address.translate(_ESCAPED_IN_ADDRESS)}){after}"


def literal(text: str) -> str:
    """Return text that is no Markdown so that no line of it reads as a heading or a fence."""
    return _LOOKS_LIKE_MARKUP.sub(r"\1\\\2", text)


def code_block(text: str) -> str:
    """Return `text` fenced, with a fence longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def superscript(text: str) -> str:
    """Return raised text as Unicode has it (10⁶), unchanged when a character of it has no raised form."""
    raised = text.translate(_SUPERSCRIPTS)
    return raised if not set(text) & set(raised) else text


def join_blocks(blocks: Iterable[tuple[str, bool]]) -> str:
    """Return blocks as one text: those of a list (True) follow each other, others are set apart."""
    pieces: list[str] = []
    was_item = False
    for block, is_item in blocks:
        if pieces:
            pieces.append("\n" if is_item and was_item else "\n\n")
        pieces.append(block)
        was_item = is_item
    return "".join(pieces)


def _cell(text: str) -> str:
    """Return the text of a table's cell on one line, its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")
