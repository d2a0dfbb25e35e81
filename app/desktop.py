"""Whether a window can be opened here: a display, and the system libraries that Qt needs.

Qt is never imported: where one of its libraries is missing it ends the whole process.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

IRREGULAR_PACKAGES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libz.so.1": "zlib1g",
}
"""Debian's packages that are not called after their library."""

START_TIMEOUT_S = 60
_START_QT = "from PySide6.QtWidgets import QApplication; print(QApplication([]).platformName())"


def has_display() -> bool:
    """Return whether there is a display to open a window on; only Linux can be without one."""
    if sys.platform != "linux":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def qt_folder() -> Path | None:
    """Return the folder of PySide6, None where it is not installed."""
    package = importlib.util.find_spec("PySide6")
    folders = package.submodule_search_locations if package else None
    return Path(next(iter(folders))) if folders else None


def missing_libraries(qt: Path) -> list[str]:
    """Return the system libraries that Qt's widgets and its plugins for X11 and Wayland lack, on Linux.

    The system's loader is asked through `ldd`; where there is none, nothing is known to be missing.
    """
    if sys.platform != "linux" or not shutil.which("ldd"):
        return []
    plugins = (
        qt / "Qt" / "plugins" / "platforms" / f"libq{name}.so" for name in ("offscreen", "xcb", "wayland")
    )
    files = [*qt.glob("QtWidgets*.so"), *(plugin for plugin in plugins if plugin.exists())]
    bundle = getattr(sys, "_MEIPASS", None)
    told = subprocess.run(
        ["ldd", *map(str, files)],
        env=os.environ | ({"LD_LIBRARY_PATH": bundle} if bundle else {}),
        capture_output=True,
        text=True,
    )
    return sorted(set(re.findall(r"^\s*(\S+) => not found", told.stdout, re.MULTILINE)))


def debian_package(library: str) -> str:
    """Return the package that holds a library: by Debian's policy the one called after its soname."""
    name, _, version = library.partition(".so.")
    dash = "-" if name[-1].isdigit() else ""
    return IRREGULAR_PACKAGES.get(library, f"{name.lower()}{dash}{version}")


def install_line(libraries: Sequence[str]) -> str | None:
    """Return the line that installs the libraries on Debian and its children, None elsewhere."""
    if not shutil.which("apt-get"):
        return None
    packages = sorted({debian_package(library) for library in libraries})
    return f"sudo apt-get install --no-install-recommends {' '.join(packages)}"


def start_failure() -> str | None:
    """Start Qt in a child process, without a window, and return what it said when it failed.

    In a bundle there is no Python to start; nothing is tried then.
    """
    if getattr(sys, "frozen", False):
        return None
    environ = dict(os.environ) if has_display() else {"QT_QPA_PLATFORM": "offscreen"} | os.environ
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _START_QT],
            env=environ,
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"it did not start within {START_TIMEOUT_S} seconds"
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said[0] if said else f"it ended with status {done.returncode}"
