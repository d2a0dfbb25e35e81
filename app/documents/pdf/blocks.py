"""A page's lines as blocks of Markdown: headings, paragraphs, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median_low

from app.documents import markup
from app.documents.cleaning import tidy_text
from app.documents.pdf.headings import Headings
from app.documents.pdf.lines import Line, Table
from app.documents.pdf.words import LINE_END_HYPHEN

_BULLET = re.compile(r"^[•◦▪▫‣●○■□∙·\uf0b7\uf0a7\uf0d8\uf076]\s*(?=\S)")
_DOT_LEADER = re.compile(r" ?(?:\. ?){6,}")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_ENDS_SENTENCE = re.compile(r"[.!?。！？…][\"'”’»)\]]*$")
_WIDE_GAP = 1.35
_INDENT_EMS = 0.8
_MAX_INDENT_EMS = 4.0
_SHORT_LINE = 0.12
_SIZE_CHANGE = 0.08
_DEFAULT_LEADING = 1.2


def page_blocks(page: Sequence[Line | Table], page_index: int, headings: Headings) -> list[str]:
    """Return the blocks of a page, with `LINE_END_HYPHEN` where a word was split."""
    blocks: list[str] = []
    paragraph: list[Line] = []
    leading = _leading(page)
    index = 0
    while index < len(page):
        line = page[index]
        heading = headings.at(page_index, index)
        if heading is None and isinstance(line, Line):
            if paragraph and _is_new_paragraph(paragraph[-1], line, page, index, leading):
                blocks.append(_paragraph(paragraph))
                paragraph = []
            paragraph.append(line)
            index += 1
            continue
        if paragraph:
            blocks.append(_paragraph(paragraph))
            paragraph = []
        if heading is not None:
            level, num_lines = heading
            lines = [each for each in page[index : index + num_lines] if isinstance(each, Line)]
            blocks.append(markup.heading(_joined(lines, " ").replace("\n", " "), level))
            index += num_lines
        elif isinstance(line, Table):
            blocks.append(markup.table(line.rows))
            index += 1
    if paragraph:
        blocks.append(_paragraph(paragraph))
    return [block for block in map(_tidy, blocks) if block]


def _paragraph(lines: Sequence[Line]) -> str:
    """Return the lines of a paragraph; a bullet becomes Markdown's."""
    return markup.literal(_joined(lines, "\n"))


def _joined(lines: Iterable[Line], separator: str) -> str:
    """Return lines as one text; where a word goes on in the next line there is `LINE_END_HYPHEN`."""
    text = ""
    for line in lines:
        words = _BULLET.sub("- ", _DOT_LEADER.sub(" … ", line.text))
        if text and not text.endswith(LINE_END_HYPHEN):
            hyphen = _HYPHEN.search(text)
            if hyphen and words[:1].islower():
                text = text[: hyphen.start()] + LINE_END_HYPHEN
            else:
                text += separator
        text += words
    return text


def _tidy(block: str) -> str:
    """Return a block in clean text, its hyphens at line ends kept; one at its own end is a hyphen."""
    parts = [tidy_text(part) for part in block.split(LINE_END_HYPHEN)]
    return LINE_END_HYPHEN.join(parts).removesuffix(LINE_END_HYPHEN) + (
        "-" if block.endswith(LINE_END_HYPHEN) else ""
    )


def _leading(page: Sequence[Line | Table]) -> float:
    """Return how far lines of the page mostly stand below each other, in their type's size."""
    lines = [line for line in page if isinstance(line, Line) and line.size > 0]
    distances = [(before.box.bottom - line.box.bottom) / line.size for before, line in pairwise(lines)]
    usual = [distance for distance in distances if 0.8 < distance < 3]
    return median_low(usual) if usual else _DEFAULT_LEADING


def _is_new_paragraph(
    before: Line, line: Line, page: Sequence[Line | Table], index: int, leading: float
) -> bool:
    """Return whether a line begins a paragraph, by the room above, its indent or the last line."""
    size = max(line.size, before.size, 1.0)
    distance = before.box.bottom - line.box.bottom
    if abs(line.size - before.size) > _SIZE_CHANGE * size:
        # A raised mark or a formula alone on a line is no other text.
        return min(len(line.text), len(before.text)) > 3
    has_ended = _ENDS_SENTENCE.search(before.text) is not None
    if distance < 0 or not before.box.is_over(line.box):
        return has_ended
    if distance > _WIDE_GAP * leading * size:
        return True
    if line.is_fixed or before.is_fixed:
        return line.is_fixed != before.is_fixed
    indent = line.box.left - before.box.left
    if has_ended and _INDENT_EMS * size < indent < _MAX_INDENT_EMS * size:
        return True
    return has_ended and _is_short(before, page, index)


def _is_short(line: Line, page: Sequence[Line | Table], index: int) -> bool:
    """Return whether a line ends well before those around it."""
    around = [
        each.box
        for each in page[max(index - 4, 0) : index + 4]
        if isinstance(each, Line) and abs(each.box.left - line.box.left) < 3 * max(line.size, 1.0)
    ]
    right = max((box.right for box in around), default=line.box.right)
    return line.box.right < right - _SHORT_LINE * (right - line.box.left)
