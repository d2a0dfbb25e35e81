"""The pieces of text on a PDF's page, with where and how they are set.

PDFium gives characters in the order of the file, with the blanks and line ends that it found. A piece ends at
the end of a line and where a gap in it is so wide that a column or a table's cell may begin.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents import markup
from app.documents.pdf.box import Box, turned
from app.documents.pdf.links import page_links
from app.documents.pdf.words import LINE_END_HYPHEN

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

_GAP_EMS = 1.0
_RAISED_SIZE = 0.85
_WORD = re.compile(r"\S+")
_RAISED_START = re.compile(r"\d{1,3}(?=[^\W\d])")
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|semi|medi(?!um)|cmbx|-bd|,bd", re.IGNORECASE)
_FIXED_PITCH = 1 << 0
_BOLD_WEIGHT = 600
_FONT_NAME_NBYTES = 128


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


class PageGlyphs:
    """The characters of one page and their boxes, as the page is shown."""

    def __init__(self, page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> None:
        self._page = text_page
        self._links = page_links(page)
        self._rotation = page.get_rotation()
        self._rect = pdfium.FS_RECTF()
        self._rect_pointer = ctypes.byref(self._rect)
        self.text = _characters(text_page)

    def box(self, index: int) -> Box:
        """Return the box of one character, as high as its font."""
        pdfium.FPDFText_GetLooseCharBox(self._page, index, self._rect_pointer)
        rect = self._rect
        return turned(Box(rect.left, rect.bottom, rect.right, rect.top), self._rotation)

    def size(self, index: int) -> float:
        """Return the size of one character's type in points, whatever scales it."""
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFText_GetMatrix(self._page, index, matrix)
        scale = math.hypot(matrix.c, matrix.d) or 1.0
        return float(pdfium.FPDFText_GetFontSize(self._page, index)) * scale

    def is_bold(self, index: int) -> bool:
        """Return whether one character is set in bold type."""
        name, _ = self._font(index)
        weight: int = pdfium.FPDFText_GetFontWeight(self._page, index)
        return weight >= _BOLD_WEIGHT or _BOLD_NAME.search(name) is not None

    def is_fixed(self, index: int) -> bool:
        """Return whether one character's font has letters of one width."""
        return bool(self._font(index)[1] & _FIXED_PITCH)

    def address(self, box: Box) -> str:
        """Return where a word links to, empty when it does not."""
        for link in self._links:
            if link.contains((box.left + box.right) / 2, (box.bottom + box.top) / 2):
                return link.address
        return ""

    def _font(self, index: int) -> tuple[bytes, int]:
        """Return the name and the flags of one character's font."""
        name = ctypes.create_string_buffer(_FONT_NAME_NBYTES)
        flags = ctypes.c_int()
        pdfium.FPDFText_GetFontInfo(self._page, index, name, _FONT_NAME_NBYTES, flags)
        return name.value, flags.value


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


def _characters(page: pypdfium2.PdfTextPage) -> str:
    """Return the text of a page, one character for each that PDFium counts."""
    num_chars = page.count_chars()
    codes = (pdfium.FPDFText_GetUnicode(page, index) for index in range(num_chars))
    return "".join(chr(code) if 0 < code < 0x110000 else " " for code in codes)


def _line_segments(glyphs: PageGlyphs, start: int, end: int) -> Iterator[Segment]:
    """Yield the pieces of one line of PDFium's."""
    words = [match.span() for match in _WORD.finditer(glyphs.text, start, end)]
    if not words:
        return
    boxes = [_word_box(glyphs, *word) for word in words]
    is_right_to_left = _RIGHT_TO_LEFT.search(glyphs.text, start, end) is not None
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
    texts = (_word_text(glyphs, *word, word_size) for word, word_size in zip(words, sizes, strict=True))
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


def _word_text(glyphs: PageGlyphs, first: int, end: int, first_size: float) -> str:
    """Return one word with the letters of ligatures in order and small raised figures as Unicode has them."""
    word = glyphs.text[first:end]
    if _RIGHT_TO_LEFT.search(word):
        return _unfolded(glyphs, first, end)
    if word[-1].isdigit():
        tail = _raised_tail(glyphs, first, end, first_size)
        return word[: len(word) - tail] + markup.superscript(word[len(word) - tail :])
    if match := _RAISED_START.match(word):
        body = first + match.end()
        if first_size < _RAISED_SIZE * glyphs.size(body) and _is_raised(glyphs, first, body):
            return markup.superscript(match[0]) + " " + word[match.end() :]
    return word


def _raised_tail(glyphs: PageGlyphs, first: int, end: int, first_size: float) -> int:
    """Return how many figures at the end of a word are small and stand raised, as marks of notes do."""
    index = end
    while index - 1 > first and glyphs.text[index - 1].isdigit():
        if glyphs.size(index - 1) >= _RAISED_SIZE * first_size or not _is_raised(glyphs, index - 1, first):
            break
        index -= 1
    return end - index


def _is_raised(glyphs: PageGlyphs, index: int, other: int) -> bool:
    """Return whether one character stands above the foot of another."""
    return glyphs.box(index).bottom > glyphs.box(other).bottom + 0.1 * glyphs.box(other).height


def _unfolded(glyphs: PageGlyphs, first: int, end: int) -> str:
    """Return a right-to-left word with the letters of each ligature in their order.

    PDFium turns right-to-left lines around letter by letter, and with them the letters that one glyph stands
    for, such as lam-alef. Letters of one glyph have the same box.
    """
    pieces: list[str] = []
    box = None
    for index in range(first, end):
        char = glyphs.text[index]
        previous, box = box, glyphs.box(index) if _RIGHT_TO_LEFT.match(char) else None
        if box is not None and box == previous:
            pieces[-1] = char + pieces[-1]
        else:
            pieces.append(char)
    return "".join(pieces)
