"""What is on disk, read again and again off the UI thread, and changed there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QThreadPool, QTimer, Signal

from app.store.prefixes.records import PrefixEntry, PrefixFigures
from app.store.prefixes.service import PrefixService
from engine.cancel import CancelToken
from ui.background import BackgroundJob, Report

_PAUSE_MS = 1000
_WAIT_S = 2.0
"""A change is waited for so long; one that takes longer shows with a later reading."""
Change = Callable[[PrefixService], None]


@dataclass(frozen=True)
class PrefixReading:
    """What was on disk at a moment."""

    figures: PrefixFigures
    entries: tuple[PrefixEntry, ...]


class PrefixWatch(QObject):
    """Reads the service once a second while it is started, one call after the other on one thread.

    Signals:
        read: a `PrefixReading`.
        failed: the exception that a reading or a change has raised.
    """

    read = Signal(object)
    failed = Signal(object)

    def __init__(self, service: PrefixService, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._is_on = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PAUSE_MS)
        self._timer.timeout.connect(self._read)

    def start(self) -> None:
        """Read now, and then once a second."""
        self._is_on = True
        self._read()

    def stop(self) -> None:
        """Read no more; changes that were asked for are still carried out."""
        self._is_on = False
        self._timer.stop()

    def change(self, change: Change) -> None:
        """Carry a change out after those before it, and read what there is then."""
        job = self._job(change)
        job.done.connect(self.read)
        job.start(self._pool)

    def _read(self) -> None:
        job = self._job(None)
        job.done.connect(self._on_read)
        job.start(self._pool)

    def _job(self, change: Change | None) -> BackgroundJob:
        service = self._service

        def work(_cancel: CancelToken, _report: Report) -> PrefixReading:
            if change is not None:
                change(service)
                service.flush(_WAIT_S)  # else what is read would be as before
            return PrefixReading(service.figures(), service.entries())

        job = BackgroundJob(work)
        job.failed.connect(self.failed)
        return job

    def _on_read(self, reading: PrefixReading) -> None:
        if self._is_on:
            self._timer.start()
            self.read.emit(reading)
