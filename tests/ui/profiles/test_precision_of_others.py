"""A precision reaches only the conversation that it is of."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from app.store.records import MessageState
from engine.events import CacheChanged
from engine.kv.precision import KVSpec
from tests.app.store.samples import USAGE
from tests.ui.conftest import Desk
from ui.inspector.slider import Slider
from ui.main_window import MainWindow

FOUR_BIT = KVSpec.parse("4")


@pytest.fixture
def window(desk: Desk) -> MainWindow:
    return desk.open()


def other_conversation(store: ConversationStore) -> int:
    conversation = store.create_conversation("Other")
    store.set_draft(conversation.id, "A draft")
    return conversation.id


def wanted_after_settling(window: MainWindow, qtbot: QtBot) -> KVSpec:
    qtbot.waitUntil(lambda: not window.precision._timer.isActive())
    return window._engine._worker.wanted_kv


def test_a_change_reaches_the_engine_where_it_holds_the_conversation(
    window: MainWindow, qtbot: QtBot
) -> None:
    window._engine.kv_changed.emit(window.profile.conversation_id or 0, CacheChanged(DEFAULT_KV, USAGE))
    window.profile.update(kv=FOUR_BIT)
    assert wanted_after_settling(window, qtbot) == FOUR_BIT


def test_a_change_waits_while_the_mouse_holds_a_slider_again(window: MainWindow, qtbot: QtBot) -> None:
    window._engine.kv_changed.emit(window.profile.conversation_id or 0, CacheChanged(DEFAULT_KV, USAGE))
    sliders = window.inspector.precision.findChildren(Slider)
    keys = next(slider for slider in sliders if slider.accessibleName() == "Bits of a cached key")
    window.profile.update(kv=FOUR_BIT)
    middle = QPoint(keys.centre_of(keys.value()), keys.height() // 2)
    qtbot.mousePress(keys, Qt.MouseButton.LeftButton, pos=middle)
    with qtbot.waitSignal(window.precision._timer.timeout):
        pass
    assert window._engine._worker.wanted_kv == DEFAULT_KV
    qtbot.mouseRelease(keys, Qt.MouseButton.LeftButton, pos=middle)
    assert wanted_after_settling(window, qtbot) == FOUR_BIT


def test_a_change_in_another_conversation_leaves_what_the_engine_holds(
    window: MainWindow, qtbot: QtBot
) -> None:
    window._engine.kv_changed.emit(window.profile.conversation_id or 0, CacheChanged(DEFAULT_KV, USAGE))
    window.chat.switcher.open(other_conversation(window._store))
    window.profile.choose("Long document")
    assert wanted_after_settling(window, qtbot) == DEFAULT_KV


def test_a_change_in_another_conversation_leaves_a_reply_that_has_just_begun(
    window: MainWindow, qtbot: QtBot
) -> None:
    replying_id = window.profile.conversation_id
    assert replying_id is not None
    question = window._store.add_user_message(replying_id, None, "A question")
    reply = window._store.begin_reply(replying_id, question.id, "A model")
    other_id = other_conversation(window._store)
    window._engine.reply_started.emit(reply)
    window.chat.switcher.open(other_id)
    window.profile.update(kv=FOUR_BIT)
    assert wanted_after_settling(window, qtbot) == DEFAULT_KV
    window._engine.reply_finished.emit(window._store.finish_reply(reply.id, "", MessageState.STOPPED))
    window.profile.update(kv=KVSpec.parse("3"))
    assert wanted_after_settling(window, qtbot) == KVSpec.parse("3")


def test_opening_a_conversation_with_another_precision_changes_nothing_in_the_engine(
    window: MainWindow, qtbot: QtBot
) -> None:
    first_id, other_id = window.profile.conversation_id, other_conversation(window._store)
    assert first_id is not None
    window.chat.switcher.open(other_id)
    window.profile.update(kv=FOUR_BIT)
    assert wanted_after_settling(window, qtbot) == FOUR_BIT  # nothing is held: harmless
    window.chat.switcher.open(first_id)
    window._engine.kv_changed.emit(first_id, CacheChanged(DEFAULT_KV, USAGE))
    window.chat.switcher.open(other_id)
    assert not window.precision._timer.isActive()
