"""Text that leaves a conversation between replies and comes back, positions that run out, and pins."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.events import CacheChanged, PrefillProgress
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams
from engine.spans import DocumentRange
from tests.engine.small_engine import (
    FOUR,
    SHORT,
    answer,
    asked,
    conversation,
    in_hand,
    keyed,
    readable_answers,
    rendered,
    small_engine,
    write_templated_model,
)

TALK = keyed(conversation(8))
EXACT = KVSpec.parse("16; page=64, group=32")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(path: Path, backend: Backend, tmp_path: Path) -> Engine:
    return small_engine(path, backend, spill_folder=tmp_path / "spill")


QUESTION = ChatMessage("user", "And?", key="m18")
FEW = len("user: And?\nassistant: ") + 2 * SHORT.max_tokens
"""Tokens that are read for that question at most, with an answer before it that is no valid text."""


def begin(engine: Engine, kv: KVSpec = FOUR) -> tuple[ChatMessage, ...]:
    """Answer the conversation; return it with its answer."""
    text, _ = answer(engine, asked(TALK, kv, conversation_id=1, answer_key="m17"))
    return (*TALK, ChatMessage("assistant", text, key="m17"))


def nbytes(engine: Engine) -> int:
    assert engine._session is not None
    return engine._session._held.memory_nbytes


def logits_behind(engine: Engine, num_tokens: int) -> np.ndarray:
    fork = in_hand(engine).fork()
    fork.truncate(num_tokens)
    return np.array(fork.read([65]))


def keys(engine: Engine) -> list[str]:
    usage = engine.context_usage()
    assert usage is not None
    return [span.key for span in usage.spans]


def test_what_leaves_the_context_is_freed_at_once_and_nothing_is_read(engine: Engine) -> None:
    talk, before = begin(engine), nbytes(engine)
    rest = (*talk[:2], *talk[10:])
    changed = engine.settle(asked(rest, conversation_id=1))
    assert isinstance(changed, CacheChanged)
    assert nbytes(engine) < 0.75 * before
    assert keys(engine) == [message.key for message in rest]
    assert changed.usage.num_tokens == in_hand(engine).num_tokens
    kept = rendered(engine, rest[:-1])
    assert in_hand(engine).tokens[: len(kept)] == kept
    assert engine.settle(asked(rest, conversation_id=1)) is None
    _, stats = answer(engine, asked((*rest, QUESTION), conversation_id=1))
    assert stats.prompt_tokens - stats.reused_tokens < FEW


def test_the_first_turns_leave_all_but_the_marker_of_what_is_first_then(engine: Engine) -> None:
    text, sampling = next(iter(readable_answers(engine, TALK, FOUR).items()))
    answer(engine, asked(TALK, FOUR, sampling, conversation_id=1, answer_key="m17"))
    rest = (*TALK[2:], ChatMessage("assistant", text, key="m17"))
    assert engine.settle(asked(rest, conversation_id=1)) is not None
    assert keys(engine) == [message.key for message in rest]


def test_what_left_the_context_comes_back_without_being_read(engine: Engine) -> None:
    talk = begin(engine, EXACT)
    common = len(rendered(engine, TALK))
    expected = logits_behind(engine, common)
    request = asked((*talk, QUESTION), EXACT, conversation_id=1)
    engine.settle(asked((*talk[:2], *talk[10:]), EXACT, conversation_id=1))
    usage = engine.context_usage()
    assert usage is not None
    assert [span.key for span in usage.released] == [message.key for message in talk[2:10]]
    assert engine.measure(request).unread_tokens < FEW
    _, stats = answer(engine, request)
    assert stats.prompt_tokens - stats.reused_tokens < FEW
    usage = engine.context_usage()
    assert usage is not None and usage.released == ()
    assert in_hand(engine).next_position == in_hand(engine).num_tokens
    assert np.allclose(logits_behind(engine, common), expected, atol=1e-4)


def test_what_left_a_conversation_comes_back_unread_after_both_were_on_disk(engine: Engine) -> None:
    talk = begin(engine, EXACT)
    common = len(rendered(engine, TALK))
    expected = logits_behind(engine, common)
    engine.settle(asked((*talk[:2], *talk[10:]), EXACT, conversation_id=1))
    answer(engine, asked(conversation(2), EXACT, conversation_id=2))
    assert engine._session is not None
    assert engine._session._held.spill_idle() > 0
    _, stats = answer(engine, asked((*talk, QUESTION), EXACT, conversation_id=1))
    assert stats.prompt_tokens - stats.reused_tokens < FEW
    assert np.allclose(logits_behind(engine, common), expected, atol=1e-4)


@pytest.mark.parametrize("how", ["other pages", "lost", "read again", "forgotten"])
def test_of_a_conversation_that_is_read_anew_nothing_that_left_it_stays_on_disk(
    engine: Engine, tmp_path: Path, how: str
) -> None:
    talk = begin(engine)
    rest = (*talk[:2], *talk[10:])
    engine.settle(asked(rest, conversation_id=1))
    assert len(list(tmp_path.rglob("*.pages"))) == 1
    if how == "read again":
        list(engine.rebuild(asked(rest, conversation_id=1), CancelToken()))
    elif how == "forgotten":
        engine.forget(1)
    elif how == "lost":
        answer(engine, asked(conversation(2), conversation_id=2))
        assert engine._session is not None
        engine._session._held.spill_idle()
        max(tmp_path.rglob("*.pages"), key=lambda path: int(path.stem)).write_bytes(b"")
        answer(engine, asked((*rest, QUESTION), conversation_id=1))
    else:
        kv = KVSpec.parse("4; page=128, group=32")
        _, stats = answer(engine, asked((*rest, QUESTION), kv, conversation_id=1))
        assert stats.reused_tokens == 0
    assert list(tmp_path.rglob("*.pages")) == []
    _, stats = answer(engine, asked((*talk, QUESTION), conversation_id=1))
    assert stats.completion_tokens == SHORT.max_tokens


def test_a_summary_is_read_into_the_gap_with_the_next_reply(engine: Engine) -> None:
    talk = begin(engine)
    summary = "They counted."
    kept = ChatMessage(
        "user",
        f"{summary}\n\n{talk[10].content}",
        (DocumentRange("", 0, len(summary), "s1", SpanKind.SUMMARY),),
        talk[10].key,
    )
    rest = (*talk[:2], kept, *talk[11:], QUESTION)
    engine.settle(asked(rest, conversation_id=1))
    assert "s1" not in keys(engine)
    size = engine.measure(asked(rest, conversation_id=1))
    assert len(summary) < size.unread_tokens < len(summary) + FEW
    _, stats = answer(engine, asked(rest, conversation_id=1))
    assert stats.prompt_tokens - stats.reused_tokens == size.unread_tokens
    assert "s1" in keys(engine)


@pytest.mark.parametrize("conversation_id", [2, 0])
def test_only_the_conversation_in_hand_is_settled(engine: Engine, conversation_id: int) -> None:
    talk, held = begin(engine), in_hand(engine).tokens
    assert engine.settle(asked(talk[2:], conversation_id=conversation_id)) is None
    assert in_hand(engine).tokens == held


def test_another_branch_is_left_to_the_next_reply(engine: Engine) -> None:
    talk = begin(engine)
    held = in_hand(engine).tokens
    branch = (*talk[:4], ChatMessage("user", "No, this.", key="e1"))
    assert engine.settle(asked(branch, conversation_id=1)) is None
    assert in_hand(engine).tokens == held


def test_the_last_turns_leave_at_once_where_they_are_of_the_same_branch(engine: Engine) -> None:
    talk, before = begin(engine), nbytes(engine)
    rest, left = talk[:6], frozenset(message.key for message in talk[6:])
    assert isinstance(engine.settle(asked(rest, conversation_id=1, left=left)), CacheChanged)
    assert nbytes(engine) < 0.75 * before
    assert [key for key in keys(engine) if key] == [message.key for message in rest]
    _, stats = answer(engine, asked((*rest, QUESTION), conversation_id=1, left=left))
    assert stats.prompt_tokens - stats.reused_tokens < FEW


def test_positions_are_used_up_by_what_left_and_come_back_when_all_is_read_again(engine: Engine) -> None:
    talk = begin(engine)
    before = engine.positions_left(1)
    assert before == 4096 - in_hand(engine).num_tokens
    rest = asked((*talk[:2], *talk[10:]), conversation_id=1)
    engine.settle(rest)
    tokens = in_hand(engine).tokens
    assert engine.positions_left(1) == before
    spans = engine.page_map().spans  # type: ignore[union-attr]
    list(engine.rebuild(rest, CancelToken()))
    assert engine.positions_left(1) == 4096 - in_hand(engine).num_tokens
    assert in_hand(engine).tokens[: spans[-1].start] == tokens[: spans[-1].start]
    assert engine.page_map().spans[:-1] == spans[:-1]  # type: ignore[union-attr]
    assert engine.positions_left(2) is None


def test_reading_again_forgets_other_versions_and_what_left(engine: Engine) -> None:
    talk = begin(engine)
    engine.settle(asked((*talk[:2], *talk[4:]), conversation_id=1))
    branch = (*talk[:2], *talk[4:6], ChatMessage("user", "No, this.", key="e1"))
    answer(engine, asked(branch, conversation_id=1))
    usage = engine.context_usage()
    assert usage is not None and usage.versions == 1 and usage.released
    list(engine.rebuild(asked(branch, conversation_id=1), CancelToken()))
    usage = engine.context_usage()
    assert usage is not None and usage.versions == 0 and usage.released == ()


def test_a_reply_ends_reading_again_and_reads_only_the_rest(engine: Engine) -> None:
    talk = begin(engine)
    rest = (*talk[:2], *talk[6:])
    engine.settle(asked(rest, conversation_id=1))
    cancel, done = CancelToken(), 0
    with pytest.raises(Cancelled):
        for event in engine.rebuild(asked(rest, conversation_id=1), cancel):
            if isinstance(event, PrefillProgress) and event.done:
                done = event.done
                cancel.cancel()
    assert keys(engine) and set(keys(engine)) < {message.key for message in rest}
    assert in_hand(engine).num_tokens == done
    _, stats = answer(engine, asked((*rest, QUESTION), conversation_id=1))
    assert stats.reused_tokens == done
    assert keys(engine) == [*(message.key for message in (*rest, QUESTION)), ""]


def test_pinned_text_stays_a_tier_higher_and_pages_pinned_by_hand_with_it(engine: Engine) -> None:
    answer(engine, asked(TALK, conversation_id=1, pinned=frozenset({"m4"})))
    page_map = engine.page_map()
    assert page_map is not None
    (span,) = [span for span in page_map.spans if span.key == "m4"]
    expected = set(range(span.start // 64, (span.stop - 1) // 64 + 1))
    assert {at for at, page in enumerate(page_map.pages) if page.pinned} == expected
    usage = in_hand(engine).usage()
    assert usage.warm_pages >= 1 + len(expected)  # with the first one
    by_hand = page_map.pages[9].number
    engine.pin(by_hand, True)
    assert engine.settle(asked(TALK, conversation_id=1)) is not None
    assert [page.number for page in engine.page_map().pages if page.pinned] == [by_hand]  # type: ignore[union-attr]
    assert engine.settle(asked(TALK, conversation_id=1)) is None


def test_the_parts_of_a_context_add_up(engine: Engine) -> None:
    begin(engine)
    usage = engine.context_usage()
    assert usage is not None
    assert keys(engine) == [*(message.key for message in TALK), "m17"]
    assert sum(span.num_tokens for span in usage.spans) == usage.num_tokens == in_hand(engine).num_tokens
    assert sum(span.nbytes for span in usage.spans) + usage.unused_nbytes == usage.nbytes
    assert usage.positions == 4096 and usage.next_position == usage.num_tokens
    engine.forget(1)
    assert engine.context_usage() is None


def test_fifty_turns_beyond_the_limit_take_no_more_memory_and_read_no_more(engine: Engine) -> None:
    sizes, unread = [], []
    messages: tuple[ChatMessage, ...] = ()
    for turn in range(60):
        question = ChatMessage("user", f"What is number {turn:03} of this?", key=f"q{turn}")
        kept = (*messages, question)[-2 * 10 - 1 :]  # ten turns, and the question
        sampling = SamplingParams(temperature=0, max_tokens=SHORT.max_tokens)
        _, stats = answer(engine, asked(kept, sampling=sampling, conversation_id=1, answer_key=f"a{turn}"))
        messages = (*kept, ChatMessage("assistant", "That.", key=f"a{turn}"))
        sizes.append(nbytes(engine))
        unread.append(stats.prompt_tokens - stats.reused_tokens)
    assert max(unread) < 70
    steady = sizes[12:]
    assert max(steady[-20:]) <= 1.05 * max(steady[:20])
    assert in_hand(engine).next_position > 3 * in_hand(engine).num_tokens


def test_what_left_does_not_come_back_to_text_that_is_read_again(engine: Engine) -> None:
    system = ChatMessage("system", "Be brief.", key="system")
    text, _ = answer(engine, asked((system, *TALK), conversation_id=1, answer_key="m17"))
    talk = (*TALK, ChatMessage("assistant", text, key="m17"))
    engine.settle(asked((system, *talk[:2], *talk[6:]), conversation_id=1))
    usage = engine.context_usage()
    assert usage is not None and len(usage.released) == 4
    other = ChatMessage("system", "Do rhyme.", key="system")
    _, stats = answer(engine, asked((other, *talk[:2], *talk[6:], QUESTION), conversation_id=1))
    assert stats.reused_tokens < 20 and "system prompt" in (stats.reread_note or "")
    usage = engine.context_usage()
    assert usage is not None and usage.released == ()


class StopAt(CancelToken):
    """Is cancelled when it is looked at for a certain time."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.num_left = call

    def check(self) -> None:
        self.num_left -= 1
        if self.num_left == 0:
            self.cancel()
        super().check()


