"""The text of one word: what several signs or several letters of one sign stand for."""

from __future__ import annotations

import re
import unicodedata

from app.documents import markup
from app.documents.pdf.box import Box
from app.documents.pdf.glyphs import PageGlyphs
from app.documents.pdf.right_to_left import RIGHT_TO_LEFT

_RAISED_SIZE = 0.85
_RAISED_START = re.compile(r"\d{1,3}(?=[^\W\d])")
_COMBINING = dict(
    zip("`´ˆ˜¨¯˘˙˚ˇ¸", map(chr, (768, 769, 770, 771, 776, 772, 774, 775, 778, 780, 807)), strict=True)
)
# Fonts name some glyphs by signs for ligatures, for presentation, or for radicals of Chinese writing.
_PRESENTED = (range(0xFB00, 0xFB07), range(0xFB1D, 0xFE00), range(0xFE70, 0xFEFD), range(0x2F00, 0x2FD6))
_RADICALS = dict(
    zip(
        "⺟⺠⺩⺬⺼⻁⻄⻅⻆⻉⻋⻑⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻨⻩⻬⻭⻮⻯⻰⻳⻲⻫⻌⻎⺁⺌⺝",
        "母民王示肉虎西见角贝车長长门青韦页风飞食马骨鬼鱼鸟麦黄齐歯齿竜龙龟亀斉辶辶厂小月",
        strict=True,
    )
)
_PLAIN_LETTERS = str.maketrans(
    {chr(code): unicodedata.normalize("NFKC", chr(code)) for codes in _PRESENTED for code in codes}
    | _RADICALS
)
_ACCENT = re.compile(f"[{''.join(_COMBINING)}](?=[^\\W\\d_])")


def word_text(glyphs: PageGlyphs, first: int, end: int, first_size: float) -> str:
    """Return one word in the letters that people write; `first_size` is the size of its first sign."""
    word = _word_text(glyphs, first, end, first_size).translate(_PLAIN_LETTERS)
    # PDFium has two halves for signs of many an alphabet of formulas, emoji and rare Chinese signs.
    return word if word.isascii() else word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _word_text(glyphs: PageGlyphs, first: int, end: int, first_size: float) -> str:
    """Return one word with the letters of ligatures in order and small raised figures as Unicode has them."""
    word = glyphs.text[first:end]
    if RIGHT_TO_LEFT.search(word):
        return _unfolded(glyphs, first, end)
    if _ACCENT.search(word):
        return _with_accents(glyphs, first, end)
    if word[-1].isdigit():
        tail = _raised_tail(glyphs, first, end, first_size)
        return word[: len(word) - tail] + markup.superscript(word[len(word) - tail :])
    if match := _RAISED_START.match(word):
        body = first + match.end()
        if first_size < _RAISED_SIZE * glyphs.size(body) and _is_raised(glyphs, first, body):
            return markup.superscript(match[0]) + " " + word[match.end() :]
    return word


def _with_accents(glyphs: PageGlyphs, first: int, end: int) -> str:
    """Return a word whose accents are signs of their own, set over the letter that follows, as TeX does."""
    word = glyphs.text[first:end]
    pieces = []
    index = 0
    while index < len(word):
        mark = _COMBINING.get(word[index])
        letter = word[index + 1 : index + 2].replace("ı", "i")
        composed = unicodedata.normalize("NFC", letter + mark) if mark and letter else ""
        if len(composed) == 1 and _is_set_over(glyphs.box(first + index), glyphs.box(first + index + 1)):
            pieces.append(composed)
            index += 2
        else:
            pieces.append(word[index])
            index += 1
    return "".join(pieces)


def _is_set_over(accent: Box, letter: Box) -> bool:
    """Return whether an accent and a letter take the same room."""
    overlap = min(accent.right, letter.right) - max(accent.left, letter.left)
    return overlap > 0.5 * min(accent.right - accent.left, letter.right - letter.left)


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
    box: Box | None = None
    for index in range(first, end):
        char = glyphs.text[index]
        previous, box = box, glyphs.box(index) if RIGHT_TO_LEFT.match(char) else None
        if box is not None and box == previous and glyphs.has_turned_ligatures:
            pieces[-1] = char + pieces[-1]
        else:
            pieces.append(char)
    return "".join(pieces)
