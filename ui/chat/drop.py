"""What is dragged over the window or pasted: files, text, and what cannot be taken, with a sentence why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.theme import Theme

_INSET = 14
_PROMISES = ("promise", "xdnddirectsave", "filecontents")
"""What formats are called that stand for a file which the other program writes only afterwards."""
_FILE_TYPES = {
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "message/rfc822": ".eml",
}
"""Formats in which the content of a file itself may be handed over, and what such a file is called."""
_SAVE_FIRST = "That program hands the file over only later. Save the file first, then drop it here."
_ADDRESS = "That is an address, not a file on this computer. Download it first, then drop the file here."
_IMAGE = "Images cannot be read. Drop a document, or paste its text."
_NOTHING = "There is no file and no text in what was dropped. Save it as a file first, then drop it here."


@dataclass(frozen=True)
class FileData:
    """The content of a file that another program handed over without a file.

    Attributes:
        name: what it is called here.
        content: its bytes.
    """

    name: str
    content: bytes


def paths_from_mime(mime: QMimeData) -> list[Path]:
    """Return the local files and folders in `mime`, in their order, each once."""
    paths = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile() and url.toLocalFile()]
    return list(dict.fromkeys(paths))


def refused_urls(mime: QMimeData) -> list[str]:
    """Return the addresses in `mime` that are not local files; nothing is ever fetched from them."""
    return [url.toDisplayString() for url in mime.urls() if not url.isLocalFile()]


def data_from_mime(mime: QMimeData) -> FileData | None:
    """Return the content of a document in `mime` that comes without a file; None where there is none."""
    for form, suffix in _FILE_TYPES.items():
        if mime.hasFormat(form) and (content := bytes(mime.data(form).data())):
            return FileData(f"Dropped document{suffix}", content)
    return None


def refusal(mime: QMimeData) -> str:
    """Return why nothing of what is neither a local file nor text can be taken."""
    names = [name.lower() for name in mime.formats()]
    if any(word in name for name in names for word in _PROMISES):
        return _SAVE_FIRST
    if refused_urls(mime):
        return _ADDRESS
    return _IMAGE if mime.hasImage() or any(name.startswith("image/") for name in names) else _NOTHING


class DropOverlay(QWidget):
    """Takes what is dropped on its parent; a veil says so while files are dragged over it.

    Signals:
        dropped(list): the paths of the files and folders.
        data_dropped(FileData): a document that came without a file.
        text_dropped(str): text that was dragged from elsewhere.
        refused(str): why what was dropped cannot be taken, in a sentence.
    """

    dropped = Signal(list)
    data_dropped = Signal(object)
    text_dropped = Signal(str)
    refused = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._host = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._icon = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        title = QLabel("Drop documents here", alignment=Qt.AlignmentFlag.AlignCenter)
        title.setProperty("kind", "title")
        detail = QLabel(
            "Files or a folder: PDF, Word, EPUB, HTML, Markdown, text or code. They stay on this computer.",
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
            case QEvent.Type.DragEnter | QEvent.Type.DragMove if isinstance(event, QDragMoveEvent):
                self._take_drag(event)
                return True
            case QEvent.Type.DragLeave:
                self.hide()
                return True
            case QEvent.Type.Drop if isinstance(event, QDropEvent):
                self.hide()
                self._take_drop(event)
                return True
        return False

    def _take_drag(self, event: QDragMoveEvent) -> None:
        """Let anything from elsewhere be dropped, if only to say why it cannot be taken.

        What is moved inside the window is not for the conversation: accepted, it would be taken out there.
        """
        if event.source() is not None:
            event.ignore()
            return
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        if isinstance(event, QDragEnterEvent) and paths_from_mime(event.mimeData()):
            self.show_over()

    def _take_drop(self, event: QDropEvent) -> None:
        """Take files before anything else: text beside them is only their names."""
        mime = event.mimeData()
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        if paths := paths_from_mime(mime):
            self.dropped.emit(paths)
        elif (data := data_from_mime(mime)) is not None:
            self.data_dropped.emit(data)
        elif mime.hasText() and not mime.hasUrls():
            self.text_dropped.emit(mime.text())
        else:
            self.refused.emit(refusal(mime))

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
