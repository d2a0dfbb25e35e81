"""The models on this computer and those that can be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.models.catalogue import CatalogueEntry, catalogue
from app.models.library import InstalledModel, ModelLibrary
from app.models.source import HubSource
from engine.cancel import CancelToken
from engine.errors import OctavoError, sentence_of
from engine.wording import format_nbytes
from ui.background import BackgroundJob, Report
from ui.models.download_bar import DownloadBar
from ui.models.downloads import Downloads
from ui.models.row import ModelRow
from ui.models.sources import ModelSources
from ui.plain_text import plain_label
from ui.theme import Theme

_Sized = TypeVar("_Sized", InstalledModel, CatalogueEntry)


class ModelChooser(QDialog):
    """Lists, gets and imports models; loading and removing one is asked for.

    With `most_nbytes` only models of at most that size are listed, the largest first, until all are wanted.

    Signals:
        load_requested: the `InstalledModel` to load.
        removal_requested: the `InstalledModel` to remove.
    """

    load_requested = Signal(object)
    removal_requested = Signal(object)

    def __init__(
        self,
        library: ModelLibrary,
        downloads: Downloads,
        loaded_path: Path | None,
        parent: QWidget | None = None,
        *,
        most_nbytes: int | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Models")
        self._library = library
        self._downloads = downloads
        self._loaded_path = loaded_path
        self._most_nbytes = most_nbytes
        self._message = plain_label(wraps=True)
        self._message.setProperty("kind", "danger")
        self._message.hide()
        self._sources = ModelSources()
        self._sources.hub_requested.connect(self._get_from_hub)
        self._sources.import_requested.connect(self.import_path)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._lay_out()
        downloads.finished.connect(self._on_finished)
        downloads.failed.connect(self._on_download_failed)
        self.refresh()

    def refresh(self) -> None:
        """Read the lists again."""
        position = self._area.verticalScrollBar().value()
        try:
            installed, unfinished = self._library.installed(), self._library.unfinished()
        except OctavoError as error:
            self.say(error)
            installed, unfinished = [], []
        here = {model.id for model in installed if model.managed}
        installed = self._fitting(installed)
        offers = self._fitting([entry for entry in catalogue() if entry.id not in here])
        contents = QWidget()
        contents.setObjectName("scrollContents")
        column = QVBoxLayout(contents)
        column.setContentsMargins(24, 4, 24, 16)
        column.setSpacing(8)
        if self._most_nbytes is not None:
            column.addWidget(self._filter_row(self._most_nbytes))
        if installed:
            column.addWidget(_section("On this computer"))
            for model in installed:
                column.addWidget(self._installed_row(model))
            column.addSpacing(10)
        others = [
            id for id in {*unfinished, *self._downloads.sources} if id not in {e.id for e in catalogue()}
        ]
        column.addWidget(_section("Get a model"))
        for id in sorted(set(others) - here):
            column.addWidget(self._offer_row(id, id, "From Hugging Face"))
        for entry in offers:
            column.addWidget(self._offer_row(entry.id, entry.title, _describe(entry)))
        if self._most_nbytes is not None and not (installed or offers):
            nothing = plain_label("No model here is as small. Get another one below.", wraps=True)
            nothing.setProperty("kind", "muted")
            column.addWidget(nothing)
        column.addStretch(1)
        self._area.setWidget(contents)
        self._area.verticalScrollBar().setValue(position)

    def _fitting(self, models: Sequence[_Sized]) -> list[_Sized]:
        """Return the models that are listed, the largest first where only some are."""
        most = self._most_nbytes
        if most is None:
            return list(models)
        return sorted((each for each in models if each.nbytes <= most), key=lambda each: -each.nbytes)

    def _filter_row(self, most_nbytes: int) -> QWidget:
        words = QLabel(f"Models of at most {format_nbytes(most_nbytes)}")
        words.setProperty("kind", "muted")
        everything = QPushButton("Show all")
        everything.setProperty("kind", "link")
        everything.setAutoDefault(False)
        everything.setAccessibleName("Show all models")
        everything.clicked.connect(lambda: self.show_only(None))
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(words)
        line.addWidget(everything)
        line.addStretch(1)
        return row

    def show_only(self, most_nbytes: int | None) -> None:
        """List only models of at most this size; None for all."""
        self._most_nbytes = most_nbytes
        self.refresh()
        self._area.verticalScrollBar().setValue(0)

    def _lay_out(self) -> None:
        title = QLabel("Models")
        title.setProperty("kind", "title")
        close = QPushButton("Close")
        close.setAutoDefault(False)
        close.clicked.connect(self.reject)
        head = QHBoxLayout()
        head.setContentsMargins(24, 20, 24, 0)
        head.addWidget(title, 1)
        head.addWidget(close)
        notice = QVBoxLayout()
        notice.setContentsMargins(24, 0, 24, 0)
        notice.addWidget(self._message)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(head)
        column.addLayout(notice)
        column.addWidget(self._area, 1)
        column.addWidget(self._sources)
        self.resize(680, 640)

    def _installed_row(self, model: InstalledModel) -> QWidget:
        where = "" if model.managed else f" · {_home_relative(model.path)}"
        loaded = model.path == self._loaded_path
        row = ModelRow(model.title, format_nbytes(model.nbytes) + where + (" · loaded" if loaded else ""))
        load = QPushButton("Load again" if loaded else "Load")
        load.setAccessibleName(f"Load {model.title}")
        load.setAutoDefault(False)
        if not loaded:
            load.setProperty("kind", "primary")
        load.clicked.connect(lambda: self.load_requested.emit(model))
        remove = QToolButton()
        remove.setIcon(Theme.current().icon("trash"))
        remove.setIconSize(QSize(18, 18))
        remove.setToolTip("Remove…")
        remove.setAccessibleName(f"Remove {model.title}")
        remove.clicked.connect(lambda: self._remove(model))
        row.add(remove)
        row.add(load)
        return row

    def _offer_row(self, source: str, title: str, detail: str) -> QWidget:
        row = ModelRow(title, detail)
        row.add(DownloadBar(self._downloads, source, title, "Get"))
        return row

    def _get_from_hub(self, text: str) -> None:
        try:
            source = HubSource.parse(text).id
        except OctavoError as error:
            self.say(error)
            return
        self._message.hide()
        self._sources.clear()
        self._downloads.start(source)
        self.refresh()
        self._area.verticalScrollBar().setValue(0)

    def import_path(self, path: Path) -> None:
        """Add a model that lies somewhere on this computer."""
        library = self._library

        def work(_cancel: CancelToken, _report: Report) -> InstalledModel:
            return library.import_path(path)

        self._message.hide()
        job = BackgroundJob(work)
        job.done.connect(self._on_imported)
        job.failed.connect(self.say)
        job.start()

    def _remove(self, model: InstalledModel) -> None:
        question = (
            f"Delete {model.title}? {format_nbytes(model.nbytes)} become free; it can be downloaded again."
            if model.managed
            else f"Forget {model.title}? Its files stay where they are."
        )
        box = QMessageBox(QMessageBox.Icon.NoIcon, "Remove model", question, parent=self)
        box.setTextFormat(Qt.TextFormat.PlainText)
        remove = box.addButton(
            "Delete" if model.managed else "Forget", QMessageBox.ButtonRole.DestructiveRole
        )
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.exec()
        if box.clickedButton() is remove:
            self.removal_requested.emit(model)

    def _on_imported(self, _model: InstalledModel) -> None:
        self.refresh()
        self._area.verticalScrollBar().setValue(0)

    def _on_finished(self, _source: str, _model: InstalledModel) -> None:
        self.refresh()

    def _on_download_failed(self, _source: str, error: Exception) -> None:
        self.say(error)

    def say(self, error: Exception) -> None:
        """Show what went wrong."""
        self._message.setText(sentence_of(error))
        self._message.show()


def _section(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", "section")
    return label


def _describe(entry: CatalogueEntry) -> str:
    size = f"{format_nbytes(entry.nbytes)} · {entry.licence} · {entry.context_tokens:,} tokens"
    return f"{size}\n{entry.description}"


def _home_relative(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)
