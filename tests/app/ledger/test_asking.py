"""What is offered where a conversation with documents is too long, with a model of byte tokens."""

from __future__ import annotations

import dataclasses

import pytest

from app.documents.ways import DocumentWay
from app.ledger.asking import document_choices, due_refusal, with_turn_choices
from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner
from app.ledger.records import ItemMark, LedgerRows
from app.profiles import Overflow
from app.reply_settings import ReplySettings
from app.store.records import Attachment
from engine.admission import AdmissionError, DropTurns, InSegments, LookUp
from engine.backend import Backend
from engine.engine import Engine
from tests.app.ledger.paths import answer, question
from tests.engine.small_engine import FOUR, SHORT, small_engine, write_small_model

SETTINGS = ReplySettings(SHORT, FOUR, "", 2048, Overflow.ASK)
BOOK = Attachment(7, "Book", "", "text", "word " * 300, None, None, False)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return small_engine(write_small_model(tmp_path_factory.mktemp("model") / "small"), backend)


def conversation(length: int, way: DocumentWay = DocumentWay.WHOLE) -> ConversationContext:
    """Return one about a book of 1,500 tokens, with a turn of so many characters behind it."""
    path = [
        question(1, "What is it?", BOOK),
        answer(2, "A book."),
        question(3, "q" * length),
        answer(4, "Yes."),
        question(5, "And now?"),
    ]
    return ConversationContext.of(path, LedgerRows({"a7": ItemMark("a7", way=way)}))


def test_what_is_read_whole_can_be_looked_up_instead(engine: Engine) -> None:
    planner, context = TrimPlanner(engine, 1, SETTINGS), conversation(600)
    assert planner.room(context).is_due

    assert list(document_choices(planner, context)) == [LookUp(("a7",))]

    refusal = due_refusal(planner, context)
    assert refusal is not None
    assert [type(each) for each in refusal.choices].index(LookUp) < len(refusal.choices) - 1
    assert "look documents up" in str(refusal)


def test_only_as_many_documents_as_are_needed_are_looked_up_instead_the_largest_first(engine: Engine) -> None:
    tiny, large, small = (
        dataclasses.replace(BOOK, id=number, text="a" * length)
        for number, length in ((7, 24), (8, 1800), (9, 100))
    )
    context = ConversationContext.of([question(1, "What?", tiny, large, small)], LedgerRows())

    assert list(document_choices(TrimPlanner(engine, 1, SETTINGS), context)) == [LookUp(("a8",))]


def test_it_is_no_way_out_where_the_rest_is_too_long_or_nothing_is_read_whole(engine: Engine) -> None:
    planner = TrimPlanner(engine, 1, SETTINGS)

    assert not list(document_choices(planner, conversation(2200)))
    assert not list(document_choices(planner, conversation(600, DocumentWay.LOOK_UP)))


def test_the_engines_refusal_is_given_it_once(engine: Engine) -> None:
    planner = TrimPlanner(engine, 1, dataclasses.replace(SETTINGS, overflow=Overflow.OFF))
    own = (InSegments(2, 1500, ("a9",)), LookUp(("a9",)))

    def refused(*choices: InSegments | LookUp) -> list[type]:
        error = AdmissionError("Too long.", needed_nbytes=2, available_nbytes=1, choices=choices)
        return [type(each) for each in with_turn_choices(error, planner, conversation(600)).choices]

    assert refused(*own).count(LookUp) == 1
    assert refused()[0] is LookUp
    assert DropTurns in refused()
