"""Text on its way into the store and into a search."""

from __future__ import annotations

import re
import unicodedata

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` with what UTF-8 cannot write, such as bytes of a file name, as replacement characters."""
    return _LONE_SURROGATES.sub("\ufffd", text)


def search_key(text: str) -> str:
    """Return `text` as it is compared in a search: without case and without accents."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
