"""Every step of the guard's ladder in a real reply of a tiny model."""

from __future__ import annotations

import dataclasses
import random
import time
from pathlib import Path

import mlx.core as mx
import pytest

from engine import figures
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.events import CacheChanged, ContextShortened, Finished, PrefillProgress, StopReason, Token
from engine.figures import Phase
from engine.guard import Guard, GuardAction, GuardStep
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.precision import KVSpec, Tier
from engine.model import ChatMessage
from engine.prefill_chunks import ChunkSize
from engine.relief import ReplyRelief
from engine.sampling import SamplingParams
from engine.shortening import Shortening
from engine.spans import DocumentRange, Prompt
from tests.engine.small_engine import (
    FOUR,
    SHORT,
    WaitingToken,
    answer,
    asked,
    conversation,
    guard_at,
    in_hand,
    keyed,
    rendered,
    small_engine,
    write_small_model,
)
from tests.engine.tiny_models import tiny_model

LONG = conversation(6)
HOT = KVSpec.parse("4; page=64, group=32, hot=20, warm=0")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def guard() -> Guard:
    return guard_at(GuardStep.NONE)


@pytest.fixture
def engine(path: Path, backend: Backend, guard: Guard, tmp_path: Path) -> Engine:
    return small_engine(path, backend, guard, tmp_path / "spill")


def steps(events: list[object]) -> list[tuple[GuardStep, bool]]:
    return [(event.step, event.is_end) for event in events if isinstance(event, GuardAction)]


def test_a_steady_machine_gives_no_action(engine: Engine) -> None:
    assert steps(list(engine.generate(asked(LONG), CancelToken()))) == []
    assert engine.relieve(CancelToken()) == []


def test_free_buffers_go_back_in_mid_reply(engine: Engine, guard: Guard) -> None:
    events: list[object] = []
    for event in engine.generate(asked(LONG), CancelToken()):
        events.append(event)
        if isinstance(event, Token) and not steps(events) and guard.height is GuardStep.NONE:
            held = mx.zeros((4 << 20,))
            mx.eval(held)
            del held
            guard.height = GuardStep.CLEAR_CACHE
    (action,) = [event for event in events if isinstance(event, GuardAction)]
    assert action.step is GuardStep.CLEAR_CACHE
    assert action.freed_nbytes >= 16 << 20
    assert action.reason == "memory is short"


@pytest.mark.parametrize("at", [PrefillProgress, Token])
def test_pages_go_cold_early_and_new_ones_with_them_until_the_pressure_ends(
    engine: Engine, guard: Guard, at: type
) -> None:
    sampling = SamplingParams(temperature=0, max_tokens=150)
    pages: dict[GuardStep, list[Tier]] = {}
    written = 0
    for event in engine.generate(asked(LONG, HOT, sampling), CancelToken()):
        written += isinstance(event, Token)
        if isinstance(event, CacheChanged):
            pages[guard.height] = [page.tier for page in in_hand(engine).pages()]
        if isinstance(event, GuardAction) and event.step is not GuardStep.CLEAR_CACHE:
            assert event.step is GuardStep.LOWER_TIERS and event.freed_nbytes > 0
        if isinstance(event, at) and event.done > 300 if at is PrefillProgress else written == 2:
            guard.height = GuardStep.LOWER_TIERS
        if written == 80:
            guard.height = GuardStep.NONE
    assert set(pages[GuardStep.LOWER_TIERS]) == {Tier.COLD}
    last = [page.tier for page in in_hand(engine).pages()]
    assert last[0] is Tier.COLD and last[-1] is Tier.HOT
    usage = in_hand(engine).usage()
    assert usage.requested == usage.effective == (4, 4) and usage.num_below == 0


