"""The part of a passage that is read where all of it is too long: what is around the words that match."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from app.lookup.terms import Term
from app.lookup.words import without_accents

_BEFORE_SHARE = 4
"""Up to this fraction of what is read stands before the first word that matches."""
_BEGINNING = re.compile(r"[.!?…。！？]\s*|\s+")
_ENDS_SENTENCE = re.compile(r"[.!?…。！？\n]")
_APART = "[.,'’\\s]?"
"""What may stand between the digits of a number."""


def excerpt(
    text: str, terms: Sequence[Term], most_tokens: int, count_tokens: Callable[[str], int]
) -> tuple[int, int]:
    """Return which characters of a text are read in at most so many tokens: those around most of the terms.

    All of them where they fit. Where the text has blanks, whole words.
    """
    start, stop, places = 0, len(text), None
    while start < stop and (num_tokens := count_tokens(text[start:stop])) > most_tokens:
        if places is None:
            places = _places(text, terms)
        length = (stop - start) * max(0, most_tokens) // (num_tokens + 1)
        start = _start(text, places, length)
        stop = _end(text, start, start + length)
    return start, stop


def _start(text: str, places: Sequence[tuple[int, int]], length: int) -> int:
    """Return where so many characters begin that have most of the terms, the first ones that do."""
    before = length // _BEFORE_SHARE
    best, most = 0, 0
    for index, (place, _) in enumerate(places):
        if (num_terms := len({term for at, term in places[index:] if at < place + length - before})) > most:
            best, most = place, num_terms
    if best <= before:
        return 0
    beginnings = list(_BEGINNING.finditer(text, best - before, best))
    sentences = (each.end() for each in beginnings if _ENDS_SENTENCE.search(each.group()))
    return next(sentences, beginnings[0].end() if beginnings else best)


def _end(text: str, start: int, stop: int) -> int:
    """Return where words end, at `stop` at the latest; `stop` itself where there are no blanks."""
    if stop >= len(text) or text[stop].isspace():
        return min(stop, len(text))
    blank = text.rfind(" ", start, stop)
    return start + len(text[start:blank].rstrip()) if blank >= 0 else stop


def _places(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Return where terms are in a text, in order: each place with the index of its term."""
    plain, origins = [], []
    for index, character in enumerate(text):
        letters = without_accents(unicodedata.normalize("NFKC", character).casefold())
        plain.append(letters)
        origins.extend([index] * len(letters))
    written = "".join(plain)
    return sorted(
        (origins[match.start()], number)
        for number, term in enumerate(terms)
        for match in _pattern(term.stem).finditer(written)
    )


def _pattern(stem: str) -> re.Pattern[str]:
    """Return what finds a term with anything between its parts, and in a number also between its digits."""
    parts = re.split(r"[\W_]+", without_accents(stem)) if any(map(str.isdigit, stem)) else [stem]
    return re.compile(r"[\W_]+".join(map(_part_pattern, parts)))


def _part_pattern(part: str) -> str:
    if part.isdigit():
        return rf"(?<!\d){_APART.join(part)}(?!\d)"
    return re.escape(without_accents(part))
