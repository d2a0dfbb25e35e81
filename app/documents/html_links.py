"""What a link on a page of HTML means: an address, the mark of a note, or the way back from one."""

from __future__ import annotations

import re
from typing import Any

_NOTE_WORDS = re.compile(r"[\[(]?(\d{1,4}|[a-z]{1,2}|[ivxl]{1,6}|[*†‡§¶#]{1,3})[\])]?$")
_NOTE_CLASS = re.compile(r"\b(foot|end)?-?note-?ref\b|\bfootnote\b|\breference\b", re.IGNORECASE)
_NAMED = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt", "caption", "figcaption"))
_OWN_WORDS = frozenset(("¶", "#", "§", "🔗", "\uf0c1"))
_BACK_WORDS = frozenset(["^", "↩", "↩︎", "↵", "↑", "⏎", "⤴", "↖"])


def note_label(link: Any) -> str | None:
    """Return the label of the note that a link leads to, None when it leads elsewhere."""
    address = link.get("href") or ""
    match = _NOTE_WORDS.match(words(link))
    if match is None or "#" not in address:
        return None
    kind = f"{link.get('epub:type') or ''} {link.get('role') or ''}"
    parent = link.getparent()
    is_raised = (parent is not None and parent.tag == "sup") or link.find("sup") is not None
    is_note = "noteref" in kind or is_raised or _NOTE_CLASS.search(link.get("class") or "") is not None
    return match[1] if is_note else None


def note_id(link: Any) -> str:
    """Return the id of the element that a link leads to."""
    address: str = link.get("href") or ""
    return address.partition("#")[2]


def leads_back(link: Any) -> bool:
    """Return whether a link leads from a note back to its mark."""
    address = link.get("href") or ""
    is_sign = words(link) in _BACK_WORDS and "#" in address
    return is_sign or "backlink" in f"{link.get('epub:type') or ''} {link.get('role') or ''}"


def leads_to_itself(link: Any) -> bool:
    """Return whether a link is the sign beside a heading or a term that gives its address."""
    parent = link.getparent()
    is_beside = parent is not None and parent.tag in _NAMED
    return is_beside and words(link) in _OWN_WORDS and (link.get("href") or "").startswith("#")


def page_number(element: Any) -> int | None:
    """Return the number of the printed page that begins here, None when none does."""
    kind = f"{element.get('epub:type') or ''} {element.get('role') or ''}"
    if "pagebreak" not in kind:
        return None
    label = (element.get("title") or element.get("aria-label") or words(element)).strip()
    match = re.search(r"\d{1,6}$", label)
    return int(match[0]) if match else None


def is_page_break(element: Any) -> bool:
    """Return whether a printed page begins here, whatever it is called."""
    return "pagebreak" in f"{element.get('epub:type') or ''} {element.get('role') or ''}"


def words(element: Any) -> str:
    """Return the words of an element in one line."""
    return " ".join("".join(element.itertext()).split())