def test_other_conversations_go_to_disk_and_come_back_without_being_read_again(
    engine: Engine, guard: Guard
) -> None:
    other = asked(conversation(3), conversation_id=2)
    list(engine.generate(other, CancelToken()))
    tokens = in_hand(engine).tokens
    list(engine.generate(asked(LONG, conversation_id=1), CancelToken()))
    assert figures.latest().kv.idle > 0
    guard.height = GuardStep.SPILL_IDLE
    *_, lowered, spilled = engine.relieve(CancelToken())
    assert (lowered.step, spilled.step) == (GuardStep.LOWER_TIERS, GuardStep.SPILL_IDLE)
    assert spilled.freed_nbytes > 0 and figures.latest().kv.idle == 0
    guard.height = GuardStep.NONE
    *_, finished = engine.generate(other, CancelToken())
    assert isinstance(finished, Finished)
    assert finished.stats.reused_tokens == finished.stats.prompt_tokens - 1
    assert in_hand(engine).tokens == tokens
    page_map = engine.page_map()
    assert page_map is not None
    assert page_map.counters.spills == page_map.counters.restores > 0


def test_the_prompt_is_read_in_smaller_pieces_while_it_lasts(engine: Engine, guard: Guard) -> None:
    messages = conversation(20)
    events: list[object] = []
    done: dict[GuardStep, list[int]] = {GuardStep.NONE: [], GuardStep.SMALLER_CHUNKS: []}
    for event in engine.generate(asked(messages), CancelToken()):
        events.append(event)
        if isinstance(event, PrefillProgress):
            done[guard.height].append(event.done)
            if event.done:
                guard.height = GuardStep.SMALLER_CHUNKS if event.done < 600 else GuardStep.NONE
    assert (GuardStep.SMALLER_CHUNKS, False) in steps(events)
    assert (GuardStep.SMALLER_CHUNKS, True) in steps(events)
    small = done[GuardStep.SMALLER_CHUNKS]
    # The first chunk has 64 tokens and each may have twice as many as the one before.
    assert small[0] == 64 + 64 and small[1] - small[0] <= 256 // 2


@pytest.mark.parametrize("at", [PrefillProgress, Token])
def test_text_leaves_a_reply_that_runs_in_several_stretches_and_nothing_is_read_again(
    engine: Engine, guard: Guard, at: type
) -> None:
    messages = keyed(LONG)
    shorter = (*messages[2:6], *messages[8:])  # without the first turn and the fourth
    events: list[object] = []
    for event in engine.generate(asked(messages, shorter=shorter, answer_key="m99"), CancelToken()):
        events.append(event)
        if isinstance(event, at) and (at is Token or event.done > 300):
            guard.height = GuardStep.TRIM
    (shortened,) = [event for event in events if isinstance(event, ContextShortened)]
    kept, whole = rendered(engine, shorter), rendered(engine, messages)
    assert shortened.num_tokens == len(whole) - len(kept)
    (trim,) = [event for event in events if isinstance(event, GuardAction) and event.step is GuardStep.TRIM]
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.stats.prompt_tokens == len(kept)
    assert finished.stats.completion_tokens == SHORT.max_tokens
    held = in_hand(engine)
    assert held.tokens[: len(kept)] == kept
    assert held.num_tokens == len(kept) + SHORT.max_tokens - 1
    page_map = engine.page_map()
    assert page_map is not None
    assert [span.key for span in page_map.spans] == [*(message.key for message in shorter), "m99"]
    if at is Token:
        assert held.next_position == len(whole) + SHORT.max_tokens - 1
        assert trim.freed_nbytes > 0


def test_the_next_reply_reads_none_of_what_a_shortened_one_kept(engine: Engine, guard: Guard) -> None:
    messages = keyed(LONG)
    shorter = messages[6:]
    text = ""
    for event in engine.generate(asked(messages, shorter=shorter, answer_key="m99"), CancelToken()):
        if isinstance(event, Token):
            text += event.text
            guard.height = GuardStep.TRIM
    guard.height = GuardStep.NONE
    rest = (ChatMessage("assistant", text, key="m99"), ChatMessage("user", "And then?", key="m100"))
    _, stats = answer(engine, asked((*shorter, *rest)))
    assert stats.reused_tokens >= len(rendered(engine, shorter))