@pytest.mark.parametrize("call", range(1, 14, 3))
def test_a_stop_anywhere_in_an_edit_leaves_what_the_next_reply_goes_on_from(
    engine: Engine, call: int
) -> None:
    summary = "They counted. " * 8
    document = DocumentRange("", 0, len(summary), "s1", SpanKind.SUMMARY)
    talk = begin(engine, EXACT)
    engine.settle(asked((*talk[:4], *talk[6:]), EXACT, conversation_id=1))
    kept = ChatMessage("user", f"{summary}\n\n{talk[12].content}", (document,), talk[12].key)
    wanted = asked(
        (*talk[:8], kept, *talk[13:], QUESTION), EXACT, conversation_id=1, answer_key="m19"
    )  # m4 and m5 come back, m8 to m11 leave, a summary is read
    stop = StopAt(call)
    list(engine.generate(wanted, stop))
    held = in_hand(engine)
    assert {layer.size() for layer in held.layers} == {held.num_tokens}
    spans = engine.page_map().spans  # type: ignore[union-attr]
    assert all(one.stop <= other.start for one, other in itertools.pairwise(spans))
    assert spans[-1].stop <= held.num_tokens
    whole, stats = answer(engine, wanted)
    assert in_hand(engine).tokens[: stats.prompt_tokens] == rendered(engine, wanted.messages)
    engine.forget(1)
    begin(engine, EXACT)
    engine.settle(asked((*talk[:4], *talk[6:]), EXACT, conversation_id=1))
    expected, _ = answer(engine, wanted)
    assert whole == expected
