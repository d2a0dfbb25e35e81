"""What a message takes with documents that are read by different ways, beside what the engine measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pytest
from pytestqt.qtbot import QtBot

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
from engine.tokens import TokenCounter
from tests.app.ledger.paths import answer, question
from tests.engine.folders import byte_tokenizer
from tests.engine.small_engine import FOUR, SHORT, small_engine, write_small_model
from tests.ui.conftest import WAIT_MS
from ui.context_budget import ContextBudget
from ui.context_counts import Asked
from ui.context_use import ContextUse
from ui.ledger_counts import LedgerCounts
from ui.token_counts import TokenCounts

LIMIT = 2048
SETTINGS = ReplySettings(SHORT, FOUR, "Be brief.", LIMIT, Overflow.ASK, DocumentMode.SEGMENTS)
DROP = dataclasses.replace(SETTINGS, overflow=Overflow.DROP)
MARGIN = 8
"""Tokens by which texts that are counted for themselves may differ from a prompt."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return small_engine(write_small_model(tmp_path_factory.mktemp("model") / "small"), backend)


@pytest.fixture
def counts(qtbot: QtBot, engine: Engine) -> TokenCounts:
    assert engine.loaded is not None
    counts = TokenCounts()
    counts.set_counter(engine.loaded.counter)
    return counts