def test_a_summary_that_the_shorter_form_has_waits_for_the_next_reply(engine: Engine, guard: Guard) -> None:
    messages, summary = keyed(LONG), "They counted letters."
    first = messages[6]
    document = DocumentRange("", 0, len(summary), "s1", SpanKind.SUMMARY)
    with_summary = dataclasses.replace(first, content=f"{summary}\n\n{first.content}", documents=(document,))
    shorter = (with_summary, *messages[7:])
    for event in engine.generate(asked(messages, shorter=shorter, answer_key="m99"), CancelToken()):
        if isinstance(event, Token):
            guard.height = GuardStep.TRIM
    kept = rendered(engine, messages[6:])
    tokens = in_hand(engine).tokens
    assert tokens[len(tokens) - len(kept) - SHORT.max_tokens + 1 :][: len(kept)][8:] == kept[8:]
    guard.height = GuardStep.NONE
    _, stats = answer(engine, asked(shorter))
    assert stats.prompt_tokens - stats.reused_tokens < len(summary) + 30
    assert in_hand(engine).tokens[: stats.prompt_tokens] == rendered(engine, shorter)


def test_a_cache_that_nothing_can_be_taken_out_of_keeps_its_text() -> None:
    context = HeldContext(SequenceCache(tiny_model("gemma3"), KVSpec.parse("4")))
    tokens = list(range(1, 90))
    prompt = Prompt(
        tokens, (TextSpan(SpanKind.USER, "", 0, 40, "m1"), TextSpan(SpanKind.USER, "", 40, 89, "m2"))
    )
    shorter = Prompt(tokens[40:], (TextSpan(SpanKind.USER, "", 0, 49, "m2"),))
    context.cache.read(tokens[:80])
    context.read_is(prompt, "")
    shortening = Shortening(context, prompt, "", lambda: shorter)
    relief = ReplyRelief(guard_at(GuardStep.TRIM), context, HeldSequences(None), shortening)
    list(relief.follow(ChunkSize(2.0, 0), tokens, lambda: None))
    assert relief.take_cuts() == [] and context.cache.tokens == tokens[:80]


def test_without_leave_nothing_goes(engine: Engine, guard: Guard) -> None:
    guard.height = GuardStep.TRIM
    events = list(engine.generate(asked(keyed(LONG)), CancelToken()))
    assert not any(isinstance(event, ContextShortened) for event in events)
    assert in_hand(engine).tokens[: len(rendered(engine, LONG))] == rendered(engine, LONG)


@pytest.mark.parametrize("at", [PrefillProgress, Token])
def test_a_paused_reply_waits_and_goes_on_as_if_nothing_had_been(
    engine: Engine, guard: Guard, at: type
) -> None:
    expected = [e.token_id for e in engine.generate(asked(LONG), CancelToken()) if isinstance(e, Token)]
    engine.forget(0)
    phases = []

    def on_wait(token: WaitingToken) -> None:
        phases.append(figures.latest().phase)
        if token.num_waits == 3:
            guard.go_on()

    cancel, events = WaitingToken(on_wait), []
    for event in engine.generate(asked(LONG), cancel):
        events.append(event)
        if isinstance(event, at) and not cancel.num_waits:
            guard.height = GuardStep.PAUSE
    assert cancel.num_waits == 3 and phases == [Phase.PAUSED] * 3
    pauses = [step for step in steps(events) if step[0] is GuardStep.PAUSE]
    assert pauses == [(GuardStep.PAUSE, False), (GuardStep.PAUSE, True)]
    assert len([e for e in events if isinstance(e, Token)]) == len(expected)
    assert figures.latest().phase is Phase.IDLE


