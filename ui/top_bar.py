"""The bar above the conversation: panes, model, profile, look."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from engine.engine import LoadedModel
from engine.events import LoadProgress, LoadStage
from engine.wording import format_nbytes
from ui.plain_text import plain_tip
from ui.profiles.menu import MAX_NAME_WIDTH, ProfileButton
from ui.theme import Theme

_THEME_ICONS = {"system": "contrast", "light": "sun", "dark": "moon"}
_MOST_NAME_WIDTH = 320
"""Pixels of a model's name."""
_LEAST_NAMES_WIDTH = 120
"""Pixels of the names of model and profile together."""
_PROFILE_SHARE = 0.4
"""The share of these that the profile takes at most."""
_OTHERS_WIDTH = 280
"""Pixels of what else is in the bar beside the names."""
_THEME_NAMES = {"system": "as the system", "light": "light", "dark": "dark"}


class TopBar(QWidget):
    """Shows the model or how far it is loaded, and switches profile, panes and look.

    Attributes:
        profile_button: shows the profile and chooses another, once it is connected to one.

    Signals:
        model_clicked, eject_clicked, stop_clicked: the user wants another model, none, or loading to stop.
        theme_clicked: the user wants the next look.
    """

    model_clicked = Signal()
    eject_clicked = Signal()
    stop_clicked = Signal()
    theme_clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("topBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.left_toggle = _tool("Show or hide the conversations", checkable=True)
        self.right_toggle = _tool("Show or hide the settings", checkable=True)
        self.theme_button = _tool("Look")
        self.theme_button.clicked.connect(self.theme_clicked)
        self.model_button = QPushButton("Choose a model")
        self.model_button.setObjectName("modelButton")
        self.model_button.clicked.connect(self.model_clicked)
        self.profile_button = ProfileButton()
        self._eject = _tool("Eject the model")
        self._eject.clicked.connect(self.eject_clicked)
        self._loading_text = QLabel()
        self._loading_bar = QProgressBar()
        self._loading_bar.setTextVisible(False)
        self._loading_bar.setFixedWidth(150)
        self._loading_bar.setAccessibleName("Loading the model")
        self._stop = QPushButton("Stop (Esc)")
        self._stop.setAccessibleName("Stop loading the model")
        self._stop.clicked.connect(self.stop_clicked)
        self._stack = QStackedWidget()
        self._model_name = ""
        self._lay_out()
        self.set_model(None)
        self._restyle()
        Theme.current().changed.connect(self._restyle)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the loaded model, or that there is none."""
        self._stack.setCurrentIndex(0)
        self._model_name = loaded.info.name if loaded is not None else ""
        self._eject.setVisible(loaded is not None)
        if loaded is None:
            self.model_button.setAccessibleName("Choose a model")
            self.model_button.setToolTip("Choose a model (Ctrl+L)")
        else:
            self.model_button.setAccessibleName(f"Model: {loaded.info.name}. Choose another")
            weights = format_nbytes(loaded.plan.weights_nbytes)
            self.model_button.setToolTip(
                plain_tip(
                    f"{loaded.info.name}\n{loaded.info.quantization}, {weights} in memory, "
                    f"{loaded.plan.fitting_tokens:,} tokens of context"
                )
            )
        self._show_name()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        self._show_name()

    def set_progress(self, progress: LoadProgress | None) -> None:
        """Show how far loading has come; None when it just began."""
        self._stack.setCurrentIndex(1)
        stage = progress.stage if progress is not None else LoadStage.READING
        self._loading_text.setText(f"{stage.value}…")
        known = progress is not None and progress.total > 0
        self._loading_bar.setRange(0, 1000 if known else 0)
        if progress is not None and known:
            self._loading_bar.setValue(round(1000 * progress.done / progress.total))

    def _show_name(self) -> None:
        """Shorten the names of model and profile to the room beside all else."""
        room = max(_LEAST_NAMES_WIDTH, self.width() - _OTHERS_WIDTH)
        self.profile_button.set_name_width(min(MAX_NAME_WIDTH, int(room * _PROFILE_SHARE)))
        self.model_button.ensurePolished()  # the style sheet makes the letters wider
        name = self.model_button.fontMetrics().elidedText(
            self._model_name or "Choose a model",
            Qt.TextElideMode.ElideMiddle,
            min(_MOST_NAME_WIDTH, room - self.profile_button.shown_name_width),
        )
        self.model_button.setText(name)

    def _lay_out(self) -> None:
        model = QWidget()
        line = QHBoxLayout(model)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(2)
        line.addStretch(1)
        line.addWidget(self.model_button)
        line.addWidget(self._eject)
        line.addSpacing(6)
        line.addWidget(self.profile_button)
        line.addStretch(1)
        loading = QWidget()
        line = QHBoxLayout(loading)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(12)
        line.addStretch(1)
        line.addWidget(self._loading_text)
        line.addWidget(self._loading_bar)
        line.addWidget(self._stop)
        line.addStretch(1)
        self._stack.addWidget(model)
        self._stack.addWidget(loading)
        self._stack.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 6, 10, 6)
        row.addWidget(self.left_toggle)
        row.addWidget(self._stack, 1)
        row.addWidget(self.theme_button)
        row.addWidget(self.right_toggle)

    def _restyle(self) -> None:
        theme = Theme.current()
        self.left_toggle.setIcon(theme.icon("panel-left"))
        self.right_toggle.setIcon(theme.icon("panel-right"))
        self.theme_button.setIcon(theme.icon(_THEME_ICONS[theme.choice]))
        words = f"Look: {_THEME_NAMES[theme.choice]}"
        self.theme_button.setToolTip(words)
        self.theme_button.setAccessibleName(words)
        self._eject.setIcon(theme.icon("eject"))
        self.model_button.setIcon(theme.icon("chip"))
        self.model_button.setIconSize(QSize(18, 18))


def _tool(name: str, *, checkable: bool = False) -> QToolButton:
    button = QToolButton()
    button.setAccessibleName(name)
    button.setToolTip(name)
    button.setIconSize(QSize(20, 20))
    button.setCheckable(checkable)
    if checkable:
        button.setProperty("kind", "toggle")
    return button
