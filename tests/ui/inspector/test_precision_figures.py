"""What the panel of the KV precision tells of a cache, with figures made up and no model."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from engine.kv.precision import KV_BITS, KVSpec
from engine.kv.usage import KVUsage
from engine.memory_limits import MemoryLimits
from engine.wording import format_nbytes
from tests.app.store.samples import USAGE
from tests.ui.conftest import figure
from tests.ui.inspector.panels import CUSTOM, loaded_model, shown
from ui.inspector.precision import PrecisionPanel
from ui.inspector.slider import Slider
from ui.live_precision import HeldCache


def usage(**figures: object) -> KVUsage:
    """A cache whose ten cold pages have the bits that were asked for."""
    agreed = dataclasses.replace(
        USAGE, cold_pages=10, requested=(8.0, 8.0), effective=(8.0, 8.0), num_below=0, attention_pages=None
    )
    return dataclasses.replace(agreed, **figures)


def hold(panel: PrecisionPanel, kv: str, held: KVUsage, is_open: bool = True) -> None:
    panel.set_held(HeldCache(1, KVSpec.parse(kv), held), is_open)


def apart(panel: PrecisionPanel) -> tuple[str, str]:
    """What is requested and what is held, where the panel says that they differ."""
    if not panel._figures.is_apart:
        return "", ""
    return figure(panel, "KV precision requested"), figure(panel, "KV precision held")


def hint(panel: PrecisionPanel) -> str:
    label = panel._notice._hint
    return "" if label.isHidden() else label.text()


def test_what_is_held_is_told_by_tier_and_in_bytes(panel: PrecisionPanel) -> None:
    assert figure(panel, "KV memory now") == figure(panel, "KV pages by tier") == "–"
    hold(panel, "8", usage())
    assert figure(panel, "KV memory now") == "123 KB"
    assert figure(panel, "KV pages by tier") == "1 hot, 2 warm, 10 cold"
    assert figure(panel, "Attention caught by the budget") == "reads all pages"
    hold(panel, "8; attend=4", usage(attention_pages=4))
    assert figure(panel, "Attention caught by the budget") == "97.0% caught by 4 pages"


def test_requested_and_held_are_shown_apart_until_they_agree(panel: PrecisionPanel) -> None:
    hold(panel, "8", usage())
    assert apart(panel) == ("", "")
    panel.set_spec(KVSpec.parse("4"))
    assert apart(panel) == ("4 bits", "8 bits")
    hold(panel, "4", usage(requested=(4.0, 4.0), effective=(4.0, 4.0)))
    assert apart(panel) == ("", "")
    assert hint(panel) == ""


def test_pages_that_have_lost_bits_are_counted(panel: PrecisionPanel) -> None:
    hold(panel, "8", usage(effective=(4.0, 4.0), num_below=10))
    assert apart(panel) == ("8 bits", "4 bits")
    assert hint(panel) == "10 pages stay at 4 bits until the conversation is read again."
    hold(panel, "8", usage(effective=(2.0, 2.9), num_below=10))
    assert hint(panel) == (
        "10 pages stay at 2 bits for keys, 2.9 for values on average until the conversation is read again."
    )
    hold(panel, "8", usage(effective=(7.6, 7.6), num_below=1))
    assert apart(panel) == ("8 bits", "7.6 bits")
    assert hint(panel) == "1 page stays at fewer bits until the conversation is read again."


def test_rules_by_layer_are_requested_as_their_mean_once_a_model_tells_its_layers(qtbot: QtBot) -> None:
    panel = shown(qtbot, CUSTOM)
    assert figure(panel, "KV precision requested") == "by layer"
    panel.set_model(loaded_model(30, 3))
    hold(panel, "8; page=128, group=32", usage(effective=(4.0, 4.0), num_below=10))
    # 8 layers at 8 and 22 at 6 and 4: 196 / 30 and 152 / 30
    assert apart(panel) == ("k6.5v5.1 on average", "4 bits")


def test_figures_of_the_plan_are_those_of_the_model_and_follow_a_slider_that_is_held(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    loaded = loaded_model(30, 3)
    panel.set_model(loaded)
    slider = next(slider for slider in panel.findChildren(Slider) if "key" in slider.accessibleName())
    middle = slider.height() // 2
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.centre_of(slider.value()), middle))
    for stop in (4, 1, 0, 3):
        qtbot.mouseMove(slider, QPoint(slider.centre_of(stop), middle))
        plan = loaded.plan_at(KVSpec.parse(f"k{sorted(KV_BITS)[stop]}v8"))
        nbytes = format_nbytes(plan.kv_nbytes_per_token)
        qtbot.waitUntil(lambda: figure(panel, "KV bytes per token") == nbytes)  # noqa: B023
        assert figure(panel, "KV memory at full context") == format_nbytes(plan.kv_nbytes)
        assert figure(panel, "Safe context") == f"{plan.safe_tokens:,} tokens"
        assert figure(panel, "Context that fits") == "all 8,192 tokens"
    assert panel.spec == KVSpec.parse("8")


def test_no_row_comes_or_goes_whatever_is_known(qtbot: QtBot, panel: PrecisionPanel) -> None:
    def rows() -> list[int]:
        return [label.geometry().top() for label in panel._figures.findChildren(QLabel)]

    before = rows()
    panel.set_model(loaded_model(30, 3))
    hold(panel, "8", usage(effective=(4.0, 4.0), num_below=10, attention_pages=8, hot_pages=123_456_789))
    panel.set_spec(KVSpec.parse("0-7:8, 8-:k6v4, 12.h1:2; attend=4, page=512"))
    QApplication.processEvents()
    assert rows() == before


def test_a_page_or_group_size_that_waits_for_the_next_message_is_said(panel: PrecisionPanel) -> None:
    hold(panel, "8", usage())
    words = (
        "The new page or group size takes effect with the next message, which reads the conversation again."
    )
    for text in ("8; page=128", "8; group=32"):
        panel.set_spec(KVSpec.parse(text))
        assert hint(panel) == words
    panel.set_spec(KVSpec.parse("8"))
    assert hint(panel) == ""


def test_of_another_conversation_only_its_memory_is_told(panel: PrecisionPanel) -> None:
    hold(panel, "8; page=64", usage(effective=(4.0, 4.0), num_below=10), is_open=False)
    assert figure(panel, "KV memory now") == "123 KB"
    assert apart(panel) == ("", "")
    assert hint(panel) == ""


def test_without_a_cold_page_there_are_no_bits_to_hold(panel: PrecisionPanel) -> None:
    young = usage(cold_pages=0, effective=None)
    hold(panel, "8", young)
    assert apart(panel) == ("", "")
    panel.set_spec(KVSpec.parse("4"))
    assert apart(panel) == ("4 bits", "no cold page yet")


def test_a_cache_larger_than_all_that_fits_is_not_said_to_be_smaller_when_it_is_full(qtbot: QtBot) -> None:
    panel = shown(qtbot, CUSTOM)
    loaded = loaded_model(2, 2)
    panel.set_model(loaded)
    hold(panel, "8", usage())
    assert figure(panel, "KV memory at full context") == format_nbytes(loaded.plan_at(CUSTOM).kv_nbytes)
    panel.set_model(dataclasses.replace(loaded, limits=MemoryLimits(most_nbytes=1)))
    hold(panel, "8", usage(nbytes=45_000_000))
    assert figure(panel, "KV memory at full context") == "more than fits is in use"
