from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService

ServiceMaker = Callable[..., PrefixService]
"""Makes a service on the test's file with what its initializer takes; each is closed at the end."""


@pytest.fixture
def prefixes_path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "prefixes.db"


@pytest.fixture
def told() -> list[str]:
    """The sentences that the services of a test have told."""
    return []


@pytest.fixture
def make_service(prefixes_path: Path, told: list[str]) -> Iterator[ServiceMaker]:
    made: list[PrefixService] = []

    def make(settings: PrefixSettings | None = None, pause_s: float = 0.0) -> PrefixService:
        made.append(PrefixService(prefixes_path, settings, told.append, pause_s))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture
def service(make_service: ServiceMaker) -> PrefixService:
    """A service that tries again at once what went wrong."""
    return make_service()
