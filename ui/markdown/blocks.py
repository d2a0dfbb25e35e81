"""Streaming Markdown as a row of finished blocks and one open block.

A block is finished when no further text can become part of it, so that what was shown of it stays as it is.
The rules are CommonMark's for block starts, read line by line; inline Markdown is not looked at. One thing is
more than CommonMark has: a fence inside a list is a block of its own, with its indent, so that it can have a
frame and a copy button; the list goes on after it.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
_HEADING = re.compile(r"^ {0,3}#{1,6}([ \t]|$)")
_RULE = re.compile(r"^ {0,3}([-*_])([ \t]*\1){2,}[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>")
_ITEM = re.compile(r"^ {0,3}(?:[-+*]|(?P<number>\d{1,9})[.)])(?:[ \t]+(?P<rest>\S.*)?|$)")
_TABLE_RULE = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_TAB = 4


class BlockKind(enum.Enum):
    """What a block is."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    QUOTE = "quote"
    TABLE = "table"
    RULE = "rule"
    CODE = "code"
    """A fenced block; code by indentation counts as a paragraph."""


@dataclass(frozen=True)
class Block:
    """A piece of the text, whole lines with their line ends.

    Attributes:
        kind: what it is.
        source: the text as it came; the sources of all blocks together are the text.
        indent: columns that the block is moved in by the list around it.
    """

    kind: BlockKind
    source: str
    indent: int = 0

    @property
    def markdown(self) -> str:
        """The text as a document of its own, without the indent of the list around it."""
        lines = self.source.replace("\r", "").split("\n")
        return "\n".join(_without_indent(line, self.indent) for line in lines)

    @property
    def language(self) -> str:
        """The language that a fence names, else an empty string."""
        match = _FENCE.match(self._fenced_lines()[0])
        words = match["info"].split() if match else []
        return words[0].strip("{}.") if words else ""

    @property
    def code(self) -> str:
        """The text between the fences, without a closing fence that is still being written."""
        opening, *lines = self._fenced_lines()
        match = _FENCE.match(opening)
        if match is None:
            return ""
        if lines and not lines[-1]:
            lines.pop()
        if lines and _may_close(lines[-1], match["fence"]):
            lines.pop()
        return "\n".join(_without_indent(line, _indent(opening)) for line in lines)

    def _fenced_lines(self) -> list[str]:
        lines = self.source.replace("\r", "").split("\n")
        start = next((number for number, line in enumerate(lines) if line.strip()), 0)
        return lines[start:]


