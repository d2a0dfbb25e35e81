"""The whole KV precision as text."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from engine.engine import LoadedModel
from engine.errors import OctavoError
from engine.kv.precision import PRESETS, KVSpec
from ui.plain_text import plain_label


class PrecisionText(QWidget):
    """A field that reads a `KVSpec`, and below it why its text cannot be.

    Signals:
        spec_chosen: the `KVSpec` that the text means, on Enter and when the focus leaves.
        refused: the reason appeared.
    """

    spec_chosen = Signal(object)
    refused = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec = PRESETS["precise"]
        self._loaded: LoadedModel | None = None
        self._field = QLineEdit()
        self._field.setAccessibleName("KV cache precision as text")
        self._field.setToolTip(
            "The whole precision as octavo ask --kv takes it, for example 0-7:8, 8-:k6v4, 12.h3:8"
        )
        self._field.editingFinished.connect(self._on_text)
        self._field.textEdited.connect(lambda _: self._say(""))
        self._problem = plain_label(wraps=True)
        self._problem.setProperty("kind", "danger")
        label = QLabel("As text")
        label.setBuddy(self._field)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(label)
        row.addWidget(self._field, 1)
        column.addLayout(row)
        column.addWidget(self._problem)
        self.set_spec(self._spec)

    @property
    def problem(self) -> str:
        """Why the text cannot be, empty where it can."""
        return self._problem.text()

    def set_spec(self, spec: KVSpec) -> None:
        """Show `spec`, silently."""
        self._spec = spec
        self._field.setText(str(spec))
        self._field.setCursorPosition(0)
        self._say("")

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Refuse from now on what this model cannot have; None when there is none."""
        self._loaded = loaded

    def _on_text(self) -> None:
        try:
            spec = KVSpec.parse(self._field.text())
            if self._loaded is not None and spec != self._spec:
                spec.require_fit(self._loaded.info.num_layers, self._loaded.info.num_kv_heads)
        except OctavoError as error:
            self._say(str(error))
        else:
            self.spec_chosen.emit(spec)

    def _say(self, problem: str) -> None:
        is_new = problem not in ("", self.problem)
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        if is_new:
            self.refused.emit()
