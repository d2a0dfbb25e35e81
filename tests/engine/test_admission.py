"""What is refused before memory is touched, by memory that a test sets, and what is offered instead."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import headroom
from engine.admission import (
    AdmissionError,
    ContextOverflowError,
    DropTurns,
    InSegments,
    LongerContext,
    LookUp,
    LowerPrecision,
    PackedWeights,
    ShorterContext,
    SmallerModel,
    SummarizeTurns,
    too_large,
)
from engine.backend import Backend
from engine.budget import kv_nbytes, plan_load
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import Finished
from engine.headroom import CacheRoom, headroom_nbytes
from engine.inspection import inspect_model
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.load_admission import LoadWish
from engine.memory_limits import RESERVE_NBYTES, MemoryLimits
from engine.model import ChatMessage
from engine.spans import DocumentRange
from tests.engine.folders import write_folder
from tests.engine.small_engine import (
    FOUR,
    SHORT,
    asked,
    conversation,
    in_hand,
    keyed,
    rendered,
    small_engine,
    without_oldest,
    write_small_model,
)

EXACT = KVSpec.parse("16; page=64, group=32, hot=0, warm=0")
NO_RESERVE = MemoryLimits(reserve_nbytes=0)
MESSAGES = conversation(12)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(path: Path, backend: Backend) -> Engine:
    return small_engine(path, backend, limits=NO_RESERVE)


def nbytes(engine: Engine, kv: KVSpec, num_tokens: int) -> int:
    assert engine.loaded is not None
    return kv_nbytes(engine.loaded.info, engine.loaded.backend, kv, num_tokens)


def set_memory(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: nbytes)
    monkeypatch.setattr("engine.model_slot.headroom_nbytes", lambda limits: nbytes)


def test_a_message_that_does_not_fit_is_refused_before_anything_is_touched(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(engine.generate(asked(conversation(1), EXACT), CancelToken()))
    tokens = in_hand(engine).tokens
    num_tokens = len(rendered(engine, MESSAGES)) + 16
    set_memory(monkeypatch, nbytes(engine, EXACT, num_tokens) // 2)
    with pytest.raises(AdmissionError) as caught:
        engine.generate(asked(MESSAGES, EXACT), CancelToken())
    error = caught.value
    assert error.needed_nbytes > error.available_nbytes == nbytes(engine, EXACT, num_tokens) // 2
    assert error.can_override
    assert in_hand(engine).tokens == tokens


def test_every_choice_that_is_offered_fits_and_the_mildest_comes_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_memory(monkeypatch, nbytes(engine, EXACT, 900))
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(MESSAGES, EXACT))
    lower, drop = caught.value.choices
    assert isinstance(lower, LowerPrecision) and isinstance(drop, DropTurns)
    assert (lower.kv.page_tokens, lower.kv.group_size) == (64, 32)
    engine.admit(asked(MESSAGES, lower.kv))
    assert lower.fitting_tokens >= len(rendered(engine, MESSAGES)) + 16
    engine.admit(asked(without_oldest(MESSAGES, drop.num_turns), EXACT))
    # The next milder ones do not fit.
    milder = {8: 16, 6: 8, 5: 6, 4: 5}[lower.kv.bits(0, 0).keys]
    with pytest.raises(AdmissionError):
        engine.admit(asked(MESSAGES, dataclasses.replace(EXACT, rules=KVSpec.parse(f"{milder}").rules)))


def test_a_stored_conversation_may_be_summarized_before_turns_are_left_out(engine: Engine) -> None:
    stored = keyed(MESSAGES)
    limit = len(rendered(engine, stored)) // 2
    pinned = frozenset({stored[2].key})
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(stored, max_context=limit, pinned=pinned, keep_ratio=0.8))
    summarize, drop = caught.value.choices[1:]
    assert isinstance(summarize, SummarizeTurns) and isinstance(drop, DropTurns)
    assert summarize.num_turns == drop.num_turns
    # The pinned turn is the second one, and stays.
    for num_turns, is_enough in ((drop.num_turns, True), (drop.num_turns - 1, False)):
        left = (*stored[2:4], *stored[2 * (num_turns + 1) :])
        assert (len(rendered(engine, left)) <= 0.8 * limit) is is_enough
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(MESSAGES, max_context=limit))
    assert not any(isinstance(choice, SummarizeTurns) for choice in caught.value.choices)


def test_a_summary_is_offered_only_where_there_is_room_for_it(engine: Engine) -> None:
    stored = keyed(MESSAGES)
    last = len(rendered(engine, stored[-1:])) + 16
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(stored, max_context=last + 10))
    assert isinstance(caught.value.choices[-1], DropTurns)
    assert not any(isinstance(choice, SummarizeTurns) for choice in caught.value.choices)


def test_versions_that_do_not_go_on_count_as_room(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = keyed(MESSAGES)
    list(engine.generate(asked(stored, EXACT, answer_key="a1"), CancelToken()))
    branch = (ChatMessage("user", "Something else.", key="e1"),)
    list(engine.generate(asked(branch, EXACT), CancelToken()))
    held = in_hand(engine).referred_nbytes
    longer = (*branch, ChatMessage("assistant", "No. " * 150, key="e2"), ChatMessage("user", "So?", key="e3"))
    needed = nbytes(engine, EXACT, len(rendered(engine, longer)) + 16)
    set_memory(monkeypatch, (needed - held) // 2)
    engine.admit(asked(longer, EXACT))
    list(engine.rebuild(asked(branch, EXACT), CancelToken()))  # which forgets other versions
    with pytest.raises(AdmissionError):
        engine.admit(asked(longer, EXACT))


def test_the_user_may_go_on_all_the_same(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    set_memory(monkeypatch, 0)
    *_, finished = engine.generate(asked(MESSAGES, EXACT, max_context=600, anyway=True), CancelToken())
    assert isinstance(finished, Finished)
    assert finished.stats.completion_tokens == SHORT.max_tokens
    assert finished.stats.prompt_tokens == len(rendered(engine, MESSAGES))


def test_what_is_held_already_costs_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    list(engine.generate(asked(MESSAGES), CancelToken()))
    engine.limits = MemoryLimits()  # with a reserve that is far from there
    set_memory(monkeypatch, 0)
    again = asked(MESSAGES, sampling=dataclasses.replace(SHORT, max_tokens=1))
    *_, finished = engine.generate(again, CancelToken())
    assert isinstance(finished, Finished)
    assert finished.stats.reused_tokens == finished.stats.prompt_tokens - 1


def test_a_short_message_may_use_up_the_reserve_and_a_long_one_may_not(engine: Engine) -> None:
    assert engine.loaded is not None
    info, backend = engine.loaded.info, engine.loaded.backend
    room = CacheRoom(info, backend, 3 * nbytes(engine, EXACT, 64), 0, 0, reserve_nbytes=1 << 30)
    assert room.fits(EXACT, 64)
    assert not room.fits(EXACT, 600)
    fitting = room.fitting_tokens(EXACT)
    assert room.fits(EXACT, fitting) and not room.fits(EXACT, fitting + 1)


def test_an_idle_conversation_counts_as_room(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    list(engine.generate(asked(MESSAGES, conversation_id=1), CancelToken()))
    needed = nbytes(engine, FOUR, len(rendered(engine, MESSAGES)) + 16)
    set_memory(monkeypatch, needed - in_hand(engine).nbytes // 2)
    engine.admit(asked(MESSAGES, conversation_id=2))
    engine.forget(1)
    with pytest.raises(AdmissionError):
        engine.admit(asked(MESSAGES, conversation_id=2))


def test_beyond_the_positions_of_the_model_nothing_helps_but_less_text(engine: Engine) -> None:
    long = (*conversation(24, length=100), ChatMessage("user", "?"))
    with pytest.raises(ContextOverflowError, match="tokens too many") as caught:
        engine.admit(asked(long, anyway=True))
    assert not caught.value.can_override
    (drop,) = caught.value.choices
    assert isinstance(drop, DropTurns)
    engine.admit(asked(without_oldest(long, drop.num_turns)))


def test_of_a_message_that_is_too_long_alone_only_what_shortens_it_is_proposed(engine: Engine) -> None:
    long = (*conversation(3, length=20), ChatMessage("user", "x" * 900))
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(long, max_context=600))
    assert "shorten the message or attach a long text as a document." in str(caught.value)
    assert "new conversation" not in str(caught.value)
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(MESSAGES, max_context=600))
    assert "start a new conversation or shorten the message." in str(caught.value)


def test_a_context_that_the_user_set_is_kept_and_said(engine: Engine) -> None:
    with pytest.raises(AdmissionError, match="context is set to 600") as caught:
        engine.admit(asked(MESSAGES, max_context=600))
    longer, drop = caught.value.choices
    assert isinstance(longer, LongerContext) and isinstance(drop, DropTurns)
    assert not caught.value.can_override  # a longer context is all that it takes
    num_tokens = len(rendered(engine, MESSAGES))
    assert longer.max_context % 1024 == 0 and 1024 <= longer.max_context - num_tokens - 16 < 2048
    engine.admit(asked(MESSAGES, max_context=longer.max_context))
    kept = without_oldest(MESSAGES, drop.num_turns)
    assert len(rendered(engine, kept)) <= 360
    engine.admit(asked(kept, max_context=600))


def test_a_longer_context_is_offered_only_where_it_fits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_tokens = len(rendered(engine, MESSAGES)) + 16
    set_memory(monkeypatch, nbytes(engine, EXACT, num_tokens))
    with pytest.raises(AdmissionError, match="Allow a longer context") as caught:
        engine.admit(asked(MESSAGES, EXACT, max_context=600))
    longer = caught.value.choices[0]
    assert isinstance(longer, LongerContext) and num_tokens <= longer.max_context < num_tokens + 64
    engine.admit(asked(MESSAGES, EXACT, max_context=longer.max_context))
    set_memory(monkeypatch, nbytes(engine, EXACT, num_tokens - 64))
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(MESSAGES, EXACT, max_context=600))
    assert "longer context" not in str(caught.value)
    assert caught.value.can_override
    assert not any(isinstance(choice, LongerContext) for choice in caught.value.choices)


def test_a_lower_precision_is_proposed_only_where_one_fits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_tokens = len(rendered(engine, MESSAGES)) + 16
    set_memory(monkeypatch, nbytes(engine, EXACT, num_tokens) - 1)
    with pytest.raises(AdmissionError, match="choose a lower KV precision"):
        engine.admit(asked(MESSAGES, EXACT))
    set_memory(monkeypatch, 1000)
    with pytest.raises(AdmissionError, match=r"Close other programs, start a new conversation or shorten"):
        engine.admit(asked(MESSAGES, EXACT))


def test_documents_of_the_message_can_be_read_in_segments(engine: Engine) -> None:
    content = "x" * 2000 + "\n\nWhat is it?"
    message = ChatMessage("user", content, (DocumentRange("paper", 0, 2000),))
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked((message,), max_context=600))
    longer, segments, looked_up = caught.value.choices
    assert longer == LongerContext(3072)  # 2031 tokens, 16 and 1,024 for the answer, as a round number
    # 600 tokens, 16 of them for the answer, and the question with the template around: 31 bytes.
    assert isinstance(segments, InSegments)
    assert looked_up == LookUp(segments.keys)
    assert segments.num_segments == -(-2000 // (600 - 150 - 31 - 130))
    assert segments.document_tokens == pytest.approx(2000, abs=20)


def test_segments_are_not_offered_where_there_is_no_room_for_notes_on_each_document(engine: Engine) -> None:
    ranges = tuple(
        DocumentRange(f"paper {number}", 1000 * number, 1000 * number + 1000) for number in range(2)
    )
    asking = ChatMessage("user", "x" * 2000 + "\n\nWhat is it?", ranges)
    for limit, is_offered in ((600, False), (800, True)):  # 150 and 200 tokens for two notes of 96
        with pytest.raises(AdmissionError) as caught:
            engine.admit(asked((asking,), max_context=limit))
        kinds = {type(choice) for choice in caught.value.choices}
        assert (InSegments in kinds) == is_offered
        assert LookUp in kinds  # passages of all documents share one room


def test_only_the_largest_documents_are_offered_to_be_read_otherwise(engine: Engine) -> None:
    sizes = {"a1": 24, "a2": 900, "a3": 100, "a4": 700}
    stops = list(itertools.accumulate(sizes.values()))
    ranges = tuple(
        DocumentRange(key, stop - size, stop, key)
        for (key, size), stop in zip(sizes.items(), stops, strict=True)
    )
    asking = ChatMessage("user", "x" * stops[-1] + "\n\nWhat is it?", ranges)
    for limit, keys in ((1500, ("a2",)), (800, ("a2", "a4"))):
        with pytest.raises(AdmissionError) as caught:
            engine.admit(asked((asking,), max_context=limit))
        segments, looked_up = (each for each in caught.value.choices if isinstance(each, InSegments | LookUp))
        assert isinstance(segments, InSegments) and isinstance(looked_up, LookUp)
        assert segments.keys == looked_up.keys == keys
        assert segments.document_tokens == pytest.approx(sum(sizes[key] for key in keys), abs=20)


@pytest.mark.parametrize(
    ("room", "indexes"),
    [(1200, []), (1199, [1]), (324, [1]), (323, [1, 2]), (72, [1, 2]), (71, [0, 1, 2])],
)
def test_the_largest_documents_leave_room_for_the_others_and_for_the_lines_that_name_them(
    room: int, indexes: list[int]
) -> None:
    assert too_large([24, 900, 276], room) == indexes


def test_a_summary_at_the_head_of_a_message_is_no_document_to_be_removed_or_read_in_segments(
    engine: Engine,
) -> None:
    content = "s" * 300 + "\n\n" + "x" * 2000 + "\n\nWhat is it?"
    summary = DocumentRange("Summary", 0, 300, "s1", SpanKind.SUMMARY)
    asking = ChatMessage("user", content, (summary,))
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked((asking,), max_context=800))
    assert "remove a document" not in str(caught.value).lower()
    assert not any(isinstance(choice, InSegments) for choice in caught.value.choices)
    beside = dataclasses.replace(asking, documents=(summary, DocumentRange("paper", 302, 2302)))
    with pytest.raises(AdmissionError, match="remove a document") as caught:
        engine.admit(asked((beside,), max_context=800))
    (segments,) = (each for each in caught.value.choices if isinstance(each, InSegments))
    assert segments.document_tokens == pytest.approx(2000, abs=20)


def test_a_summary_of_far_more_than_the_context_is_offered_since_it_takes_a_share_of_that(
    engine: Engine,
) -> None:
    stored = keyed(conversation(26, length=70))
    with pytest.raises(AdmissionError) as caught:
        engine.admit(asked(stored, max_context=400, keep_ratio=0.6))
    assert any(isinstance(choice, SummarizeTurns) for choice in caught.value.choices)


def test_an_answer_ends_where_the_context_that_fits_does(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_memory(monkeypatch, nbytes(engine, EXACT, 300))
    sampling = dataclasses.replace(SHORT, max_tokens=2000)
    *_, finished = engine.generate(asked(conversation(1), EXACT, sampling), CancelToken())
    assert isinstance(finished, Finished)
    assert finished.stats.stop_reason.value == "context"
    assert 250 < finished.stats.prompt_tokens + finished.stats.completion_tokens < 400


def load(engine: Engine, path: Path, **fields: object) -> None:
    engine.load(path, EXACT, cancel=CancelToken(), on_progress=lambda _: None, **fields)  # type: ignore[arg-type]


@pytest.fixture
def set_room(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the memory that there is with the model's weights given back."""

    def set_room(nbytes: int) -> None:
        assert engine.loaded is not None
        weights = engine.loaded.plan.weights_nbytes
        monkeypatch.setattr(
            "engine.model_slot.headroom_nbytes", lambda limits: nbytes - (weights if engine.loaded else 0)
        )

    return set_room