class BlockSplitter:
    """Takes text as it arrives and tells what is finished.

    Attributes:
        finished: the blocks that no further text will change.
    """

    def __init__(self) -> None:
        self.finished: list[Block] = []
        self._lines: list[str] = []
        self._kind: BlockKind | None = None
        self._indent = 0
        self._fence = ""
        self._in_list = False
        self._after_blank = False
        self._partial = ""

    @property
    def open(self) -> Block | None:
        """The block that is still being written, its last line perhaps a part of one."""
        source = "".join(self._lines) + self._partial
        if not source:
            return None
        return Block(self._kind or BlockKind.PARAGRAPH, source, self._indent)

    def feed(self, text: str) -> list[Block]:
        """Add `text` and return the blocks that it finished."""
        before = len(self.finished)
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take(line + "\n")
        return self.finished[before:]

    def finish(self) -> list[Block]:
        """Say that no more text will come; return what was open as finished blocks."""
        before = len(self.finished)
        if self._partial:
            line, self._partial = self._partial, ""
            self._take(line)
        self._kind = self._kind or BlockKind.PARAGRAPH
        self._close()
        return self.finished[before:]

    def _take(self, line: str) -> None:
        if self._kind is BlockKind.CODE:
            self._lines.append(line)
            if _closes(line, self._fence):
                self._close()
        elif not line.strip():
            self._take_blank(line)
        elif self._opens_fence(line):
            self._open_fence(line)
        elif not self._continues(line):
            self._close()
            self._begin(line)
        self._after_blank = not line.strip()

    def _take_blank(self, line: str) -> None:
        self._lines.append(line)
        if self._kind not in (None, BlockKind.LIST):
            self._close()

    def _opens_fence(self, line: str) -> bool:
        match = _FENCE.match(line.rstrip("\r\n"))
        return match is not None and (self._in_list or _indent(line) <= 3)

    def _open_fence(self, line: str) -> None:
        inside_list = self._in_list and _indent(line) > 0
        match = _FENCE.match(line.rstrip("\r\n"))
        assert match is not None
        self._close()
        self._kind = BlockKind.CODE
        self._fence = match["fence"]
        self._indent = _indent(line) if inside_list else 0
        self._in_list = inside_list
        self._lines.append(line)

    def _continues(self, line: str) -> bool:
        """Take `line` into the open block where it belongs to it; return whether it did."""
        if self._kind is None:
            return False
        if self._indent and _indent(line) < self._indent and _ITEM.match(line):
            return False
        inner = _without_indent(line, self._indent).rstrip("\r\n")
        if self._kind is BlockKind.LIST:
            belongs = self._continues_list(inner)
        elif self._kind is BlockKind.QUOTE:
            belongs = bool(_QUOTE.match(inner)) or not _interrupts(inner)
        else:
            if _SETEXT.match(inner) and self._kind is BlockKind.PARAGRAPH and not self._is_indented_code():
                self._kind = BlockKind.HEADING
                self._lines.append(line)
                self._close()
                return True
            belongs = not _interrupts(inner)
            if belongs and "|" in inner and _TABLE_RULE.match(inner):
                self._kind = BlockKind.TABLE
        if belongs:
            self._lines.append(line)
        return belongs

    def _continues_list(self, inner: str) -> bool:
        if _indent(inner) >= 2 or (_ITEM.match(inner) and not _RULE.match(inner)):
            return True
        return not self._after_blank and not _interrupts(inner)

    def _is_indented_code(self) -> bool:
        return _indent(next(line for line in self._lines if line.strip())) - self._indent > 3

    def _begin(self, line: str) -> None:
        if _indent(line) == 0 and not _ITEM.match(line):
            self._in_list = False
        self._indent = _indent(line) if self._in_list else 0
        inner = _without_indent(line, self._indent).rstrip("\r\n")
        self._kind = _kind_of(inner)
        self._lines.append(line)
        if self._kind is BlockKind.LIST:
            self._in_list = True
        elif self._kind in (BlockKind.HEADING, BlockKind.RULE):
            self._close()

    def _close(self) -> None:
        if self._lines and self._kind is not None:
            self.finished.append(Block(self._kind, "".join(self._lines), self._indent))
            self._lines = []
        self._kind = None
        self._indent = 0


def _kind_of(line: str) -> BlockKind:
    if _HEADING.match(line):
        return BlockKind.HEADING
    if _RULE.match(line):
        return BlockKind.RULE
    if _QUOTE.match(line):
        return BlockKind.QUOTE
    if _ITEM.match(line):
        return BlockKind.LIST
    return BlockKind.PARAGRAPH


def _interrupts(line: str) -> bool:
    """Whether `line` ends a paragraph that stands right above it."""
    if _HEADING.match(line) or _RULE.match(line) or _QUOTE.match(line):
        return True
    item = _ITEM.match(line)
    return item is not None and item["rest"] is not None and item["number"] in (None, "1")


def _indent(line: str) -> int:
    start = line[: len(line) - len(line.lstrip(" \t"))]
    return len(start.expandtabs(_TAB))


def _without_indent(line: str, columns: int) -> str:
    """Return `line` with up to `columns` columns of white space taken from its start."""
    taken = min(_indent(line), columns)
    if not taken:
        return line
    rest = line.lstrip(" \t")
    return " " * (_indent(line) - taken) + rest


def _closes(line: str, fence: str) -> bool:
    text = line.strip()
    return len(text) >= len(fence) and set(text) == {fence[0]}


def _may_close(line: str, fence: str) -> bool:
    """Whether `line` is a closing fence or the beginning of one."""
    text = line.strip()
    return bool(text) and set(text) == {fence[0]}
