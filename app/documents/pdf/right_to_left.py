"""Right-to-left lines as PDFium hands them on: signs that it leaves where, or as, they are seen."""

from __future__ import annotations

import re

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""A letter of Hebrew, Arabic and their relatives."""

_LETTER = re.compile(r"[^\W\d_]")
_STOP_BEFORE_NUMBER = re.compile(r"\A([.,:;!?،؛؟]+)(\d+(?:[.,:/]\d+)*)\Z")
_PAIR = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_TURNED_PAIR = re.compile(r"\)[^()]*\(|\][^\[\]]*\[")
_TURNED = str.maketrans("()[]", ")(][")


def reads_right_to_left(text: str) -> bool:
    """Return whether most letters of a line are written from right to left."""
    if RIGHT_TO_LEFT.search(text) is None:
        return False
    return 2 * len(RIGHT_TO_LEFT.findall(text)) > len(_LETTER.findall(text))


def has_turned_brackets(text: str) -> bool:
    """Return whether the brackets around right-to-left words of a page stand the wrong way around.

    PDFium takes the other one of a pair in such lines, and most programs that write PDFs have done so before.
    """
    lines = [line for line in text.splitlines() if RIGHT_TO_LEFT.search(line)]
    num_right, num_turned = (
        sum(1 for line in lines for match in pair.findall(line) if RIGHT_TO_LEFT.search(match))
        for pair in (_PAIR, _TURNED_PAIR)
    )
    return num_turned > num_right


def as_written(word: str, *, turn_brackets: bool) -> str:
    """Return one word of a right-to-left line as it was written: a full stop comes after its number."""
    is_left_to_right = _LETTER.search(word) is not None and RIGHT_TO_LEFT.search(word) is None
    if turn_brackets and not is_left_to_right:
        word = word.translate(_TURNED)
    return _STOP_BEFORE_NUMBER.sub(r"\2\1", word)
