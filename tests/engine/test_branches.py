"""Versions of a conversation: an edited message, another answer, and the way back, without reading again."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import PrefillProgress
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams
from engine.spans import DocumentRange
from engine.versions import MOST_VERSIONS
from tests.engine.small_engine import (
    FOUR,
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

EXACT = KVSpec.parse("16; page=64, group=32")
TALK = keyed(conversation(6))
ANSWER_KEY = "m13"
NBYTES_PER_TOKEN = 2 * 2 * 2 * 32 * 4
"""At 16 bits, which are float32 on the CPU: two layers, two heads, keys and values of 32 numbers."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(path: Path, backend: Backend, tmp_path: Path) -> Engine:
    return small_engine(path, backend, spill_folder=tmp_path / "spill")


def edited(number: int, turn: int = 2) -> tuple[ChatMessage, ...]:
    """Return the conversation up to a turn whose question is another one."""
    return (*TALK[: 2 * turn], ChatMessage("user", f"No, {number} instead.", key=f"e{number}"))


def held_nbytes(engine: Engine) -> int:
    assert engine._session is not None
    return engine._session._held.memory_nbytes


def num_versions(engine: Engine) -> int:
    usage = engine.context_usage()
    assert usage is not None
    return usage.versions


def evictions(engine: Engine) -> int:
    page_map = engine.page_map()
    assert page_map is not None
    return page_map.counters.evictions


def test_the_way_back_from_an_edited_message_reads_nothing_again(engine: Engine) -> None:
    text, sampling = next(iter(readable_answers(engine, TALK, EXACT).items()))
    answer(engine, asked(TALK, EXACT, sampling, answer_key=ANSWER_KEY))
    held = in_hand(engine).num_tokens
    _, stats = answer(engine, asked(edited(1), EXACT, answer_key="e2"))
    assert stats.reused_tokens >= len(rendered(engine, TALK[:4])) - len("assistant: ")
    rest = (ChatMessage("assistant", text, key=ANSWER_KEY), ChatMessage("user", "And then?", key="m14"))
    whole, stats = answer(engine, asked((*TALK, *rest), EXACT, answer_key="m15"))
    assert stats.reused_tokens == held and stats.reread_note is None
    expected, _ = answer(engine, asked((*TALK, *rest), EXACT, conversation_id=9))
    assert whole == expected


def test_a_branch_answers_as_if_there_were_no_other(engine: Engine) -> None:
    answer(engine, asked(TALK, EXACT, answer_key=ANSWER_KEY))
    branch, _ = answer(engine, asked(edited(1), EXACT, answer_key="e2"))
    expected, _ = answer(engine, asked(edited(1), EXACT, conversation_id=9))
    assert branch == expected
    assert [span.key for span in engine.page_map().spans] == [  # type: ignore[union-attr]
        *(message.key for message in edited(1)),
        "",
    ]


def test_pages_of_a_branch_were_read_no_later_than_now(engine: Engine) -> None:
    long = SamplingParams(temperature=0, max_tokens=100)
    answer(engine, asked(TALK, EXACT, long, answer_key=ANSWER_KEY, conversation_id=1))
    answer(engine, asked(edited(1), EXACT, answer_key="e2", conversation_id=1))
    page_map = engine.page_map()
    assert page_map is not None
    assert 0 < max(page.last_access for page in page_map.pages) <= page_map.num_decoded


def test_memory_grows_only_by_the_new_part(engine: Engine) -> None:
    answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    before, num_before = held_nbytes(engine), in_hand(engine).num_tokens
    answer(engine, asked(edited(1, turn=5), answer_key="e2"))
    usage = engine.context_usage()
    assert usage is not None and usage.versions == 1
    assert 0 < usage.versions_nbytes < 0.6 * before
    # What is new fits into the open page, which both have to themselves.
    new_tokens = in_hand(engine).num_tokens - len(rendered(engine, TALK[:10]))
    assert 0 < new_tokens < num_before / 8
    assert held_nbytes(engine) - before <= 2 * 64 * NBYTES_PER_TOKEN
    pages = engine.page_map().pages  # type: ignore[union-attr]
    assert [page.references for page in pages[:-1]] == [2] * (len(pages) - 1)


def test_another_answer_is_a_version_and_each_can_go_on(engine: Engine) -> None:
    answers = list(readable_answers(engine, TALK, FOUR, 3).items())
    for number, (text, sampling) in enumerate(answers):
        written, stats = answer(engine, asked(TALK, sampling=sampling, answer_key=f"a{number}"))
        assert written == text
    assert stats.reused_tokens == stats.prompt_tokens - 1
    assert num_versions(engine) == 2
    for number in (0, 2, 1):
        rest = (
            ChatMessage("assistant", answers[number][0], key=f"a{number}"),
            ChatMessage("user", f"After {number}?", key=f"q{number}"),
        )
        _, stats = answer(engine, asked((*TALK, *rest)))
        assert stats.reused_tokens >= len(rendered(engine, TALK)) + 2
        assert num_versions(engine) == 2


