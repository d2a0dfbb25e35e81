"""The prefix cache in the window: its dialog, and what is done with what is kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.store.conversations import ConversationStore
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.errors import sentence_of
from ui.prefixes.dialog import PrefixDialog
from ui.prefixes.rows import PrefixRow, rows_of
from ui.prefixes.watch import PrefixReading, PrefixWatch
from ui.stored_settings import StoredSettings

log = logging.getLogger(__name__)


class PrefixController(QObject):
    """Shows what is kept on disk, and does there what the user asks for.

    Signals:
        open_requested: id of the conversation that the user wants to see.
    """

    open_requested = Signal(int)

    def __init__(
        self, service: PrefixService, store: ConversationStore, settings: StoredSettings, window: QWidget
    ) -> None:
        super().__init__(window)
        self._store = store
        self._settings = settings
        self._window = window
        self._dialog: PrefixDialog | None = None
        self._watch = PrefixWatch(service, self)
        self._watch.read.connect(self._on_read)
        self._watch.failed.connect(self._on_failed)

    @property
    def dialog(self) -> PrefixDialog | None:
        """The dialog while it is open."""
        return self._dialog

    def show(self) -> None:
        """Open the dialog."""
        dialog = self._dialog = PrefixDialog(self._settings.value.prefixes, self._window)
        dialog.settings_changed.connect(self._take_settings)
        dialog.open_requested.connect(self._open)
        dialog.pin_requested.connect(self._pin)
        dialog.deletion_requested.connect(self._delete)
        dialog.clear_requested.connect(self._clear)
        dialog.finished.connect(self._on_finished)
        self._watch.start()
        dialog.open()

    def _take_settings(self, settings: PrefixSettings) -> None:
        self._settings.update(prefixes=settings)

    def _open(self, conversation_id: int) -> None:
        if self._dialog is not None:
            self._dialog.close()
        self.open_requested.emit(conversation_id)

    def _pin(self, rows: Sequence[PrefixRow], is_pinned: bool) -> None:
        def pin(service: PrefixService) -> None:
            for row in rows:
                for conversation_id in row.conversation_ids:
                    service.pin(conversation_id, is_pinned)

        self._watch.change(pin)

    def _delete(self, rows: Sequence[PrefixRow]) -> None:
        def delete(service: PrefixService) -> None:
            for row in rows:
                for conversation_id in row.conversation_ids:
                    service.delete(conversation_id)

        self._watch.change(delete)

    def _clear(self) -> None:
        self._watch.change(PrefixService.clear)

    def _on_finished(self) -> None:
        self._watch.stop()
        if self._dialog is not None:
            self._dialog.deleteLater()
        self._dialog = None

    def _on_read(self, reading: PrefixReading) -> None:
        if self._dialog is None:
            return
        titles = {one.id: one.title for one in self._store.conversations()}
        self._dialog.show_rows(rows_of(reading.entries, titles))
        self._dialog.show_figures(reading.figures)

    def _on_failed(self, error: Exception) -> None:
        log.error("the prefix cache could not be read", exc_info=error)
        if self._dialog is not None:
            self._dialog.problem.say(sentence_of(error))
