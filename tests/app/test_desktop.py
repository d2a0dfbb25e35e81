from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from app import desktop

ROOT = Path(__file__).parents[2]


def test_packages_are_named_as_the_setup_script_names_them() -> None:
    script = (ROOT / "packaging" / "system-libraries.sh").read_text(encoding="utf-8")
    needs = re.findall(r"^\w+ +(lib\S+\.so\.\d+) +(\S+)$", script, re.MULTILINE)
    assert needs
    assert {library: desktop.debian_package(library) for library, _ in needs} == dict(needs)


def test_the_line_installs_each_package_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    libraries = ["libxcb-cursor.so.0", "libglib-2.0.so.0", "libgthread-2.0.so.0"]
    assert (
        desktop.install_line(libraries)
        == "sudo apt-get install --no-install-recommends libglib2.0-0 libxcb-cursor0"
    )


def test_there_is_no_line_where_there_is_no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert desktop.install_line(["libGL.so.1"]) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux leaves libraries to the user")
def test_a_library_that_a_plugin_lacks_is_named(tmp_path: Path) -> None:
    qt = desktop.qt_folder()
    assert qt is not None
    assert desktop.missing_libraries(qt) == []

    platforms = Path("Qt", "plugins", "platforms")
    (tmp_path / platforms).mkdir(parents=True)
    (tmp_path / "Qt" / "lib").symlink_to(qt / "Qt" / "lib")
    plugin = (qt / platforms / "libqxcb.so").read_bytes()
    (tmp_path / platforms / "libqxcb.so").write_bytes(plugin.replace(b"libGL.so.1\0", b"libGX.so.1\0"))
    assert desktop.missing_libraries(tmp_path) == ["libGX.so.1"]


def test_qt_starts_here() -> None:
    assert desktop.start_failure() is None


def test_what_qt_says_when_it_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "nonesuch")
    assert "nonesuch" in (desktop.start_failure() or "")
