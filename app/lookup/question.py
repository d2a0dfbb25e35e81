"""What kind of question is asked about a document."""

from __future__ import annotations


def is_about_whole(question: str) -> bool:
    """Return whether a question is about a whole document, as "summarize this": not one to look up.

    A question without words is.
    """
    raise NotImplementedError
