"""The starter model, loaded once for all tests of the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.backend import Backend, Device
from engine.cancel import CancelToken
from engine.loader import load_model
from engine.model import Model


@pytest.fixture(scope="session")
def starter(starter_gguf: Path, backend: Backend) -> Model:
    """The starter model as the engine loads it on this machine."""
    return load_model(
        starter_gguf,
        backend,
        dequantize=backend.device is Device.CPU,
        cancel=CancelToken(),
        on_progress=lambda progress: None,
    )
