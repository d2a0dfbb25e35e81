"""The text of a summary, and who wrote it."""

from __future__ import annotations

from PySide6.QtCore import QSizeF, Qt
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from app.ledger.records import Summary
from ui.inspector.context.words import author_text
from ui.plain_text import plain_label

_MOST_LINES = 6


class SummaryCard(QFrame):
    """What stands in place of turns or of a document; hidden without a summary.

    As high as its text, up to a few lines; longer ones scroll.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "row")
        self._author = plain_label(wraps=True)
        self._author.setProperty("kind", "muted")
        self._text = QTextEdit()
        self._text.setReadOnly(True)
        self._text.setFrameShape(QFrame.Shape.NoFrame)
        self._text.document().setDocumentMargin(0)
        self._text.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._text.setTabChangesFocus(True)
        self._text.setAccessibleName("Text of the summary")
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 8)
        column.setSpacing(6)
        column.addWidget(self._text)
        column.addWidget(self._author)
        self.show_summary(None)

    @property
    def words(self) -> str:
        """What is shown: the text, and below it who wrote it."""
        return f"{self._text.toPlainText()}\n{self._author.text()}"

    def show_summary(self, summary: Summary | None) -> None:
        """Show a summary, None for none."""
        text = "" if summary is None else summary.text
        if text != self._text.toPlainText():  # else what is selected and read there would jump
            self._text.setPlainText(text)
        self._author.setText("" if summary is None else author_text(summary))
        self.setVisible(summary is not None)

    def _fit(self, size: QSizeF) -> None:
        most = _MOST_LINES * self._text.fontMetrics().lineSpacing()
        self._text.setFixedHeight(min(most, round(size.height()) + 2))
