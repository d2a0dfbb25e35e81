"""The program as a process with a window, driven by keys and looked at through its database."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from app.paths import AppPaths
from app.settings import Settings, save_settings
from engine.sampling import SamplingParams
from tests.display import XDisplay, wait_until

ANSWER_TIMEOUT_S = 180


class DrivenWindow:
    """A running program and its window.

    Attributes:
        process: the program.
        window: the id of its window.
    """

    def __init__(self, process: subprocess.Popen[bytes], display: XDisplay, paths: AppPaths) -> None:
        self.process = process
        self._display = display
        self._database = paths.conversations_db
        self.window = display.window(process.pid, "Octavo")
        display.xdotool("windowactivate", "--sync", self.window)

    @property
    def title(self) -> str:
        """What the window manager shows above the window."""
        return self._display.xdotool("getwindowname", self.window)

    def ask(self, question: str) -> None:
        """Type a question, send it and wait for the whole answer."""
        already, answered = self.states("user"), self.states("assistant")
        self._display.xdotool("type", "--delay", "30", question)

        def sent() -> bool:
            """Press Enter, which leaves the question in the field until the model is loaded."""
            self._display.xdotool("key", "Return")
            return self.states("user") != already

        wait_until(sent, ANSWER_TIMEOUT_S, "the question is sent")

        def is_answered() -> bool:
            *before, last = self.states("assistant") or ["streaming"]
            return len(before) == len(answered) and last != "streaming"

        wait_until(is_answered, ANSWER_TIMEOUT_S, "an answer")

    def states(self, role: str) -> list[str]:
        """Return the states of the messages of a role as the database has them, oldest first."""
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT state FROM messages WHERE role = ? ORDER BY id", [role])
            return [state for (state,) in rows]

    def quit(self) -> int:
        """Press Ctrl+Q and return the exit status."""
        self._display.xdotool("key", "ctrl+q")
        return self.process.wait(30)


@contextmanager
def driven_window(
    command: Sequence[str | Path], environment: dict[str, str], display: XDisplay, paths: AppPaths
) -> Iterator[DrivenWindow]:
    """Start the program on a display and end it, should it still run."""
    with subprocess.Popen(command, env=environment | {"DISPLAY": display.name}) as process:
        try:
            yield DrivenWindow(process, display, paths)
        finally:
            process.kill()


def choose_model(paths: AppPaths, model: Path) -> None:
    """Make `model` the one that was used last, with short answers."""
    save_settings(paths.settings_file, Settings(model=str(model), sampling=SamplingParams(max_tokens=24)))
