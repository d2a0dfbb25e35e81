"""Reading what is held as it is held, where a template and a tokenizer would split the same words otherwise.

A model often writes words in other tokens than its tokenizer would split them into. The text of such an
answer, rendered for the next prompt, would differ from what was decoded, and be read again from there on.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np

from engine.kv.page import IntArray
from engine.kv.page_map import TextSpan
from engine.spans import Prompt
from engine.token_bytes import TokenBytes


def with_held_tokens(wanted: Prompt, held: Iterable[Prompt], token_bytes: TokenBytes) -> Prompt:
    """Return a prompt with the tokens that are held where they write the same as its own.

    It says the same, byte for byte. Of a span whose text differs from some place on, such as where white
    space is stripped from its end, what precedes is as it is held.

    Args:
        wanted: what a template and a tokenizer made of a conversation.
        held: what was read; where several have a key, the first one counts.
        token_bytes: says what tokens write.
    """
    found: dict[str, _Text] = {}
    for text in held:
        for span in text.spans:
            found.setdefault(span.key, _Text(text.tokens[span.start : span.stop], span, token_bytes))
    tokens: list[int] = []
    spans: list[TextSpan] = []
    at = 0
    for span in wanted.spans:
        tokens += wanted.tokens[at : span.start]
        own = _Text(wanted.tokens[span.start : span.stop], span, token_bytes)
        at, start = span.stop, len(tokens)
        one = found.get(span.key) if span.key else None
        differs = one is not None and one.tokens != own.tokens
        said, marker_tokens = _as_held(own, one) if one and differs else (own.tokens, span.marker_tokens)
        tokens += said
        spans.append(dataclasses.replace(span, start=start, stop=len(tokens), marker_tokens=marker_tokens))
    return Prompt(tokens + wanted.tokens[at:], tuple(spans))


class _Text:
    """The tokens of a span, and what they write; that is found out only where tokens differ."""

    def __init__(self, tokens: list[int], span: TextSpan, token_bytes: TokenBytes) -> None:
        self.tokens = tokens
        self.marker_tokens = span.marker_tokens
        self._token_bytes = token_bytes

    @functools.cached_property
    def _pieces(self) -> list[bytes]:
        return self._token_bytes.each(self.tokens)

    @functools.cached_property
    def written(self) -> bytes:
        """The bytes of all tokens."""
        return b"".join(self._pieces)

    @functools.cached_property
    def borders(self) -> IntArray:
        """Where in these each token begins, and where the last one ends."""
        return np.cumsum([0, *map(len, self._pieces)])

    @property
    def marker_nbytes(self) -> int:
        """Where the words begin."""
        return int(self.borders[self.marker_tokens])

    @property
    def words(self) -> int:
        """Where the words begin behind white space, which a template may strip."""
        return len(self.written) - len(self.written[self.marker_nbytes :].lstrip())


def _as_held(wanted: _Text, held: _Text) -> tuple[list[int], int]:
    """Return the tokens of a span, as many as may be as they are held, and how many are its marker."""
    at, held_at, length = 0, 0, _same_nbytes(wanted.written, held.written)
    words = _same_nbytes(wanted.written[wanted.words :], held.written[held.words :])
    if words > length - wanted.words:  # markers differ where the words are the same
        at, held_at, length = wanted.words, held.words, words
    # Tokens can take each other's place only between bytes where in both one ends.
    both = np.intersect1d(wanted.borders - at, held.borders - held_at)
    before = _same_nbytes(wanted.written[:at][::-1], held.written[:held_at][::-1])
    both = both[(both >= -before) & (both <= length)]
    if not len(both):
        return wanted.tokens, wanted.marker_tokens
    ends = both[[0, -1]]
    start, stop = np.searchsorted(wanted.borders, ends + at)
    held_start, held_stop = np.searchsorted(held.borders, ends + held_at)
    tokens = [*wanted.tokens[:start], *held.tokens[held_start:held_stop], *wanted.tokens[stop:]]
    borders = np.concatenate(
        [
            wanted.borders[:start],
            held.borders[held_start:held_stop] + at - held_at,
            wanted.borders[stop:],
        ]
    )
    marker_nbytes = wanted.marker_nbytes
    if at == held_at == 0 and held.marker_nbytes <= length:
        marker_nbytes = min(marker_nbytes, held.marker_nbytes)  # a token may have reached into the words
    return tokens, int(np.searchsorted(borders, marker_nbytes))


def _same_nbytes(one: bytes, other: bytes) -> int:
    """Return how many bytes at the start of both are the same."""
    length = min(len(one), len(other))
    first, second = (np.frombuffer(each, np.uint8, length) for each in (one, other))
    differs = np.flatnonzero(first != second)
    return int(differs[0]) if len(differs) else length
