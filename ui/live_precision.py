"""The precision that the user wants, on its way to the engine, and what the engine holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.profiles import Profile
from app.reply_settings import ReplySettings
from app.store.records import Message
from engine.events import CacheChanged, PrefillProgress
from engine.kv.precision import KVSpec
from engine.kv.usage import KVUsage
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState
from ui.profiles.current import CurrentProfile

_SETTLE_MS = 600
"""A precision is applied once it has stayed this long: passing through a low one would lose bits."""

_LEAST_READ_TOKENS = 32
"""A shorter prompt says little of how fast a long one is read."""
_HINDRANCES = {
    EngineState.GENERATING: "Wait until the reply is written.",
    EngineState.SUMMARIZING: "Wait until the summary is written.",
    EngineState.LOADING: "Wait until the model is loaded.",
    EngineState.EMPTY: "Load a model first.",
}


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


@dataclass(frozen=True)
class Reread:
    """Whether the conversation can be read again now, which brings lost bits back.

    Attributes:
        prefill_tps: how many tokens a second were read last; None before that was measured.
        hindrance: why it cannot be now, as a sentence; empty where it can.
        progress: how far it is, while it runs.
    """

    prefill_tps: float | None = None
    hindrance: str = ""
    progress: PrefillProgress | None = None


class LivePrecision(QObject):
    """Takes a change of the profile to the engine, and follows what becomes of it.

    Attributes:
        held: the cache as it was last told, None where the engine holds none.
        reread: whether the conversation can be read again now.

    Signals:
        changed: `held` or `reread` changed.
    """

    changed = Signal()

    def __init__(
        self,
        profile: CurrentProfile,
        engine: EngineThread,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.held: HeldCache | None = None
        self.reread = Reread(hindrance=_HINDRANCES.get(engine.state, ""))
        self._engine = engine
        self._profile = profile
        self._conversation_id = profile.conversation_id
        self._replying_id: int | None = None
        self._is_grabbed = False
        self._wanted = profile.value.kv
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SETTLE_MS)
        self._timer.timeout.connect(self._on_settled)
        profile.changed.connect(self._on_profile)
        engine.kv_changed.connect(self._on_kv_changed)
        engine.model_loaded.connect(self._forget)
        engine.model_unloaded.connect(self._forget)
        engine.reply_started.connect(self._on_started)
        engine.reply_finished.connect(self._on_reply)
        engine.state_changed.connect(self._on_state)
        engine.rebuild_progress.connect(self._on_rebuild_progress)

    def set_grabbed(self, is_grabbed: bool) -> None:
        """Apply nothing while the mouse holds what sets a precision: it may be there to take one back."""
        self._is_grabbed = is_grabbed

    def rebuild(self, settings: ReplySettings) -> None:
        """Read the conversation that is held again, at the precision that is wanted now."""
        if self.held is not None:
            if self._timer.isActive():
                self._send()
            self._engine.rebuild(self.held.conversation_id, settings)

    def stop_rebuild(self) -> None:
        """Stop reading it again; what was not read by then is read with the next message."""
        if self.reread.progress is not None:
            self._engine.stop()

    def _on_profile(self, profile: Profile) -> None:
        if self._profile.conversation_id != self._conversation_id:
            if self._timer.isActive():
                self._send()
            self._conversation_id = self._profile.conversation_id
            self._wanted = profile.kv
        elif profile.kv != self._wanted:
            self._wanted = profile.kv
            self._timer.start()

    def _on_settled(self) -> None:
        if self._is_grabbed:
            self._timer.start()
        else:
            self._send()

    def _send(self) -> None:
        """Change the cache of the conversation whose precision that is, not what is held of another one."""
        self._timer.stop()
        in_hand = self._replying_id
        if in_hand is None and self.held is not None:
            in_hand = self.held.conversation_id
        if in_hand in (None, self._conversation_id):
            self._engine.set_kv(self._wanted)

    def _on_started(self, message: Message) -> None:
        self._replying_id = message.conversation_id

    def _on_kv_changed(self, conversation_id: int, changed: CacheChanged | None) -> None:
        held = None if changed is None else HeldCache(conversation_id, changed.kv, changed.usage)
        self._hold(held)

    def _on_reply(self, message: Message) -> None:
        """Measure with replies that read enough to tell."""
        self._replying_id = None
        stats = message.stats
        if stats is None or stats.prefill_tps <= 0:
            return
        if stats.prompt_tokens - stats.reused_tokens >= _LEAST_READ_TOKENS:
            self._set_reread(prefill_tps=stats.prefill_tps)

    def _on_state(self, state: EngineState) -> None:
        begun = None
        if state is EngineState.REBUILDING and self.held is not None:
            begun = PrefillProgress(0, self.held.usage.num_tokens, 0)
        self._set_reread(hindrance=_HINDRANCES.get(state, ""), progress=begun)

    def _on_rebuild_progress(self, _conversation_id: int, progress: PrefillProgress) -> None:
        self._set_reread(progress=progress)

    def _set_reread(self, **changes: Any) -> None:
        reread = replace(self.reread, **changes)
        if reread != self.reread:
            self.reread = reread
            self.changed.emit()

    def _forget(self) -> None:
        self._set_reread(prefill_tps=None)
        self._hold(None)

    def _hold(self, held: HeldCache | None) -> None:
        self.held = held
        self.changed.emit()
