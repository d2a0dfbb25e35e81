"""What is told of one page, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.kv.page_map import PageMap, TextSpan
from engine.kv.precision import BitsPair, Tier
from engine.kv.usage import PageInfo
from engine.wording import format_nbytes
from ui.inspector.pages.groups import num_cells
from ui.inspector.pages.looks import state_of

OTHER_TEXT = "Other text"
_EXCERPT_CHARACTERS = 110
_BROKEN = "\ufffd"
"""What a page's first or last character becomes when its bytes go on in the next page."""

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class PageDetails:
    """What is told of one page.

    Attributes:
        title: which page, and where it is kept.
        span: what its text is.
        beginning: of its text.
        end: of its text; empty where the beginning is all of it.
        rows: names and values of its figures.
    """

    title: str
    span: str
    beginning: str
    end: str
    rows: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        """All of it to be read aloud."""
        figures = ", ".join(f"{name} {value}" for name, value in self.rows)
        return f"{self.title}. {self.span}. {figures}. Text: {self.beginning} {self.end}".rstrip()


def describe_page(page_map: PageMap, index: int, span: TextSpan | None, decode: Decode | None) -> PageDetails:
    """Return what is told of a cell: a page, or the open page behind the last.

    Without `decode` nothing is told of the text.
    """
    if index < len(page_map.pages):
        page = page_map.pages[index]
        state = state_of(page).value
        tokens, rows = page.tokens, _page_rows(page_map, page)
    else:
        state = "open"
        tokens, rows = page_map.open_tokens, _open_rows(page_map)
    title = f"Page {index + 1:,} of {num_cells(page_map):,}, {state}"
    beginning, end = excerpt(decode(tokens)) if decode is not None else ("", "")
    return PageDetails(title, span_text(span), beginning, end, rows)


def span_text(span: TextSpan | None) -> str:
    """Return what a stretch of text is, with its title; `Summary of 3 turns` says both."""
    if span is None:
        return OTHER_TEXT
    kind = span.kind.value.capitalize()
    if span.title.startswith(kind):
        return span.title
    return f"{kind}: {span.title}" if span.title else kind


def _page_rows(page_map: PageMap, page: PageInfo) -> tuple[tuple[str, str], ...]:
    is_whole = page.num_tokens == page_map.page_tokens
    rows = {
        "Tokens": f"{page.num_tokens:,}" if is_whole else f"{page.num_tokens:,} of {page_map.page_tokens:,}",
        "Positions": f"{page.first_position:,} to {page.last_position:,}",
        "Bits": layers_text(page.bits),
        "Size": format_nbytes(page.nbytes),
        "Heat": _heat_text(page.heat),
        "Last read": _access_text(page.last_access, page_map.num_decoded),
    }
    if page.references > 1:
        rows["Shared"] = f"in {page.references:,} places"
    rows["Pinned"] = _pin_text(page)
    return tuple(rows.items())


def _open_rows(page_map: PageMap) -> tuple[tuple[str, str], ...]:
    count = len(page_map.open_tokens)
    last = page_map.next_position - 1
    return (
        ("Tokens", f"{count:,} of {page_map.page_tokens:,}"),
        ("Positions", f"{last - count + 1:,} to {last:,}"),
        ("Bits", "16 in all layers, until the page is full"),
    )


def _heat_text(heat: float) -> str:
    if not heat:
        return "not measured yet"
    return "less than 0.1% of the attention" if heat < 0.001 else f"{heat:.1%} of the attention"


def _pin_text(page: PageInfo) -> str:
    """Return whether a page is pinned, and that lost bits do not come back by that."""
    if not page.pinned:
        return "no"
    return "yes; lost bits come back when it is read again" if page.tier is Tier.COLD else "yes"


def _access_text(last_access: int, num_decoded: int) -> str:
    """Return how long ago a page got a share of note, in tokens that were written since."""
    if not last_access:
        return "not yet"
    ago = num_decoded - last_access
    return "just now" if ago <= 0 else f"{ago:,} token{'' if ago == 1 else 's'} ago"


def layers_text(bits: Mapping[int, Sequence[BitsPair]]) -> str:
    """Return the bits by layer, such as `8 in all layers` or `k8v4 in 0-7, 4 in 8-29`."""
    layers: dict[str, list[int]] = {}
    for layer, heads in bits.items():
        layers.setdefault(_heads_text(heads), []).append(layer)
    if len(layers) == 1:
        return f"{next(iter(layers))} in all layers"
    return ", ".join(f"{text} in {_ranges(numbers)}" for text, numbers in layers.items())


def _heads_text(heads: Sequence[BitsPair]) -> str:
    """Return the bits of a layer's heads, all that there are where heads differ."""
    return "/".join(dict.fromkeys(str(pair) for pair in heads))


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as ranges: `0-3 and 9`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return " and ".join("-".join(map(str, ends)) for ends in ranges)


def excerpt(text: str) -> tuple[str, str]:
    """Return the beginning and the end of a page's text, each in one line; no end where that is all."""
    line = " ".join(text.strip(_BROKEN).split())
    if len(line) <= 2 * _EXCERPT_CHARACTERS:
        return line, ""
    return f"{line[:_EXCERPT_CHARACTERS].rstrip()}…", f"…{line[-_EXCERPT_CHARACTERS:].lstrip()}"