def document(number: int, length: int) -> Attachment:
    return Attachment(number, f"Text {number}", "", "text", "word " * (length // 5), None, None, False)


def used(
    qtbot: QtBot,
    counts: TokenCounts,
    engine: Engine,
    documents: Sequence[Attachment],
    path: Sequence[Message] = (),
    settings: ReplySettings = SETTINGS,
    **ways: DocumentWay,
) -> ContextUse:
    """Return what the window says of a message with documents, once all is counted."""
    rows = LedgerRows({key: ItemMark(key, way=way) for key, way in ways.items()})
    asked = Asked(ConversationContext.of(path, rows), "What?", tuple(documents))
    budget = ContextBudget(counts)

    def is_known() -> bool:
        counted = [budget.attachment_tokens(each) for each in documents]
        return None not in (budget.use(asked, settings, engine.loaded).used_tokens, *counted)

    qtbot.waitUntil(is_known, timeout=WAIT_MS)
    return budget.use(asked, settings, engine.loaded)


def measured(
    engine: Engine,
    documents: Sequence[Attachment],
    path: Sequence[Message] = (),
    settings: ReplySettings = SETTINGS,
    **ways: DocumentWay,
) -> int:
    """Return the tokens of the prompt that the engine's thread makes of the same, before any trim."""
    rows = LedgerRows({key: ItemMark(key, way=way) for key, way in ways.items()})
    sent = ConversationContext.of([*path, question(99, "What?", *documents)], rows)
    planner = TrimPlanner(engine, 1, settings)
    decided = sent.changed(decided_ways(sent, planner, ModelSpeeds(engine), CancelToken()))
    return engine.measure(settings.request(decided, 1)).num_tokens


@pytest.mark.parametrize(
    ("lengths", "ways"),
    [
        ([500], {}),
        ([500, 3000], {}),
        ([3000, 700, 600, 500], {}),
        ([500, 600], {"a1": DocumentWay.LOOK_UP}),
        ([3000, 600], {"a1": DocumentWay.LOOK_UP, "a2": DocumentWay.WHOLE}),
        ([900], {"a1": DocumentWay.SEGMENTS}),
        ([1300, 3000], {"a2": DocumentWay.LOOK_UP}),
    ],
)
def test_the_prompt_is_that_of_the_engine(
    qtbot: QtBot, counts: TokenCounts, engine: Engine, lengths: list[int], ways: dict[str, DocumentWay]
) -> None:
    documents = [document(number, length) for number, length in enumerate(lengths, 1)]
    path = [question(50, "a" * 100), answer(51, "b" * 100)]

    use = used(qtbot, counts, engine, documents, path, **ways)

    tokens = measured(engine, documents, path, **ways)
    assert use.used_tokens == pytest.approx(tokens, abs=MARGIN * (1 + len(documents)))
    assert use.surplus_tokens == 0


def test_what_will_be_read_of_a_document_is_counted_beside_it(
    qtbot: QtBot, counts: TokenCounts, engine: Engine
) -> None:
    long = used(qtbot, counts, engine, [document(1, 9000)])
    short = used(qtbot, counts, engine, [document(1, 200)], a1=DocumentWay.LOOK_UP)
    whole = used(qtbot, counts, engine, [document(1, 200)])

    assert long.reading_tokens == reading_room_tokens(LIMIT)
    assert 200 <= short.reading_tokens < 300
    assert whole.reading_tokens == 0
    assert long.read_tokens == (long.used_tokens or 0) + long.reading_tokens


def test_a_document_that_is_to_be_read_whole_and_does_not_fit_is_a_surplus(
    qtbot: QtBot, counts: TokenCounts, engine: Engine
) -> None:
    whole = dataclasses.replace(SETTINGS, document_mode=DocumentMode.WHOLE)

    assert used(qtbot, counts, engine, [document(1, 3000)], settings=whole).surplus_tokens > 900
    assert used(qtbot, counts, engine, [document(1, 3000)], a1=DocumentWay.WHOLE).surplus_tokens > 900


def test_old_turns_that_may_leave_make_room_for_a_document(
    qtbot: QtBot, counts: TokenCounts, engine: Engine
) -> None:
    path = [question(50, "a" * 600), answer(51, "b" * 600)]

    asking = used(qtbot, counts, engine, [document(1, 1200)], path)
    dropping = used(qtbot, counts, engine, [document(1, 1200)], path, DROP)

    assert asking.reading_tokens and not asking.released_turns
    assert not dropping.reading_tokens and dropping.released_turns == 1
    assert 1200 < (dropping.used_tokens or 0) < 1600


@pytest.mark.parametrize("way", [None, DocumentWay.LOOK_UP, DocumentWay.SEGMENTS])
def test_old_turns_make_room_to_read_a_document_whole_that_is_chosen_to_be_read_otherwise(
    qtbot: QtBot, counts: TokenCounts, engine: Engine, way: DocumentWay | None
) -> None:
    path = [question(50, "a" * 600), answer(51, "b" * 600)]
    ways = {} if way is None else {"a1": way}

    asking = used(qtbot, counts, engine, [document(1, 1200)], path, **ways)
    dropping = used(qtbot, counts, engine, [document(1, 1200)], path, DROP, **ways)

    assert asking.document_room is not None and dropping.document_room is not None
    assert asking.document_room.whole_tokens < 1200 < dropping.document_room.whole_tokens


class Counting(TokenCounter):
    """Counts, and knows how many characters it has counted."""

    def __init__(self) -> None:
        super().__init__(byte_tokenizer())
        self.counted = 0

    def count(self, text: str, cancel: CancelToken | None = None) -> int:
        self.counted += len(text)
        return super().count(text, cancel)


@pytest.fixture
def counting(counts: TokenCounts) -> Iterator[Counting]:
    counter = Counting()
    counts.set_counter(counter)
    yield counter
    counts.stop()
    assert counter.counted < 1_000_000


def test_a_document_of_megabytes_is_looked_at_once_and_not_counted_whole(
    qtbot: QtBot, counts: TokenCounts, engine: Engine, counting: Counting
) -> None:
    long = document(1, 20_000_000)

    use = used(qtbot, counts, engine, [long])

    assert use.surplus_tokens == 0 and use.reading_tokens == reading_room_tokens(LIMIT)
    assert ContextBudget(counts).attachment_tokens(long) == pytest.approx(20_000_000, rel=0.01)


@pytest.mark.parametrize("ways", [{}, {"a1": DocumentWay.WHOLE}])
@pytest.mark.parametrize("text", ["", "What?"])
def test_nor_is_one_that_was_sent_before(
    qtbot: QtBot,
    counts: TokenCounts,
    engine: Engine,
    counting: Counting,
    ways: dict[str, DocumentWay],
    text: str,
) -> None:
    rows = LedgerRows({key: ItemMark(key, way=way) for key, way in ways.items()})
    path = [question(50, "a", document(1, 20_000_000)), answer(51, "b")]
    asked = Asked(ConversationContext.of(path, rows), text)
    budget = ContextBudget(counts)
    qtbot.waitUntil(
        lambda: budget.use(asked, SETTINGS, engine.loaded).used_tokens is not None, timeout=WAIT_MS
    )
    estimate = budget.estimate(asked, SETTINGS, engine.loaded)

    assert estimate is not None
    assert sum(len(message.content) for message in estimate.context.messages) < 100_000
    is_whole = bool(ways) or not text  # else it is decided with the question, and looked up
    assert (estimate.whole.used_tokens or 0) > 19_000_000 if is_whole else estimate.whole.reading_tokens


def test_nor_is_one_in_the_panel(qtbot: QtBot, counts: TokenCounts, counting: Counting) -> None:
    path = [question(50, "a", document(1, 20_000_000)), answer(51, "b")]
    context, ledger = ConversationContext.of(path, LedgerRows()), LedgerCounts(counts)

    def is_known() -> bool:
        ledger.follow(context, "")
        return "a1" in ledger.known

    qtbot.waitUntil(is_known, timeout=WAIT_MS)
    assert ledger.known["a1"] == pytest.approx(20_000_000, rel=0.01)


def test_a_sent_document_that_is_looked_up_takes_a_line_and_room_for_passages(
    qtbot: QtBot, counts: TokenCounts, engine: Engine
) -> None:
    path = [question(50, "What is it?", document(1, 9000)), answer(51)]

    use = used(qtbot, counts, engine, [], path, a1=DocumentWay.LOOK_UP)

    assert (use.used_tokens or 0) < 400
    assert use.reading_tokens == reading_room_tokens(LIMIT)
