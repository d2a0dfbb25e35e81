"""The right pane: KV precision, sampling and the system prompt."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from app.settings import Settings
from engine.engine import LoadedModel
from engine.kv.precision import KVSpec
from engine.sampling import SamplingParams
from ui.inspector.precision import PrecisionPanel
from ui.inspector.sampling import SamplingPanel
from ui.live_precision import HeldCache
from ui.stored_settings import StoredSettings

_PROMPT_DELAY_MS = 400
_REVEAL_MS = 20
_MIN_WIDTH = 270
_MAX_WIDTH = 420


class InspectorPane(QWidget):
    """Shows and edits the settings of the next message."""

    def __init__(self, settings: StoredSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidePane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._settings = settings
        self.precision = PrecisionPanel(settings.value.kv)
        self.precision.spec_chosen.connect(self._on_kv)
        self.precision.text_refused.connect(self._reveal_later)
        self.sampling = SamplingPanel()
        self.sampling.params_changed.connect(self._on_sampling)
        self.system_prompt = QPlainTextEdit()
        self.system_prompt.setProperty("kind", "field")
        self.system_prompt.setAccessibleName("System prompt")
        self.system_prompt.setPlaceholderText("How the model should behave. Empty: as it was made.")
        self.system_prompt.setTabChangesFocus(True)
        self.system_prompt.setMinimumHeight(110)
        self._prompt_timer = QTimer(self)
        self._prompt_timer.setSingleShot(True)
        self._prompt_timer.setInterval(_PROMPT_DELAY_MS)
        self._prompt_timer.timeout.connect(self.commit)
        self.system_prompt.textChanged.connect(self._prompt_timer.start)
        self._to_reveal: QWidget | None = None
        self._reveal_timer = QTimer(self)
        self._reveal_timer.setSingleShot(True)
        self._reveal_timer.setInterval(_REVEAL_MS)
        self._reveal_timer.timeout.connect(self._reveal)
        self._area = QScrollArea()
        self._lay_out()
        self.setMinimumWidth(_MIN_WIDTH)
        self.setMaximumWidth(_MAX_WIDTH)
        self._show(settings.value)
        settings.changed.connect(self._on_settings)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the figures of the loaded model; None when there is none."""
        self.precision.set_model(loaded)

    def set_held(self, held: HeldCache | None, is_open: bool) -> None:
        """Show what the engine holds, and whether that is the open conversation."""
        self.precision.set_held(held, is_open)

    def commit(self) -> None:
        """Take over the system prompt as typed, without waiting."""
        self._prompt_timer.stop()
        self._settings.update(system_prompt=self.system_prompt.toPlainText().strip())

    def _show(self, settings: Settings) -> None:
        self.sampling.set_params(settings.sampling)
        with QSignalBlocker(self.system_prompt):
            self.system_prompt.setPlainText(settings.system_prompt)

    def _lay_out(self) -> None:
        contents = QWidget()
        contents.setObjectName("scrollContents")
        column = QVBoxLayout(contents)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(12)
        sections = (
            ("KV cache precision", self.precision),
            ("Sampling", self.sampling),
            ("System prompt", self.system_prompt),
        )
        for number, (title, widget) in enumerate(sections):
            if number:
                line = QFrame()
                line.setProperty("kind", "line")
                column.addSpacing(4)
                column.addWidget(line)
                column.addSpacing(4)
            label = QLabel(title)
            label.setProperty("kind", "heading")
            column.addWidget(label)
            column.addWidget(widget)
        column.addStretch(1)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setWidget(contents)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._area)

    def _reveal_later(self, widget: QWidget) -> None:
        """Scroll to `widget` once it is laid out."""
        self._to_reveal = widget
        self._reveal_timer.start()

    def _reveal(self) -> None:
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            self._reveal_timer.start()  # what is pressed must not move away before it is let go
        elif self._to_reveal is not None:
            self._area.ensureWidgetVisible(self._to_reveal, 0, 16)

    def _on_kv(self, kv: KVSpec) -> None:
        self._settings.update(kv=kv)

    def _on_settings(self, settings: Settings) -> None:
        """Follow a precision that was chosen elsewhere, when a model was loaded."""
        if settings.kv != self.precision.spec:
            self.precision.set_spec(settings.kv)

    def _on_sampling(self, params: SamplingParams) -> None:
        self._settings.update(sampling=params)
