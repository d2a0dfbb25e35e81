"""The text of a reply: Markdown that may still be growing."""

from __future__ import annotations

import time
from collections.abc import Mapping

from PySide6.QtCore import QPoint, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.chat.code_block import CodeBlock
from ui.chat.text_view import TextView, kept_selection
from ui.markdown.blocks import Block, BlockKind, BlockSplitter
from ui.markdown.source_links import NO_SOURCES
from ui.markdown.style import MarkdownStyle
from ui.markdown.writer import MarkdownWriter

_COLUMNS_PER_LEVEL = 3
_CHEAP_S = 0.012
_PAUSE_FACTOR = 4
"""A block that takes long to write is written less often, so that it takes a fifth of the time at most."""


class MarkdownBody(QWidget):
    """A column of texts and code blocks. Finished blocks are written once, only the open one again and again.

    Signals:
        link_activated: a link was clicked, or chosen with the keyboard.
        drag_moved: the mouse moves with a selection in hand, at this global position.
        segment_added: a text or a code block was begun.
    """

    link_activated = Signal(str)
    drag_moved = Signal(QPoint)
    segment_added = Signal()

    def __init__(self, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._style_now = style
        self._splitter = BlockSplitter()
        self._segments: list[_Text | _Code] = []
        self._sources = NO_SOURCES
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.timeout.connect(self._show_open_block)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(round(style.em * 0.25))

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab goes through, in reading order."""
        return [stop for segment in self._segments for stop in segment.focus_stops]

    def append(self, text: str) -> None:
        """Add text to the end."""
        for block in self._splitter.feed(text):
            self._pause.stop()
            self._finish_block(block)
        if not self._pause.isActive():
            self._show_open_block()

    def finish(self) -> None:
        """Say that the text is complete."""
        self._pause.stop()
        for block in self._splitter.finish():
            self._finish_block(block)

    def apply_style(self, style: MarkdownStyle) -> None:
        """Write everything again in the fonts and colours of `style`."""
        self._style_now = style
        for segment in self._segments:
            segment.apply_style(style)

    def cite(self, sources: Mapping[int, str]) -> None:
        """Make links of what cites a source, as `[3]`: their numbers, with what the links say."""
        if sources != self._sources:
            self._sources = sources
            for segment in self._segments:
                if isinstance(segment, _Text):
                    segment.cite(sources)

    def _finish_block(self, block: Block) -> None:
        if block.kind is BlockKind.CODE:
            self._code_segment(block.indent).finish(block)
        else:
            self._text_segment().finish(block)

    def _show_open_block(self) -> None:
        block = self._splitter.open
        if block is None:
            return
        if block.kind is BlockKind.CODE:
            self._code_segment(block.indent).show_open(block)
        elif _without_fence_start(block.markdown).strip():
            start = time.perf_counter()
            self._text_segment().show_open(block)
            cost_s = time.perf_counter() - start
            if cost_s > _CHEAP_S:
                self._pause.start(round(cost_s * _PAUSE_FACTOR * 1000))

    def _text_segment(self) -> _Text:
        last = self._segments[-1] if self._segments else None
        if isinstance(last, _Text):
            return last
        segment = _Text(self._style_now, self._sources, self)
        segment.view.link_activated.connect(self.link_activated)
        segment.view.drag_moved.connect(self.drag_moved)
        self._segments.append(segment)
        self._column.addWidget(segment.view)
        segment.view.show()
        self.segment_added.emit()
        return segment

    def _code_segment(self, indent: int) -> _Code:
        last = self._segments[-1] if self._segments else None
        if isinstance(last, _Code) and not last.is_finished:
            return last
        if isinstance(last, _Text):
            last.drop_open()
        segment = _Code(self._style_now, self)
        segment.view.drag_moved.connect(self.drag_moved)
        self._segments.append(segment)
        self._column.addWidget(segment.view)
        left = round(_level(indent) * self._style_now.list_indent)
        segment.view.set_indent(left)
        segment.view.show()
        self.segment_added.emit()
        return segment


class _Text:
    """Blocks that share one document, so that they can be selected together."""

    def __init__(self, style: MarkdownStyle, sources: Mapping[int, str], parent: QWidget) -> None:
        self.view = TextView("Message text", parent)
        self.view.apply_style(style)
        self._style = style
        self._sources = sources
        self._writer = MarkdownWriter(self.view.document(), style, sources)
        self._finished: list[Block] = []
        self._open: Block | None = None

    @property
    def focus_stops(self) -> list[QWidget]:
        """The text."""
        return [self.view]

    def finish(self, block: Block) -> None:
        """Write a block for good."""
        with kept_selection(self.view):
            self.drop_open()
            if block.source.strip():
                self._finished.append(block)
                self._writer.write(block.markdown, _level(block.indent))
                self._writer.mark()

    def show_open(self, block: Block) -> None:
        """Write the open block, in place of what was shown of it before."""
        self._open = block
        with kept_selection(self.view):
            self._writer.rewind()
            self._writer.write(_without_fence_start(block.markdown), _level(block.indent))

    def drop_open(self) -> None:
        """Take the open block away."""
        if self._open is not None:
            self._open = None
            self._writer.rewind()

    def cite(self, sources: Mapping[int, str]) -> None:
        """Write everything again with links to `sources`."""
        self._sources = sources
        with kept_selection(self.view):
            self.apply_style(self._style)

    def apply_style(self, style: MarkdownStyle) -> None:
        """Write everything again in `style`."""
        self._style = style
        blocks, open_block = self._finished, self._open
        self._finished, self._open = [], None
        self.view.document().clear()
        self.view.apply_style(style)
        self._writer = MarkdownWriter(self.view.document(), style, self._sources)
        for block in blocks:
            self.finish(block)
        if open_block is not None:
            self.show_open(open_block)


class _Code:
    """One fenced block."""

    def __init__(self, style: MarkdownStyle, parent: QWidget) -> None:
        self.view = CodeBlock(style, parent)
        self.is_finished = False

    @property
    def focus_stops(self) -> list[QWidget]:
        """The copy button and the code."""
        return self.view.focus_stops

    def finish(self, block: Block) -> None:
        """Show the complete code."""
        self.show_open(block)
        self.is_finished = True
        self.view.finish()

    def show_open(self, block: Block) -> None:
        """Show the code so far."""
        self.view.show_code(block.code, block.language)

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take fonts and colours from `style`."""
        self.view.apply_style(style)


def _level(indent: int) -> int:
    """Return the list level whose text starts at about column `indent`."""
    return max(1, round(indent / _COLUMNS_PER_LEVEL)) if indent else 0


def _without_fence_start(markdown: str) -> str:
    """Leave out a last line that is about to become a fence, which would flash up as text."""
    head, newline, tail = markdown.rpartition("\n")
    text = tail.strip()
    is_start = text.startswith(("```", "~~~")) or (text and set(text) <= {"`"})
    return head + newline if is_start else markdown
