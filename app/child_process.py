"""A command of Octavo in a process of its own, followed by what it writes and killed at any moment."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from engine.cancel import CancelToken

_POLL_S = 0.05
_END_WAIT_S = 5.0
_READ_NBYTES = 1 << 18
_KEPT_LOG_NBYTES = 8192


class ChildProcess:
    """A process in a group of its own, so that it can be killed with all that it starts.

    A context manager that ends the process, whatever happens.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start `command`, with `environment` beside this process's own; an `OSError` says why it cannot."""
        self._errors = b""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def errors(self) -> str:
        """The end of what it has written to its standard error."""
        return self._errors.decode("utf-8", "replace")

    def output(self, cancel: CancelToken, timeout_s: float = math.inf) -> Iterator[bytes]:
        """Yield the pieces of its standard output as they come, until it closes its output.

        Raises:
            Cancelled: within a tenth of a second after `cancel` was called.
            TimeoutError: it is still at work after `timeout_s`.
        """
        deadline_s = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                cancel.check()
                if time.monotonic() > deadline_s:
                    raise TimeoutError
                for key, _ in selector.select(_POLL_S):
                    data = os.read(key.fd, _READ_NBYTES)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is self._process.stdout:
                        yield data
                    else:
                        self._errors = (self._errors + data)[-_KEPT_LOG_NBYTES:]

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end and return its exit status, None when it has not ended after `timeout_s`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def kill(self) -> None:
        """Kill it and what it started; one that the system writes for ends only after that."""
        if self._process.poll() is None:
            # macOS says PermissionError of a group whose process has just ended.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it where it still runs, and wait for its end.

        One that a network drive keeps waiting, which nothing can kill, is left to the system.
        """
        self.kill()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self.wait(_END_WAIT_S)


class JsonLines:
    """Puts JSON objects, one a line, together from pieces that are cut anywhere."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take the next piece and yield the objects that are whole with it."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join([*self._unfinished, end])
            self._unfinished.clear()
            yield json.loads(line)
        self._unfinished.append(rest)
