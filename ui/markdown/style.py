"""Fonts and colours of written Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QFontMetricsF
from PySide6.QtWidgets import QApplication

from ui.theme import Theme

PARAGRAPH_GAP = 0.65
"""Space below a paragraph, in em."""
HEADING_SCALE = (1.5, 1.28, 1.12, 1.0, 1.0, 1.0)


@dataclass(frozen=True)
class MarkdownStyle:
    """The look of text at one moment: the application's font in the theme's colours.

    Attributes:
        font: the body text's font.
        mono: the font of code.
        em: the body font's height in pixels, the unit of all spacing.
        is_dark: whether the colours are the dark ones.
    """

    font: QFont
    mono: QFont
    em: float
    text: QColor
    muted: QColor
    link: QColor
    code_background: QColor
    border: QColor
    is_dark: bool

    @classmethod
    def current(cls) -> MarkdownStyle:
        """Return the style that the application's font and theme ask for now."""
        theme = Theme.current()
        font = QFont(QApplication.font())
        size = QFontInfo(font).pointSizeF()
        font.setPointSizeF(size * 1.06)
        mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        mono.setPointSizeF(size * 0.97)
        return cls(
            font=font,
            mono=mono,
            em=QFontMetricsF(font).height(),
            text=theme.palette.color("text"),
            muted=theme.palette.color("text_muted"),
            link=theme.palette.color("link"),
            code_background=theme.palette.color("code"),
            border=theme.palette.color("border_strong"),
            is_dark=theme.is_dark,
        )

    @property
    def list_indent(self) -> float:
        """Width of one level of a list: room for a marker such as `10.`."""
        return QFontMetricsF(self.font).horizontalAdvance("00. ")

    def heading_size(self, level: int) -> float:
        """Point size of a heading of `level` 1 to 6."""
        return self.font.pointSizeF() * HEADING_SCALE[level - 1]
