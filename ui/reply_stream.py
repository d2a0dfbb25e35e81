"""The reply that is being written: asked for, followed, and drained at a steady pace."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.ledger.progress import SummaryProgress
from app.reply_settings import ReplySettings
from app.segments.progress import ReadingProgress
from app.store.records import Message
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState

_FRAME_MS = 33


class ReplyStream(QObject):
    """Follows the one reply that the engine writes, whichever conversation is shown.

    Attributes:
        conversation_id: the conversation that waits for a reply or gets one, None when there is none.
        message: the reply's row as it was begun, None before that.
        text: what has been written so far.
        prefill: how far the prompt is read, or the summary is written before that, None before and after.

    Signals:
        busy_changed: `conversation_id` changed.
        began: the reply's row.
        text_added: text that was decoded since the last time.
        prefill_changed: a `ReadingProgress`.
        ended: the reply's final row.
    """

    busy_changed = Signal()
    began = Signal(object)
    text_added = Signal(str)
    prefill_changed = Signal(object)
    ended = Signal(object)

    def __init__(self, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._generating = False
        self._stopping = False
        self.conversation_id: int | None = None
        self.message: Message | None = None
        self.text = ""
        self.prefill: ReadingProgress | None = None
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(_FRAME_MS)
        self._timer.timeout.connect(self._drain)
        engine.state_changed.connect(self._on_state)
        engine.reply_started.connect(self._on_started)
        engine.prefill_progress.connect(self._on_prefill)
        engine.summary_progress.connect(self._on_summary)
        engine.reply_finished.connect(self._on_finished)

    def request(self, conversation_id: int, leaf_id: int, settings: ReplySettings) -> None:
        """Ask for an answer to the message `leaf_id`; nothing may be running."""
        assert self.conversation_id is None
        self.conversation_id = conversation_id
        self._generating = self._stopping = False
        self.busy_changed.emit()
        self._engine.reply(conversation_id, leaf_id, settings)

    def stop(self) -> None:
        """Stop the reply; what there is of it stays."""
        if self.conversation_id is not None:
            self._stopping = True
            self._engine.stop()

    def _on_state(self, state: EngineState) -> None:
        if state is EngineState.GENERATING:
            self._generating = True
        elif self.conversation_id is not None and (self._generating or self._stopping):
            self._end()

    def _on_started(self, message: Message) -> None:
        self.message = message
        self.text = ""
        self._timer.start()
        self.began.emit(message)

    def _on_prefill(self, _message_id: int, progress: ReadingProgress) -> None:
        self.prefill = progress
        self.prefill_changed.emit(progress)

    def _on_summary(self, conversation_id: int, progress: SummaryProgress | None) -> None:
        """Show the summary that the reply waits for."""
        is_own = conversation_id == self.conversation_id and self.message is not None
        if is_own and progress is not None:
            self._on_prefill(0, progress)

    def _drain(self) -> None:
        text = self._engine.take_text()
        if text:
            self.prefill = None
            self.text += text
            self.text_added.emit(text)

    def _on_finished(self, message: Message) -> None:
        self._drain()
        self._end()
        self.ended.emit(message)

    def _end(self) -> None:
        self._timer.stop()
        self.conversation_id = self.message = self.prefill = None
        self.busy_changed.emit()
