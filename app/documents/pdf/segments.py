"""The pieces of text on a PDF's page, with where and how they are set.

PDFium gives characters in the order of the file, with the blanks and line ends that it found. A piece ends at
the end of a line and where a gap in it is so wide that a column or a table's cell may begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from app.documents import markup
from app.documents.pdf.box import Box
from app.documents.pdf.glyphs import PageGlyphs
from app.documents.pdf.right_to_left import RIGHT_TO_LEFT, as_written, reads_right_to_left
from app.documents.pdf.word_text import word_text
from app.documents.pdf.words import LINE_END_HYPHEN

_GAP_EMS = 1.0
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of one line.

    Attributes:
        text: its words; ends with `LINE_END_HYPHEN` where PDFium took a word for split.
        box: around all of it.
        size: of its type, in points.
        is_bold: whether it begins and ends in bold type.
        is_fixed: whether all its letters are equally wide, as in code.
    """

    text: str
    box: Box
    size: float
    is_bold: bool
    is_fixed: bool


def page_segments(glyphs: PageGlyphs) -> list[Segment]:
    """Return the pieces of a page in the order of the file."""
    text = glyphs.text
    segments: list[Segment] = []
    start = 0
    for match in re.finditer("[\r\n]+|\x02[\r\n]*|$", text):
        segments += _line_segments(glyphs, start, match.start())
        if match[0].startswith(LINE_END_HYPHEN) and segments:
            segments[-1] = replace(segments[-1], text=segments[-1].text + LINE_END_HYPHEN)
        start = match.end()
    return segments


def _line_segments(glyphs: PageGlyphs, start: int, end: int) -> Iterator[Segment]:
    """Yield the pieces of one line of PDFium's."""
    words = [match.span() for match in _WORD.finditer(glyphs.text, start, end)]
    if not words:
        return
    boxes = [_word_box(glyphs, *word) for word in words]
    is_right_to_left = RIGHT_TO_LEFT.search(glyphs.text, start, end) is not None
    sizes = [glyphs.size(first) for first, _ in words]
    begin = 0
    for index in range(1, len(words) + 1):
        is_last = index == len(words)
        if not is_last and (is_right_to_left or not _is_gap(boxes[index - 1], boxes[index], sizes[index])):
            continue
        yield _segment(glyphs, words[begin:index], boxes[begin:index], sizes[begin:index])
        begin = index


def _is_gap(left: Box, right: Box, size: float) -> bool:
    """Return whether two words of a line stand so far apart, or so, that they may not belong together."""
    return right.left - left.right > _GAP_EMS * size or right.right < left.left


def _word_box(glyphs: PageGlyphs, first: int, end: int) -> Box:
    """Return the box around one word."""
    box = glyphs.box(first)
    return box if end - first == 1 else box.joined(glyphs.box(end - 1))


def _segment(
    glyphs: PageGlyphs, words: list[tuple[int, int]], boxes: list[Box], sizes: list[float]
) -> Segment:
    """Return some words as one piece."""
    first, last = words[0][0], words[-1][1] - 1
    box = boxes[0]
    for each in boxes[1:]:
        box = box.joined(each)
    size = max(sizes, key=sizes.count)
    texts = [word_text(glyphs, *word, word_size) for word, word_size in zip(words, sizes, strict=True)]
    if reads_right_to_left(" ".join(texts)):
        texts = [as_written(each, turn_brackets=glyphs.has_turned_brackets) for each in texts]
    linked = zip(texts, map(glyphs.address, boxes), strict=True)
    text = " ".join(
        markup.link(" ".join(text for text, _ in run), address)
        for address, run in groupby(linked, key=lambda word: word[1])
    )
    return Segment(
        text,
        box,
        size,
        glyphs.is_bold(first) and glyphs.is_bold(last),
        glyphs.is_fixed(first) and glyphs.is_fixed(last),
    )
