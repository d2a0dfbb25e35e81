"""The digests of models' content: each model is read once, on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError
from engine.prefixes.digest import fingerprint, model_digest

log = logging.getLogger(__name__)


class ModelDigests:
    """Finds out the digests of models, and keeps them as long as nobody changes their files.

    Args:
        remembered: returns the digest of the model at a path with a fingerprint, where it is stored.
        remember: stores one; called on the thread that found it out.
    """

    def __init__(
        self, remembered: Callable[[Path, str], str | None], remember: Callable[[Path, str, str], None]
    ) -> None:
        self._remembered = remembered
        self._remember = remember
        self._lock = threading.Lock()
        self._known: dict[tuple[Path, str], str | None] = {}
        self._waiting: deque[tuple[Path, str]] = deque()
        self._thread: threading.Thread | None = None
        self._closing = CancelToken()

    def digest(self, path: Path) -> str | None:
        """Return the digest of a model's content; None while it is not known, or where it cannot be read."""
        path = path.resolve()
        try:
            name = path, fingerprint(path)
        except ModelError:
            return None
        with self._lock:
            if name in self._known:
                return self._known[name]
            if name in self._waiting:
                return None
        stored = self._remembered(*name)
        with self._lock:
            if stored is not None:
                self._known[name] = stored
            elif not self._closing.cancelled:
                self._waiting.append(name)
                self._begin()
        return stored

    def close(self) -> None:
        """Stop finding out, and wait for the thread."""
        with self._lock:
            self._closing.cancel()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="model digests", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                path, marks = self._waiting[0]
            try:
                found = self._find_out(path, marks)
            except Cancelled:
                return
            with self._lock:
                self._waiting.popleft()
                self._known[path, marks] = found

    def _find_out(self, path: Path, marks: str) -> str | None:
        """Return the digest; None where the model changes meanwhile, or cannot be read."""
        try:
            found = model_digest(path, self._closing.check)
            if fingerprint(path) != marks:
                return None
        except ModelError as error:
            log.warning("nothing is kept of what %s reads: %s", path, error)
            return None
        self._remember(path, marks, found)
        return found
