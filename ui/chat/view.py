"""The conversation: one widget a message, in a column that scrolls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.ledger.context import SpanState
from app.ledger.left_out import LeftOutRun
from app.reading.shown import NO_EVIDENCE, Evidence
from app.segments.progress import ReadingProgress
from app.store.records import Message, Role
from ui.chat.attachments import ShownWays
from ui.chat.focus_order import chain_after
from ui.chat.left_out_lines import LeftOutLines
from ui.chat.message_widget import MessageWidget
from ui.chat.reply_message import ReplyMessage
from ui.chat.scroller import ConversationScroller
from ui.chat.user_message import UserMessage
from ui.markdown.style import MarkdownStyle
from ui.theme import Theme


class ChatView(QWidget):
    """Shows the messages of one conversation and sends what the user wants done with them.

    The newest messages are made at once, the rest of those given while the event loop is idle; the position
    on the screen stays when something is put above it.

    Signals:
        regenerate_requested: another answer instead of this message id.
        edit_requested: a user message was changed: message id, new text.
        way_chosen: a document is to be read in another way: its attachment's id and the `DocumentWay`.
        text_wanted: the extracted text of a document is to be shown; its attachment's id.
        sibling_requested: another version is to be shown, by its message id.
        earlier_requested: the messages before the first one are wanted.
        link_activated: a link was clicked, or chosen with the keyboard; nothing was opened.
        ledger_requested: what the model reads in place of some messages is to be shown, by its key.
        passage_requested: a passage is to be shown: its attachment's id, its first character, the one behind
            its last.
        continue_requested: the documents of an answer are to be read to the end; the answer's id.
        answer_now_requested: an answer is wanted from what was read of them so far; the answer's id.
    """

    regenerate_requested = Signal(int)
    edit_requested = Signal(int, str)
    way_chosen = Signal(int, object)
    text_wanted = Signal(int)
    sibling_requested = Signal(int)
    earlier_requested = Signal()
    link_activated = Signal(str)
    ledger_requested = Signal(str)
    passage_requested = Signal(int, int, int)
    continue_requested = Signal(int)
    answer_now_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._style_now = MarkdownStyle.current()
        self._widgets: list[MessageWidget] = []
        self._pending: list[Message] = []
        self._has_earlier = False
        self._stream: ReplyMessage | None = None
        self._edits: dict[int, str] = {}
        self._are_actions_enabled = True
        self._earlier = QPushButton("Load earlier messages")
        self._earlier.setProperty("kind", "flat")
        self._earlier.clicked.connect(self._ask_earlier)
        self._earlier.hide()
        self._documents: Mapping[int, SpanState] = {}
        self._ways: Mapping[int, ShownWays] = {}
        self._evidence: Mapping[int, Evidence] = {}
        self.scroller = ConversationScroller(self._earlier, self)
        self._lines = LeftOutLines(self.scroller, self)
        self._lines.ledger_requested.connect(self.ledger_requested)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.scroller)
        self._idle = QTimer(self)
        self._idle.setInterval(0)
        self._idle.timeout.connect(self._build_one)
        Theme.current().changed.connect(self._restyle)

    @property
    def message_ids(self) -> list[int]:
        """Ids of the messages that are shown, in order, those still to be made included."""
        return [message.id for message in self._pending] + [widget.message.id for widget in self._widgets]

    def set_actions_enabled(self, is_enabled: bool) -> None:
        """Allow regenerate, edit and switching versions, or not while a reply is written."""
        if is_enabled == self._are_actions_enabled:
            return
        self._are_actions_enabled = is_enabled
        for widget in self._widgets:
            widget.set_actions_enabled(is_enabled)

    def show_left_out(self, runs: Sequence[LeftOutRun], documents: Mapping[int, SpanState]) -> None:
        """Draw a line below messages that the model no longer reads itself, and say so of documents by id.

        Holds for messages that are shown later, too.
        """
        self._lines.set_runs(runs)
        self._documents = documents
        for widget in self._widgets:
            widget.show_documents(documents)
        self._draw_lines()

    def show_evidence(self, evidence: Mapping[int, Evidence]) -> None:
        """Show what stands under answers, by their ids; nothing under the others.

        Holds for messages that are shown later, too.
        """
        self._evidence = evidence
        for widget in self._widgets:
            if isinstance(widget, ReplyMessage):
                widget.show_evidence(evidence.get(widget.message.id, NO_EVIDENCE))

    def show_ways(self, ways: Mapping[int, ShownWays]) -> None:
        """Say of documents, by their attachments' ids, how they were and are read; later, too."""
        if ways != self._ways:
            self._ways = ways
            for widget in self._widgets:
                if isinstance(widget, UserMessage):
                    widget.show_ways(ways)

    def show_messages(self, messages: Sequence[Message], has_earlier: bool) -> None:
        """Show another conversation from its end; `has_earlier` offers to load what comes before."""
        self._clear()
        self._pending = list(messages)
        self._has_earlier = has_earlier
        self.scroller.follow()
        while self._pending and not self.scroller.is_filled():
            self._build_one()
        self._after_change()

    def prepend_messages(self, messages: Sequence[Message], has_earlier: bool) -> None:
        """Put earlier messages above those shown, which stay where they are on the screen."""
        self._pending = [*messages, *self._pending]
        self._has_earlier = has_earlier
        self._after_change()

    def forget_edit(self, message_id: int) -> None:
        """Close the editor of a message, whose text was sent."""
        for widget in self._widgets:
            if isinstance(widget, UserMessage) and widget.message.id == message_id:
                widget.stop_editing()
        self._edits.pop(message_id, None)

    def append_message(self, message: Message) -> None:
        """Show a new message at the end and scroll to it."""
        widget = self._make(message)
        self._widgets.append(widget)
        self.scroller.append(widget)
        self._draw_lines()
        self._order_focus(widget)
        self.scroller.follow()
        self._after_change()

    def begin_stream(self, message_id: int) -> None:
        """Wait for the text of the reply `message_id`, which is shown already."""
        widget = self._widget(message_id)
        if isinstance(widget, ReplyMessage):
            self._stream = widget
            widget.begin_stream()

    def set_prefill(self, progress: ReadingProgress) -> None:
        """Show how far the prompt of the awaited reply is read."""
        if self._stream is not None:
            self._stream.set_prefill(progress)

    def append_text(self, text: str) -> None:
        """Add decoded text to the reply that is written."""
        if self._stream is not None:
            self._stream.append_text(text)

    def finish_stream(self, message: Message) -> None:
        """Show the final row of the reply that was written."""
        if self._stream is not None and self._stream.message.id == message.id:
            self._stream.finish_stream(message)
            self._stream = None

    def changeEvent(self, event: QEvent) -> None:  # noqa: D102
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._restyle()

    def _make(self, message: Message) -> MessageWidget:
        widget: MessageWidget
        if message.role is Role.USER:
            widget = UserMessage(message, self._style_now)
            widget.edit_requested.connect(self.edit_requested)
            widget.way_chosen.connect(self.way_chosen)
            widget.text_wanted.connect(self.text_wanted)
            widget.show_documents(self._documents)
            widget.show_ways(self._ways)
        else:
            widget = ReplyMessage(message, self._style_now)
            widget.regenerate_requested.connect(self.regenerate_requested)
            widget.passage_requested.connect(self.passage_requested)
            widget.continue_requested.connect(self.continue_requested)
            widget.answer_now_requested.connect(self.answer_now_requested)
            widget.show_evidence(self._evidence.get(message.id, NO_EVIDENCE))
        widget.sibling_requested.connect(self._ask_sibling)
        widget.link_activated.connect(self.link_activated)
        widget.focus_stops_changed.connect(self._order_focus)
        widget.drag_moved.connect(self.scroller.follow_drag)
        if not self._are_actions_enabled:
            widget.set_actions_enabled(False)
        return widget

    def _build_one(self) -> None:
        """Make the widget of the last message that has none."""
        if not self._pending:
            self._idle.stop()
            return
        widget = self._make(self._pending.pop())
        self._widgets.insert(0, widget)
        self.scroller.prepend(widget)
        self._resume_edit(widget)
        if self._lines.has_run_above(widget.message.id) or len(self._widgets) == 1:
            self._draw_lines()
        self._order_focus(widget)
        if not self._pending:
            self._after_change()

    def _draw_lines(self) -> None:
        for below in self._lines.draw(self._widgets):
            if below is not None:
                self._order_focus(below)
            else:
                chain_after(self._widgets[-1].focus_stops[-1], self._lines.focus_stops(None))

    def _order_focus(self, widget: MessageWidget) -> None:
        place = self._widgets.index(widget)
        before = self._widgets[place - 1].focus_stops[-1] if place > 0 else self._earlier
        chain_after(before, [*self._lines.focus_stops(widget.message.id), *widget.focus_stops])

    def _after_change(self) -> None:
        if self._pending:
            self._idle.start()
        else:
            self._idle.stop()
        self._earlier.setVisible(self._has_earlier and not self._pending)
        for widget in self._widgets:
            widget.set_latest(widget is self._widgets[-1])

    def _resume_edit(self, widget: MessageWidget) -> None:
        """Open the editor again that was open when the conversation was left."""
        text = self._edits.pop(widget.message.id, None)
        if text is not None and isinstance(widget, UserMessage):
            widget.start_editing(text)

    def _clear(self) -> None:
        self._stream = None
        for widget in self._widgets:
            if isinstance(widget, UserMessage) and widget.unsent_edit is not None:
                self._edits[widget.message.id] = widget.unsent_edit
        self._widgets = []
        self._draw_lines()
        self.scroller.clear()

    def _restyle(self) -> None:
        self._style_now = MarkdownStyle.current()
        for widget in self._widgets:
            widget.apply_style(self._style_now)
        self.scroller.restyle()

    def _ask_sibling(self, message_id: int) -> None:
        """Ask for another version; it stays in sight and keeps the keyboard, to go on to the next."""
        has_focus = any(widget.versions.has_focus for widget in self._widgets)
        self.sibling_requested.emit(message_id)
        while self._pending and self._widget(message_id) is None:
            self._build_one()
        widget = self._widget(message_id)
        if widget is not None:
            if has_focus:
                widget.versions.take_focus()
            self.scroller.stay_at(widget)

    def _widget(self, message_id: int) -> MessageWidget | None:
        return next((widget for widget in self._widgets if widget.message.id == message_id), None)

    def _ask_earlier(self) -> None:
        self._earlier.hide()
        self.earlier_requested.emit()
