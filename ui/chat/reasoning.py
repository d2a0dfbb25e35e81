"""What a model thought before it answered, folded away."""

from __future__ import annotations

import enum

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from ui.chat.markdown_body import MarkdownBody
from ui.markdown.style import MarkdownStyle
from ui.theme import Theme

START, END = "<think>", "</think>"
"""The markers that reasoning models write: DeepSeek-R1, Qwen3 and their kin."""


class _Part(enum.Enum):
    UNDECIDED = enum.auto()
    REASONING = enum.auto()
    ANSWER = enum.auto()


class ReasoningSplitter:
    """Tells a growing reply's reasoning, between `START` and `END` at its very beginning, from its answer."""

    def __init__(self) -> None:
        self._part = _Part.UNDECIDED
        self._held = ""

    @property
    def is_reasoning(self) -> bool:
        """Whether the reasoning is still being written."""
        return self._part is _Part.REASONING

    def feed(self, text: str) -> tuple[str, str]:
        """Take more text and return what it adds to the reasoning and to the answer.

        What may be the beginning of a marker is held back until it is known.
        """
        self._held += text
        if self._part is _Part.UNDECIDED:
            self._decide()
        reasoning = self._take_reasoning() if self._part is _Part.REASONING else ""
        answer = ""
        if self._part is _Part.ANSWER:
            answer, self._held = self._held, ""
        return reasoning, answer

    def finish(self) -> tuple[str, str]:
        """Return what is still held back: the text is complete."""
        held, self._held = self._held, ""
        return (held, "") if self._part is _Part.REASONING else ("", held)

    def _decide(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(START):
            self._part = _Part.REASONING
            self._held = begun.removeprefix(START)
        elif not START.startswith(begun):
            self._part = _Part.ANSWER

    def _take_reasoning(self) -> str:
        reasoning, end, answer = self._held.partition(END)
        if end:
            self._part = _Part.ANSWER
            self._held = answer.lstrip("\n")
            return reasoning
        kept = _overlap(reasoning, END)
        self._held = reasoning[len(reasoning) - kept :]
        return reasoning[: len(reasoning) - kept]


def _overlap(text: str, marker: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `marker`."""
    longest = min(len(text), len(marker) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(marker[:size])), 0)


class ReasoningFold(QWidget):
    """A line that opens to the reasoning.

    Signals:
        focus_stops_changed: something that takes the focus came.
    """

    focus_stops_changed = Signal()

    def __init__(self, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._toggle = QToolButton(self)
        self._toggle.setCheckable(True)
        self._toggle.setAutoRaise(True)
        self._toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._toggle.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._toggle.setProperty("kind", "muted")
        self._toggle.toggled.connect(self._on_toggled)
        self.body = MarkdownBody(style, self)
        self.body.segment_added.connect(self.focus_stops_changed)
        self.body.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.setSpacing(2)
        column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.body)
        self._indent(style)
        self.set_running(True)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The line, and the reasoning while it is open."""
        return [self._toggle, *(self.body.focus_stops if self._toggle.isChecked() else [])]

    def set_running(self, is_running: bool) -> None:
        """Say whether the model is still thinking."""
        words = "Thinking…" if is_running else "Thoughts before the answer"
        self._toggle.setText(words)
        self._toggle.setAccessibleName(words)
        self._restyle()

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take fonts and colours from `style`."""
        self.body.apply_style(style)
        self._indent(style)
        self._restyle()

    def _indent(self, style: MarkdownStyle) -> None:
        self.body.setContentsMargins(round(style.em), 0, 0, 0)

    def _on_toggled(self, is_open: bool) -> None:
        self.body.setVisible(is_open)
        self._restyle()
        self.focus_stops_changed.emit()

    def _restyle(self) -> None:
        icon = "chevron-down" if self._toggle.isChecked() else "chevron-right"
        self._toggle.setIcon(Theme.current().icon(icon, "text_muted"))
