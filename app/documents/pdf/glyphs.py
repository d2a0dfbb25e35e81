"""The characters of a PDF's page, as PDFium has them."""

from __future__ import annotations

import ctypes
import math
import re
from functools import cached_property
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents.pdf.box import Box, turned
from app.documents.pdf.links import page_links
from app.documents.pdf.right_to_left import RIGHT_TO_LEFT, has_turned_brackets
from app.documents.pdf.words import LINE_END_HYPHEN

_LAM_ALEF = re.compile("\u0644[\u0622\u0623\u0625\u0627]")
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|semi|medi(?!um)|cmbx|-bd|,bd", re.IGNORECASE)
_FIXED_PITCH = 1 << 0
_BOLD_WEIGHT = 600
_FONT_NAME_NBYTES = 128
_SAMPLED_CHARS = 15


class PageGlyphs:
    """The characters of one page and their boxes, on the page turned so that most of its text is upright."""

    def __init__(self, page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> None:
        self._page = text_page
        self._rect = pdfium.FS_RECTF()
        self._rect_pointer = ctypes.byref(self._rect)
        self.text = _characters(text_page)
        self._rotation = self._text_rotation()
        self._links = page_links(page, self._rotation)

    def box(self, index: int) -> Box:
        """Return the box of one character, as high as its font."""
        pdfium.FPDFText_GetLooseCharBox(self._page, index, self._rect_pointer)
        rect = self._rect
        return turned(Box(rect.left, rect.bottom, rect.right, rect.top), self._rotation)

    def size(self, index: int) -> float:
        """Return the size of one character's type in points, whatever scales it."""
        matrix = self._matrix(index)
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

    @cached_property
    def has_turned_ligatures(self) -> bool:
        """Whether the letters of right-to-left ligatures stand the wrong way around.

        PDFium turns them around with the line, and some writers, such as Qt, have done so before. In the
        ligature that is in every Arabic text, lam comes before alef.
        """
        pairs = (match.start() for match in _LAM_ALEF.finditer(self.text))
        return not any(self.box(index) == self.box(index + 1) for index in pairs)

    @cached_property
    def has_turned_brackets(self) -> bool:
        """Whether the brackets around right-to-left words stand the wrong way around."""
        return has_turned_brackets(self.text)

    def address(self, box: Box) -> str:
        """Return where a word links to, empty when it does not."""
        for link in self._links:
            if link.contains((box.left + box.right) / 2, (box.bottom + box.top) / 2):
                return link.address
        return ""

    def _text_rotation(self) -> int:
        """Return by how many degrees the page must be turned clockwise for most of its text to be upright."""
        indices = [index for index, char in enumerate(self.text) if not char.isspace()]
        sample = indices[:: max(len(indices) // _SAMPLED_CHARS, 1)]
        angles = [
            round(math.degrees(math.atan2(m.b, m.a)) / 90) * 90 % 360 for m in map(self._matrix, sample)
        ]
        return max(angles, key=angles.count, default=0)

    def _matrix(self, index: int) -> Any:
        """Return what turns and scales one character's type."""
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFText_GetMatrix(self._page, index, matrix)
        return matrix

    def _font(self, index: int) -> tuple[bytes, int]:
        """Return the name and the flags of one character's font."""
        name = ctypes.create_string_buffer(_FONT_NAME_NBYTES)
        flags = ctypes.c_int()
        pdfium.FPDFText_GetFontInfo(self._page, index, name, _FONT_NAME_NBYTES, flags)
        return name.value, flags.value


def _characters(page: pypdfium2.PdfTextPage) -> str:
    """Return the text of a page, one character for each that PDFium counts: halves of pairs are two."""
    num_chars = page.count_chars()
    codes = (pdfium.FPDFText_GetUnicode(page, index) for index in range(num_chars))
    text = "".join(chr(code) if 0 < code < 0x110000 else " " for code in codes)
    if LINE_END_HYPHEN in text:  # some fonts have the same sign for something else
        text = re.sub(
            LINE_END_HYPHEN,
            lambda match: match[0] if pdfium.FPDFText_IsHyphen(page, match.start()) == 1 else " ",
            text,
        )
    if RIGHT_TO_LEFT.search(text) is None:
        return text
    # Some writers give one glyph the letters of a whole word, and the others none: PDFium guesses those.
    is_guess = (pdfium.FPDFText_HasUnicodeMapError(page, index) == 1 for index in range(num_chars))
    return "".join(" " if guess else char for char, guess in zip(text, is_guess, strict=True))
