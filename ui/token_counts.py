"""Token counts of texts, found on a thread of their own and remembered."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QObject, QThreadPool, Signal

from app.valid_unicode import valid_unicode
from engine.cancel import CancelToken
from engine.tokens import TokenCounter
from ui.background import BackgroundJob, Report

_REMEMBERED = 65_536
"""More than the messages of any conversation: they are all asked for again and again."""


class TokenCounts(QObject):
    """Counts with the loaded model's tokenizer; a tokenizer serves one thread, so there is one.

    Signals:
        counted: counts that were asked for are known now.
        failed: the exception that ended a count.
    """

    counted = Signal()
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._pool.setExpiryTimeout(-1)
        self._counter: TokenCounter | None = None
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._wanted: dict[bytes, str] = {}
        self._job: BackgroundJob | None = None

    @property
    def available(self) -> bool:
        """Whether there is a tokenizer to count with."""
        return self._counter is not None

    @property
    def counter(self) -> TokenCounter | None:
        """What counts, None without a model."""
        return self._counter

    def set_counter(self, counter: TokenCounter | None) -> None:
        """Count with the tokenizer of another model; None forgets everything."""
        self._counter = counter
        self._counts.clear()
        self._wanted.clear()
        if self._job is not None:
            self._job.cancel()
        self.counted.emit()

    def count(self, text: str) -> int | None:
        """Return the tokens of `text`; None when not known yet, and `counted` follows."""
        if not text:
            return 0
        try:
            key = _key(text)
        except UnicodeEncodeError:  # rare, and looking for it costs more than the rest
            text = valid_unicode(text)
            key = _key(text)
        known = self._counts.get(key)
        if known is not None:
            self._counts.move_to_end(key)
        elif self._counter is not None:
            self._wanted[key] = text
            self._start()
        return known

    def stop(self) -> None:
        """Give up what is being counted and wait for the thread."""
        self._wanted.clear()
        self._counter = None
        if self._job is not None:
            self._job.cancel()
        self._pool.waitForDone()

    def _start(self) -> None:
        counter = self._counter
        if self._job is not None or counter is None or not self._wanted:
            return
        texts = dict(self._wanted)

        def work(cancel: CancelToken, _report: Report) -> dict[bytes, int]:
            return _count_all(counter, texts, cancel)

        self._job = BackgroundJob(work)
        self._job.done.connect(partial(self._on_done, counter))
        self._job.failed.connect(self._on_failed)
        self._job.cancelled.connect(self._on_cancelled)
        self._job.start(self._pool)

    def _on_done(self, counter: TokenCounter, counts: dict[bytes, int]) -> None:
        self._job = None
        if counter is not self._counter:  # another model's, which had counted before it could be stopped
            self._start()
            return
        for key, tokens in counts.items():
            self._counts[key] = tokens
            self._wanted.pop(key, None)
        while len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)
        self.counted.emit()
        self._start()

    def _on_failed(self, error: Exception) -> None:
        self._job = None
        self._wanted.clear()
        self.failed.emit(error)

    def _on_cancelled(self) -> None:
        self._job = None
        self._start()


def _key(text: str) -> bytes:
    """Return what stands for a text, which may be a whole book, in memory."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _count_all(counter: TokenCounter, texts: Mapping[bytes, str], cancel: CancelToken) -> dict[bytes, int]:
    return {key: counter.count(text, cancel) for key, text in texts.items()}
