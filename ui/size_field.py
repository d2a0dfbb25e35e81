"""Fields for numbers with a unit, wide enough in their range that a value that cannot be may be typed."""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox

FIELD_WIDTH = 104


def gigabyte_field(name: str) -> QDoubleSpinBox:
    """Return a field for a size in GB; who takes the value says what it cannot be."""
    spin = QDoubleSpinBox()
    spin.setRange(0, 99_999)
    spin.setDecimals(1)
    spin.setSingleStep(0.5)
    spin.setSuffix(" GB")
    prepare_field(spin, name)
    return spin


def prepare_field(spin: QAbstractSpinBox, name: str) -> None:
    """Give a field its name, its width, and values only when one is typed whole."""
    spin.setKeyboardTracking(False)
    spin.setAccessibleName(name)
    spin.setFixedWidth(FIELD_WIDTH)
    spin.lineEdit().setTextMargins(7, 0, 7, 0)