def test_what_is_no_more_than_the_beginning_of_another_version_is_not_held_twice(engine: Engine) -> None:
    text, _ = answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    before = held_nbytes(engine)
    cancel = CancelToken()
    for event in engine.generate(asked(edited(1), answer_key="e2"), cancel):
        if isinstance(event, PrefillProgress):
            cancel.cancel()
    assert num_versions(engine) == 1 and in_hand(engine).num_tokens < len(rendered(engine, TALK[:5]))
    rest = (ChatMessage("assistant", text, key=ANSWER_KEY), ChatMessage("user", "So?", key="m14"))
    answer(engine, asked((*TALK, *rest)))
    assert num_versions(engine) == 0
    assert {page.references for page in engine.page_map().pages} == {1}  # type: ignore[union-attr]
    assert held_nbytes(engine) < 1.2 * before


def test_so_many_versions_are_held_and_the_one_used_longest_ago_goes_first(engine: Engine) -> None:
    answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    for number in range(MOST_VERSIONS + 2):
        answer(engine, asked(edited(number), answer_key=f"f{number}"))
    assert num_versions(engine) == MOST_VERSIONS - 1
    _, stats = answer(engine, asked(edited(4), answer_key="f99"))
    assert stats.reused_tokens == stats.prompt_tokens - 1
    _, stats = answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    assert stats.reused_tokens < len(rendered(engine, TALK[:5]))


def test_text_that_leaves_the_context_takes_other_versions_with_it(engine: Engine) -> None:
    answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    answer(engine, asked((*TALK[:12], ChatMessage("user", "Other?", key="e1")), answer_key="e2"))
    before = held_nbytes(engine)
    assert num_versions(engine) == 1
    answer(engine, asked((*TALK[6:12], ChatMessage("user", "Other?", key="e1")), answer_key="e3"))
    assert num_versions(engine) == 0
    assert held_nbytes(engine) < 0.75 * before


def test_turns_that_all_leave_the_context_are_no_version(engine: Engine) -> None:
    """A summary of all of them stands at the head of the question behind them."""
    answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    before = held_nbytes(engine)
    summary = "They counted."
    question = ChatMessage(
        "user", f"{summary}\n\nAnd?", (DocumentRange("", 0, len(summary), "s1", SpanKind.SUMMARY),), "m99"
    )
    left = frozenset((*(message.key for message in TALK), ANSWER_KEY))
    answer(engine, asked((question,), answer_key="m100", left=left))
    assert num_versions(engine) == 0
    assert held_nbytes(engine) < 0.5 * before


def test_an_edited_message_leaves_a_version_though_other_turns_have_left(engine: Engine) -> None:
    answer(engine, asked(TALK, answer_key=ANSWER_KEY))
    answer(engine, asked(edited(1), answer_key="f1", left=frozenset({"m0", "m1"})))
    assert num_versions(engine) == 1


def test_versions_are_forgotten_first_when_a_reply_needs_the_room(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = asked(conversation(2), conversation_id=2)
    answer(engine, other)
    answer(engine, asked(TALK, answer_key=ANSWER_KEY, conversation_id=1))
    answer(engine, asked(edited(1), answer_key="e2", conversation_id=1))
    assert num_versions(engine) == 1 and evictions(engine) == 0
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: 0)
    longer = (*edited(1)[:-1], ChatMessage("user", "No, that is not it. " * 20, key="e3"))
    answer(engine, asked(longer, conversation_id=1, anyway=True))
    assert num_versions(engine) == 0 and evictions(engine) > 0
    monkeypatch.undo()
    _, stats = answer(engine, other)
    assert stats.reused_tokens == stats.prompt_tokens - 1


def test_idle_versions_never_go_to_disk(engine: Engine) -> None:
    answer(engine, asked(TALK, answer_key=ANSWER_KEY, conversation_id=1))
    answer(engine, asked(edited(1), answer_key="e2", conversation_id=1))
    tokens = in_hand(engine).tokens
    answer(engine, asked(conversation(4)[4:], conversation_id=2))
    assert engine._session is not None
    held = engine._session._held
    only, total = held.in_memory(1), held.memory_nbytes  # type: ignore[assignment]
    assert only is not None and only.num_others == 1
    assert held.spill_idle() > 0
    assert held.memory_nbytes < total / 2
    _, stats = answer(engine, asked(edited(1), answer_key="e3", conversation_id=1))
    assert stats.reused_tokens == stats.prompt_tokens - 1
    assert in_hand(engine).tokens[: stats.prompt_tokens] == tokens[: stats.prompt_tokens]
    _, stats = answer(engine, asked(TALK, answer_key=ANSWER_KEY, conversation_id=1))
    assert stats.reused_tokens < len(rendered(engine, TALK[:5]))


def test_a_conversation_without_keys_has_no_versions(engine: Engine) -> None:
    answer(engine, asked(conversation(6)))
    answer(engine, asked((*conversation(6)[:4], ChatMessage("user", "No, this."))))
    assert num_versions(engine) == 0


@pytest.mark.parametrize("first", [TALK[0], ChatMessage("user", "Something else.", key="e1")])
def test_another_system_prompt_leaves_no_version_behind(engine: Engine, first: ChatMessage) -> None:
    answer(engine, asked((ChatMessage("system", "Be brief."), *TALK), answer_key=ANSWER_KEY))
    before = in_hand(engine).num_tokens
    _, stats = answer(engine, asked((ChatMessage("system", "Do rhyme."), first), answer_key="e2"))
    assert stats.reused_tokens < 20 and in_hand(engine).num_tokens < before
    assert num_versions(engine) == 0
