from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QContextMenuEvent, QRegion
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from engine.engine import LoadedModel
from engine.kv.page_map import PageCounters, PageMap
from engine.kv.precision import Tier
from engine.tokens import TokenCounter
from tests.engine.folders import byte_tokenizer
from tests.ui.conftest import figure
from tests.ui.inspector.pages.samples import PAGE_TOKENS, long_conversation, page, page_map
from tests.ui.inspector.panels import loaded_model
from ui.inspector.pages.card import PageCard
from ui.inspector.pages.groups import group_pages
from ui.inspector.pages.looks import cell_looks
from ui.inspector.pages.map_view import PageMapView
from ui.inspector.pages.panel import PagesPanel
from ui.inspector.tabs import PanelTabs


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return dataclasses.replace(loaded_model(4, 2), counter=TokenCounter(byte_tokenizer()))


@pytest.fixture
def panel(qtbot: QtBot, model: LoadedModel) -> Iterator[PagesPanel]:
    """A panel in a tab of its own, in a window with room beside it."""
    panel, tabs, window = PagesPanel(), PanelTabs(), QWidget()
    tabs.add("Pages", panel)
    column = QVBoxLayout(window)
    column.setContentsMargins(400, 0, 0, 0)
    column.addWidget(tabs)
    qtbot.addWidget(window)
    window.resize(700, 700)
    panel.set_model(model)
    window.show()
    qtbot.waitExposed(window)
    yield panel


def show(qtbot: QtBot, panel: PagesPanel, pages: PageMap) -> PageMapView:
    """Show pages and wait until they have their places."""
    panel.set_pages(pages, True)
    shown = map_of(panel)
    qtbot.waitUntil(lambda: shown.height() == shown.heightForWidth(shown.width()))
    return shown


def map_of(panel: PagesPanel) -> PageMapView:
    return panel.findChild(PageMapView)


def card_of(panel: PagesPanel) -> PageCard:
    return panel.window().findChild(PageCard)


def words(widget: QWidget) -> str:
    return " | ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))


def point_at(qtbot: QtBot, panel: PagesPanel, index: int) -> None:
    shown = map_of(panel)
    qtbot.mouseMove(shown, shown.cell_rect(index).center())


# What is shown.


def test_without_a_model_or_a_conversation_words_say_what_to_do(panel: PagesPanel) -> None:
    assert "Send a message" in words(panel)
    panel.set_model(None)
    assert "No model is loaded" in words(panel)
    assert not map_of(panel).isVisible()


def test_a_model_without_pages_says_so(panel: PagesPanel) -> None:
    panel.set_pages(page_map(open_tokens=50, is_paged=False), True)

    assert "without pages" in words(panel)
    assert not map_of(panel).isVisible()


def test_pages_of_another_conversation_are_named_as_such(panel: PagesPanel) -> None:
    panel.set_pages(page_map(page(0)), False)
    assert "another conversation" in words(panel) and map_of(panel).isVisible()
    panel.set_pages(page_map(page(0)), True)
    assert "another conversation" not in words(panel)


def test_an_ejected_model_takes_its_pages_with_it(panel: PagesPanel, model: LoadedModel) -> None:
    panel.set_pages(page_map(page(0)), True)
    panel.set_model(None)
    panel.set_model(model)

    assert not map_of(panel).isVisible()


def test_counters_and_totals_are_shown(panel: PagesPanel) -> None:
    counters = PageCounters(hits=1_234, spills=5, restores=6, evictions=7)
    panel.set_pages(page_map(page(0), page(1), open_tokens=9, counters=counters), True)

    shown = [figure(panel, f"Pages: {name}") for name in ("hits", "spills", "restores", "evictions")]
    assert shown == ["1,234", "5", "6", "7"]
    assert "Since Octavo was started, in all conversations:" in words(panel)
    assert f"3 pages, {2 * PAGE_TOKENS + 9} tokens" in words(panel)


def test_the_open_page_is_counted_wherever_pages_are(qtbot: QtBot, panel: PagesPanel) -> None:
    pages = page_map(page(0), page(1, Tier.HOT), open_tokens=9)
    show(qtbot, panel, pages)
    point_at(qtbot, panel, 0)

    assert f"3 pages, {2 * PAGE_TOKENS + 9} tokens" in words(panel)
    assert {"hot 1", "cold 1", "open 1"} <= set(words(panel).split(" | "))
    assert "Page 1 of 3, cold" in words(card_of(panel))
    assert [group.count for group in group_pages(pages)] == [3]
    show(qtbot, panel, page_map(open_tokens=9))
    assert "1 open page, 9 of 64 tokens" in words(panel)
    show(qtbot, panel, page_map(page(0)))
    assert "1 page, 64 tokens" in words(panel) and "open 0" in words(panel)