def test_a_context_that_does_not_fit_is_refused_when_loading_and_the_present_model_stays(
    engine: Engine, path: Path, set_room: Callable[[int], None]
) -> None:
    assert engine.loaded is not None
    present = engine.loaded
    room = present.plan.weights_nbytes + nbytes(engine, EXACT, 1000)
    set_room(room)
    with pytest.raises(AdmissionError, match=r"a context of 4,096 tokens") as caught:
        load(engine, path, max_context=12_288)
    assert engine.loaded is present
    lower, shorter, smaller = caught.value.choices
    assert smaller == SmallerModel(present.plan.weights_nbytes - 1)  # as these weights do fit
    assert isinstance(lower, LowerPrecision) and lower.fitting_tokens >= 4096
    assert isinstance(shorter, ShorterContext) and 900 <= shorter.max_context < 1100
    load(engine, path, max_context=shorter.max_context)
    set_room(room - room // 50)  # the process has grown meanwhile
    load(engine, path, max_context=shorter.max_context)
    with pytest.raises(AdmissionError):
        load(engine, path, max_context=shorter.max_context + 64)
    load(engine, path, max_context=4096, anyway=True)


def test_weights_that_do_not_fit_leave_a_smaller_model(
    engine: Engine, path: Path, set_room: Callable[[int], None]
) -> None:
    assert engine.loaded is not None
    weights = engine.loaded.plan.weights_nbytes
    set_room(weights // 2 + nbytes(engine, EXACT, 512))
    with pytest.raises(AdmissionError, match="or choose a smaller model") as caught:
        load(engine, path)
    (smaller,) = caught.value.choices
    assert isinstance(smaller, SmallerModel)
    room = weights // 2 + nbytes(engine, EXACT, 512)
    assert smaller.weights_nbytes == pytest.approx(min(room - room / 50, weights - 1), abs=1)
    set_room(weights + nbytes(engine, EXACT, 512))
    load(engine, path)


@pytest.mark.parametrize(("reserve", "is_named"), [(RESERVE_NBYTES, True), (0, False)])
def test_what_is_kept_free_is_named_where_only_that_is_in_the_way(
    path: Path, backend: Backend, reserve: int, is_named: bool
) -> None:
    info = inspect_model(path)
    free = RESERVE_NBYTES // 2 if reserve else 1
    wish = LoadWish(info, backend, FOUR, None, free, MemoryLimits(reserve_nbytes=reserve))
    with pytest.raises(AdmissionError) as refused:
        wish.plan(anyway=False)
    assert ("less kept free" in str(refused.value)) is is_named


def test_the_weights_stay_packed_where_the_context_asked_for_would_not_fit_otherwise(
    tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not backend.dequantizes:
        pytest.skip("weights stay packed on a GPU")
    folder = write_folder(tmp_path / "packed", bits=4, max_position_embeddings=4096)
    engine = Engine(backend, limits=NO_RESERVE)
    load(engine, folder)
    assert engine.loaded is not None and engine.loaded.plan.dequantize
    info = engine.loaded.info
    packed = plan_load(info, backend, EXACT, 1 << 40, dequantize=False).weights_nbytes
    room = packed + kv_nbytes(info, backend, EXACT, 4096)
    engine.unload()
    monkeypatch.setattr("engine.model_slot.headroom_nbytes", lambda limits: room)
    load(engine, folder, max_context=512)
    assert engine.loaded.plan.dequantize
    for max_context in (4096, 9999, None):  # none means all that the model was made for
        load(engine, folder, max_context=max_context)
        assert not engine.loaded.plan.dequantize
        assert engine.loaded.plan.fitting_tokens == 4096


def test_packed_weights_are_offered_where_a_message_fits_beside_them_and_then_it_does(
    tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not backend.dequantizes:
        pytest.skip("weights stay packed on a GPU")
    folder = write_folder(tmp_path / "packed", bits=4, max_position_embeddings=4096)
    engine = Engine(backend, limits=NO_RESERVE)
    load(engine, folder)
    assert engine.loaded is not None and engine.loaded.plan.dequantize
    request = asked(conversation(12), EXACT)
    num_tokens = engine.measure(request).num_tokens + 16
    gained = engine.loaded.plan.weights_nbytes - engine.loaded.packed_plan_at(EXACT).weights_nbytes  # type: ignore[union-attr]
    there = nbytes(engine, EXACT, num_tokens) - gained
    assert there > 0
    set_memory(monkeypatch, there)
    with pytest.raises(AdmissionError, match="load the model again with packed weights") as caught:
        engine.admit(request)
    packed = caught.value.choices[0]
    assert packed == PackedWeights(num_tokens)
    weights = engine.loaded.plan.weights_nbytes
    monkeypatch.setattr(
        "engine.model_slot.headroom_nbytes", lambda limits: there if engine.loaded else there + weights
    )
    load(engine, folder, max_context=packed.fitting_tokens)
    assert not engine.loaded.plan.dequantize
    set_memory(monkeypatch, there + gained)
    engine.admit(request)
    set_memory(monkeypatch, there + gained - 1)
    with pytest.raises(AdmissionError) as caught:
        engine.admit(request)
    assert not any(isinstance(choice, PackedWeights) for choice in caught.value.choices)


def test_what_loading_says_does_not_fit_into_the_limit_is_not_admitted_either(
    engine: Engine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.loaded is not None
    monkeypatch.setattr("engine.model_slot.taken_nbytes", lambda: engine.loaded.plan.weights_nbytes)  # type: ignore[union-attr]
    reserve = 100_000_000
    most = engine.loaded.plan.weights_nbytes + reserve + nbytes(engine, EXACT, 1000)
    engine.limits = MemoryLimits(most, reserve)
    with pytest.raises(AdmissionError, match="Allow more memory than") as refused:
        load(engine, path, max_context=2000)
    assert refused.value.limit_nbytes == most
    monkeypatch.setattr("engine.model_slot.taken_nbytes", lambda: 0)
    load(engine, path, max_context=900)
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: reserve)
    fitting = engine.loaded.plan_at(EXACT).fitting_tokens
    assert 900 <= fitting < 1100
    (short,), (long,) = ((ChatMessage("user", "x" * length),) for length in (fitting - 60, fitting + 1))
    engine.admit(asked((short,), EXACT))
    with pytest.raises(AdmissionError, match="Octavo may take") as refused:
        engine.admit(asked((long,), EXACT))
    assert refused.value.limit_nbytes == most
    assert refused.value.available_nbytes < refused.value.needed_nbytes < reserve
    engine.limits = MemoryLimits(2 * most, reserve)  # more is allowed: no need to load again
    assert engine.loaded.plan_at(EXACT).fitting_tokens == fitting  # as the model was told then
    engine.admit(asked((long,), EXACT))


def test_what_the_user_allows_counts_less_what_the_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headroom, "available_nbytes", lambda: 10 << 30)
    monkeypatch.setattr(headroom, "process_nbytes", lambda pid: 1 << 30)
    monkeypatch.setattr(headroom.mx, "get_cache_memory", lambda: 5)
    assert headroom_nbytes(MemoryLimits()) == (10 << 30) + 5
    assert headroom_nbytes(MemoryLimits(most_nbytes=3 << 30)) == (2 << 30) + 5
    assert headroom_nbytes(MemoryLimits(most_nbytes=1)) == 0
