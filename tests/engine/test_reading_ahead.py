"""Reading what the next message brings before it is sent."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest

from engine import figures
from engine.admission import AdmissionError, ContextOverflowError
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, ModelError
from engine.events import PrefillProgress
from engine.figures import Phase
from engine.guard import GuardStep
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import GenerationRequest
from engine.spans import DocumentRange
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import DOCUMENT
from tests.engine.small_engine import (
    FOUR,
    answer,
    asked,
    conversation,
    guard_at,
    in_hand,
    keyed,
    rendered,
    small_engine,
    write_templated_model,
)

QUESTION = "Who counted the ships?"
TALK = keyed((*conversation(2)[:-1],))
COLD = dataclasses.replace(FOUR, hot_pages=0, warm_pages=0)
"""With no page kept more exactly for its age it does not matter where chunks end."""
SENT = 40
"""A question and the markers around it have no more tokens."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(path: Path, backend: Backend, tmp_path: Path) -> Engine:
    return small_engine(path, backend, spill_folder=tmp_path)


def message(words: str, document: str = DOCUMENT, key: str = "a1") -> ChatMessage:
    """Return a question about a document; without words it is still to be written."""
    place = DocumentRange("Lighthouse", 0, len(document), key, SpanKind.DOCUMENT)
    return ChatMessage("user", f"{document}\n\n{words}", (place,), f"m-{key}" if words else "")


def draft(before: tuple[ChatMessage, ...] = (), **of: str) -> GenerationRequest:
    return asked((*before, message("", **of)), conversation_id=1)


def sent(before: tuple[ChatMessage, ...] = (), **of: str) -> GenerationRequest:
    return asked((*before, message(QUESTION, **of)), conversation_id=1, answer_key="answer")


def read_ahead(
    engine: Engine, request: GenerationRequest, cancel: CancelToken | None = None
) -> list[PrefillProgress]:
    events = engine.read_ahead(request, cancel or CancelToken())
    return [event for event in events if isinstance(event, PrefillProgress)]


def first_read(engine: Engine, request: GenerationRequest) -> int:
    """Return how many tokens a reply reads."""
    _, stats = answer(engine, request)
    return stats.prompt_tokens - stats.reused_tokens


@pytest.mark.parametrize("before", [(), TALK])
def test_a_question_about_what_was_read_ahead_waits_for_its_own_tokens(
    engine: Engine, before: tuple[ChatMessage, ...]
) -> None:
    progress = read_ahead(engine, draft(before))
    assert progress[0].done < progress[-1].done == progress[-1].total > 1000
    assert first_read(engine, sent(before)) < SENT


@pytest.mark.parametrize("num_events", [0, 1, 4, 7, 99])
def test_the_answer_is_the_one_that_it_would_have_been_wherever_reading_ahead_was_stopped(
    path: Path, backend: Backend, num_events: int
) -> None:
    ahead, cold = (small_engine(path, backend) for _ in range(2))
    cancel = CancelToken()
    with contextlib.suppress(Cancelled):
        for number, _ in enumerate(ahead.read_ahead(dataclasses.replace(draft(TALK), kv=COLD), cancel)):
            if number == num_events:
                cancel.cancel()
    request = dataclasses.replace(sent(TALK), kv=COLD)
    assert answer(ahead, request)[0] == answer(cold, request)[0]


def test_what_is_read_ahead_goes_on_from_a_conversation_that_is_not_in_hand(engine: Engine) -> None:
    answer(engine, asked((*TALK, ChatMessage("user", "And?", key="m9")), conversation_id=1, answer_key="n9"))
    answer(engine, asked(keyed(conversation(3)[2:]), conversation_id=2))
    progress = read_ahead(engine, draft(TALK))
    assert progress[0].reused >= len(rendered(engine, TALK)) - SENT
    assert first_read(engine, sent(TALK)) < SENT


def test_what_is_read_ahead_has_the_precision_that_is_asked_for_now(engine: Engine) -> None:
    lower = dataclasses.replace(COLD, rules=KVSpec.parse("2").rules)
    answer(engine, asked(TALK, lower, conversation_id=1))
    num_before = len(in_hand(engine).pages())
    read_ahead(engine, dataclasses.replace(draft(TALK), kv=COLD))
    new = in_hand(engine).pages()[num_before:]
    assert {pair.keys for page in new for heads in page.bits.values() for pair in heads} == {4}


def test_what_is_read_ahead_is_in_hand(engine: Engine) -> None:
    answer(engine, asked(keyed(conversation(3)), conversation_id=2))
    read_ahead(engine, draft())
    usage = engine.context_usage()
    assert usage is not None
    assert [span.key for span in usage.spans if span.key] == ["a1"]


def test_reading_ahead_what_is_there_reads_nothing_and_forgets_nothing(engine: Engine) -> None:
    answer(engine, sent())
    held = in_hand(engine).tokens
    for request in (draft(), sent()):
        progress = read_ahead(engine, request)
        assert [one.done for one in progress] == [progress[0].total]
        assert in_hand(engine).tokens == held


def test_a_stop_keeps_what_was_read_and_the_next_call_goes_on(engine: Engine) -> None:
    seen: list[PrefillProgress] = []
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        for event in engine.read_ahead(draft(), cancel):
            if isinstance(event, PrefillProgress):
                seen.append(event)
                if event.done > 0:
                    cancel.cancel()
    assert 0 < seen[-1].done < seen[-1].total
    rest = read_ahead(engine, draft())
    assert rest[0].done >= seen[-1].done - 1
    assert rest[-1].done == rest[-1].total


