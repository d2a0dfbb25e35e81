"""The starter model, loaded once for all tests of the engine, and products that are the same each time."""

from __future__ import annotations

import contextlib
import ctypes
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


@pytest.fixture
def one_blas_thread(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep products from being summed in another order when the load of the machine changes."""
    monkeypatch.setattr("engine.blas_threads.fitting_threads", lambda most, cores, others: 1)
    with contextlib.suppress(AttributeError):  # there is no OpenBLAS
        ctypes.CDLL(None).openblas_set_num_threads(1)