def test_pages_that_have_not_come_back_from_disk_yet_are_counted(panel: PagesPanel) -> None:
    for num_on_disk, told in (
        (3, "4 pages, 256 tokens; 3 on disk"),
        (1, "4 pages, 256 tokens; 1 on disk"),
        (0, "4 pages, 256 tokens"),
    ):
        panel.set_pages(page_map(*(page(at, is_on_disk=at < num_on_disk) for at in range(4))), True)
        assert told in words(panel).split(" | ")


def test_the_legend_counts_what_it_explains(panel: PagesPanel) -> None:
    pages = [page(0, Tier.WARM), page(1, references=2), page(2, pinned=True), page(3, is_on_disk=True)]
    panel.set_pages(page_map(*pages, page(4, Tier.HOT, pinned=True)), True)

    for text in (
        "hot 1",
        "warm 1",
        "cold 2",
        "on disk 1",
        "shared 1",
        "pinned 2",
        "open 0",
        "read little",
        "much",
    ):
        assert text in words(panel).split(" | ")
    panel.set_pages(page_map(page(0)), True)
    assert "on disk" not in words(panel)


@pytest.mark.parametrize(
    ("attention_pages", "caught", "value", "is_low"),
    [
        (None, None, "all of it", False),
        (8, None, "not measured yet", False),
        (8, 0.85, "85.0%", False),
        (8, 0.849, "84.9%", True),
        (8, 0.9999, "99.9%", False),
    ],
)
def test_caught_attention_turns_to_a_warning_below_its_line(
    panel: PagesPanel, attention_pages: int | None, caught: float | None, value: str, is_low: bool
) -> None:
    panel.set_pages(page_map(page(0), attention_pages=attention_pages, caught=caught), True)

    assert figure(panel, "Attention caught") == value
    assert ("Less than 85%" in words(panel)) is is_low


# Pointing, keys and pins.


def test_pointing_at_a_page_shows_what_is_in_it_beside_the_pane(qtbot: QtBot, panel: PagesPanel) -> None:
    show(qtbot, panel, page_map(*(page(number) for number in range(9))))

    point_at(qtbot, panel, 4)

    card = card_of(panel)
    assert card.isVisible()
    assert "Page 5 of 9, cold" in words(card) and "256 to 319" in words(card)
    assert card.geometry().right() < panel.mapTo(panel.window(), QPoint()).x()
    QApplication.sendEvent(map_of(panel), QEvent(QEvent.Type.Leave))
    assert not card.isVisible()


def test_the_card_goes_when_the_window_changes_its_size(qtbot: QtBot, panel: PagesPanel) -> None:
    show(qtbot, panel, page_map(page(0)))
    point_at(qtbot, panel, 0)
    assert card_of(panel).isVisible()

    panel.window().resize(800, 700)

    qtbot.waitUntil(lambda: not card_of(panel).isVisible())


def test_the_card_stays_in_a_narrow_window(qtbot: QtBot, panel: PagesPanel) -> None:
    layout = panel.window().layout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.activate()
    panel.window().resize(270, 640)
    show(qtbot, panel, long_conversation(40))
    assert panel.window().width() == 270

    for index in (0, 20, 40):
        point_at(qtbot, panel, index)
        card = card_of(panel)
        assert panel.window().rect().contains(card.geometry())
        cell = map_of(panel).cell_rect(index).translated(map_of(panel).mapTo(panel.window(), QPoint()))
        assert not card.geometry().intersects(cell)


def test_keys_walk_over_the_pages_and_each_is_announced(qtbot: QtBot, panel: PagesPanel) -> None:
    shown = show(qtbot, panel, page_map(*(page(number) for number in range(30)), open_tokens=5))
    shown.setFocus()
    described = QAccessible.queryAccessibleInterface(shown)

    for key, title in (
        (Qt.Key.Key_End, "Page 31 of 31, open"),
        (Qt.Key.Key_Left, "Page 30 of 31"),
        (Qt.Key.Key_Home, "Page 1 of 31"),
        (Qt.Key.Key_Left, "Page 1 of 31"),
        (Qt.Key.Key_Right, "Page 2 of 31"),
        (Qt.Key.Key_PageDown, "Page 24 of 31"),
        (Qt.Key.Key_Home, "Page 1 of 31"),
        (Qt.Key.Key_PageUp, "Page 1 of 31"),
    ):
        qtbot.keyClick(shown, key)
        assert described.text(QAccessible.Text.Description).startswith(title), key
    assert described.text(QAccessible.Text.Name) == "Pages"
    assert "Owls hunt" in described.text(QAccessible.Text.Description)