def test_the_wait_for_memory_is_in_no_speed(
    engine: Engine, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, waited_s = time.perf_counter, [0.0]
    monkeypatch.setattr("engine.reply_clock.time.perf_counter", lambda: now_s() + waited_s[0])

    def on_wait(token: WaitingToken) -> None:
        waited_s[0] = 100_000.0
        guard.go_on()

    guard.height = GuardStep.PAUSE
    *_, finished = engine.generate(asked(LONG), WaitingToken(on_wait))
    assert isinstance(finished, Finished)
    assert finished.stats.ttft_s > 100_000 and finished.stats.prefill_tps > 1


@pytest.mark.parametrize("at", [PrefillProgress, Token])
def test_a_paused_reply_can_be_stopped_and_keeps_what_it_has(engine: Engine, guard: Guard, at: type) -> None:
    cancel = WaitingToken(lambda token: token.cancel())
    events = []
    for event in engine.generate(asked(LONG), cancel):
        events.append(event)
        if isinstance(event, at):
            guard.height = GuardStep.PAUSE
    finished = events[-1]
    assert isinstance(finished, Finished) and finished.stats.stop_reason is StopReason.STOPPED
    tokens = in_hand(engine).tokens
    assert tokens == rendered(engine, LONG)[: len(tokens)] or at is Token
    assert {layer.size() for layer in in_hand(engine).layers} == {len(tokens)}


def test_a_lower_precision_reaches_a_paused_reply(engine: Engine, guard: Guard) -> None:
    wanted, followed = [HOT], []

    def on_wait(token: WaitingToken) -> None:
        followed.append(str(in_hand(engine).spec.rules[0]))
        wanted[0] = KVSpec.parse("2; page=64, group=32, hot=0, warm=0")
        if token.num_waits == 2:
            guard.go_on()

    guard.height = GuardStep.PAUSE
    *_, finished = engine.generate(asked(LONG, HOT), WaitingToken(on_wait), lambda: wanted[0])
    assert isinstance(finished, Finished) and finished.stats.kv.startswith("2;")
    assert followed == ["4", "2"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_precision_and_guard_that_change_at_every_step_leave_the_cache_whole(
    engine: Engine, guard: Guard, seed: int
) -> None:
    choose = random.Random(seed)
    kvs = [KVSpec.parse(f"{bits}; page=64, group=32, hot={hot}") for bits in (16, 8, 4, 2) for hot in (0, 1)]
    sampling = SamplingParams(temperature=0, max_tokens=60)
    messages = keyed(conversation(5))
    for turn in range(3):
        cancel = WaitingToken(lambda token: guard.go_on())
        shorter, written = messages[2:], []
        request = asked(messages, choose.choice(kvs), sampling, shorter=shorter, answer_key="answer")
        for event in engine.generate(request, cancel, lambda: choose.choice(kvs)):
            if isinstance(event, ContextShortened):
                messages = shorter
            if isinstance(event, Token):
                written.append(event.token_id)
            guard.height = GuardStep(choose.randint(0, 6))
        assert isinstance(event, Finished) and event.stats.completion_tokens == 60
        cache = in_hand(engine)
        # What is held is the prompt as it was left, then what was written, save the last token.
        prompt = rendered(engine, messages)
        assert cache.tokens == [*prompt, *written[:59]]
        assert {layer.size() for layer in cache.layers} == {cache.num_tokens}
        assert mx.isfinite(cache.fork().read([1, 2, 3])).all().item()
        messages = (*messages, *keyed(conversation(2 + turn)[1:], 100 * (turn + 1)))
    assert FOUR.page_tokens == cache.spec.page_tokens


def test_memory_that_grows_short_while_a_conversation_is_read_again_is_given_back(
    engine: Engine, guard: Guard
) -> None:
    list(engine.generate(asked(conversation(3), conversation_id=2), CancelToken()))
    list(engine.generate(asked(conversation(10), HOT), CancelToken()))
    events: list[object] = []
    for event in engine.rebuild(asked(conversation(10), HOT), CancelToken()):
        events.append(event)
        if isinstance(event, PrefillProgress) and event.done > 300:
            guard.height = GuardStep.SPILL_IDLE
    assert steps(events) == [(GuardStep.LOWER_TIERS, False), (GuardStep.SPILL_IDLE, False)]
    assert {page.tier for page in in_hand(engine).pages()} == {Tier.COLD}
    assert figures.latest().kv.idle == 0


def test_a_stop_ends_spilling_between_replies_and_the_step_is_due_again(engine: Engine, guard: Guard) -> None:
    list(engine.generate(asked(LONG, conversation_id=2), CancelToken()))
    list(engine.generate(asked(conversation(2), conversation_id=1), CancelToken()))
    idle, cancel = figures.latest().kv.idle, CancelToken()
    guard.height = GuardStep.SPILL_IDLE
    cancel.cancel()
    with pytest.raises(Cancelled):
        engine.relieve(cancel)
    assert figures.latest().kv.idle == idle > 0 and figures.latest().phase is Phase.IDLE
    assert (GuardStep.SPILL_IDLE, False) in steps(list(engine.relieve(CancelToken())))
    assert figures.latest().kv.idle == 0
