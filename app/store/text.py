"""Text on its way into the store and into a search."""

from __future__ import annotations

import logging
import unicodedata
from datetime import UTC, datetime

log = logging.getLogger(__name__)


def readable(content: bytes) -> str:
    """Return stored text; a damaged byte costs its own letter and not the message."""
    return content.decode("utf-8", "replace")


def moment(text: str) -> datetime:
    """Return a stored time, or the beginning of 1970 for one that is damaged."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        log.error("a time in the store is damaged: %r", text)
        return datetime.fromtimestamp(0, UTC)


def search_key(text: str) -> str:
    """Return `text` as it is compared in a search: without case and without accents."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
