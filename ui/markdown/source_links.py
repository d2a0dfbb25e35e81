"""Numbers in an answer that name its sources, as links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from app.sources.citations import citations

NO_SOURCES: Mapping[int, str] = MappingProxyType({})
_SCHEME = "octavo-source:"


def source_address(number: int) -> str:
    """Return the address of the link to a source."""
    return f"{_SCHEME}{number}"


def source_number(address: str) -> int | None:
    """Return the number of the source that an address stands for, None for any other address."""
    number = address.removeprefix(_SCHEME)
    return int(number) if number != address and number.isdecimal() else None


def cited_pieces(text: str, numbers: Collection[int]) -> Iterator[tuple[str, int | None]]:
    """Yield a text piece by piece, each with the number of the source that it cites, None for other text.

    Brackets that hold one number, as in `[3]`, are a part of the citation; in `[1, 4]` only the numbers are.
    """
    done = 0
    for cited in citations(text) if numbers else ():
        if cited.number in numbers:
            is_alone = text[cited.start - 1] == "[" and text[cited.stop : cited.stop + 1] == "]"
            start, stop = (cited.start - 1, cited.stop + 1) if is_alone else (cited.start, cited.stop)
            yield text[done:start], None
            yield text[start:stop], cited.number
            done = stop
    yield text[done:], None
