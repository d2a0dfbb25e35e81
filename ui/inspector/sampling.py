"""How the next token is chosen: one row for each sampling setting."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from engine.sampling import SamplingParams
from ui.inspector.slider import Slider, WheelGuard

_MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class _Scale:
    """One slider: the field of `SamplingParams`, its words, range and the value that switches it off."""

    field: str
    label: str
    tip: str
    low: float
    high: float
    step: float
    off: float | None = None


_SCALES = (
    _Scale(
        "temperature", "Temperature", "Higher is more varied; 0 always takes the likeliest token", 0, 2, 0.05
    ),
    _Scale("top_p", "Top-p", "Only the likeliest tokens that together reach this share", 0, 1, 0.01, off=1),
    _Scale("top_k", "Top-k", "Only this many of the likeliest tokens", 0, 200, 1, off=0),
    _Scale("min_p", "Min-p", "Only tokens at least this likely beside the likeliest", 0, 1, 0.01, off=0),
    _Scale(
        "repetition_penalty",
        "Repetition penalty",
        "Makes recently used tokens less likely",
        1,
        2,
        0.01,
        off=1,
    ),
)


class SamplingPanel(QWidget):
    """Edits a `SamplingParams`.

    Signals:
        params_changed: the new `SamplingParams`.
    """

    params_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._params = SamplingParams()
        self._rows = {scale.field: _ScaleRow(scale) for scale in _SCALES}
        for row in self._rows.values():
            row.changed.connect(self._on_changed)
        self._max_tokens = QSpinBox()
        self._max_tokens.setRange(1, 1_000_000)
        self._max_tokens.setSingleStep(128)
        self._max_tokens.setGroupSeparatorShown(True)
        self._max_tokens.setAccessibleName("Longest answer in tokens")
        self._max_tokens.setToolTip("The longest answer, in tokens")
        self._max_tokens.valueChanged.connect(self._on_changed)
        self._fixed_seed = QCheckBox("Fixed seed")
        self._fixed_seed.setToolTip("The same seed gives the same answer again")
        self._fixed_seed.toggled.connect(self._on_seed_toggled)
        self._seed = QSpinBox()
        self._seed.setRange(0, _MAX_SEED)
        self._seed.setAccessibleName("Seed")
        self._seed.valueChanged.connect(self._on_changed)
        self._reset = QPushButton("Reset to defaults")
        self._reset.setProperty("kind", "link")
        self._reset.clicked.connect(self._on_reset)
        for spin in (self._max_tokens, self._seed):
            _pad(spin)
        self._lay_out()
        WheelGuard(self).guard(*self.findChildren(QAbstractSpinBox), *self.findChildren(Slider))
        self.set_params(self._params)

    def set_params(self, params: SamplingParams) -> None:
        """Show `params`."""
        self._params = params
        for field, row in self._rows.items():
            row.set_value(float(getattr(params, field)))
        with QSignalBlocker(self._max_tokens), QSignalBlocker(self._seed), QSignalBlocker(self._fixed_seed):
            self._max_tokens.setValue(params.max_tokens)
            self._fixed_seed.setChecked(params.seed is not None)
            self._seed.setValue(params.seed or 0)
        self._seed.setEnabled(params.seed is not None)
        self._update_reset()

    def _lay_out(self) -> None:
        last = QGridLayout()
        last.setColumnStretch(0, 1)
        last.setVerticalSpacing(8)
        label = QLabel("Longest answer")
        label.setBuddy(self._max_tokens)
        for line, (name, field) in enumerate(((label, self._max_tokens), (self._fixed_seed, self._seed))):
            field.setFixedWidth(116)
            last.addWidget(name, line, 0)
            last.addWidget(field, line, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for row in self._rows.values():
            column.addWidget(row)
        column.addLayout(last)
        column.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignLeft)

    def _on_changed(self) -> None:
        values = {field: row.value for field, row in self._rows.items()}
        self._params = dataclasses.replace(
            self._params,
            temperature=values["temperature"],
            top_p=values["top_p"],
            top_k=round(values["top_k"]),
            min_p=values["min_p"],
            repetition_penalty=values["repetition_penalty"],
            max_tokens=self._max_tokens.value(),
            seed=self._seed.value() if self._fixed_seed.isChecked() else None,
        )
        self._update_reset()
        self.params_changed.emit(self._params)

    def _update_reset(self) -> None:
        is_enabled = self._params != SamplingParams()
        if not is_enabled and self.window().focusWidget() is self._reset:
            self.setFocus()  # else Qt moves on to the next field, which takes what is typed
        self._reset.setEnabled(is_enabled)

    def _on_seed_toggled(self, fixed: bool) -> None:
        self._seed.setEnabled(fixed)
        if fixed and self._seed.value() == 0:
            with QSignalBlocker(self._seed):
                self._seed.setValue(random.randrange(1, 10_000))
        self._on_changed()

    def _on_reset(self) -> None:
        self.set_params(SamplingParams())
        self.params_changed.emit(self._params)


class _ScaleRow(QWidget):
    """A label, a number and a slider for the same value."""

    changed = Signal()

    def __init__(self, scale: _Scale) -> None:
        super().__init__()
        self._scale = scale
        self._spin = QDoubleSpinBox()
        self._spin.setRange(scale.low, scale.high)
        self._spin.setSingleStep(scale.step)
        self._spin.setDecimals(0 if scale.step >= 1 else 2)
        self._spin.setFixedWidth(64)
        self._spin.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._spin.setAccessibleName(scale.label)
        _pad(self._spin)
        self._spin.valueChanged.connect(self._on_spin)
        self._slider = Slider()
        self._slider.setRange(0, round((scale.high - scale.low) / scale.step))
        self._slider.setAccessibleName(f"{scale.label} slider")
        self._slider.valueChanged.connect(self._on_slider)
        label = QLabel(scale.label)
        label.setBuddy(self._spin)
        self._off = QLabel("off")
        self._off.setProperty("kind", "faint")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(label)
        head.addWidget(self._off)
        head.addStretch(1)
        head.addWidget(self._spin)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self._slider)
        self.setToolTip(scale.tip)
        self.set_value(scale.low)

    @property
    def value(self) -> float:
        """The number shown."""
        return round(self._spin.value(), 2)

    def set_value(self, value: float) -> None:
        """Show `value`, silently."""
        with QSignalBlocker(self._spin), QSignalBlocker(self._slider):
            self._spin.setValue(value)
            self._slider.setValue(round((value - self._scale.low) / self._scale.step))
        self._off.setVisible(self._scale.off is not None and self.value == self._scale.off)

    def _on_spin(self, value: float) -> None:
        self.set_value(value)
        self.changed.emit()

    def _on_slider(self, steps: int) -> None:
        self.set_value(self._scale.low + steps * self._scale.step)
        self.changed.emit()


def _pad(spin: QAbstractSpinBox) -> None:
    """Keep the number off the frame; a style sheet's padding does not reach it."""
    spin.lineEdit().setTextMargins(7, 0, 7, 0)
