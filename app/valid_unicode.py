"""Text that UTF-8 can write."""

from __future__ import annotations

import re

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def valid_unicode(text: str) -> str:
    """Return `text` with lone surrogates, such as bytes of a file name, as replacement characters."""
    return _LONE_SURROGATES.sub("\ufffd", text)
