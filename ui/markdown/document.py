"""Text documents that never fetch anything."""

from __future__ import annotations

import re
from typing import Any

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import QTextDocument, QTextOption

from ui.markdown.style import MarkdownStyle

_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML

_NAMELESS_IMAGE = re.compile(r"(?P<code>(?P<ticks>`+)[^`](?s:.*?)(?P=ticks))|!\[\]\(")


class QuietDocument(QTextDocument):
    """A document without undo whose text direction follows each paragraph, and that loads no resource.

    A model's answer may name any address as an image; asking for it would tell a stranger that it was read.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
        option = QTextOption()
        option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setDefaultTextOption(option)

    def loadResource(self, kind: int, url: QUrl | str) -> Any:  # noqa: D102
        return None

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take the body font and the width of list levels from `style`."""
        self.setDefaultFont(style.font)
        self.setIndentWidth(style.list_indent)


def parse_markdown(markdown: str) -> QuietDocument:
    """Return `markdown` (GitHub's dialect, HTML as plain text) as Qt reads it, not yet styled."""
    document = QuietDocument()
    document.setMarkdown(_NAMELESS_IMAGE.sub(_name_image, markdown), _FEATURES)
    return document


def _name_image(match: re.Match[str]) -> str:
    """Give an image without a text one, because Qt leaves it out otherwise; code stays as it is."""
    return match[0] if match["code"] else "![image]("
