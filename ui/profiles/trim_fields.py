"""When old turns are due to leave the context, and how much of it stays then."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QAbstractSpinBox, QGridLayout, QLabel, QSpinBox, QWidget

from app.profiles import LEAST_KEPT, LEAST_TRIM_AT, MOST_KEPT, Overflow, Profile
from ui.plain_text import plain_label

_WIDTH = 108
_STEP = 5
_BOUNDS = (
    f"Begin at {LEAST_TRIM_AT:.0%} or more. Keep {LEAST_KEPT:.0%} to {MOST_KEPT:.0%}, and at least {_STEP}% "
    "less than where it begins: one moves the other."
)


class TrimFields(QWidget):
    """Edits the threshold and the ratio of a profile, in per cent of the context.

    What is kept stays below the threshold: whichever is changed moves the other where they would meet.

    Attributes:
        fields: what takes the keyboard focus and the wheel.

    Signals:
        changed: the threshold and the ratio, from 0 to 1.
    """

    changed = Signal(float, float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._at = _percent("Begin at", LEAST_TRIM_AT, 1.0)
        self._at.setToolTip("How full the context gets before old turns leave it")
        self._kept = _percent("Keep", LEAST_KEPT, MOST_KEPT)
        self._kept.setToolTip("How full the context still is then; more leaves it again sooner")
        self.fields = (self._at, self._kept)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(0, 1)
        for line, field in enumerate(self.fields):
            label = QLabel(field.accessibleName())
            label.setBuddy(field)
            grid.addWidget(label, line, 0)
            grid.addWidget(field, line, 1)
        bounds = plain_label(_BOUNDS, wraps=True)
        bounds.setProperty("kind", "muted")
        grid.addWidget(bounds, len(self.fields), 0, 1, 2)
        self._at.valueChanged.connect(self._on_at)
        self._kept.valueChanged.connect(self._on_kept)

    def show_profile(self, profile: Profile) -> None:
        """Show a profile's values; hidden while it does nothing at the threshold."""
        self.setVisible(profile.overflow is not Overflow.OFF)
        for field, value in zip(self.fields, (profile.trim_at, profile.keep_ratio), strict=True):
            with QSignalBlocker(field):
                field.setValue(round(100 * value))

    def _on_at(self, percent: int) -> None:
        with QSignalBlocker(self._kept):
            self._kept.setValue(min(self._kept.value(), percent - _STEP))
        self._tell()

    def _on_kept(self, percent: int) -> None:
        with QSignalBlocker(self._at):
            self._at.setValue(max(self._at.value(), percent + _STEP))
        self._tell()

    def _tell(self) -> None:
        self.changed.emit(self._at.value() / 100, self._kept.value() / 100)


def _percent(name: str, least: float, most: float) -> QSpinBox:
    field = QSpinBox()
    field.setRange(round(100 * least), round(100 * most))
    field.setSingleStep(_STEP)
    field.setSuffix(" %")
    field.setKeyboardTracking(False)
    field.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToNearestValue)
    field.setAccessibleName(name)
    field.setFixedWidth(_WIDTH)
    field.lineEdit().setTextMargins(7, 0, 7, 0)
    return field
