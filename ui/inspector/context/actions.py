"""What can be done with the rows of the context ledger, and why not where it cannot."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence

from app.ledger.entries import EntryKind, EntryState, LedgerEntry


class LedgerAction(enum.Enum):
    """What is done with rows; the value is its name for people."""

    PIN = "Pin"
    UNPIN = "Unpin"
    DROP = "Leave out"
    SUMMARIZE = "Summarize"
    RESTORE = "Restore"


@dataclass(frozen=True)
class Hindrances:
    """Why something cannot be done now, as sentences; empty where it can.

    Attributes:
        change: with the context at all.
        summarize: with a model.
        undo: with the last change.
    """

    change: str = ""
    summarize: str = ""
    undo: str = ""


_TIPS = {
    LedgerAction.PIN: "Keep it in the context when room is made",
    LedgerAction.UNPIN: "Let it leave the context when room is made",
    LedgerAction.DROP: "The model no longer reads it. It stays in the chat, and you can restore it",
    LedgerAction.SUMMARIZE: "Have the model write a summary in its place, one for turns in a row",
    LedgerAction.RESTORE: "Let the model read the original again",
}
_KEYS = {
    LedgerAction.PIN: QKeySequence(Qt.Key.Key_P),
    LedgerAction.DROP: QKeySequence(Qt.Key.Key_Delete),
    LedgerAction.SUMMARIZE: QKeySequence(Qt.Key.Key_S),
    LedgerAction.RESTORE: QKeySequence(Qt.Key.Key_R),
}
_UNDO_TIP = "Take back the last change of the context"


def doable(action: LedgerAction, chosen: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Return those of the rows that something can be done with."""
    if action is LedgerAction.UNPIN:
        return [entry for entry in chosen if entry.is_pinned]
    if action is LedgerAction.PIN:
        return [entry for entry in chosen if entry.can_pin and not entry.is_pinned]
    if action is LedgerAction.DROP:
        return [entry for entry in chosen if entry.can_drop]
    if action is LedgerAction.SUMMARIZE:
        turns = [entry for entry in chosen if entry.can_summarize]
        return [entry for entry in chosen if entry.can_summarize or (turns and _is_of_turns(entry))]
    return [entry for entry in chosen if entry.can_restore]


def _is_of_turns(entry: LedgerEntry) -> bool:
    """Return whether it is a summary of turns, which one of the turns beside it can take in."""
    return entry.kind is EntryKind.SUMMARY and any(part.kind is EntryKind.TURN for part in entry.parts)


def why_not(action: LedgerAction, chosen: Sequence[LedgerEntry], hindrances: Hindrances) -> str:
    """Return why nothing can be done with any of the rows, empty where it can with one."""
    if not chosen:
        return "Choose a row first."
    if hindrances.change:
        return hindrances.change
    if doable(action, chosen):
        return hindrances.summarize if action is LedgerAction.SUMMARIZE else ""
    return _why_not_row(action, chosen[0])


def _why_not_row(action: LedgerAction, entry: LedgerEntry) -> str:
    if entry.kind is EntryKind.SYSTEM:
        return "The system prompt always stays. Change it in the Chat panel."
    if action is LedgerAction.RESTORE:
        return "The model reads it already."
    if not entry.state.is_in_context:
        words = "summarized" if entry.state is EntryState.SUMMARIZED else "left out"
        return f"It is {words}. Restore it first."
    if entry.kind is EntryKind.SUMMARY:
        if action is LedgerAction.PIN:
            return "A summary cannot be pinned."
        return "It is a summary already. Choose a turn beside it as well to make one summary of both."
    if entry.kind is EntryKind.DOCUMENT:
        return "It is not read whole, so a summary would save nothing."
    return "It waits for its answer, so it stays. Edit it in the chat to make it shorter."


class LedgerActions(QObject):
    """Actions for buttons, menu and keyboard, each enabled where it can be done.

    Attributes:
        pin, drop, summarize, restore, undo: the actions; `pin` unpins where all rows are pinned.

    Signals:
        requested(LedgerAction, tuple): what to do, and the keys of the rows to do it with.
        undo_requested: the last change is to be taken back.
    """

    requested = Signal(object, object)
    undo_requested = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chosen: list[LedgerEntry] = []
        self._does: dict[QAction, LedgerAction] = {}
        self.pin = self._add(LedgerAction.PIN)
        self.drop = self._add(LedgerAction.DROP)
        self.summarize = self._add(LedgerAction.SUMMARIZE)
        self.restore = self._add(LedgerAction.RESTORE)
        self.undo = QAction("Undo", self)
        self.undo.setShortcuts(QKeySequence.StandardKey.Undo)
        self.undo.triggered.connect(self.undo_requested)
        for action in self.all:
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.follow([], Hindrances())

    @property
    def all(self) -> list[QAction]:
        """All of them, in the order of a menu."""
        return [*self._does, self.undo]

    def follow(self, chosen: Sequence[LedgerEntry], hindrances: Hindrances) -> None:
        """Be about other rows."""
        self._chosen = list(chosen)
        pinned = doable(LedgerAction.UNPIN, self._chosen)
        is_all_pinned = bool(pinned) and not doable(LedgerAction.PIN, self._chosen)
        self._does[self.pin] = LedgerAction.UNPIN if is_all_pinned else LedgerAction.PIN
        for action, does in self._does.items():
            reason = why_not(does, self._chosen, hindrances)
            action.setText(does.value)
            action.setEnabled(not reason)
            action.setToolTip(reason or _TIPS[does])
        self.undo.setEnabled(not hindrances.undo)
        self.undo.setToolTip(hindrances.undo or _UNDO_TIP)

    def _add(self, does: LedgerAction) -> QAction:
        action = QAction(does.value, self)
        action.setShortcut(_KEYS[does])
        self._does[action] = does
        action.triggered.connect(lambda: self._request(self._does[action]))
        return action

    def _request(self, does: LedgerAction) -> None:
        self.requested.emit(does, tuple(entry.key for entry in doable(does, self._chosen)))
