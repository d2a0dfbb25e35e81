"""The right side of the window: the inspector, or a document in its place."""

from __future__ import annotations

from PySide6.QtWidgets import QSplitter, QStackedWidget, QWidget

from ui.documents.pane import ReaderPane

_LEAST_WIDTH = 330
_MOST_WIDTH = 900
_WIDTH = 480
"""What a document gets first, where the window has room for it."""


class SidePane(QStackedWidget):
    """Shows the inspector until a document is to be read; each has its own width.

    Attributes:
        reader: the document.
    """

    def __init__(self, inspector: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reader = ReaderPane()
        self._inspector = inspector
        self._widths = {False: 0, True: _WIDTH}
        self.addWidget(inspector)
        self.addWidget(self.reader)
        self._take_bounds()

    @property
    def has_document(self) -> bool:
        """Whether a document is in the place of the inspector."""
        return self.currentWidget() is self.reader

    def show_document(self, is_document: bool) -> None:
        """Put the document in the place of the inspector, or the inspector back."""
        if is_document == self.has_document:
            return
        self._widths[not is_document] = self.width()
        self.setCurrentWidget(self.reader if is_document else self._inspector)
        self._take_bounds()
        self._resize_to(self._widths[is_document])

    def _take_bounds(self) -> None:
        """Be as narrow and as wide as what is shown may be."""
        least, most = self._inspector.minimumWidth(), self._inspector.maximumWidth()
        if self.has_document:
            least, most = _LEAST_WIDTH, _MOST_WIDTH
        self.setMinimumWidth(least)
        self.setMaximumWidth(most)

    def _resize_to(self, width: int) -> None:
        """Take the width from the conversation, or give it back."""
        splitter = self.parentWidget()
        if isinstance(splitter, QSplitter) and width and not self.isHidden():
            sizes = splitter.sizes()
            place = splitter.indexOf(self)
            sizes[place - 1] += sizes[place] - width
            sizes[place] = width
            splitter.setSizes(sizes)
