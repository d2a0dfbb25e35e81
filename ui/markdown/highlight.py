"""Colours for source code, found by Pygments a slice at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

MAX_CHARS = 200_000
"""Longer code stays plain: nobody reads it by colour, and lexing it takes seconds."""

LIGHT = {
    Token.Comment: "#6a6f69",
    Token.Keyword: "#8a3a86",
    Token.Keyword.Constant: "#8a4b08",
    Token.Literal.String: "#2f6f3a",
    Token.Literal.Number: "#8a4b08",
    Token.Name.Function: "#1c5fa0",
    Token.Name.Class: "#1c5fa0",
    Token.Name.Tag: "#1c5fa0",
    Token.Name.Decorator: "#7a5a00",
    Token.Name.Builtin: "#17706a",
    Token.Name.Attribute: "#17706a",
    Token.Operator.Word: "#8a3a86",
    Token.Generic.Deleted: "#a8261d",
    Token.Generic.Inserted: "#2f6f3a",
    Token.Generic.Heading: "#1c5fa0",
}
DARK = {
    Token.Comment: "#8f969c",
    Token.Keyword: "#d39ad9",
    Token.Keyword.Constant: "#e3aa78",
    Token.Literal.String: "#9fcf9b",
    Token.Literal.Number: "#e3aa78",
    Token.Name.Function: "#86bdf0",
    Token.Name.Class: "#86bdf0",
    Token.Name.Tag: "#86bdf0",
    Token.Name.Decorator: "#dcc27a",
    Token.Name.Builtin: "#79cdc3",
    Token.Name.Attribute: "#79cdc3",
    Token.Operator.Word: "#d39ad9",
    Token.Generic.Deleted: "#f2928a",
    Token.Generic.Inserted: "#9fcf9b",
    Token.Generic.Heading: "#86bdf0",
}


@dataclass(frozen=True)
class ColorSpan:
    """A coloured piece of one line: columns count Qt's UTF-16 units."""

    line: int
    start: int
    length: int
    color: str


class Highlighter:
    """The colours of one text, computed in slices so that the window is never kept waiting."""

    def __init__(self, code: str, language: str, *, is_dark: bool) -> None:
        lexer = _lexer(language) if len(code) <= MAX_CHARS else None
        colors = DARK if is_dark else LIGHT
        self._spans = _spans(lexer, code, colors) if lexer is not None else iter(())

    def advance(self, budget_s: float) -> tuple[list[ColorSpan], bool]:
        """Work for about `budget_s` seconds; return the spans found and whether that was the end."""
        found: list[ColorSpan] = []
        end = time.perf_counter() + budget_s
        for span in self._spans:
            found.append(span)
            if time.perf_counter() > end:
                return found, False
        return found, True


def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _spans(lexer: Lexer, code: str, colors: dict[_TokenType, str]) -> Iterator[ColorSpan]:
    line, column = 0, 0
    for kind, text in lexer.get_tokens(code):
        color = _color(kind, colors)
        first = True
        for piece in text.split("\n"):
            if not first:
                line, column = line + 1, 0
            first = False
            length = len(piece.encode("utf-16-le")) // 2
            if color is not None and piece.strip():
                yield ColorSpan(line, column, length, color)
            column += length


def _color(kind: _TokenType, colors: dict[_TokenType, str]) -> str | None:
    step: _TokenType | None = kind
    while step is not None:
        if step in colors:
            return colors[step]
        step = step.parent
    return None
