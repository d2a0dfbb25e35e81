"""Documents in a real window, with a model of two layers whose tokens are bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.documents.ways import DocumentWay
from app.ledger.records import attachment_key
from app.profiles import DocumentMode
from engine.sampling import SamplingParams
from tests.engine.small_engine import write_templated_model
from tests.ui.conftest import WAIT_MS, Desk, drop
from ui.chat.attachments import AttachmentChip
from ui.chat.document_chip import SentDocument
from ui.document_reading import ahead_words
from ui.document_work import ReadAheadProgress
from ui.engine_worker import EngineState
from ui.main_window import MainWindow

SHORT = SamplingParams(temperature=0, max_tokens=4)
PAGE = "The lighthouse on the cape was built in 1871 by a family of masons from the north. " * 8
BOOK = PAGE * 20


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def window(desk: Desk, model: Path) -> MainWindow:
    return desk.open_with_model(model, SHORT)


def chips(window: MainWindow) -> list[AttachmentChip]:
    return window.chat.attachments.chips(window.chat.documents.reading)


def attach(window: MainWindow, qtbot: QtBot, path: Path, text: str) -> AttachmentChip:
    """Drop a file with this text and wait until its cost is known."""
    path.write_text(text, encoding="utf-8")
    drop(window, path)
    qtbot.waitUntil(lambda: bool(chips(window)) and chips(window)[-1].cost is not None, timeout=WAIT_MS)
    return chips(window)[-1]


def ahead(window: MainWindow) -> str:
    (chip,) = chips(window)
    return "" if chip.ahead is None else chip.ahead.text


def ask(window: MainWindow, qtbot: QtBot, text: str) -> None:
    window.composer.set_text(text)
    window.chat.send(text)
    qtbot.waitUntil(
        lambda: window._engine.state is EngineState.READY and not window.chat.session.is_streaming
    )


def test_a_document_that_fits_is_read_ahead_and_its_question_reads_only_its_own_words(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    chip = attach(window, qtbot, tmp_path / "page.txt", PAGE)
    assert chip.way is DocumentWay.WHOLE
    assert f"{len(PAGE.split()):,} words" in chip.detail
    qtbot.waitUntil(lambda: ahead(window).startswith("Read. "), timeout=WAIT_MS)
    ask(window, qtbot, "When?")
    stats = window.chat.session.messages[-1].stats
    assert stats is not None and stats.prompt_tokens > len(PAGE)
    assert stats.prompt_tokens - stats.reused_tokens < 40
    assert chips(window) == []


def test_a_document_that_does_not_fit_says_so_and_is_not_read_ahead(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    window.profile.update(document_mode=DocumentMode.AUTO)
    chip = attach(window, qtbot, tmp_path / "book.txt", BOOK)
    assert chip.cost is not None and chip.cost.of(DocumentWay.WHOLE).refusal
    assert chip.way in (DocumentWay.SEGMENTS, DocumentWay.LOOK_UP)
    assert chip.ahead is None


def test_the_way_that_is_chosen_is_kept_over_a_restart_and_stops_reading_ahead(
    desk: Desk, window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    chip = attach(window, qtbot, tmp_path / "page.txt", PAGE)
    assert chip.attachment_id is not None
    window.composer.way_chosen.emit(chip.attachment_id, DocumentWay.LOOK_UP)
    (chosen,) = chips(window)
    assert (chosen.way, chosen.ahead) == (DocumentWay.LOOK_UP, None)
    window.composer.way_chosen.emit(chip.attachment_id, DocumentWay.WHOLE)
    qtbot.waitUntil(lambda: ahead(window).startswith("Read. "), timeout=WAIT_MS)
    window.composer.way_chosen.emit(chip.attachment_id, DocumentWay.SEGMENTS)
    desk.close()
    (again,) = chips(desk.open())
    assert again.way is DocumentWay.SEGMENTS


def test_while_somebody_writes_what_is_known_of_documents_holds_and_reading_goes_on(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    attach(window, qtbot, tmp_path / "page.txt", PAGE)
    qtbot.waitUntil(lambda: ahead(window).startswith("Read. "), timeout=WAIT_MS)
    (before,) = chips(window)
    for length in range(1, 8):
        window.composer.edit.insertPlainText("a")
        assert window.chat.counts.count("a" * length) is None  # it will be in a moment
        (chip,) = chips(window)
        assert (chip.cost, chip.ahead) == (before.cost, before.ahead)


def test_without_its_model_nothing_is_said_of_tokens_and_costs(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    chip = attach(window, qtbot, tmp_path / "page.txt", PAGE)
    assert "tokens" in chip.detail
    window._engine.unload()
    qtbot.waitUntil(lambda: window._engine.loaded is None, timeout=WAIT_MS)
    (chip,) = chips(window)
    assert (chip.cost, chip.ahead) == (None, None)
    assert "characters" in chip.detail and "tokens" not in chip.detail


def test_the_way_of_a_document_that_was_sent_can_be_changed_and_taken_back(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    chip = attach(window, qtbot, tmp_path / "page.txt", PAGE)
    ask(window, qtbot, "When?")
    reading, session = window.chat.documents.reading, window.chat.session
    key = attachment_key(chip.attachment_id or 0)
    assert (session.context.way(key), reading.sent()) == (DocumentWay.WHOLE, ())
    window.view.way_chosen.emit(chip.attachment_id, DocumentWay.LOOK_UP)
    ((sent, way),) = reading.sent()
    assert (sent.id, way) == (chip.attachment_id, DocumentWay.LOOK_UP)
    assert "looked up" in window.composer._asked.focus_stops[0].accessibleName()
    (document,) = window.view.findChildren(SentDocument)
    assert document.accessibleName().endswith("read whole")
    assert [each.text() for each in document.menu().actions() if each.isChecked()] == ["Look up"]
    session.undo_context()
    assert reading.sent() == ()
    assert window.composer._asked.isHidden()


def test_a_long_pasted_text_can_be_put_into_the_message_instead(window: MainWindow, qtbot: QtBot) -> None:
    window.composer.take_text("word " * 2_000)
    (chip,) = chips(window)
    assert chip.is_pasted and window.composer.text == ""
    window.composer.as_text_wanted.emit(chip.key)
    assert chips(window) == []
    assert window.composer.text == "word " * 2_000


def test_a_folder_becomes_its_documents_and_what_is_left_out_is_said(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    for name, text in {"a.py": "x = 1\n", "src/b.py": "y = 2\n", ".git/HEAD": "ref\n"}.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    drop(window, tmp_path / "project")
    titles = ["project/a.py", "project/src/b.py"]
    qtbot.waitUntil(lambda: len(window.chat.attachments.attachments) == 2, timeout=WAIT_MS)
    assert sorted(chip.title for chip in chips(window)) == titles
    notice = window.centre.notification_bar.notice
    assert notice is not None and "2 files of “project” were attached. Left out: .git." in notice.message


def test_how_far_reading_ahead_is_is_said_in_words() -> None:
    going = ahead_words(ReadAheadProgress(2_048, 6_100, 41.0))
    assert going.text == "Read 2,048 of 6,100 tokens, about 40\N{NO-BREAK SPACE}s left"
    assert going.progress == (2_048, 6_100)
    assert ahead_words(ReadAheadProgress(9, 9, 0.0, is_done=True)).short == "Read"
    assert "No memory." in ahead_words(ReadAheadProgress(0, 0, error="No memory.")).text
