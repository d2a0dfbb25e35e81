"""What may be kept on disk, as the user sets it."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from app.prefix_settings import LEAST_NBYTES
from app.store.prefixes.records import GB, MOST_DISK_SHARE, MOST_NBYTES, PrefixFigures, PrefixSettings
from engine.prefixes.records import SaveMode
from engine.wording import format_nbytes
from ui.inspector.slider import WheelGuard
from ui.plain_text import plain_label
from ui.size_field import gigabyte_field

MODE_WORDS = {
    SaveMode.EVERYTHING: (
        "Everything that was read",
        "Conversations go on at once after a restart, and documents are not read again.",
    ),
    SaveMode.DOCUMENTS: (
        "Documents and system prompts only",
        "Documents are not read again. Messages are not kept: they are read again after a restart. "
        "What was kept before stays until you delete it.",
    ),
    SaveMode.NEVER: (
        "Nothing",
        "Nothing is written to disk, and nothing is taken from it. "
        "After a restart all is read again when a conversation goes on.",
    ),
}
"""What each mode is called, and what it means."""


class PrefixSettingsEditor(QWidget):
    """Edits `PrefixSettings`; a size that cannot be is corrected, and a sentence says so.

    Attributes:
        settings: those that are shown.

    Signals:
        settings_changed: the `PrefixSettings` that the user set.
    """

    settings_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.settings = PrefixSettings()
        self._most_now_nbytes: int | None = None
        self._mode = QComboBox()
        self._mode.setAccessibleName("Keep on disk")
        self._mode.view().setAccessibleName("Keep on disk")
        for mode, (name, _) in MODE_WORDS.items():
            self._mode.addItem(name, mode.value)
        self._mode.activated.connect(lambda _: self._change(mode=SaveMode(self._mode.currentData())))
        self._meaning = plain_label(wraps=True)
        self._meaning.setProperty("kind", "muted")
        self._most = gigabyte_field("The most that the prefix cache may take on disk")
        self._most.valueChanged.connect(lambda value: self._set_size("most_nbytes", value))
        self._written = gigabyte_field("The most that may be written to disk in a day")
        self._written.valueChanged.connect(lambda value: self._set_size("most_written_nbytes", value))
        self._limit = plain_label(wraps=True)
        self._limit.setProperty("kind", "muted")
        self._word = plain_label(wraps=True)
        self._word.setProperty("kind", "warning")
        self._word.setAccessibleName("What was corrected")
        self._lay_out()
        WheelGuard(self).guard(self._mode, self._most, self._written)
        self.set_settings(self.settings)
        self._say("")

    @property
    def word(self) -> str:
        """What was corrected, empty where nothing was."""
        return self._word.text()

    def set_settings(self, settings: PrefixSettings) -> None:
        """Show settings, silently."""
        self.settings = settings
        with QSignalBlocker(self._most), QSignalBlocker(self._written):
            self._mode.setCurrentIndex(list(MODE_WORDS).index(settings.mode))
            self._most.setValue((settings.most_nbytes or MOST_NBYTES) / GB)
            self._written.setValue(settings.most_written_nbytes / GB)
        self._meaning.setText(MODE_WORDS[settings.mode][1])
        self._show_limit()

    def show_figures(self, figures: PrefixFigures) -> None:
        """Say what the disk leaves where that is less than the limit."""
        self._most_now_nbytes = figures.most_nbytes
        self._show_limit()

    def _show_limit(self) -> None:
        sentence, now = f"Never more than {MOST_DISK_SHARE:.0%} of the free disk", self._most_now_nbytes
        if now is not None and now < (self.settings.most_nbytes or MOST_NBYTES):
            sentence += f": {format_nbytes(now)} now"
        self._limit.setText(f"{sentence}. What was used longest ago goes first.")

    def _lay_out(self) -> None:
        mode, most, written = QLabel("Keep on disk"), QLabel("Size limit"), QLabel("Daily write limit")
        for label, field in ((mode, self._mode), (most, self._most), (written, self._written)):
            label.setBuddy(field)
        most.setToolTip("What all of it may take on disk")
        written.setToolTip("Spares a disk that wears with what is written; the rest waits for the next day")
        left = Qt.AlignmentFlag.AlignLeft
        grid = QGridLayout()
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        grid.addWidget(mode, 0, 0)
        grid.addWidget(self._mode, 0, 1)
        grid.addWidget(self._meaning, 1, 1)
        grid.addWidget(most, 2, 0)
        grid.addWidget(self._most, 2, 1, left)  # a fixed width would be that of the column
        grid.addWidget(self._limit, 3, 1)
        grid.addWidget(written, 4, 0)
        grid.addWidget(self._written, 4, 1, left)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(grid)
        column.addWidget(self._word)

    def _set_size(self, field: str, gigabytes: float) -> None:
        nbytes, word = round(gigabytes * GB), ""
        if nbytes < LEAST_NBYTES:
            nbytes = LEAST_NBYTES
            word = f"The least is {format_nbytes(nbytes)}. To keep nothing, choose it above."
        self._change(word, **{field: nbytes})

    def _change(self, word: str = "", **changes: object) -> None:
        changed: dict[str, object] = dict(changes)
        settings = dataclasses.replace(self.settings, **changed)  # type: ignore[arg-type]
        is_other = settings != self.settings
        self.set_settings(settings)
        self._say(word)
        if is_other:
            self.settings_changed.emit(settings)

    def _say(self, word: str) -> None:
        self._word.setText(word)
        self._word.setVisible(bool(word))