def test_down_goes_to_the_page_below_and_up_back(qtbot: QtBot, panel: PagesPanel) -> None:
    panel.set_pages(page_map(*(page(number) for number in range(60))), True)
    shown = map_of(panel)
    shown.setFocus()

    qtbot.keyClick(shown, Qt.Key.Key_Right)
    qtbot.keyClick(shown, Qt.Key.Key_Down)
    below = shown.current
    qtbot.keyClick(shown, Qt.Key.Key_Up)

    assert shown.current == 1
    assert below is not None and shown.cell_rect(below).x() == shown.cell_rect(1).x()
    assert shown.cell_rect(below).y() > shown.cell_rect(1).y()


def test_the_page_with_the_focus_scrolls_into_view(qtbot: QtBot, panel: PagesPanel) -> None:
    shown = show(qtbot, panel, long_conversation(2000))
    shown.setFocus()

    qtbot.keyClick(shown, Qt.Key.Key_End)

    assert shown.visibleRegion().contains(shown.cell_rect(2000))
    assert card_of(panel).isVisible()


def test_escape_puts_the_card_away_until_another_page_is_reached(qtbot: QtBot, panel: PagesPanel) -> None:
    panel.set_pages(page_map(page(0), page(1)), True)
    shown = map_of(panel)
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_Home)

    qtbot.keyClick(shown, Qt.Key.Key_Escape)
    assert not card_of(panel).isVisible()
    qtbot.keyClick(shown, Qt.Key.Key_Right)
    assert card_of(panel).isVisible()


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Space])
@pytest.mark.parametrize("pinned", [False, True])
def test_a_key_pins_and_unpins_the_page_with_the_focus(
    qtbot: QtBot, panel: PagesPanel, key: Qt.Key, pinned: bool
) -> None:
    panel.set_pages(page_map(page(0), page(1, pinned=pinned)), True)
    shown = map_of(panel)
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_Right)

    with qtbot.waitSignal(panel.pin_requested) as asked:
        qtbot.keyClick(shown, key)

    assert asked.args == [1001, not pinned]


def test_a_pin_that_waits_for_the_reply_is_told_and_can_be_taken_back(
    qtbot: QtBot, panel: PagesPanel
) -> None:
    panel.set_pages(page_map(page(0), page(1)), True)
    shown = map_of(panel)
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_Return)
    panel.set_pages(page_map(page(0), page(1), page(2)), True)
    assert "Will be pinned after the reply." in words(card_of(panel))
    assert "pinned 1" in words(panel)

    with qtbot.waitSignal(panel.pin_requested) as asked:
        qtbot.keyClick(shown, Qt.Key.Key_Return)
    assert asked.args == [1000, False]
    assert "Enter or a right click pins it." in words(card_of(panel))
    assert "pinned 0" in words(panel)

    qtbot.keyClick(shown, Qt.Key.Key_Return)
    panel.set_pages(page_map(page(0, pinned=True), page(1), page(2)), True)
    assert "Enter or a right click unpins it." in words(card_of(panel))


def test_a_page_is_framed_as_soon_as_its_pin_is_asked_for(qtbot: QtBot, panel: PagesPanel) -> None:
    shown = show(qtbot, panel, page_map(page(0), page(1)))
    before = [shown.picture(index).toImage() for index in (0, 1)]
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_Return)

    assert shown.picture(0).toImage() != before[0]
    assert shown.picture(1).toImage() == before[1]


def test_a_row_of_the_card_that_grows_is_not_cut(qtbot: QtBot, panel: PagesPanel) -> None:
    show(qtbot, panel, page_map(page(0), page(1)))
    point_at(qtbot, panel, 0)
    panel.set_pages(page_map(page(0, pinned=True), page(1)), True)
    qtbot.waitUntil(lambda: "lost bits" in words(card_of(panel)))

    (row,) = [label for label in card_of(panel).findChildren(QLabel) if "lost bits" in label.text()]
    assert row.heightForWidth(row.width()) > row.fontMetrics().lineSpacing()
    qtbot.waitUntil(lambda: row.height() >= row.heightForWidth(row.width()))


