from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.conversations import ConversationStore


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "conversations.db"


@pytest.fixture
def store(db_path: Path) -> Iterator[ConversationStore]:
    opened = ConversationStore.open(db_path)
    yield opened
    opened.close()
