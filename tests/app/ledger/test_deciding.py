"""How documents are read of which nobody has chosen that, with the numbers of a model of byte tokens."""

from __future__ import annotations

import dataclasses

import pytest

from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext
from app.ledger.deciding import decided_ways
from app.ledger.planning import TrimPlanner
from app.ledger.records import ItemMark, LedgerRows
from app.model_speeds import ModelSpeeds
from app.profiles import DocumentMode, Overflow
from app.reply_settings import ReplySettings
from app.store.records import Attachment, Message
from engine.admission import reading_room_tokens
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from tests.app.ledger.paths import answer, question
from tests.engine.small_engine import FOUR, SHORT, small_engine, write_small_model

SETTINGS = ReplySettings(SHORT, FOUR, "", 2048, Overflow.ASK, DocumentMode.SEGMENTS)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return small_engine(write_small_model(tmp_path_factory.mktemp("model") / "small"), backend)


def document(number: int, length: int) -> Attachment:
    return Attachment(number, f"Text {number}", "", "text", "word " * (length // 5), None, None, False)


def decided(
    engine: Engine, path: list[Message], settings: ReplySettings = SETTINGS, rows: LedgerRows | None = None
) -> dict[str, DocumentWay | None]:
    context = ConversationContext.of(path, rows or LedgerRows())
    planner = TrimPlanner(engine, 1, settings)
    change = decided_ways(context, planner, ModelSpeeds(engine), CancelToken())
    return {mark.key: mark.way for mark in change.marks}


def test_what_fits_is_read_whole_and_the_rest_as_the_profile_says(engine: Engine) -> None:
    path = [question(1, "What?", document(7, 500), document(8, 3000))]

    assert decided(engine, path) == {"a7": DocumentWay.WHOLE, "a8": DocumentWay.SEGMENTS}


def test_a_profile_that_reads_whole_decides_nothing_for_what_does_not_fit(engine: Engine) -> None:
    whole = dataclasses.replace(SETTINGS, document_mode=DocumentMode.WHOLE)

    assert decided(engine, [question(1, "What?", document(8, 3000))], whole) == {}


def test_what_was_chosen_stays(engine: Engine) -> None:
    rows = LedgerRows({"a7": ItemMark("a7", way=DocumentWay.LOOK_UP)})
    path = [question(1, "What?", document(7, 500), document(8, 500))]

    assert decided(engine, path, rows=rows) == {"a8": DocumentWay.WHOLE}


def test_what_may_leave_makes_room_for_a_document(engine: Engine) -> None:
    old = [question(1, "a" * 600), answer(2, "b" * 600)]
    path = [*old, question(3, "What?", document(7, 1500))]
    drop = dataclasses.replace(SETTINGS, overflow=Overflow.DROP)

    assert decided(engine, path) == {"a7": DocumentWay.SEGMENTS}
    assert decided(engine, path, drop) == {"a7": DocumentWay.WHOLE}


def test_where_the_speed_matters_it_is_measured_first(engine: Engine) -> None:
    engine.take_times()
    auto = dataclasses.replace(SETTINGS, document_mode=DocumentMode.AUTO)

    assert decided(engine, [question(1, "What?", document(8, 3000))], auto) == {"a8": DocumentWay.SEGMENTS}


def test_a_text_of_megabytes_is_not_counted_whole(engine: Engine) -> None:
    long = document(8, 20_000_000)
    context = ConversationContext.of([question(1, "What?", long)], LedgerRows())
    planner = TrimPlanner(engine, 1, SETTINGS)
    count, counted = planner.count, list[int]()

    def counting(text: str) -> int:
        counted.append(len(text))
        return count(text)

    planner.count = counting
    change = decided_ways(context, planner, ModelSpeeds(engine), CancelToken())

    assert [mark.way for mark in change.marks] == [DocumentWay.SEGMENTS]
    assert sum(counted) < 500_000


def test_room_is_kept_for_what_is_to_be_read(engine: Engine) -> None:
    rows = LedgerRows({"a8": ItemMark("a8", way=DocumentWay.LOOK_UP)})
    unread = ConversationContext.of([question(1, "What?", document(8, 3000))], rows)
    nothing = ConversationContext.of([question(1, "What?")], LedgerRows())
    planner = TrimPlanner(engine, 1, SETTINGS)

    least = planner.room(nothing).due_tokens - planner.room(unread).due_tokens
    assert least == reading_room_tokens(2048) == planner.reading_room(unread)


def test_there_is_no_room_to_read_in_beside_a_prompt_that_fills_the_context(engine: Engine) -> None:
    rows = LedgerRows({"a8": ItemMark("a8", way=DocumentWay.LOOK_UP)})
    full = ConversationContext.of([question(1, "w" * 1900, document(8, 3000))], rows)

    assert TrimPlanner(engine, 1, SETTINGS).reading_room(full) < 100


def test_a_document_is_not_read_whole_in_the_room_for_passages_of_another(engine: Engine) -> None:
    path = [question(1, "What?", document(7, 1500), document(8, 3000))]
    looked_up = LedgerRows({"a8": ItemMark("a8", way=DocumentWay.LOOK_UP)})
    left_out = LedgerRows({"a8": ItemMark("a8", is_dropped=True, way=DocumentWay.LOOK_UP)})

    assert decided(engine, path, rows=looked_up) == {"a7": DocumentWay.SEGMENTS}
    assert decided(engine, path, rows=left_out) == {"a7": DocumentWay.WHOLE}
