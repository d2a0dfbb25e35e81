"""Which model is loaded, and all ways to get there."""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.models.library import InstalledModel, ModelLibrary
from app.models.source import STARTER_ID
from app.paths import AppPaths
from app.settings import DEFAULT_KV
from engine.admission import AdmissionError, Choice, LowerPrecision, ShorterContext, SmallerModel
from engine.cancel import CancelToken
from engine.engine import LoadedModel
from engine.errors import OctavoError
from engine.kv.precision import PrecisionError
from ui.admission import RefusalPanel, confirm_anyway, risk_words
from ui.background import BackgroundJob, Report
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState
from ui.models.chooser import ModelChooser
from ui.models.downloads import Downloads
from ui.models.load_sheet import LoadSheet
from ui.notifications import Notifications
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings

log = logging.getLogger(__name__)


class ModelController(QObject):
    """Loads, ejects, downloads and remembers models for one window.

    Attributes:
        library: the models on this computer.
        downloads: what is being downloaded.

    Signals:
        library_changed: a model came or went.
    """

    library_changed = Signal()

    def __init__(
        self,
        paths: AppPaths,
        engine: EngineThread,
        settings: StoredSettings,
        profile: CurrentProfile,
        notifications: Notifications,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self.library = ModelLibrary(paths)
        self.downloads = Downloads(self.library, self)
        self._engine = engine
        self._settings = settings
        self._profile = profile
        self._notifications = notifications
        self._window = window
        self._chooser: ModelChooser | None = None
        self._has_models: bool | None = None
        self._refusal: RefusalPanel | None = None
        self._refused_path: Path | None = None
        self._refused_error: AdmissionError | None = None
        self.downloads.finished.connect(self._on_downloaded)
        self.downloads.failed.connect(self._on_download_failed)
        engine.model_loaded.connect(self._on_loaded)
        engine.kv_refused.connect(self._on_kv_refused)
        engine.load_refused.connect(self._on_refused)
        engine.state_changed.connect(self._on_state)

    @property
    def has_models(self) -> bool:
        """Whether any model is on this computer; the disk is asked only after the library has changed."""
        if self._has_models is None:
            try:
                self._has_models = bool(self.library.installed())
            except OctavoError as error:
                self._has_models = False
                self._notifications.error("The list of models cannot be read", error)
        return self._has_models

    def load_last(self) -> None:
        """Load the model that was used last, or the only one there is when none was chosen yet."""
        wanted = self._settings.value.model
        if wanted is None:
            wanted = self._only_model()
        if not wanted:
            return
        path = Path(wanted)
        if path.exists():
            self._load(path)
        else:
            self._notifications.warning(
                "The last model is gone", f"{path} is no longer there. Choose a model."
            )

    def _only_model(self) -> str | None:
        only = self.library.only() if self.has_models else None
        return str(only.path) if only else None

    def choose(self) -> None:
        """Show the models to choose from."""
        self._choose(None)

    def choose_smaller(self, most_nbytes: int) -> None:
        """Show the models to choose from whose weights take at most so many bytes."""
        self._choose(most_nbytes)

    def connect_refusal(self, panel: RefusalPanel) -> None:
        """Show there what does not fit and what would, when the engine refuses to load a model."""
        self._refusal = panel
        panel.chosen.connect(self._on_choice)
        panel.again.connect(lambda: self._load_refused())
        panel.anyway.connect(self._on_anyway)

    def _choose(self, most_nbytes: int | None) -> None:
        if self._chooser is not None:
            self._chooser.show_only(most_nbytes)
            return
        loaded = self._engine.loaded
        self._chooser = ModelChooser(
            self.library,
            self.downloads,
            loaded.info.path if loaded else None,
            self._window,
            most_nbytes=most_nbytes,
        )
        self._chooser.load_requested.connect(self.prepare)
        self._chooser.removal_requested.connect(self.remove)
        self._chooser.exec()
        self._chooser.deleteLater()
        self._chooser = None
        self._tell_change()

    def prepare(self, model: InstalledModel) -> None:
        """Show what a model will take, and load it when the user agrees."""
        parent = self._chooser or self._window
        memory = self._settings.value.memory
        sheet = LoadSheet(model, self._profile.value, memory, self._engine.loaded, parent)
        smaller: list[int] = []
        sheet.smaller_wanted.connect(smaller.append)
        if sheet.exec() == LoadSheet.DialogCode.Accepted:
            self._profile.update(kv=sheet.kv, max_context=sheet.max_context)
            self._load(model.path, anyway=sheet.anyway)
            if self._chooser is not None:
                self._chooser.accept()
        sheet.deleteLater()
        if smaller:
            self.choose_smaller(smaller[0])

    def remove(self, model: InstalledModel) -> None:
        """Delete or forget a model, off this thread: large files take their time."""
        library = self.library

        def work(_cancel: CancelToken, _report: Report) -> InstalledModel:
            library.remove(model.id)
            return model

        job = BackgroundJob(work)
        job.done.connect(self._on_removed)
        job.failed.connect(self._on_removal_failed)
        job.start()

    def eject(self) -> None:
        """Unload the model and load none at the next start."""
        self._settings.update(model="")
        self._engine.unload()

    def stop_loading(self) -> None:
        """Stop loading a model."""
        if self._engine.state is EngineState.LOADING:
            self._engine.stop()

    def _load(self, path: Path, *, anyway: bool = False) -> None:
        profile = self._profile.value
        self._engine.load(path, profile.kv, max_context=profile.max_context, anyway=anyway)

    def _load_refused(self, *, anyway: bool = False) -> None:
        if self._refused_path is not None:
            self._load(self._refused_path, anyway=anyway)

    def _on_refused(self, path: Path, error: AdmissionError) -> None:
        self._refused_path, self._refused_error = path, error
        if self._refusal is not None:
            self._refusal.show_refusal(f"{path.stem} was not loaded", error, can_try_again=True)

    def _on_choice(self, choice: Choice) -> None:
        match choice:
            case SmallerModel(nbytes):
                self.choose_smaller(nbytes)
                return
            case LowerPrecision(kv):
                self._profile.update(kv=kv)
            case ShorterContext(most):
                self._profile.update(max_context=most)
        self._load_refused()

    def _on_anyway(self) -> None:
        risk = risk_words("The model", self._refused_error)
        if confirm_anyway(self._window, "Load anyway", risk, "Load anyway"):
            self._load_refused(anyway=True)

    def _on_state(self, state: EngineState) -> None:
        if state is EngineState.LOADING and self._refusal is not None:
            self._refusal.dismiss()

    def _on_loaded(self, loaded: LoadedModel) -> None:
        self._settings.update(model=str(loaded.info.path))

    def _on_kv_refused(self, error: PrecisionError) -> None:
        self._profile.update(kv=DEFAULT_KV)
        self._notifications.warning(
            "The KV precision is the default again", f"{error} It is {DEFAULT_KV} bits now."
        )

    def _tell_change(self) -> None:
        self._has_models = None
        self.library_changed.emit()

    def _on_downloaded(self, source: str, model: InstalledModel) -> None:
        self._tell_change()
        if source == STARTER_ID and self._chooser is None and self._engine.state is EngineState.EMPTY:
            self._load(model.path)
        elif self._chooser is None:
            self._notifications.info("Download complete", f"{model.title} is here and can be loaded.")

    def _on_download_failed(self, source: str, error: Exception) -> None:
        if self._chooser is None:
            self._notifications.error(f"The download of {source} failed", error)

    def _on_removed(self, model: InstalledModel) -> None:
        loaded = self._engine.loaded
        if loaded is not None and loaded.info.path == model.path:
            self.eject()
        elif self._settings.value.model == str(model.path):
            self._settings.update(model=None)
        if self._chooser is not None:
            self._chooser.refresh()
        self._tell_change()

    def _on_removal_failed(self, error: Exception) -> None:
        if self._chooser is not None:
            self._chooser.say(error)
            self._chooser.refresh()
        else:
            self._notifications.error("The model could not be removed", error)
