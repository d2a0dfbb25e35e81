"""A profile of an open conversation, in a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.settings import Settings
from app.store.conversations import ConversationStore
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings


@pytest.fixture
def stored(qtbot: QtBot, tmp_path: Path) -> StoredSettings:
    return StoredSettings(tmp_path / "settings.toml", Settings())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


@pytest.fixture
def current(store: ConversationStore, stored: StoredSettings) -> Iterator[CurrentProfile]:
    current = CurrentProfile(store, stored)
    current.open(store.create_conversation())
    yield current
    current.save()
