"""One call off the UI thread, its outcome back in it. For work without MLX only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from PySide6.QtCore import QObject, QRunnable, QThreadPool, Signal

from engine.cancel import CancelToken
from engine.errors import Cancelled

Report = Callable[[Any], None]
Work = Callable[[CancelToken, Report], Any]


class BackgroundJob(QObject):
    """Runs `work(cancel, report)` on a pool thread; exactly one of done, failed and cancelled follows.

    The public signals are emitted in the thread that made the job, so anything may be connected to them.
    A job keeps itself alive until it has ended. Of several values given to `report` in quick succession the
    last one counts.

    Signals:
        progress: the latest value that `work` gave to `report`.
        done: what `work` returned.
        failed: the exception that `work` raised.
        cancelled: `work` raised `Cancelled`.
    """

    progress = Signal(object)
    done = Signal(object)
    failed = Signal(object)
    cancelled = Signal()
    _reported = Signal()
    _ended = Signal()

    _running: ClassVar[set[BackgroundJob]] = set()

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work
        self._token = CancelToken()
        self._lock = threading.Lock()
        self._latest: list[Any] = []
        self._result: Any = None
        self._error: Exception | None = None
        self._reported.connect(self._on_reported)
        self._ended.connect(self._on_ended)

    def start(self, pool: QThreadPool | None = None) -> BackgroundJob:
        """Begin; returns the job itself."""
        self._running.add(self)
        (pool or QThreadPool.globalInstance()).start(_Runnable(self._run))
        return self

    def cancel(self) -> None:
        """Ask the work to stop; `cancelled` follows when it has."""
        self._token.cancel()

    @classmethod
    def cancel_all(cls, wait_ms: int) -> bool:
        """Ask every running job to stop and wait up to `wait_ms`; return whether all threads have ended."""
        for job in list(cls._running):
            job.cancel()
        return QThreadPool.globalInstance().waitForDone(wait_ms)

    def _run(self) -> None:
        try:
            self._token.check()
            self._result = self._work(self._token, self._report)
        except Exception as error:
            self._error = error
        self._ended.emit()

    def _report(self, value: Any) -> None:
        with self._lock:
            pending = bool(self._latest)
            self._latest[:] = [value]
        if not pending:
            self._reported.emit()

    def _on_reported(self) -> None:
        with self._lock:
            values, self._latest = self._latest, []
        for value in values:
            self.progress.emit(value)

    def _on_ended(self) -> None:
        self._running.discard(self)
        if self._error is None:
            self.done.emit(self._result)
        elif isinstance(self._error, Cancelled):
            self.cancelled.emit()
        else:
            self.failed.emit(self._error)
        self.deleteLater()


class _Runnable(QRunnable):
    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def run(self) -> None:
        self._call()
