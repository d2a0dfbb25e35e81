"""What all tests share: the offscreen display, the BLAS, a folder of their own and the starter model."""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import hypothesis
import platformdirs
import pytest

from tests.display import x_display as x_display

if TYPE_CHECKING:
    from engine.backend import Backend

if not os.environ.get("OCTAVO_TEST_DISPLAY"):
    os.environ["QT_QPA_PLATFORM"] = "offscreen"


# A busy machine is no failure.
hypothesis.settings.register_profile("octavo", deadline=None)
hypothesis.settings.load_profile("octavo")


class BlasBeforeMLX(importlib.abc.MetaPathFinder):
    """Loads the BLAS when a test first imports mlx, so that tests without mlx never wait for it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "mlx":
            sys.meta_path.remove(self)
            from engine.blas import load_blas

            load_blas()
        return None


sys.meta_path.insert(0, BlasBeforeMLX())


@pytest.fixture(scope="session")
def backend() -> Backend:
    """The backend of this machine."""
    from engine.backend import start_backend

    return start_backend()


@pytest.fixture
def octavo_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that `AppPaths.from_environment` returns."""
    home = tmp_path / "octavo"
    monkeypatch.setenv("OCTAVO_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def starter_gguf() -> Path:
    """The starter model's file: the one named by `OCTAVO_TEST_STARTER`, else fetched once for this user."""
    named = os.environ.get("OCTAVO_TEST_STARTER")
    if named:
        return Path(named)
    from app.models.starter import install_starter
    from engine.cancel import CancelToken

    models = platformdirs.user_cache_path("octavo-tests", False) / "models"
    return install_starter(models, cancel=CancelToken(), on_progress=lambda progress: None)
