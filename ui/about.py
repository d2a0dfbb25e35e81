"""What Octavo is and what it stands on."""

from __future__ import annotations

from importlib.metadata import version

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from ui.notifications import versions
from ui.theme import app_icon

_LICENCES = """\
Octavo: Apache-2.0
MLX and mlx-lm: MIT
Qt and PySide6: LGPL-3.0
OpenBLAS: BSD-3-Clause
pypdfium2: Apache-2.0 or BSD-3-Clause, with PDFium: BSD-3-Clause
charset-normalizer, platformdirs, tomli-w: MIT
sqlite-utils, huggingface_hub, transformers, tokenizers: Apache-2.0
click, lxml, Pygments, psutil: BSD"""


class AboutDialog(QDialog):
    """Name, version, licences, and the versions to copy into a report."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About Octavo")
        logo = QLabel()
        logo.setPixmap(app_icon().pixmap(64, 64))
        title = QLabel(f"Octavo {version('octavo')}")
        title.setProperty("kind", "title")
        line = QLabel(
            "Chat with language models on your own computer, with long contexts that fit in memory."
        )
        line.setWordWrap(True)
        line.setProperty("kind", "muted")
        self._text = QPlainTextEdit(f"{versions()}\n\nLicences\n{_LICENCES}")
        self._text.setProperty("kind", "field")
        self._text.setReadOnly(True)
        self._text.setAccessibleName("Versions and licences")
        copy = QPushButton("Copy versions")
        copy.clicked.connect(self._copy)
        close = QPushButton("Close")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        buttons = QHBoxLayout()
        buttons.addWidget(copy)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 22, 24, 20)
        column.setSpacing(10)
        for widget in (logo, title, line):
            column.addWidget(widget)
        column.addWidget(self._text, 1)
        column.addLayout(buttons)
        self.resize(520, 480)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(versions())


def show_about(parent: QWidget) -> None:
    """Show it until it is closed."""
    dialog = AboutDialog(parent)
    dialog.exec()
    dialog.deleteLater()
