"""How much of the memory Octavo may plan with, as the user sets it."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.memory_limits import MemoryLimits
from engine.wording import format_nbytes
from ui.inspector.slider import WheelGuard
from ui.plain_text import plain_label
from ui.size_field import gigabyte_field, prepare_field

_GB = 1_000_000_000
_LEAST_NBYTES = _GB
_LEAST_PERCENT, _MOST_PERCENT = 10, 100


class LimitsEditor(QWidget):
    """Edits `MemoryLimits`; a value that cannot be is corrected, and a sentence says so.

    Attributes:
        limits: those that are shown.

    Signals:
        limits_changed: the `MemoryLimits` that the user set.
    """

    limits_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.limits = MemoryLimits()
        self._wanted_reserve = self.limits.reserve_nbytes
        self._total_nbytes = 0
        self._has_most = QCheckBox("Use at most")
        self._has_most.toggled.connect(self._on_has_most)
        self._most = gigabyte_field("The most memory that Octavo may use")
        self._most.valueChanged.connect(lambda value: self._set_most(round(value * _GB)))
        self._reserve = gigabyte_field("Memory kept free")
        self._reserve.valueChanged.connect(lambda value: self._want_reserve(round(value * _GB)))
        self._share = QDoubleSpinBox()
        self._share.setRange(0, 999)
        self._share.setDecimals(0)
        self._share.setSuffix(" %")
        prepare_field(self._share, "Safe share of the KV budget")
        self._share.valueChanged.connect(lambda value: self._set_share(round(value)))
        self._word = plain_label(wraps=True)
        self._word.setProperty("kind", "warning")
        self._word.setAccessibleName("What was corrected")
        self._reset = QPushButton("Reset to defaults")
        self._reset.setProperty("kind", "link")
        self._reset.clicked.connect(self._on_reset)
        self._lay_out()
        WheelGuard(self).guard(self._most, self._reserve, self._share)
        self._show(self.limits)
        self._say("")

    @property
    def word(self) -> str:
        """What was corrected, empty where nothing was."""
        return self._word.text()

    def set_limits(self, limits: MemoryLimits) -> None:
        """Show `limits`, silently; those that are shown already leave what is typed and said."""
        if limits != self.limits:
            self._wanted_reserve = limits.reserve_nbytes
            self._show(limits)
            self._say("")

    def _show(self, limits: MemoryLimits) -> None:
        self.limits = limits
        has_most = limits.most_nbytes is not None
        with (
            QSignalBlocker(self._has_most),
            QSignalBlocker(self._most),
            QSignalBlocker(self._reserve),
            QSignalBlocker(self._share),
        ):
            self._has_most.setChecked(has_most)
            self._most.setValue((limits.most_nbytes or self._total_nbytes) / _GB)
            self._reserve.setValue(limits.reserve_nbytes / _GB)
            self._share.setValue(round(limits.safe_share * 100))
        self._most.setEnabled(has_most)
        is_default = limits == MemoryLimits()
        if is_default and self.window().focusWidget() is self._reset:
            self._reserve.setFocus()  # else Qt moves on to a field outside, which takes what is typed
        self._reset.setEnabled(not is_default)

    def set_total(self, nbytes: int) -> None:
        """Take the memory of this computer, which bounds the values."""
        if nbytes != self._total_nbytes:
            self._total_nbytes = nbytes
            self._show(self.limits)

    def _lay_out(self) -> None:
        reserve, share = QLabel("Keep free"), QLabel("Safe context")
        reserve.setBuddy(self._reserve)
        share.setBuddy(self._share)
        rows = (
            (self._has_most, self._most, "All of the program: model, conversations and the window"),
            (reserve, self._reserve, "For other programs, and to work in while a text is read"),
            (share, self._share, "The share of the room for keys and values that a safe context takes"),
        )
        grid = QGridLayout()
        grid.setColumnStretch(0, 1)
        grid.setVerticalSpacing(8)
        for line, (name, field, tip) in enumerate(rows):
            name.setToolTip(tip)
            field.setToolTip(tip)
            grid.addWidget(name, line, 0)
            grid.addWidget(field, line, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(grid)
        column.addWidget(self._word)
        column.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignLeft)

    def _on_has_most(self, is_on: bool) -> None:
        self._set_most((self._total_nbytes or 8 * _GB) if is_on else None)

    def _set_most(self, nbytes: int | None) -> None:
        word = ""
        if nbytes is not None and nbytes < _LEAST_NBYTES:
            nbytes, word = _LEAST_NBYTES, f"Octavo needs {format_nbytes(_LEAST_NBYTES)} at least."
        elif nbytes is not None and 0 < self._total_nbytes < nbytes:
            nbytes, word = self._total_nbytes, f"This computer has {format_nbytes(self._total_nbytes)}."
        self._change(dataclasses.replace(self.limits, most_nbytes=nbytes), word)
        self._fit_reserve(word)

    def _want_reserve(self, nbytes: int) -> None:
        self._wanted_reserve = nbytes
        self._fit_reserve()

    def _fit_reserve(self, word: str = "") -> None:
        """Keep as much free as is wanted, where that leaves half of the memory."""
        nbytes, room = self._wanted_reserve, self.limits.most_nbytes or self._total_nbytes
        if room and nbytes > room // 2:
            nbytes = room // 2
            word = f"{word} At most half can be kept free: {format_nbytes(nbytes)}.".lstrip()
        self._change(dataclasses.replace(self.limits, reserve_nbytes=nbytes), word)

    def _on_reset(self) -> None:
        self._wanted_reserve = MemoryLimits().reserve_nbytes
        self._change(MemoryLimits())

    def _set_share(self, percent: int) -> None:
        right = min(_MOST_PERCENT, max(_LEAST_PERCENT, percent))
        word = "" if right == percent else f"It can be from {_LEAST_PERCENT} to {_MOST_PERCENT} %."
        self._change(dataclasses.replace(self.limits, safe_share=right / 100), word)

    def _change(self, limits: MemoryLimits, word: str = "") -> None:
        is_other = limits != self.limits
        self._show(limits)
        self._say(word)
        if is_other:
            self.limits_changed.emit(limits)

    def _say(self, word: str) -> None:
        self._word.setText(word)
        self._word.setVisible(bool(word))