def test_the_open_page_cannot_be_pinned(qtbot: QtBot, panel: PagesPanel) -> None:
    panel.set_pages(page_map(page(0), open_tokens=5), True)
    shown = map_of(panel)
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_End)

    with qtbot.assertNotEmitted(panel.pin_requested):
        qtbot.keyClick(shown, Qt.Key.Key_Return)


def test_a_page_that_is_still_on_disk_cannot_be_pinned_and_says_why(qtbot: QtBot, panel: PagesPanel) -> None:
    panel.set_pages(page_map(page(0, is_on_disk=True), page(1)), True)
    shown = map_of(panel)
    shown.setFocus()
    with qtbot.assertNotEmitted(panel.pin_requested):
        qtbot.keyClick(shown, Qt.Key.Key_Return)
        shown.menu_asked.emit(0, QPoint(0, 0))
    assert panel.findChild(QMenu) is None
    assert "It comes back before it is read." in words(card_of(panel))


def test_the_context_menu_pins_the_page_under_the_mouse(qtbot: QtBot, panel: PagesPanel) -> None:
    panel.set_pages(page_map(page(0), page(1), page(2)), True)
    shown = map_of(panel)
    at = shown.cell_rect(2).center()

    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, shown.mapToGlobal(at))
    QApplication.sendEvent(shown, event)
    (menu,) = panel.findChildren(QMenu)
    (action,) = menu.actions()
    with qtbot.waitSignal(panel.pin_requested) as asked:
        action.trigger()
    menu.close()

    assert action.text() == "Pin this page"
    assert asked.args == [1002, True]


# Watching and changing.


def test_maps_are_wanted_only_while_the_panel_is_looked_at(qtbot: QtBot, panel: PagesPanel) -> None:
    with qtbot.waitSignal(panel.watching_changed) as away:
        panel.hide()
    with qtbot.waitSignal(panel.watching_changed) as back:
        panel.show()

    assert (away.args, back.args) == ([False], [True])


class Painted(PageMapView):
    """A map that remembers what it was asked to paint."""

    def __init__(self) -> None:
        super().__init__()
        self.region = QRegion()

    def paintEvent(self, event) -> None:  # noqa: ANN001
        self.region += event.region()
        super().paintEvent(event)


def test_only_pages_that_changed_are_painted_again(qtbot: QtBot) -> None:
    shown = Painted()
    qtbot.addWidget(shown)
    before = page_map(*(page(number) for number in range(40)))
    shown.set_cells(group_pages(before), cell_looks(before), 0.0)
    shown.resize(260, 200)
    shown.show()
    qtbot.waitExposed(shown)
    qtbot.waitUntil(lambda: not shown.region.isEmpty())
    shown.region = QRegion()
    after = page_map(*(page(number, pinned=number == 17) for number in range(40)))

    shown.set_cells(group_pages(after), cell_looks(after), 0.0)
    qtbot.waitUntil(lambda: not shown.region.isEmpty())

    assert shown.region.boundingRect() == shown.cell_rect(17)


def test_the_focus_stays_on_a_page_that_there_is(qtbot: QtBot, panel: PagesPanel) -> None:
    panel.set_pages(page_map(*(page(number) for number in range(9))), True)
    shown = map_of(panel)
    shown.setFocus()
    qtbot.keyClick(shown, Qt.Key.Key_End)

    panel.set_pages(page_map(page(0), page(1)), True)
    assert shown.current == 1
    panel.set_pages(None, True)
    assert shown.current is None
    qtbot.keyClick(shown, Qt.Key.Key_Return)


def test_the_map_grows_with_its_pages(qtbot: QtBot, panel: PagesPanel) -> None:
    shown = show(qtbot, panel, long_conversation(4096))

    assert shown.height() > shown.cell_rect(4096).bottom() > 1500
    assert shown.width() < 300


def test_every_widget_that_takes_the_focus_has_a_name(panel: PagesPanel) -> None:
    panel.set_pages(long_conversation(40), True)

    for widget in panel.findChildren(QWidget):
        if widget.focusPolicy() is not Qt.FocusPolicy.NoFocus and widget.isVisible():
            assert QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name), widget