def test_what_comes_in_between_does_not_cost_what_was_read(engine: Engine) -> None:
    cancel = CancelToken()
    events = engine.read_ahead(draft(), cancel)
    done = next(event.done for event in events if isinstance(event, PrefillProgress) and event.done)
    cancel.cancel()
    with pytest.raises(Cancelled):
        list(events)
    answer(engine, asked(keyed(conversation(3)), conversation_id=2))
    assert read_ahead(engine, draft())[0].done >= done - 1


def test_a_question_that_comes_first_reads_only_the_rest(engine: Engine) -> None:
    cancel = CancelToken()
    events = engine.read_ahead(draft(), cancel)
    done = next(event.done for event in events if isinstance(event, PrefillProgress) and event.done)
    cancel.cancel()
    with pytest.raises(Cancelled):
        list(events)
    _, stats = answer(engine, sent())
    assert done - 1 <= stats.reused_tokens < stats.prompt_tokens - SENT


def test_a_document_more_is_read_behind_those_before_it(engine: Engine) -> None:
    read_ahead(engine, draft())
    first, second = message(""), message("", "The fog came at dawn. " * 30, "a2")
    shift = len(first.content)
    places = (
        *first.documents,
        *(
            dataclasses.replace(one, start=one.start + shift, stop=one.stop + shift)
            for one in second.documents
        ),
    )
    both = dataclasses.replace(first, content=first.content + second.content, documents=places)
    progress = read_ahead(engine, asked((both,), conversation_id=1))
    assert progress[0].reused >= len(DOCUMENT)
    assert progress[-1].done == progress[-1].total > progress[0].reused + 600


def test_another_document_in_its_place_leaves_the_first_one_to_come_back_to(engine: Engine) -> None:
    other = {"document": "The fog came at dawn. " * 50, "key": "a2"}
    read_ahead(engine, draft(TALK))
    read_ahead(engine, draft(TALK, **other))
    assert first_read(engine, sent(TALK, **other)) < SENT
    assert read_ahead(engine, draft(TALK))[0].reused > len(DOCUMENT)


def test_what_does_not_fit_is_refused_at_once_and_leaves_all_as_it_is(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(engine, asked(TALK, conversation_id=1))
    held = in_hand(engine).tokens
    with pytest.raises(ContextOverflowError):
        engine.read_ahead(draft(TALK, document=DOCUMENT * 4), CancelToken())
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: 0)
    with pytest.raises(AdmissionError):
        engine.read_ahead(draft(TALK), CancelToken())
    assert in_hand(engine).tokens == held


def test_while_memory_is_short_nothing_is_read_ahead_and_what_was_read_stays(
    path: Path, backend: Backend
) -> None:
    guard = guard_at(GuardStep.NONE)
    engine = small_engine(path, backend, guard=guard)
    done = 0
    with pytest.raises(AdmissionError, match="when you send the message") as told:
        for event in engine.read_ahead(draft(), CancelToken()):
            if isinstance(event, PrefillProgress) and event.done:
                done = event.done
                guard.height = GuardStep.SMALLER_CHUNKS
    assert told.value.__traceback__ is not None  # which refers to all that was going on
    assert figures.latest().phase is Phase.IDLE
    with pytest.raises(AdmissionError, match="Memory is short"):
        engine.read_ahead(draft(), CancelToken())
    guard.height = GuardStep.NONE
    assert read_ahead(engine, draft())[0].done >= done - 1 > 0


def test_without_a_model_nothing_can_be_read(backend: Backend) -> None:
    with pytest.raises(ModelError):
        Engine(backend).read_ahead(draft(), CancelToken())


def test_after_a_restart_it_goes_on_with_what_was_saved_between_chunks(path: Path, backend: Backend) -> None:
    store = MemoryStore()
    engine = small_engine(path, backend, prefixes=store)
    done = 0
    with pytest.raises(Cancelled):
        cancel = CancelToken()
        for event in engine.read_ahead(draft(), cancel):
            if isinstance(event, PrefillProgress) and event.done > 5 * FOUR.page_tokens:
                done = event.done
                cancel.cancel()
    assert done > 4 * FOUR.page_tokens

    again = small_engine(path, backend, prefixes=store)
    progress = read_ahead(again, draft())

    unsettled = (FOUR.hot_pages + FOUR.warm_pages + 1) * FOUR.page_tokens
    assert progress[0].reused >= done - unsettled
    assert first_read(again, sent()) < SENT


def test_after_it_was_read_to_its_end_and_saved_a_restart_reads_nothing_but_the_question(
    path: Path, backend: Backend
) -> None:
    store = MemoryStore()
    engine = small_engine(path, backend, prefixes=store)
    read_ahead(engine, draft())
    engine.save(CancelToken())
    assert first_read(small_engine(path, backend, prefixes=store), sent()) < SENT


def test_what_stays_behind_turns_that_left_is_not_read_again(engine: Engine) -> None:
    answer(engine, asked(keyed(conversation(5)), conversation_id=1))
    rest = keyed(conversation(5))[4:-1]
    engine.settle(asked(rest, conversation_id=1))
    progress = read_ahead(engine, draft(rest))
    assert progress[-1].total - progress[0].reused < len(DOCUMENT) + SENT
    assert first_read(engine, sent(rest)) < SENT
