"""Precisions by name, one press each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QWidget

from engine.kv.precision import KVSpec


class PresetButtons(QFrame):
    """A button for each of some precisions, down while that one is chosen.

    Page and group size are no part of it: they stay as they are, as others read the conversation again.

    Attributes:
        specs: what the buttons choose, in their order.

    Signals:
        chosen: the `KVSpec` that the user chose.
    """

    chosen = Signal(object)

    def __init__(self, presets: Mapping[str, KVSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("segments")
        self.specs = list(presets.values())
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(3, 3, 3, 3)
        row.setSpacing(2)
        for number, name in enumerate(presets):
            button = QPushButton(name)
            button.setProperty("kind", "segment")
            button.setCheckable(True)
            button.setAccessibleName(f"{name} KV cache precision")
            self._group.addButton(button, number)
            row.addWidget(button, 1)
        self._group.idClicked.connect(lambda number: self.chosen.emit(self.specs[number]))

    @property
    def is_none_down(self) -> bool:
        """Whether another precision than these is chosen."""
        return self._group.checkedId() < 0

    def set_spec(self, spec: KVSpec) -> None:
        """Show the button of `spec` as down, none when it has no button; all take its page and group size."""
        page_tokens, group_size = spec.page_tokens, spec.group_size
        self.specs = [
            dataclasses.replace(preset, page_tokens=page_tokens, group_size=group_size)
            for preset in self.specs
        ]
        self._group.setExclusive(False)
        for button, its_spec in zip(self._group.buttons(), self.specs, strict=True):
            button.setChecked(its_spec == spec)
        self._group.setExclusive(True)

    def set_tips(self, tips: list[str]) -> None:
        """Give the buttons tooltips, in their order."""
        for button, tip in zip(self._group.buttons(), tips, strict=True):
            button.setToolTip(tip)
