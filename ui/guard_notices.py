"""What the memory guard does, as far as people have to know: a pause asks, two steps are said, no more."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from engine.guard import GuardAction, GuardStep
from ui.engine_thread import EngineThread
from ui.notifications import Level, Notice, NoticeAction, Notifications

_PAUSE = "pause"
_SAID = (GuardStep.LOWER_TIERS, GuardStep.TRIM)


class GuardNotices(QObject):
    """Makes notices of the guard's actions; all of them are in the Memory panel."""

    def __init__(
        self,
        engine: EngineThread,
        notifications: Notifications,
        stop: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._notifications = notifications
        self._stop = stop
        engine.guard_acted.connect(self._on_action)
        engine.state_changed.connect(lambda _: self._notifications.withdraw(_PAUSE))

    def _on_action(self, action: GuardAction) -> None:
        if action.step is GuardStep.PAUSE:
            if action.is_end:
                self._notifications.withdraw(_PAUSE)
            else:
                self._notifications.post(self._pause(action))
        elif action.step in _SAID and not action.is_end:
            self._notifications.info("Memory is short", action.sentence)

    def _pause(self, action: GuardAction) -> Notice:
        reason = action.reason.rstrip(".")
        return Notice(
            Level.WARNING,
            "The reply is paused",
            f"{reason[:1].upper()}{reason[1:]}. It goes on when memory is free.",
            actions=(NoticeAction("Go on", self._engine.go_on), NoticeAction("Stop", self._stop)),
            topic=_PAUSE,
        )
