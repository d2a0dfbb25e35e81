"""One window per data folder: a second start hands its files to the first and ends."""

from __future__ import annotations

import enum
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from app.paths import AppPaths
from app.running_window import window_process
from engine.errors import OctavoError

_ANSWER = b"ok\n"
WAIT_S = 20.0
"""A start waits so long for a window that answers or ends, which takes a while when that saves."""
_ORPHANED_S = 1.0
"""A lock that no process has for this long was left behind; taking it over needs a disk with room."""


class DataFolderError(OctavoError):
    """A data folder that cannot be made or written."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            f"Octavo cannot write in its data folder {home}. Check its permissions and whether the disk is "
            "full, or let the environment variable OCTAVO_HOME name another folder."
        )


class Claim(enum.Enum):
    """The outcome of `SingleInstance.claim`."""

    FIRST = "first"
    PASSED_ON = "passed on"
    NO_ANSWER = "no answer"


class SingleInstance(QObject):
    """Holds the lock of one data folder and listens for later starts.

    The lock file names the process that holds it, so one left behind by a killed process is recognized and
    taken over, and so is the socket beside it. A folder that cannot be made is a `DataFolderError`.

    Signals:
        activated: a later start; carries its files as a list of paths, often empty.
    """

    activated = Signal(list)

    def __init__(self, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._home = home
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataFolderError(home) from error
        digest = hashlib.blake2b(str(home.resolve()).encode(), digest_size=10).hexdigest()
        self._name = f"octavo-{digest}"
        self._paths = AppPaths(home)
        self._lock = QLockFile(str(self._paths.window_lock))
        self._lock.setStaleLockTime(0)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def claim(self, files: Sequence[Path]) -> Claim:
        """Become the first instance, or hand `files` to the one that is.

        Raises:
            DataFolderError: the folder takes no lock.
        """
        begun_s = held_s = time.monotonic()
        while time.monotonic() < begun_s + WAIT_S:
            if self._lock.tryLock(50):
                QLocalServer.removeServer(self._name)
                self._server.listen(self._name)
                return Claim.FIRST
            if self._lock.error() is not QLockFile.LockError.LockFailedError:
                raise DataFolderError(self._home)
            if self._pass_on(files):
                return Claim.PASSED_ON
            if window_process(self._paths) is not None:
                held_s = time.monotonic()
            elif time.monotonic() > held_s + _ORPHANED_S:
                raise DataFolderError(self._home)
        return Claim.NO_ANSWER

    def stop_listening(self) -> None:
        """Take no more files: a start from now on waits for the lock, and so for the end of this process."""
        self._server.close()

    def release(self) -> None:
        """Give the lock back."""
        self._server.close()
        self._lock.unlock()

    def _pass_on(self, files: Sequence[Path]) -> bool:
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(500):
            return False
        socket.write(json.dumps([str(file.absolute()) for file in files]).encode() + b"\n")
        socket.flush()
        answered = socket.waitForReadyRead(2000) and bytes(socket.readAll().data()) == _ANSWER
        socket.disconnectFromServer()
        return answered

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(self._on_ready)
            socket.disconnected.connect(socket.deleteLater)

    def _on_ready(self) -> None:
        socket = self.sender()
        if not isinstance(socket, QLocalSocket) or not socket.canReadLine():
            return
        try:
            files = [Path(name) for name in json.loads(bytes(socket.readLine().data()))]
        except (ValueError, TypeError):
            socket.abort()
            return
        socket.write(_ANSWER)
        socket.flush()
        self.activated.emit(files)
