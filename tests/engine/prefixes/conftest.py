"""A small model, a store of pages, and an engine that has both."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.backend import Backend
from engine.engine import Engine
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.small_engine import small_engine, write_templated_model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def engine(path: Path, backend: Backend, store: MemoryStore) -> Engine:
    return small_engine(path, backend, prefixes=store)
