"""A reply: its text, how far it has come, its figures and actions."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.reading.shown import Evidence
from app.segments.progress import ReadingProgress
from app.store.records import Message, MessageState
from ui.chat.buttons import IconButton
from ui.chat.evidence_panel import EvidencePanel
from ui.chat.markdown_body import MarkdownBody
from ui.chat.message_widget import MessageWidget
from ui.chat.reasoning import ReasoningFold, ReasoningSplitter
from ui.chat.reply_status import prefill_text, source_tip, state_text, stats_text
from ui.markdown.source_links import source_number
from ui.markdown.style import MarkdownStyle
from ui.plain_text import plain_label

_BAR_STEPS = 1000
_STATE_KINDS = {MessageState.FAILED: "danger", MessageState.INTERRUPTED: "warning"}


class ReplyMessage(MessageWidget):
    """The model's message, plain on the window's ground.

    Signals:
        regenerate_requested: another answer to the same question is wanted; this message's id.
        passage_requested: a passage is to be shown: its attachment's id, its first character, the one behind
            its last.
        continue_requested: documents are to be read to the end for this question; this message's id.
        answer_now_requested: an answer is wanted from what was read of them so far; this message's id.
    """

    regenerate_requested = Signal(int)
    passage_requested = Signal(int, int, int)
    continue_requested = Signal(int)
    answer_now_requested = Signal(int)

    def __init__(self, message: Message, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(message, style, parent)
        self.setAccessibleName(f"Reply of {message.model}" if message.model else "Reply")
        self._text = ""
        self._split = ReasoningSplitter()
        self._reasoning: ReasoningFold | None = None
        self._body: MarkdownBody | None = None
        self._answer = ""
        self._waiting: WaitingLine | None = None
        self._evidence = Evidence()
        self._panel = EvidencePanel(self)
        self._panel.passage_requested.connect(self.passage_requested)
        self._panel.continue_requested.connect(lambda: self.continue_requested.emit(self.message.id))
        self._panel.answer_now_requested.connect(lambda: self.answer_now_requested.emit(self.message.id))
        self._panel.focus_stops_changed.connect(self._on_focus_stops)
        self._state = plain_label(wraps=True)
        self._stats = plain_label(wraps=True)
        self._stats.setProperty("kind", "faint")
        self._regenerate = IconButton("refresh", "Answer again", quiet=True)
        self._regenerate.clicked.connect(self._ask_again)
        self.action_bar.add(self._regenerate)
        self._footer = QWidget(self)
        footer = QHBoxLayout(self._footer)
        footer.setContentsMargins(0, 0, 0, 0)
        footer.setSpacing(6)
        footer.addWidget(self._stats, 1)
        footer.addWidget(self.versions)
        footer.addWidget(self.action_bar)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addWidget(self._state)
        self._column.addWidget(self._panel)
        self._column.addWidget(self._footer)
        self._show(message)

    @property
    def focus_stops(self) -> list[QWidget]:  # noqa: D102
        reasoning = self._reasoning.focus_stops if self._reasoning is not None else []
        body = self._body.focus_stops if self._body is not None else []
        below = [*self.versions.focus_stops, *self.action_bar.focus_stops]
        return [*reasoning, *body, *self._panel.focus_stops, *below]

    def message_text(self) -> str:
        """Return the answer; what the model thought before it can be copied where it is shown."""
        return self._answer

    def set_actions_enabled(self, is_enabled: bool) -> None:  # noqa: D102
        super().set_actions_enabled(is_enabled)
        self._regenerate.setEnabled(is_enabled)
        self._panel.set_actions_enabled(is_enabled)

    def apply_style(self, style: MarkdownStyle) -> None:  # noqa: D102
        super().apply_style(style)
        for part in (self._reasoning, self._body):
            if part is not None:
                part.apply_style(style)
        self._panel.restyle()

    def show_evidence(self, evidence: Evidence) -> None:
        """Show the sources of the answer and what was read for it, and make links of what cites them."""
        self._evidence = evidence
        self._panel.show_evidence(evidence)
        self._cite()

    def begin_stream(self) -> None:
        """Wait for text."""
        self._footer.hide()
        if self._waiting is None:
            self._waiting = WaitingLine(self)
            self._column.insertWidget(self._column.indexOf(self._state), self._waiting)
            self._waiting.show()

    def set_prefill(self, progress: ReadingProgress) -> None:
        """Show how far the prompt is read."""
        if self._waiting is not None:
            self._waiting.show_progress(progress)

    def append_text(self, text: str) -> None:
        """Add text that was decoded."""
        self._drop_waiting()
        self._add(text)

    def finish_stream(self, message: Message) -> None:
        """Show the final row."""
        self._drop_waiting()
        self._footer.show()
        self._show(message)

    def _show(self, message: Message) -> None:
        self.message = message
        if not message.text.startswith(self._text):
            self._drop_body()
        self._add(message.text[len(self._text) :])
        if message.state is not MessageState.STREAMING:
            self._finish_text()
        words = state_text(message)
        self._state.setText(words)
        self._state.setProperty("kind", _STATE_KINDS.get(message.state, "muted"))
        self._state.style().polish(self._state)
        self._state.setVisible(bool(words))
        self._stats.setText(stats_text(message.stats) if message.stats else "")
        self.copy_button.setEnabled(bool(self._answer))
        self.set_actions_enabled(self.are_actions_enabled)

    def _add(self, text: str) -> None:
        self._text += text
        self._write(*self._split.feed(text))

    def _write(self, reasoning: str, answer: str) -> None:
        if reasoning and (self._reasoning is not None or reasoning.strip()):
            if self._reasoning is None:
                self._reasoning = ReasoningFold(self.text_style, self)
                self._reasoning.focus_stops_changed.connect(self._on_focus_stops)
                self._place(self._reasoning, self._reasoning.body, 0)
            self._reasoning.body.append(reasoning)
        if self._reasoning is not None:
            self._reasoning.set_running(self._split.is_reasoning)
        if answer:
            if self._body is None:
                self._body = MarkdownBody(self.text_style, self)
                self._body.segment_added.connect(self._on_focus_stops)
                self._place(self._body, self._body, 0 if self._reasoning is None else 1)
            self._answer += answer
            self._body.append(answer)

    def _place(self, part: QWidget, body: MarkdownBody, row: int) -> None:
        body.link_activated.connect(self._on_link)
        body.drag_moved.connect(self.drag_moved)
        self._column.insertWidget(row, part)
        part.show()

    def _finish_text(self) -> None:
        self._write(*self._split.finish())
        if self._reasoning is not None:
            self._reasoning.body.finish()
            self._reasoning.set_running(False)
        if self._body is not None:
            self._body.finish()
        self._cite()

    def _cite(self) -> None:
        """Let `[3]` open the third source."""
        if self._body is not None:
            passages = self._evidence.by_number
            self._body.cite({number: source_tip(passage) for number, passage in passages.items()})

    def _on_link(self, address: str) -> None:
        number = source_number(address)
        if number is None:
            self.link_activated.emit(address)
        elif number in self._evidence.by_number:
            source = self._evidence.by_number[number].source
            self.passage_requested.emit(source.attachment_id, source.start, source.stop)

    def _on_focus_stops(self) -> None:
        self.focus_stops_changed.emit(self)

    def _drop_body(self) -> None:
        self._text = self._answer = ""
        self._split = ReasoningSplitter()
        for part in (self._reasoning, self._body):
            if part is not None:
                part.hide()
                part.deleteLater()
        self._reasoning = self._body = None

    def _drop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.hide()
            self._waiting.deleteLater()
            self._waiting = None

    def _ask_again(self) -> None:
        self.regenerate_requested.emit(self.message.id)


class WaitingLine(QWidget):
    """A line of words over a thin bar, until the first token comes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = QLabel("Waiting…")
        self._words.setProperty("kind", "muted")
        self._bar = QProgressBar(textVisible=False)
        self._bar.setRange(0, 0)
        self._bar.setMaximumWidth(260)
        self._bar.setAccessibleName("Waiting")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 8)
        column.setSpacing(7)
        column.addWidget(self._words)
        column.addWidget(self._bar)

    def show_progress(self, progress: ReadingProgress) -> None:
        """Show how far the prompt is read."""
        words = prefill_text(progress)
        self._words.setText(words)
        self._bar.setAccessibleName(words)
        self._bar.setRange(0, _BAR_STEPS)
        self._bar.setValue(int(_BAR_STEPS * progress.share))
