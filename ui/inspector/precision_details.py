"""What the sliders of the KV precision do not show: tiers, geometry and the attention budget."""

from __future__ import annotations

import dataclasses
from typing import Any

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLabel,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from engine.kv.precision import GROUP_SIZES, MOST, PAGE_TOKENS, PRESETS, KVSpec
from ui.inspector.slider import WheelGuard

_ATTENTION_PAGES = (None, 4, 8, 16, 32, 64)
_FIELD_WIDTH = 116


class PrecisionDetails(QWidget):
    """Edits the rest of a `KVSpec`.

    Signals:
        spec_chosen: the new `KVSpec`.
    """

    spec_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec = PRESETS["precise"]
        self._hot = _count("Hot pages")
        self._hot.valueChanged.connect(lambda count: self._change(hot_pages=count))
        self._warm = _count("Warm pages")
        self._warm.valueChanged.connect(lambda count: self._change(warm_pages=count))
        self._page = _choice("Page size")
        self._page.activated.connect(lambda _: self._change_page(self._page.currentData()))
        self._group = _choice("Group size")
        self._group.activated.connect(lambda _: self._change(group_size=self._group.currentData()))
        self._attention = _choice("Attention budget")
        self._attention.activated.connect(lambda _: self._change_attention(self._attention.currentData()))
        self._grows = QCheckBox("Let attention grow")
        self._grows.setToolTip("Doubles the attention budget until it catches most of the attention")
        self._grows.toggled.connect(lambda grows: self._change(attention_grows=grows))
        self._lay_out()
        WheelGuard(self).guard(self._hot, self._warm, self._page, self._group, self._attention)
        self.set_spec(self._spec)

    def set_spec(self, spec: KVSpec) -> None:
        """Show `spec`, silently."""
        self._spec = spec
        with QSignalBlocker(self._hot), QSignalBlocker(self._warm), QSignalBlocker(self._grows):
            self._grows.setChecked(spec.attention_grows)
            self._hot.setValue(spec.hot_pages)
            self._warm.setValue(spec.warm_pages)
        _fill(self._page, {size: f"{size} tokens" for size in PAGE_TOKENS}, spec.page_tokens)
        fitting = [size for size in GROUP_SIZES if size <= spec.page_tokens]
        _fill(self._group, {size: f"{size}" for size in fitting}, spec.group_size)
        budgets = {*_ATTENTION_PAGES, spec.attention_pages}
        _fill(
            self._attention,
            {pages: f"{pages} pages" if pages else "off" for pages in sorted(budgets, key=lambda n: n or 0)},
            spec.attention_pages,
        )
        self._grows.setEnabled(spec.attention_pages is not None)

    def _lay_out(self) -> None:
        rows = (
            ("Hot pages", self._hot, "The newest pages, kept at 16 bits"),
            ("Warm pages", self._warm, "The pages after those, kept at 8 bits or more"),
            ("Page size", self._page, "Tokens in a page; another size reads the conversation again"),
            ("Group size", self._group, "Numbers that share a scale; another reads the conversation again"),
            ("Attention", self._attention, "Writing looks at this many pages of each precision only"),
        )
        grid = QGridLayout()
        grid.setColumnStretch(0, 1)
        grid.setVerticalSpacing(8)
        for line, (title, field, tip) in enumerate(rows):
            label = QLabel(title)
            label.setBuddy(field)
            label.setToolTip(tip)
            field.setToolTip(tip)
            field.setFixedWidth(_FIELD_WIDTH)
            grid.addWidget(label, line, 0)
            grid.addWidget(field, line, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(grid)
        column.addWidget(self._grows)

    def _change_page(self, page_tokens: int) -> None:
        self._change(page_tokens=page_tokens, group_size=min(self._spec.group_size, page_tokens))

    def _change_attention(self, pages: int | None) -> None:
        grows = self._spec.attention_grows and pages is not None
        self._change(attention_pages=pages, attention_grows=grows)

    def _change(self, **changes: Any) -> None:
        self._choose(dataclasses.replace(self._spec, **changes))

    def _choose(self, spec: KVSpec) -> None:
        is_other = spec != self._spec
        self.set_spec(spec)
        if is_other:
            self.spec_chosen.emit(spec)


def _count(name: str) -> QSpinBox:
    """Return a field for a number of pages, which tells a number once it is typed to its end."""
    spin = QSpinBox()
    spin.setRange(0, MOST)
    spin.setKeyboardTracking(False)
    spin.setAccessibleName(name)
    spin.lineEdit().setTextMargins(7, 0, 7, 0)
    return spin


def _choice(name: str) -> QComboBox:
    combo = QComboBox()
    combo.setAccessibleName(name)
    combo.view().setAccessibleName(name)
    return combo


def _fill(combo: QComboBox, words: dict[Any, str], chosen: object) -> None:
    """Offer the keys of `words`, `chosen` as the present one."""
    combo.clear()
    for value, text in words.items():
        combo.addItem(text, value)
    combo.setCurrentIndex(list(words).index(chosen))
