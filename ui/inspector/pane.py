"""The right pane: what is set for the conversation, and what its memory does."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.profiles import Profile
from engine.engine import LoadedModel
from engine.kv.precision import KVSpec
from ui.inspector.chat_settings import ChatSettings
from ui.inspector.context.panel import ContextPanel
from ui.inspector.memory.panel import MemoryPanel
from ui.inspector.pages.panel import PagesPanel
from ui.inspector.precision import PrecisionPanel
from ui.inspector.tabs import PanelTabs
from ui.live_precision import HeldCache
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings

_REVEAL_MS = 20
_MIN_WIDTH = 270
_MAX_WIDTH = 420


class InspectorPane(QWidget):
    """Shows and edits the settings of the next message.

    Attributes:
        tabs: the panels, one of them shown.
        chat: system prompt and sampling.
        precision: the KV precision.
        context: what the model reads of the conversation.
        memory: what takes memory, and how short it is.
        pages: the pages of the KV cache.
    """

    def __init__(
        self, settings: StoredSettings, profile: CurrentProfile, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("sidePane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._profile = profile
        self.chat = ChatSettings(settings, profile)
        self.precision = PrecisionPanel(profile.value.kv)
        self.precision.spec_chosen.connect(self._on_kv)
        self.precision.text_refused.connect(self._reveal_later)
        self.tabs = PanelTabs()
        self.tabs.add("Chat", self.chat)
        self._precision_area = self.tabs.add("Precision", self.precision)
        self.context = ContextPanel()
        self.tabs.add("Context", self.context, fills=True)
        self.memory = MemoryPanel()
        self.tabs.add("Memory", self.memory)
        self.pages = PagesPanel()
        self.tabs.add("Pages", self.pages)
        self._to_reveal: QWidget | None = None
        self._reveal_timer = QTimer(self)
        self._reveal_timer.setSingleShot(True)
        self._reveal_timer.setInterval(_REVEAL_MS)
        self._reveal_timer.timeout.connect(self._reveal)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.tabs)
        self.setMinimumWidth(_MIN_WIDTH)
        self.setMaximumWidth(_MAX_WIDTH)
        profile.changed.connect(self._on_profile)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the figures of the loaded model; None when there is none."""
        self.precision.set_model(loaded)
        self.chat.profile.set_model(loaded)
        self.memory.set_model(loaded)
        self.pages.set_model(loaded)

    def set_held(self, held: HeldCache | None, is_open: bool) -> None:
        """Show what the engine holds, and whether that is the open conversation."""
        self.precision.set_held(held, is_open)

    def go_to_chat_settings(self) -> None:
        """Show the settings of the chat, ready to type a system prompt."""
        self.tabs.show_panel("Chat")
        self.chat.system_prompt.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def go_to_ledger(self, key: str) -> None:
        """Show a row of the context."""
        self.tabs.show_panel("Context")
        self.context.view.select(key)

    def _reveal_later(self, widget: QWidget) -> None:
        """Scroll to `widget` once it is laid out."""
        self._to_reveal = widget
        self._reveal_timer.start()

    def _reveal(self) -> None:
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            self._reveal_timer.start()  # what is pressed must not move away before it is let go
        elif self._to_reveal is not None:
            self._precision_area.ensureWidgetVisible(self._to_reveal, 0, 16)

    def _on_kv(self, kv: KVSpec) -> None:
        self._profile.update(kv=kv)

    def _on_profile(self, profile: Profile) -> None:
        """Follow a precision that was chosen elsewhere, and that of another conversation."""
        if profile.kv != self.precision.spec:
            self.precision.set_spec(profile.kv)
