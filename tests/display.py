"""A real X display with a window manager, for the tests that drive the program from outside."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

GRAB = (
    "import sys; from PySide6.QtGui import QGuiApplication; app = QGuiApplication([]); "
    "sys.exit(not app.primaryScreen().grabWindow(0).save(sys.argv[1]))"
)


def wait_until(condition: Callable[[], object], timeout_s: float, wanted: str) -> None:
    """Return as soon as `condition()` is true; fail the test when it is not within `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"waited {timeout_s:.0f} s in vain: {wanted}")
        time.sleep(0.05)


@dataclass(frozen=True)
class XDisplay:
    """A running X server.

    Attributes:
        name: its name, such as `:1`.
    """

    name: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment of now, changed so that a program opens its windows on this display."""
        kept = {name: value for name, value in os.environ.items() if name != "WAYLAND_DISPLAY"}
        return kept | {"DISPLAY": self.name, "QT_QPA_PLATFORM": "xcb"}

    def xdotool(self, *arguments: str) -> str:
        """Run xdotool on this display and return what it printed, nothing when it failed or found nothing."""
        command = ["xdotool", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30)
        return done.stdout.strip()

    def window(self, pid: int, title: str, timeout_s: float = 60) -> str:
        """Wait for a visible window of process `pid` whose title matches `title` and return its id."""
        search = ("search", "--all", "--onlyvisible", "--pid", str(pid), "--name", title)
        wait_until(lambda: self.xdotool(*search), timeout_s, f"a window titled {title!r}")
        return self.xdotool(*search).splitlines()[-1]

    def screenshot(self, path: Path) -> None:
        """Save what the display shows as a PNG."""
        subprocess.run([sys.executable, "-c", GRAB, str(path)], env=self.environment, check=True, timeout=60)


@pytest.fixture(scope="session")
def x_display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[XDisplay]:
    """An X server of 1440 x 900 with openbox: without a window manager no window gets the focus."""
    if not sys.platform.startswith("linux"):
        pytest.skip("a virtual X display needs Linux")
    with contextlib.ExitStack() as stack:
        reader, writer = os.pipe()
        stack.callback(os.close, reader)
        server = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1440x900x24", "-nolisten", "tcp"]
        _start(stack, server, pass_fds=(writer,))
        os.close(writer)
        name = f":{os.read(reader, 16).decode().strip()}"
        assert name != ":", "Xvfb ended before it had a display"
        display = XDisplay(name)
        started = tmp_path_factory.mktemp("openbox") / "started"
        _start(stack, ["openbox", "--startup", f"touch {started}"], env=display.environment)
        wait_until(started.exists, 30, "openbox")
        yield display


def _start(
    stack: contextlib.ExitStack,
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    pass_fds: tuple[int, ...] = (),
) -> None:
    """Start a program that is ended with the stack."""
    try:
        process = subprocess.Popen(
            command, env=env, pass_fds=pass_fds, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except FileNotFoundError:
        pytest.fail(f"{command[0]} is missing; packaging/system-libraries.sh display installs it")
    stack.callback(process.wait)
    stack.callback(process.terminate)
