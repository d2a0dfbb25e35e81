"""Where models come from that are in no list: Hugging Face by name, and files on this computer."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout


class ModelSources(QFrame):
    """Asks for a model's name on Hugging Face, or for a file or folder to import.

    Signals:
        hub_requested: the name that was written, not checked yet.
        import_requested: the path that was chosen.
    """

    hub_requested = Signal(str)
    import_requested = Signal(Path)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("sidePane")
        self._hub_id = QLineEdit()
        self._hub_id.setPlaceholderText("mlx-community/Qwen3-4B-4bit")
        self._hub_id.setAccessibleName("Model name on Hugging Face")
        self._hub_id.returnPressed.connect(self._get)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 14, 24, 16)
        column.setSpacing(10)
        column.addLayout(self._hub_line())
        column.addLayout(self._import_line())

    def clear(self) -> None:
        """Take the name away, as when it is being downloaded."""
        self._hub_id.clear()

    def _hub_line(self) -> QHBoxLayout:
        get = QPushButton("Get")
        get.setAccessibleName("Get the named model from Hugging Face")
        get.setAutoDefault(False)
        get.clicked.connect(self._get)
        label = QLabel("Get from Hugging Face")
        label.setBuddy(self._hub_id)
        line = QHBoxLayout()
        line.addWidget(label)
        line.addWidget(self._hub_id, 1)
        line.addWidget(get)
        return line

    def _import_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.addWidget(QLabel("Import what you have"))
        line.addStretch(1)
        for words, slot in (("GGUF file…", self._import_file), ("MLX folder…", self._import_folder)):
            button = QPushButton(words)
            button.setAccessibleName(f"Import {words.rstrip('…')}")
            button.setAutoDefault(False)
            button.clicked.connect(slot)
            line.addWidget(button)
        return line

    def _get(self) -> None:
        text = self._hub_id.text().strip()
        if text:
            self.hub_requested.emit(text)
        else:
            self._hub_id.setFocus()

    def _import_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self, "Import a GGUF file", "", "GGUF files (*.gguf);;All files (*)"
        )
        if name:
            self.import_requested.emit(Path(name))

    def _import_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Import a folder in MLX form")
        if name:
            self.import_requested.emit(Path(name))
