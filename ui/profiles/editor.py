"""The settings of the profile that are no precision, and what is done with the profile itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.kv_config import LEAST_CONTEXT
from app.profiles import CUSTOM, DocumentMode, Overflow, Profile
from engine.engine import LoadedModel
from ui.chat.flow_layout import FlowLayout
from ui.inspector.slider import WheelGuard
from ui.plain_text import plain_label
from ui.profiles.current import CurrentProfile
from ui.profiles.name_dialog import ask_name
from ui.profiles.trim_fields import TrimFields
from ui.profiles.words import DOCUMENT_WORDS, OVERFLOW_WORDS, description

_MOST_TOKENS = 10_000_000
_FIRST_LIMIT = 8_192
"""What the limit is when it is switched on first."""
_FIELD_WIDTH = 108
_LONG_DOCUMENTS = "Documents that do not fit whole"


class ProfileEditor(QWidget):
    """Edits context limit, overflow and document mode of the conversation; copies, renames, deletes profiles.

    A field that is changed makes the settings the conversation's own; the profile itself changes only when it
    is asked for.
    """

    def __init__(self, current: CurrentProfile, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._current = current
        self._loaded: LoadedModel | None = None
        self._name = plain_label(wraps=True)
        self._what = plain_label(wraps=True)
        self._what.setProperty("kind", "muted")
        self._limits = QCheckBox("Context limit")
        self._limits.setToolTip("Tokens of prompt and answer together; without a limit all that fits is used")
        self._limits.toggled.connect(self._on_limits)
        self._limit = QSpinBox()
        self._limit.setRange(LEAST_CONTEXT, _MOST_TOKENS)
        self._limit.setSingleStep(1024)
        self._limit.setGroupSeparatorShown(True)
        self._limit.setKeyboardTracking(False)
        self._limit.setAccessibleName("Context limit in tokens")
        self._limit.lineEdit().setTextMargins(7, 0, 7, 0)
        self._limit.valueChanged.connect(lambda tokens: self._current.update(max_context=tokens))
        self._fit = plain_label(wraps=True)
        self._overflow = _choice("When the context is full", OVERFLOW_WORDS)
        self._overflow.activated.connect(
            lambda _: self._current.update(overflow=Overflow(self._overflow.currentData()))
        )
        self._trim = TrimFields()
        self._trim.changed.connect(
            lambda trim_at, keep_ratio: self._current.update(trim_at=trim_at, keep_ratio=keep_ratio)
        )
        self._documents = _choice(_LONG_DOCUMENTS, DOCUMENT_WORDS)
        self._documents.activated.connect(
            lambda _: self._current.update(document_mode=DocumentMode(self._documents.currentData()))
        )
        self._make_buttons()
        self._lay_out()
        WheelGuard(self).guard(self._limit, self._overflow, *self._trim.fields, self._documents)
        current.changed.connect(self._show)
        self._show(current.value)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Say how much fits with the loaded model; nothing when there is none."""
        self._loaded = loaded
        self._show_fit()

    def _make_buttons(self) -> None:
        self._save_changes = _link("", self._current.save_changes)
        self._back = _link("", self._go_back)
        self._copy = _link("Copy", self._copy_and_name)
        self._save_as = _link("Save as a profile…", self._ask_to_save)
        self._rename = _link("Rename…", self._ask_to_rename)
        self._delete = _link("Delete", lambda: self._current.delete(self._current.value.name))

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setColumnStretch(0, 1)
        grid.setVerticalSpacing(8)
        self._limit.setFixedWidth(_FIELD_WIDTH)
        grid.addWidget(self._limits, 0, 0)
        grid.addWidget(self._limit, 0, 1)
        grid.addWidget(self._fit, 1, 0, 1, 2)
        grid.addWidget(_label("When the context is full", self._overflow), 2, 0, 1, 2)
        grid.addWidget(self._overflow, 3, 0, 1, 2)
        grid.addWidget(self._trim, 4, 0, 1, 2)
        grid.addWidget(_label(_LONG_DOCUMENTS, self._documents), 5, 0, 1, 2)
        grid.addWidget(self._documents, 6, 0, 1, 2)
        row = QWidget()
        buttons = FlowLayout(row, spacing=2)
        for button in self._buttons():
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._name)
        column.addWidget(self._what)
        column.addWidget(row)
        column.addLayout(grid)

    def _buttons(self) -> tuple[QPushButton, ...]:
        return (self._save_changes, self._back, self._save_as, self._copy, self._rename, self._delete)

    def _show(self, profile: Profile) -> None:
        origin, is_own = self._current.origin, self._current.is_own(profile.name)
        self._name.setText(f"{CUSTOM}, changed from {origin}" if origin else profile.name)
        self._what.setText(description(profile))
        with QSignalBlocker(self._limits), QSignalBlocker(self._limit):
            self._limits.setChecked(profile.max_context is not None)
            self._limit.setEnabled(profile.max_context is not None)
            self._limit.setValue(profile.max_context or self._limit.value())
        self._overflow.setCurrentIndex(list(OVERFLOW_WORDS).index(profile.overflow))
        self._trim.show_profile(profile)
        self._documents.setCurrentIndex(list(DOCUMENT_WORDS).index(profile.document_mode))
        shown = {
            self._save_changes: origin is not None and self._current.is_own(origin),
            self._back: origin is not None,
            self._save_as: profile.name == CUSTOM,
            self._copy: profile.name != CUSTOM,
            self._rename: is_own,
            self._delete: is_own,
        }
        self._save_changes.setText(f"Save in {_shortened(origin)}")
        self._back.setText(f"Back to {_shortened(origin)}")
        self._show_buttons(shown)
        self._show_fit()

    def _show_buttons(self, shown: Mapping[QPushButton, bool]) -> None:
        focused = self.window().focusWidget()
        if isinstance(focused, QPushButton) and not shown.get(focused, True):
            self.setFocus()  # else Qt moves on to a field, which takes what is typed
        for button, is_shown in shown.items():
            button.setVisible(is_shown)

    def _show_fit(self) -> None:
        limit, sentence, kind = self._current.value.max_context, "", "muted"
        if self._loaded is not None:
            plan = self._loaded.plan_at(self._current.value.kv)
            fitting = plan.fitting_tokens
            sentence = f"{fitting:,} tokens fit now."
            if limit is not None and limit > fitting:
                sentence = f"The model itself has {fitting:,} tokens."
                if fitting < plan.context_tokens:
                    sentence, kind = f"More than the {fitting:,} tokens that fit into memory.", "warning"
        self._fit.setText(sentence)
        self._fit.setVisible(bool(sentence))
        if self._fit.property("kind") != kind:
            self._fit.setProperty("kind", kind)
            self._fit.style().polish(self._fit)

    def _on_limits(self, is_limited: bool) -> None:
        limit = self._limit.value() if self._limit.value() > LEAST_CONTEXT else _FIRST_LIMIT
        self._current.update(max_context=limit if is_limited else None)

    def _go_back(self) -> None:
        if self._current.origin is not None:
            self._current.choose(self._current.origin)

    def _copy_and_name(self) -> None:
        self._current.copy()
        self._ask_to_rename()

    def _ask_to_save(self) -> None:
        ask_name("Save these settings as a profile", "", self._current.save_as, self.window())

    def _ask_to_rename(self) -> None:
        name = self._current.value.name
        ask_name("Name of the profile", name, lambda text: self._current.rename(name, text), self.window())


def _choice(name: str, words: Mapping[Any, str]) -> QComboBox:
    combo = QComboBox()
    combo.setAccessibleName(name)
    combo.view().setAccessibleName(name)
    for value, text in words.items():
        combo.addItem(text, value.value)
    return combo


def _label(title: str, field: QWidget) -> QLabel:
    label = QLabel(title)
    label.setBuddy(field)
    return label


def _link(text: str, press: Any) -> QPushButton:
    button = QPushButton(text)
    button.setProperty("kind", "link")
    button.clicked.connect(lambda: press())
    return button


def _shortened(name: str | None) -> str:
    """Return a name for a button, in which no letter becomes a shortcut."""
    short = name or ""
    return (short if len(short) <= 18 else f"{short[:17]}…").replace("&", "&&")
