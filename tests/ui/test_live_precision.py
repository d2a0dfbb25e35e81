"""Sliders on a live conversation, with the real starter model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.settings import DEFAULT_KV, load_settings
from app.store.records import MessageState
from engine.events import CacheChanged
from engine.kv.precision import PRESETS, KVSpec
from engine.kv.usage import KVUsage
from engine.sampling import SamplingParams
from tests.ui.conftest import WAIT_MS, Desk, figure
from ui.engine_worker import EngineState
from ui.inspector.slider import Slider
from ui.main_window import MainWindow

pytestmark = pytest.mark.slow

SHORT = SamplingParams(temperature=0, max_tokens=4)
LONG = SamplingParams(temperature=0, repetition_penalty=1.2, max_tokens=150)
EXACT = KVSpec.parse("16; page=64, hot=0, warm=0")
QUESTION = "The lighthouse keeper counts the ships. " * 30
REPLY_MS = 2 * WAIT_MS


def ask(window: MainWindow, qtbot: QtBot, text: str = QUESTION) -> None:
    window.composer.set_text(text)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.chat.stream.conversation_id is not None, timeout=WAIT_MS)


def wait_for_answer(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window.chat.stream.conversation_id is None, timeout=REPLY_MS)
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)


def press(window: MainWindow, qtbot: QtBot, key: Qt.Key, times: int = 1) -> None:
    """Press a key on both sliders."""
    for name in ("Bits of a cached key", "Bits of a cached value"):
        sliders = window.inspector.findChildren(Slider)
        slider = next(slider for slider in sliders if slider.accessibleName() == name)
        for _ in range(times):
            qtbot.keyClick(slider, key)


def told(window: MainWindow) -> list[KVUsage]:
    """Collect what the engine tells of its cache from now on."""
    usages: list[KVUsage] = []
    window._engine.kv_changed.connect(lambda _, changed: usages.append(changed.usage))
    return usages


def held(window: MainWindow) -> KVUsage:
    assert window.precision.held is not None
    return window.precision.held.usage


def apart(window: MainWindow) -> tuple[str, str]:
    """What is requested and what is held, where the window says that they differ."""
    if not window.inspector.precision._figures.is_apart:
        return "", ""
    return figure(window, "KV precision requested"), figure(window, "KV precision held")


def hint(window: MainWindow) -> str:
    label = window.inspector.precision._notice._hint
    return "" if label.isHidden() else label.text()


def test_sliders_reach_the_cache_in_mid_reply_and_the_reply_goes_on(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, LONG, EXACT)
    ask(window, qtbot)
    qtbot.waitUntil(lambda: len(window.chat.stream.text) > 10, timeout=REPLY_MS)
    press(window, qtbot, Qt.Key.Key_Left, times=4)
    qtbot.waitUntil(lambda: held(window).requested == (4, 4), timeout=WAIT_MS)
    seen = len(window.chat.stream.text)
    assert window.chat.stream.conversation_id is not None
    assert held(window).effective == (4, 4)
    assert figure(window, "KV pages by tier").endswith(f"{held(window).cold_pages} cold")
    assert apart(window) == ("", "")
    qtbot.waitUntil(lambda: len(window.chat.stream.text) > seen, timeout=REPLY_MS)
    wait_for_answer(window, qtbot)
    answer = window.chat.session.messages[-1]
    assert answer.state is MessageState.COMPLETE
    assert answer.stats is not None
    assert answer.stats.completion_tokens == 150 or answer.stats.stop_reason.value == "end"
    assert answer.stats.kv == "4; page=64, hot=0, warm=0"
    assert answer.stats.kv_usage.effective == (4, 4)
    desk.close()
    assert load_settings(desk.paths.settings_file)[0].custom.kv == KVSpec.parse("4; page=64, hot=0, warm=0")


def test_a_lower_precision_applies_at_once_between_replies_and_once_for_many_steps(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    before = held(window)
    assert before.effective == (16, 16)
    usages = told(window)
    with qtbot.waitSignal(window._engine.kv_changed, timeout=WAIT_MS):
        press(window, qtbot, Qt.Key.Key_Left, times=6)
        assert apart(window) == ("2 bits", "16 bits")
    assert held(window).effective == (2, 2)
    assert held(window).nbytes < before.nbytes
    assert apart(window) == ("", "")
    assert usages == [held(window)]


def test_a_higher_precision_is_for_new_pages_and_the_old_ones_are_told_until_they_are_read_again(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, KVSpec.parse("4; page=64, hot=0, warm=0"))
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    old_pages = held(window).cold_pages
    with qtbot.waitSignal(window._engine.kv_changed, timeout=WAIT_MS):
        press(window, qtbot, Qt.Key.Key_End)
    assert apart(window) == ("16 bits", "4 bits")
    assert hint(window) == f"{old_pages} pages stay at 4 bits until the conversation is read again."

    ask(window, qtbot, "The storm came from the north. " * 20)
    wait_for_answer(window, qtbot)
    mixed = held(window)
    assert mixed.num_below == old_pages
    assert mixed.cold_pages > old_pages
    assert mixed.effective is not None and 4 < mixed.effective[0] < 16

    window.profile.update(kv=KVSpec.parse("16; page=128, hot=0, warm=0"))
    assert "with the next message" in hint(window)
    ask(window, qtbot, "Well?")
    wait_for_answer(window, qtbot)
    assert held(window).effective == (16, 16)
    assert (apart(window), hint(window)) == (("", ""), "")


def lose_bits(window: MainWindow, qtbot: QtBot) -> KVUsage:
    """Go to 2 bits and back to 16, which the pages do not have any more."""
    for key in (Qt.Key.Key_Home, Qt.Key.Key_End):
        with qtbot.waitSignal(window._engine.kv_changed, timeout=WAIT_MS):
            press(window, qtbot, key)
    assert held(window).num_below == held(window).cold_pages > 0
    return held(window)


def test_reading_again_brings_lost_bits_back_and_leaves_the_conversation(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    messages = list(window.chat.session.messages)
    assert messages[-1].stats is not None
    assert window.precision.reread.prefill_tps == messages[-1].stats.prefill_tps
    lost = lose_bits(window, qtbot)
    window.inspector.precision._notice.findChild(QPushButton).click()
    qtbot.waitUntil(lambda: window._engine.state is EngineState.REBUILDING, timeout=WAIT_MS)
    wait_for_answer(window, qtbot)
    again = held(window)
    assert again.num_tokens - lost.num_tokens in range(4)  # the end of the answer was not read yet
    assert (again.effective, again.num_below) == ((16, 16), 0)
    assert (apart(window), hint(window)) == (("", ""), "")
    assert window.chat.session.messages == messages


def test_reading_again_can_be_stopped_and_the_next_message_reads_the_rest(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    lost = lose_bits(window, qtbot)
    button = window.inspector.precision._notice.findChild(QPushButton)
    button.click()
    qtbot.waitUntil(lambda: window._engine.state is EngineState.REBUILDING, timeout=WAIT_MS)
    assert button.text() == "Stop"
    button.click()
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)
    assert held(window).num_tokens < lost.num_tokens
    ask(window, qtbot, "Well?")
    wait_for_answer(window, qtbot)
    assert held(window).num_tokens > lost.num_tokens
    assert held(window).effective == (16, 16)
    assert window.chat.session.messages[-1].state is MessageState.COMPLETE


def test_a_change_while_the_prompt_is_read_does_not_disturb_the_reply(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot, QUESTION * 6)
    qtbot.waitUntil(lambda: window.chat.stream.prefill is not None, timeout=WAIT_MS)
    with qtbot.waitSignal(window._engine.kv_changed, timeout=WAIT_MS):
        window.profile.update(kv=PRESETS["compact"])
    assert "with the next message" in hint(window)
    wait_for_answer(window, qtbot)
    answer = window.chat.session.messages[-1]
    assert answer.state is MessageState.COMPLETE
    assert answer.stats is not None and answer.stats.completion_tokens == 4
    pages = {"page_tokens": EXACT.page_tokens, "group_size": EXACT.group_size}
    assert KVSpec.parse(answer.stats.kv) == dataclasses.replace(PRESETS["compact"], **pages)


def test_a_preset_shows_what_it_costs_with_the_loaded_model(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT)
    assert window._engine.loaded is not None
    for name, spec in PRESETS.items():
        buttons = window.inspector.findChildren(QPushButton)
        next(button for button in buttons if button.text() == name.capitalize()).click()
        assert window.profile.value.kv == spec
        bits = window._engine.loaded.effective_bits_at(spec)
        assert figure(window, "Effective bits of the KV cache") == f"{bits:.1f}"
    assert figure(window, "Context that fits") == "all 8,192 tokens"


def test_rules_for_layers_that_the_loaded_model_lacks_are_said(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT)
    window.profile.update(kv=KVSpec.parse("0-30:8"))
    assert hint(window).startswith(
        "'0-30:8' names what this model does not have; it has layers 0-29, heads 0-2."
    )


def test_another_conversation_or_model_ends_what_was_known_of_the_cache(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, KVSpec.parse("4; page=64, hot=0, warm=0"))
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    window.profile.update(kv=EXACT)
    qtbot.waitUntil(lambda: hint(window) != "", timeout=WAIT_MS)
    window.chat.switcher.new()
    assert (apart(window), hint(window)) == (("", ""), "")
    assert figure(window, "KV memory now") != "–"
    window.models.eject()
    qtbot.waitUntil(lambda: window._engine.loaded is None, timeout=WAIT_MS)
    assert window.precision.held is None
    assert figure(window, "KV memory now") == "–"


def test_what_is_held_is_what_the_engine_tells_and_not_what_was_chosen_since(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    assert window.precision.held is not None
    told_kv = KVSpec.parse("6; page=64, hot=0, warm=0")
    window.profile.update(kv=KVSpec.parse("3; page=64, hot=0, warm=0"))
    window._engine.kv_changed.emit(window.precision.held.conversation_id, CacheChanged(told_kv, held(window)))
    assert window.precision.held is not None
    assert window.precision.held.kv == told_kv
    assert apart(window)[0] == "3 bits"


def test_a_saved_precision_for_another_model_does_not_keep_the_last_model_from_loading(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, KVSpec.parse("0-30:8"))
    assert window._engine.loaded is not None
    assert window.profile.value.kv == DEFAULT_KV
    shown = [label.text() for label in window.centre.notification_bar.findChildren(QLabel)]
    (said,) = [text for text in shown if "'0-30:8'" in text]
    assert "in the window's right pane or with --kv. It is 8 bits now." in said
    ask(window, qtbot, "Name a bird.")
    wait_for_answer(window, qtbot)
    assert window.chat.session.messages[-1].state is MessageState.COMPLETE


def test_the_figures_move_while_a_long_text_is_read(desk: Desk, qtbot: QtBot, starter_gguf: Path) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, KVSpec.parse("8; page=64, hot=0, warm=0"))
    usages = told(window)
    ask(window, qtbot, "The storm came from the north. " * 40)
    wait_for_answer(window, qtbot)
    tokens = [usage.num_tokens for usage in usages]
    assert tokens == sorted(tokens)
    assert len(set(tokens)) >= 3
    assert usages[-1] == held(window)


def test_a_message_that_is_refused_leaves_the_figures_of_the_cache_that_is_still_held(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    before = window.precision.held
    window.chat.switcher.new()
    too_long = window.chat.session.conversation_id
    assert too_long is not None
    message = desk.store.add_user_message(too_long, None, "word " * 9000, [])
    window.chat.stream.request(too_long, message.id, window.chat.reply_settings())
    wait_for_answer(window, qtbot)
    assert desk.store.conversation(too_long).leaf_id == message.id
    assert before is not None and window.precision.held == before


def test_deleting_a_conversation_gives_its_memory_back(desk: Desk, qtbot: QtBot, starter_gguf: Path) -> None:
    window = desk.open_with_model(starter_gguf, SHORT, EXACT)
    ask(window, qtbot)
    wait_for_answer(window, qtbot)
    assert held(window).nbytes > 0
    asked = window.chat.session.conversation_id
    assert asked is not None
    with qtbot.waitSignal(window._engine.kv_changed, timeout=WAIT_MS):
        window.chat.switcher.delete(asked)
    assert window.precision.held is None
    assert figure(window, "KV memory now") == "–"
