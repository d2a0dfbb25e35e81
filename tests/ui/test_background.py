from __future__ import annotations

import gc
import threading

import pytest
from PySide6.QtCore import QObject, QThread, QThreadPool
from pytestqt.qtbot import QtBot

from engine.cancel import CancelToken
from engine.errors import OctavoError
from ui.background import BackgroundJob, Report


class Listener(QObject):
    """Notes what arrives and in which thread."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, object]] = []
        self.threads: set[QThread] = set()

    def on_done(self, value: object) -> None:
        self._note("done", value)

    def on_failed(self, error: object) -> None:
        self._note("failed", error)

    def on_progress(self, value: object) -> None:
        self._note("progress", value)

    def on_cancelled(self) -> None:
        self._note("cancelled", None)

    def _note(self, kind: str, value: object) -> None:
        self.heard.append((kind, value))
        self.threads.add(QThread.currentThread())

    def follow(self, job: BackgroundJob) -> BackgroundJob:
        job.done.connect(self.on_done)
        job.failed.connect(self.on_failed)
        job.progress.connect(self.on_progress)
        job.cancelled.connect(self.on_cancelled)
        return job


def test_result_arrives_in_the_thread_that_asked(qtbot: QtBot) -> None:
    listener, worker_threads = Listener(), []

    def work(_cancel: CancelToken, _report: Report) -> int:
        worker_threads.append(threading.get_ident())
        return 42

    listener.follow(BackgroundJob(work)).start()
    qtbot.waitUntil(lambda: bool(listener.heard))
    assert listener.heard == [("done", 42)]
    assert listener.threads == {QThread.currentThread()}
    assert worker_threads != [threading.get_ident()]


def test_even_a_plain_function_is_called_in_the_thread_that_asked(qtbot: QtBot) -> None:
    called_in: list[int] = []
    job = BackgroundJob(lambda cancel, report: None)
    job.done.connect(lambda _result: called_in.append(threading.get_ident()))
    job.start()
    qtbot.waitUntil(lambda: bool(called_in))
    assert called_in == [threading.get_ident()]


def test_exception_of_the_work_arrives_as_failure(qtbot: QtBot) -> None:
    listener, error = Listener(), OctavoError("The file is gone.")

    def work(_cancel: CancelToken, _report: Report) -> None:
        raise error

    listener.follow(BackgroundJob(work)).start()
    qtbot.waitUntil(lambda: bool(listener.heard))
    assert listener.heard == [("failed", error)]


def test_cancelling_ends_the_work_and_says_so(qtbot: QtBot) -> None:
    listener, begun = Listener(), threading.Event()

    def work(cancel: CancelToken, _report: Report) -> None:
        begun.set()
        while True:
            cancel.wait(0.01)
            cancel.check()

    job = listener.follow(BackgroundJob(work)).start()
    qtbot.waitUntil(begun.is_set)
    job.cancel()
    qtbot.waitUntil(lambda: bool(listener.heard))
    assert listener.heard == [("cancelled", None)]


def test_a_job_that_was_cancelled_before_its_turn_never_runs(qtbot: QtBot) -> None:
    listener, ran = Listener(), []
    job = listener.follow(BackgroundJob(lambda cancel, report: ran.append(1)))
    job.cancel()
    job.start()
    qtbot.waitUntil(lambda: bool(listener.heard))
    assert listener.heard == [("cancelled", None)]
    assert not ran


def test_jobs_of_every_pool_are_waited_for(qtbot: QtBot) -> None:
    pool, begun, ended = QThreadPool(), threading.Barrier(3), []

    def work(cancel: CancelToken, _report: Report) -> None:
        begun.wait()
        cancel.wait(60)
        ended.append(1)

    jobs = [BackgroundJob(work).start(), BackgroundJob(work).start(pool)]
    begun.wait()
    assert BackgroundJob.cancel_all(10_000)
    assert len(ended) == len(jobs)


def test_of_many_reports_the_last_one_always_arrives_and_before_the_result(qtbot: QtBot) -> None:
    listener = Listener()

    def work(_cancel: CancelToken, report: Report) -> str:
        for number in range(10_000):
            report(number)
        return "end"

    listener.follow(BackgroundJob(work)).start()
    qtbot.waitUntil(lambda: ("done", "end") in listener.heard)
    assert listener.heard[-2] == ("progress", 9_999)
    numbers = [value for kind, value in listener.heard if kind == "progress"]
    assert numbers == sorted(numbers)


def test_nobody_needs_to_keep_a_job(qtbot: QtBot) -> None:
    listener, go_on = Listener(), threading.Event()

    def work(_cancel: CancelToken, _report: Report) -> int:
        go_on.wait(5)
        return 7

    listener.follow(BackgroundJob(work)).start()
    gc.collect()
    go_on.set()
    qtbot.waitUntil(lambda: listener.heard == [("done", 7)])


def test_a_receiver_that_is_gone_is_not_called(qtbot: QtBot) -> None:
    go_on, other = threading.Event(), Listener()
    gone = Listener()

    def work(_cancel: CancelToken, _report: Report) -> int:
        go_on.wait(5)
        return 7

    job = other.follow(gone.follow(BackgroundJob(work)))
    job.start()
    gone.deleteLater()
    qtbot.wait(1)
    go_on.set()
    qtbot.waitUntil(lambda: other.heard == [("done", 7)])
    assert gone.heard == []


@pytest.mark.usefixtures("qtbot")
def test_all_jobs_can_be_stopped_at_the_end() -> None:
    def work(cancel: CancelToken, _report: Report) -> None:
        while not cancel.wait(0.01):
            pass

    for _ in range(3):
        BackgroundJob(work).start()
    assert BackgroundJob.cancel_all(5000)


def test_a_listener_may_drop_the_last_reference_to_a_job(qtbot: QtBot) -> None:
    ended: list[object] = []

    class Owner(QObject):
        def __init__(self) -> None:
            super().__init__()
            self.job: BackgroundJob | None = BackgroundJob(lambda cancel, report: 7)
            self.job.done.connect(self.on_done)
            self.job.start()

        def on_done(self, value: object) -> None:
            self.job = None
            gc.collect()
            ended.append(value)

    owners = [Owner() for _ in range(50)]
    qtbot.waitUntil(lambda: len(ended) == len(owners), timeout=30_000)
