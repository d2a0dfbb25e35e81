"""Colours, icons and the style sheet, in light and dark."""

from __future__ import annotations

import string
import tomllib
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QByteArray, QDir, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QStyleFactory

RESOURCES = Path(str(files("resources")))
CHOICES = ("system", "light", "dark")
_ICON_SIZES = (16, 20, 24, 32, 48, 64)


@dataclass(frozen=True)
class Palette:
    """Colours by role, as `#rrggbb`.

    Attributes:
        window: behind the conversation.
        panel: behind the side panes.
        surface: cards, inputs, menus.
        hover, pressed, selected: states of rows and flat buttons.
        border, border_strong: lines between surfaces, and around inputs.
        text, text_muted, text_faint: from most to least important.
        accent, accent_hover, on_accent, accent_soft: the one strong colour, text on it, and its tint.
        bubble: behind the user's messages.
        code: behind code.
        info, warning, danger and their `_soft`: text and background of notices.
        tier_hot, tier_warm, tier_cold, tier_disk: pages by precision; told apart without colour vision too.
        chart_weights, chart_cache, chart_rest, chart_idle, chart_open: what else takes memory.
        span_system, span_document, span_turn, span_summary: what the context consists of.
    """

    window: str
    panel: str
    surface: str
    hover: str
    pressed: str
    selected: str
    border: str
    border_strong: str
    text: str
    text_muted: str
    text_faint: str
    accent: str
    accent_hover: str
    on_accent: str
    accent_soft: str
    bubble: str
    code: str
    link: str
    info: str
    info_soft: str
    warning: str
    warning_soft: str
    danger: str
    danger_soft: str
    success: str
    tier_hot: str
    tier_warm: str
    tier_cold: str
    tier_disk: str
    chart_weights: str
    chart_cache: str
    chart_rest: str
    chart_idle: str
    chart_open: str
    span_system: str
    span_document: str
    span_turn: str
    span_summary: str

    @classmethod
    @cache
    def load(cls, name: str) -> Palette:
        """Return the palette `light` or `dark` from `resources/themes`."""
        return cls(**tomllib.loads((RESOURCES / "themes" / f"{name}.toml").read_text("utf-8")))

    def color(self, role: str) -> QColor:
        """Return the colour of `role`."""
        return QColor(str(getattr(self, role)))

    def qpalette(self) -> QPalette:
        """Return the same colours as Qt's roles, for what the style sheet does not reach."""
        roles = {
            QPalette.ColorRole.Window: self.window,
            QPalette.ColorRole.WindowText: self.text,
            QPalette.ColorRole.Base: self.surface,
            QPalette.ColorRole.AlternateBase: self.panel,
            QPalette.ColorRole.Text: self.text,
            QPalette.ColorRole.PlaceholderText: self.text_faint,
            QPalette.ColorRole.Button: self.surface,
            QPalette.ColorRole.ButtonText: self.text,
            QPalette.ColorRole.BrightText: self.danger,
            QPalette.ColorRole.ToolTipBase: self.surface,
            QPalette.ColorRole.ToolTipText: self.text,
            QPalette.ColorRole.Highlight: self.accent,
            QPalette.ColorRole.HighlightedText: self.on_accent,
            QPalette.ColorRole.Accent: self.accent,
            QPalette.ColorRole.Link: self.link,
            QPalette.ColorRole.LinkVisited: self.link,
            QPalette.ColorRole.Light: self.hover,
            QPalette.ColorRole.Midlight: self.hover,
            QPalette.ColorRole.Mid: self.border,
            QPalette.ColorRole.Dark: self.border_strong,
            QPalette.ColorRole.Shadow: self.border_strong,
        }
        palette = QPalette()
        for role, color in roles.items():
            palette.setColor(role, QColor(color))
        for role in (QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText, QPalette.ColorRole.WindowText):
            palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(self.text_faint))
        return palette


class Theme(QObject):
    """The look of the whole application: one object, shared by every widget that paints by itself.

    Attributes:
        choice: `system`, `light` or `dark`, as the user chose.
        is_dark: which of the two is shown now.
        palette: the colours shown now.

    Signals:
        changed: the palette changed; the style sheet is applied already.
    """

    changed = Signal()
    _current: ClassVar[Theme | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.choice = "system"
        self.is_dark = False
        self.palette = Palette.load("light")
        QDir.setSearchPaths("icons", [str(RESOURCES / "icons")])
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)

    @classmethod
    def current(cls) -> Theme:
        """Return the application's theme, made on the first call; a QApplication must exist."""
        if cls._current is None:
            cls._current = cls()
        return cls._current

    def set_choice(self, choice: str) -> None:
        """Show `light` or `dark`, or follow the `system`."""
        if choice not in CHOICES:
            raise ValueError(choice)
        self.choice = choice
        self._apply()

    def icon(self, name: str, role: str = "text_muted") -> QIcon:
        """Return the icon `resources/icons/<name>.svg` in the colour of `role`, fainter when disabled."""
        return _icon(name, str(getattr(self.palette, role)), self.palette.border_strong)

    def pixmap(self, name: str, size: int, role: str = "text_muted") -> QPixmap:
        """Return one icon as a pixmap of `size` logical pixels, sharp on this screen."""
        ratio = QGuiApplication.primaryScreen().devicePixelRatio() if QGuiApplication.primaryScreen() else 1.0
        pixmap = _pixmap(name, str(getattr(self.palette, role)), round(size * ratio))
        pixmap.setDevicePixelRatio(ratio)
        return pixmap

    def _follow_system(self, _scheme: Qt.ColorScheme) -> None:
        if self.choice == "system":
            self._apply()

    def _apply(self) -> None:
        system_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        self.is_dark = self.choice == "dark" or (self.choice == "system" and system_dark)
        self.palette = Palette.load("dark" if self.is_dark else "light")
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.setStyle(QStyleFactory.create("Fusion"))
            app.setPalette(self.palette.qpalette())
            app.setStyleSheet(style_sheet(self.palette))
        self.changed.emit()


def style_sheet(palette: Palette) -> str:
    """Return the application's style sheet with the colours of `palette` filled in."""
    template = (RESOURCES / "themes" / "octavo.qss").read_text("utf-8")
    check = "check-light.svg" if palette == Palette.load("light") else "check-dark.svg"
    return string.Template(template).substitute(asdict(palette), check_icon=check)


def app_icon() -> QIcon:
    """Return the application's own icon, in its own colours."""
    return _icon("octavo", "#000000", "#000000")


@lru_cache(maxsize=512)
def _icon(name: str, color: str, disabled_color: str) -> QIcon:
    icon = QIcon()
    for size in _ICON_SIZES:
        icon.addPixmap(_pixmap(name, color, size))
        icon.addPixmap(_pixmap(name, disabled_color, size), QIcon.Mode.Disabled)
    return icon


def _pixmap(name: str, color: str, size: int) -> QPixmap:
    svg = (RESOURCES / "icons" / f"{name}.svg").read_text("utf-8").replace("currentColor", color)
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return pixmap
