"""The precision that the user wants, on its way to the engine, and what the engine holds."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from app.settings import Settings
from app.store.records import Message
from engine.events import PrecisionChanged
from engine.kv.precision import KVSpec
from engine.kv.usage import KVUsage
from ui.engine_thread import EngineThread
from ui.reply_stream import ReplyStream
from ui.stored_settings import StoredSettings

_SETTLE_MS = 300
"""A precision is applied once it has stayed this long: one that is only passed through would cost bits."""


@dataclass(frozen=True)
class HeldCache:
    """The KV cache that the engine holds.

    Attributes:
        conversation_id: whose it is.
        kv: the precision that has reached it.
        usage: its figures.
    """

    conversation_id: int
    kv: KVSpec
    usage: KVUsage


class LivePrecision(QObject):
    """Takes a change of the settings to the engine, and follows what becomes of it.

    Attributes:
        held: the cache as it was last told, None before the first reply of the loaded model.

    Signals:
        changed: `held` changed.
    """

    changed = Signal()

    def __init__(
        self,
        settings: StoredSettings,
        engine: EngineThread,
        stream: ReplyStream,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.held: HeldCache | None = None
        self._engine = engine
        self._wanted = settings.value.kv
        self._conversation_id: int | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SETTLE_MS)
        self._timer.timeout.connect(self._send)
        settings.changed.connect(self._on_settings)
        stream.began.connect(self._on_began)
        stream.ended.connect(self._on_ended)
        engine.kv_changed.connect(self._on_kv_changed)
        engine.model_loaded.connect(self._forget)
        engine.model_unloaded.connect(self._forget)

    def _on_settings(self, settings: Settings) -> None:
        if settings.kv != self._wanted:
            self._wanted = settings.kv
            self._timer.start()

    def _send(self) -> None:
        self._engine.set_kv(self._wanted)

    def _on_began(self, message: Message) -> None:
        if message.conversation_id != self._conversation_id:
            self._hold(None)
        self._conversation_id = message.conversation_id

    def _on_kv_changed(self, changed: PrecisionChanged) -> None:
        if self._conversation_id is not None:
            self._hold(HeldCache(self._conversation_id, changed.kv, changed.usage))

    def _on_ended(self, message: Message) -> None:
        stats = message.stats
        if stats is None or stats.kv_usage is None:
            self._hold(None)
        else:
            self._hold(HeldCache(message.conversation_id, KVSpec.parse(stats.kv), stats.kv_usage))

    def _forget(self) -> None:
        self._conversation_id = None
        self._hold(None)

    def _hold(self, held: HeldCache | None) -> None:
        self.held = held
        self.changed.emit()
