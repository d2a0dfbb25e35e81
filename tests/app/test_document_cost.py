"""What documents cost to read, and which way is sensible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.document_cost import (
    MOST_AUTO_S,
    DocumentCost,
    ReadingModel,
    ReadingRoom,
    document_costs,
    in_segments_s,
)
from app.document_size import DocumentSize
from app.documents.ways import DocumentWay
from app.profiles import DocumentMode
from app.reading_speed import ReadingSpeed
from engine.admission import MOST_SEGMENT_TOKENS, least_room_tokens, reading_room_tokens
from engine.backend import Backend
from engine.budget import kv_nbytes, plan_load
from engine.inspection import inspect_model
from engine.kv.precision import KVSpec
from engine.requests import LoadedModel
from engine.template_cost import TemplateTokens
from engine.tokens import TokenCounter
from tests.engine.folders import byte_tokenizer
from tests.engine.small_engine import write_small_model

KV = KVSpec.parse("8")
FAST = ReadingSpeed().with_read(0, 1000, 1.0).with_written(1000, 1100, 1.0)
SLOW = ReadingSpeed().with_read(0, 1000, 100.0).with_written(1000, 1100, 100.0)
ROOM = ReadingRoom(4096)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> LoadedModel:
    info = inspect_model(write_small_model(tmp_path_factory.mktemp("cost") / "small"))
    plan = plan_load(info, backend, KV, 2**33, True)
    return LoadedModel(info, backend, plan, TokenCounter(byte_tokenizer()), TemplateTokens(0, 0, 0))


def costs(
    loaded: LoadedModel,
    *tokens: int,
    room: ReadingRoom = ROOM,
    speed: ReadingSpeed = FAST,
    mode: DocumentMode = DocumentMode.AUTO,
    chosen: tuple[DocumentWay | None, ...] = (),
) -> tuple[DocumentCost, ...]:
    sizes = [DocumentSize(None, each, each) for each in tokens]
    ways = chosen or (None,) * len(sizes)
    return document_costs(sizes, ways, room, ReadingModel(loaded, KV, speed), mode)


def test_a_document_that_fits_is_read_whole(loaded: LoadedModel) -> None:
    (cost,) = costs(loaded, 4080)

    assert (cost.fits, cost.sensible) == (True, DocumentWay.WHOLE)
    assert cost.of(DocumentWay.WHOLE).words == "fits, about 4\N{NO-BREAK SPACE}s"
    assert cost.kv_nbytes == kv_nbytes(loaded.info, loaded.backend, KV, 4080)


def test_the_shortest_answer_and_what_else_is_read_need_room_beside_it(loaded: LoadedModel) -> None:
    (cost,) = costs(loaded, 3081, room=ReadingRoom(4096, other_tokens=1000))

    assert not cost.fits
    assert cost.of(DocumentWay.WHOLE).refusal == "It has 3,081 tokens, and there is room for 3,080."
    assert costs(loaded, 3080, room=ReadingRoom(4096, other_tokens=1000))[0].fits


def test_one_that_does_not_fit_is_read_in_segments_while_that_takes_minutes(loaded: LoadedModel) -> None:
    (cost,) = costs(loaded, 60_000)
    segments = cost.of(DocumentWay.SEGMENTS)

    assert cost.sensible is DocumentWay.SEGMENTS
    assert segments.num_pieces == -(-60_000 // MOST_SEGMENT_TOKENS)
    assert segments.seconds is not None
    assert 60 + 30 <= segments.seconds <= 2 * (60 + 30)  # a millisecond a token, 30 notes of a second
    assert segments.words == "30 segments, about 100\N{NO-BREAK SPACE}s"


def test_one_that_would_take_longer_is_looked_up(loaded: LoadedModel) -> None:
    (cost,) = costs(loaded, 60_000, speed=SLOW)

    assert cost.sensible is DocumentWay.LOOK_UP
    assert cost.reason == "It does not fit whole. In segments, each question would take about 3 hours."


def test_without_a_measured_speed_nothing_is_promised(loaded: LoadedModel) -> None:
    (cost,) = costs(loaded, 60_000, speed=ReadingSpeed())

    assert cost.sensible is DocumentWay.LOOK_UP
    assert cost.of(DocumentWay.SEGMENTS).words == "30 segments, time not measured yet"
    assert "not measured yet" in cost.reason
    assert costs(loaded, 100, speed=ReadingSpeed())[0].of(DocumentWay.WHOLE).seconds is None


@pytest.mark.parametrize(
    ("mode", "way"),
    [
        (DocumentMode.SEGMENTS, DocumentWay.SEGMENTS),
        (DocumentMode.LOOK_UP, DocumentWay.LOOK_UP),
        (DocumentMode.WHOLE, DocumentWay.WHOLE),
    ],
)
def test_the_profile_says_what_is_sensible_for_what_does_not_fit(
    loaded: LoadedModel, mode: DocumentMode, way: DocumentWay
) -> None:
    assert costs(loaded, 60_000, mode=mode)[0].sensible is way
    assert costs(loaded, 600, mode=mode)[0].sensible is DocumentWay.WHOLE


def test_a_context_that_takes_no_segment_says_so(loaded: LoadedModel) -> None:
    (cost,) = costs(loaded, 60_000, room=ReadingRoom(300, other_tokens=290))

    assert cost.of(DocumentWay.SEGMENTS).refusal == "A context of 300 tokens is too small for that."
    assert cost.of(DocumentWay.LOOK_UP).refusal


def test_of_several_the_smallest_are_read_whole_and_room_is_kept_for_the_others(loaded: LoadedModel) -> None:
    room = reading_room_tokens(4096)
    found = costs(loaded, 9000, 1000, 1500, 1000)

    assert [each.sensible for each in found] == [
        DocumentWay.SEGMENTS,
        DocumentWay.WHOLE,
        DocumentWay.SEGMENTS,  # 3,500 and the room for notes are too many
        DocumentWay.WHOLE,
    ]
    assert 2000 + room <= 4080 < 3500 + room


def test_what_is_chosen_takes_the_room_of_what_is_not(loaded: LoadedModel) -> None:
    free = costs(loaded, 2000, 1900, chosen=(None, None))
    taken = costs(loaded, 2000, 2100, chosen=(None, DocumentWay.WHOLE))

    assert [each.sensible for each in free] == [DocumentWay.WHOLE, DocumentWay.WHOLE]
    assert taken[0].sensible is DocumentWay.SEGMENTS


def test_the_minutes_are_those_of_all_documents_together(loaded: LoadedModel) -> None:
    (alone,) = costs(loaded, 300_000)
    together = costs(loaded, 300_000, 300_000)

    assert alone.sensible is DocumentWay.SEGMENTS
    assert [each.sensible for each in together] == [DocumentWay.SEGMENTS, DocumentWay.LOOK_UP]


def test_segments_take_their_reading_and_a_note_on_each() -> None:
    assert in_segments_s(4, 20_000, FAST) == pytest.approx(20 + 4 * (0.13 + 1.0), rel=0.05)
    assert in_segments_s(4, 20_000, ReadingSpeed()) is None


@given(st.lists(st.integers(1, 6000), min_size=1, max_size=6), st.integers(600, 8192))
def test_what_is_read_whole_by_itself_fits_together(
    loaded: LoadedModel, tokens: list[int], limit: int
) -> None:
    found = costs(loaded, *tokens, room=ReadingRoom(limit))
    whole = [each for each in found if each.sensible is DocumentWay.WHOLE]

    assert sum(each.size.num_tokens for each in whole) + 16 <= limit or not whole
    seconds = [
        each.of(DocumentWay.SEGMENTS).seconds for each in found if each.sensible is DocumentWay.SEGMENTS
    ]
    assert sum(each or 0 for each in seconds) <= MOST_AUTO_S


def test_more_documents_than_there_is_room_for_notes_on_are_looked_up(loaded: LoadedModel) -> None:
    room = reading_room_tokens(4096) // least_room_tokens(1, 0)
    for count, way in ((room, DocumentWay.SEGMENTS), (room + 1, DocumentWay.LOOK_UP)):
        found = costs(loaded, *[5000] * count)
        assert {each.sensible for each in found} == {way}
    assert f"There is no room for notes on {room + 1:,} documents." in found[0].reason
    assert all(not each.of(DocumentWay.LOOK_UP).refusal for each in found)
    ways = (DocumentWay.LOOK_UP, *[None] * room)
    assert costs(loaded, *[5000] * (room + 1), chosen=ways)[1].sensible is DocumentWay.SEGMENTS
