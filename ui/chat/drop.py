"""Files that are dragged over the window or pasted."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.theme import Theme

_INSET = 14


def paths_from_mime(mime: QMimeData) -> list[Path]:
    """Return the local files and folders in `mime`, in their order, each once."""
    paths = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile() and url.toLocalFile()]
    return list(dict.fromkeys(paths))


def refused_urls(mime: QMimeData) -> list[str]:
    """Return the addresses in `mime` that are not local files; nothing is ever fetched from them."""
    return [url.toDisplayString() for url in mime.urls() if not url.isLocalFile()]


class DropOverlay(QWidget):
    """Takes files that are dropped on its parent; a veil says so while they are dragged over it.

    Signals:
        dropped(list): the paths of the files and folders.
    """

    dropped = Signal(list)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._host = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._icon = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        title = QLabel("Drop documents here", alignment=Qt.AlignmentFlag.AlignCenter)
        title.setProperty("kind", "title")
        detail = QLabel(
            "PDF, Word, EPUB, HTML, Markdown, text or code. They stay on this computer.",
            alignment=Qt.AlignmentFlag.AlignCenter,
            wordWrap=True,
        )
        detail.setProperty("kind", "muted")
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addStretch()
        for label in (self._icon, title, detail):
            layout.addWidget(label)
        layout.addStretch()
        self.setAccessibleName("Drop documents here")
        self.hide()
        parent.setAcceptDrops(True)
        parent.installEventFilter(self)

    def show_over(self) -> None:
        """Cover the parent."""
        self._icon.setPixmap(Theme.current().pixmap("import", 40, "accent"))
        self.setGeometry(self._host.rect())
        self.raise_()
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if watched is not self._host:
            return False
        match event.type():
            case QEvent.Type.Resize:
                self.setGeometry(self._host.rect())
            case QEvent.Type.DragEnter if isinstance(event, QDragEnterEvent):
                if paths_from_mime(event.mimeData()):
                    event.acceptProposedAction()
                    self.show_over()
                return True
            case QEvent.Type.DragMove if isinstance(event, QDragMoveEvent):
                event.acceptProposedAction()
                return True
            case QEvent.Type.DragLeave:
                self.hide()
                return True
            case QEvent.Type.Drop if isinstance(event, QDropEvent):
                self.hide()
                if paths := paths_from_mime(event.mimeData()):
                    event.acceptProposedAction()
                    self.dropped.emit(paths)
                return True
        return False

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = palette.color("window")
        veil.setAlphaF(0.93)
        painter.fillRect(self.rect(), veil)
        pen = QPen(palette.color("accent"), 2, Qt.PenStyle.DashLine)
        painter.setPen(pen)
        frame = QRectF(self.rect()).adjusted(_INSET, _INSET, -_INSET, -_INSET)
        painter.drawRoundedRect(frame, 16, 16)
