"""Prose as the messages of a conversation."""

from __future__ import annotations

from app.ledger.sentences import sentences
from app.segments.splitting import CountTokens
from engine.errors import OctavoError


class Passages:
    """A text that is taken piece by piece, in whole sentences.

    Args:
        title: of the text, for people.
        text: the text.
        count_tokens: counts tokens.
    """

    def __init__(self, title: str, text: str, count_tokens: CountTokens) -> None:
        self._title = title
        self._sentences = sentences(text)
        self._count_tokens = count_tokens
        self._next = 0

    def take(self, least_tokens: int) -> str:
        """Return the next sentences that have so many tokens together.

        Raises:
            OctavoError: the rest of the text has fewer.
        """
        taken = ""
        while self._count_tokens(taken) < least_tokens:
            if self._next == len(self._sentences):
                raise OctavoError(f"The text {self._title} is too short for this. Take a longer one.")
            taken = f"{taken} {self._sentences[self._next]}".lstrip()
            self._next += 1
        return taken
