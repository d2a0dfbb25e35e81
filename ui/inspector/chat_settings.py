"""What a conversation is told and how its next token is chosen: profile, system prompt and sampling."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, QTimer
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app.settings import Settings
from engine.sampling import SamplingParams
from ui.inspector.sampling import SamplingPanel
from ui.profiles.current import CurrentProfile
from ui.profiles.editor import ProfileEditor
from ui.stored_settings import StoredSettings

_PROMPT_DELAY_MS = 400


class ChatSettings(QWidget):
    """Shows and edits the profile, the system prompt and the sampling of the next message.

    Attributes:
        profile: what the profile sets beside the precision.
        system_prompt: the field.
        sampling: the sampling settings.
    """

    def __init__(
        self, settings: StoredSettings, current: CurrentProfile, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self.profile = ProfileEditor(current)
        self.sampling = SamplingPanel()
        self.sampling.params_changed.connect(self._on_sampling)
        self.system_prompt = QPlainTextEdit()
        self.system_prompt.setProperty("kind", "field")
        self.system_prompt.setAccessibleName("System prompt")
        self.system_prompt.setPlaceholderText("How the model should behave. Empty: as it was made.")
        self.system_prompt.setTabChangesFocus(True)
        self.system_prompt.setMinimumHeight(110)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PROMPT_DELAY_MS)
        self._timer.timeout.connect(self.commit)
        self.system_prompt.textChanged.connect(self._timer.start)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(12)
        self.add_section("Profile", self.profile)
        self.add_section("System prompt", self.system_prompt)
        self.add_section("Sampling", self.sampling)
        self._show(settings.value)

    def add_section(self, title: str, widget: QWidget) -> None:
        """Put a titled part below the others."""
        if self._column.count():
            line = QFrame()
            line.setProperty("kind", "line")
            self._column.addWidget(line)
        label = QLabel(title)
        label.setProperty("kind", "heading")
        self._column.addWidget(label)
        self._column.addWidget(widget)

    def commit(self) -> None:
        """Take over the system prompt as typed, without waiting."""
        self._timer.stop()
        self._settings.update(system_prompt=self.system_prompt.toPlainText().strip())

    def _show(self, settings: Settings) -> None:
        self.sampling.set_params(settings.sampling)
        with QSignalBlocker(self.system_prompt):
            self.system_prompt.setPlainText(settings.system_prompt)

    def _on_sampling(self, params: SamplingParams) -> None:
        self._settings.update(sampling=params)
