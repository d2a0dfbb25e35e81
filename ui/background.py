"""One call off the UI thread, its outcome back in it. For work without MLX only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from PySide6.QtCore import QDeadlineTimer, QObject, QRunnable, QThreadPool, Signal

from engine.cancel import CancelToken
from engine.errors import Cancelled

Report = Callable[[Any], None]
Work = Callable[[CancelToken, Report], Any]


class BackgroundJob(QObject):
    """Runs `work(cancel, report)` on a pool thread; exactly one of done, failed and cancelled follows.

    The signals are emitted in the UI thread, so anything may be connected to them. A job keeps itself alive
    until it has ended. Of several values given to `report` in quick succession the last one counts.

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

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._call = _Call(work, _Relay.current())

    def start(self, pool: QThreadPool | None = None) -> BackgroundJob:
        """Begin; returns the job itself."""
        self._call.relay.jobs[self._call] = self
        (pool or QThreadPool.globalInstance()).start(_Runnable(self._call))
        return self

    def cancel(self) -> None:
        """Ask the work to stop; `cancelled` follows when it has."""
        self._call.token.cancel()

    @classmethod
    def cancel_all(cls, wait_ms: int) -> bool:
        """Ask the jobs of all pools to stop, wait up to `wait_ms`, and return whether they have ended."""
        deadline = QDeadlineTimer(wait_ms)
        calls = list(_Relay.current().jobs)
        for call in calls:
            call.token.cancel()
        ended = [call.ended.wait(deadline.remainingTime() / 1000) for call in calls]
        return QThreadPool.globalInstance().waitForDone(deadline) and all(ended)

    def tell_progress(self) -> None:
        """Emit the latest report; the relay calls this in the UI thread."""
        for value in self._call.take_reports():
            self.progress.emit(value)

    def tell_end(self) -> None:
        """Emit the outcome; the relay calls this in the UI thread."""
        error = self._call.error
        if error is None:
            self.done.emit(self._call.result)
        elif isinstance(error, Cancelled):
            self.cancelled.emit()
        else:
            self.failed.emit(error)


class _Call:
    """The part of a job that the pool thread sees: no QObject, which must end in the thread that made it."""

    def __init__(self, work: Work, relay: _Relay) -> None:
        self.relay = relay
        self.token = CancelToken()
        self.ended = threading.Event()
        self.result: Any = None
        self.error: Exception | None = None
        self._work = work
        self._lock = threading.Lock()
        self._reports: list[Any] = []

    def run(self) -> None:
        """Do the work; on the pool thread."""
        try:
            self.token.check()
            self.result = self._work(self.token, self._report)
        except Exception as error:
            self.error = error
        self.ended.set()
        self.relay.ended.emit(self)

    def take_reports(self) -> list[Any]:
        """Return the latest report, if there is one that was not taken yet."""
        with self._lock:
            reports, self._reports = self._reports, []
        return reports

    def _report(self, value: Any) -> None:
        with self._lock:
            is_waiting = bool(self._reports)
            self._reports = [value]
        if not is_waiting:
            self.relay.reported.emit(self)


class _Relay(QObject):
    """Brings what pool threads say into the UI thread; it outlives every job, so emitting is always safe."""

    reported = Signal(object)
    ended = Signal(object)

    _current: ClassVar[_Relay | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[_Call, BackgroundJob] = {}
        self.reported.connect(self._on_reported)
        self.ended.connect(self._on_ended)

    @classmethod
    def current(cls) -> _Relay:
        if cls._current is None:
            cls._current = cls()
        return cls._current

    def _on_reported(self, call: _Call) -> None:
        if call in self.jobs:
            self.jobs[call].tell_progress()

    def _on_ended(self, call: _Call) -> None:
        self.jobs.pop(call).tell_end()


class _Runnable(QRunnable):
    def __init__(self, call: _Call) -> None:
        super().__init__()
        self._call = call

    def run(self) -> None:
        self._call.run()
