"""The dialog of the prefix cache on a real service, with conversations in a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.settings import Settings
from app.store.conversations import ConversationStore
from app.store.prefixes.service import PrefixService
from tests.app.store.prefixes.stored_texts import page_of, sequence_of
from ui.background import BackgroundJob
from ui.prefixes.controller import PrefixController
from ui.prefixes.dialog import PrefixDialog
from ui.stored_settings import StoredSettings

FLUSH_S = 20.0


def keep(service: PrefixService, conversation_id: int, *names: str) -> None:
    """Keep a page for each name, and where there is a conversation, all of them as its text."""
    for name in names:
        assert service.put_page(page_of(name, conversation_id))
    if conversation_id:
        assert service.put_sequence(sequence_of(conversation_id, *names))
    assert service.flush(FLUSH_S)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PrefixService]:
    service = PrefixService(tmp_path / "prefixes.db", pause_s=0.0)
    yield service
    service.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


@pytest.fixture
def stored(qtbot: QtBot, tmp_path: Path, service: PrefixService) -> StoredSettings:
    """Settings that the service follows, as the window lets it."""
    stored = StoredSettings(tmp_path / "settings.toml", Settings())

    def follow(changed: Settings) -> None:
        service.settings = changed.prefixes

    stored.changed.connect(follow)
    return stored


@pytest.fixture
def controller(
    qtbot: QtBot, service: PrefixService, store: ConversationStore, stored: StoredSettings
) -> Iterator[PrefixController]:
    window = QWidget()
    qtbot.addWidget(window)
    controller = PrefixController(service, store, stored, window)
    yield controller
    if controller.dialog is not None:
        controller.dialog.close()
    BackgroundJob.cancel_all(20_000)


OpenDialog = Callable[[], PrefixDialog]


@pytest.fixture
def open_dialog(qtbot: QtBot, controller: PrefixController) -> OpenDialog:
    """Opens the dialog and waits until it shows what is on disk."""

    def open_it() -> PrefixDialog:
        with qtbot.waitSignal(watch_of(controller), timeout=20_000):
            controller.show()
        assert controller.dialog is not None
        return controller.dialog

    return open_it


def watch_of(controller: QObject) -> object:
    """Return the signal of the next reading."""
    assert isinstance(controller, PrefixController)
    return controller._watch.read
