"""A stop of a reply, wherever it falls: the cache names what it holds, and nothing written is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import mlx.core as mx
import pytest

from engine.cancel import CancelToken
from engine.events import Finished, GenerationEvent, GenerationStats, PrefillProgress, StopReason, Token
from engine.generate import Generation
from engine.kv.precision import KVSpec
from engine.model import Model
from tests.engine.replies import GREEDY, generate, layers_hold, new_cache, outcome, prompt_of


@pytest.fixture
def slow_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every pass count as one that takes too long, so that layers look for a stop."""
    monkeypatch.setattr("engine.prefill_chunks.CHUNK_TARGET_S", 0)
    monkeypatch.setattr("engine.prefill_chunks.STOP_TARGET_S", 0)
    monkeypatch.setattr("engine.prefill.STOP_TARGET_S", 0)


@pytest.mark.parametrize("after_tokens", [0, 1, 5])
def test_after_a_stop_the_cache_names_what_it_holds(starter: Model, after_tokens: int) -> None:
    cancel = CancelToken()
    cache = new_cache(starter)
    events = generate(starter, prompt_of(starter), cache=cache, cancel=cancel)
    stop_after(events, cancel, lambda event: isinstance(event, Token), after_tokens)
    assert layers_hold(cache) == {len(cache.tokens)}


def stop_after(
    events: Iterator[GenerationEvent],
    cancel: CancelToken,
    counts: Callable[[GenerationEvent], bool],
    number: int,
) -> GenerationStats:
    """Stop after `number` events that count, and return the figures."""
    counted = 0
    if number == 0:
        next(events)
        cancel.cancel()
    for event in events:
        if isinstance(event, Finished):
            assert event.stats.stop_reason is StopReason.STOPPED
            return event.stats
        counted += counts(event)
        if counted == number:
            cancel.cancel()
    raise AssertionError("the reply did not finish")


def test_a_stop_while_reading_keeps_what_was_read(starter: Model) -> None:
    cancel = CancelToken()
    cache = new_cache(starter)
    prompt = prompt_of(starter)
    events = generate(starter, prompt, cache=cache, cancel=cancel)
    stats = stop_after(events, cancel, lambda event: isinstance(event, PrefillProgress), 2)
    assert stats.completion_tokens == 0
    assert 0 < len(cache.tokens) < len(prompt)
    assert cache.tokens == prompt[: len(cache.tokens)]
    tokens, _, resumed = outcome(generate(starter, prompt, cache=cache))
    assert resumed.reused_tokens > 0
    assert tokens == outcome(generate(starter, prompt))[0]


class CancelAtCheck(CancelToken):
    """Cancels itself at the given check, which may fall between two layers; None sets it later."""

    def __init__(self, number: int | None = None) -> None:
        super().__init__()
        self._checks = itertools.count(1)
        self.number = number

    def check(self) -> None:
        if next(self._checks) == self.number:
            self.cancel()
        super().check()

    def cancel_after(self, checks: int) -> None:
        """Cancel at the check behind that many more."""
        self.number = next(self._checks) + 1 + checks


@pytest.mark.slow
@pytest.mark.usefixtures("slow_passes")
@pytest.mark.parametrize("check", [5, 20, 40])
def test_where_a_chunk_is_slow_a_stop_between_two_layers_loses_nothing(starter: Model, check: int) -> None:
    cache = new_cache(starter)
    prompt = prompt_of(starter)
    cancel = CancelAtCheck(check)
    _, _, stats = outcome(generate(starter, prompt, cache=cache, cancel=cancel))
    assert stats.stop_reason is StopReason.STOPPED
    assert layers_hold(cache) == {len(cache.tokens)}
    assert outcome(generate(starter, prompt, cache=cache))[0] == outcome(generate(starter, prompt))[0]


@pytest.mark.usefixtures("slow_passes")
@pytest.mark.parametrize("written", [1, 2, 3])
def test_a_stop_between_two_layers_hands_over_the_text_of_every_token_in_the_cache(
    starter: Model, written: int
) -> None:
    # The character takes three tokens of the starter's.
    forced = starter.tokenizer.encode("😀", add_special_tokens=False)
    assert len(forced) == 3
    cache, prompt, cancel = new_cache(starter), prompt_of(starter, "Hi"), CancelAtCheck()
    generation = Generation(starter, cache, prompt, GREEDY, limit_tokens=8192, cancel=cancel)
    choices = iter([*forced, 0, 0])
    generation._chooser._sampler = lambda logits: mx.array([next(choices)])
    text, tokens = "", 0
    for event in generation.events():
        if isinstance(event, Token):
            text += event.text
            tokens += 1
            if tokens == written:
                cancel.cancel_after(1 + len(cache.layers) // 2)
    assert isinstance(event, Finished) and event.stats.stop_reason is StopReason.STOPPED
    assert layers_hold(cache) == {len(cache.tokens)}
    assert cache.tokens == prompt + forced[:written]
    assert text == starter.tokenizer.decode(forced[:written])


@pytest.mark.parametrize("change_at", [PrefillProgress, Token])
def test_a_stop_while_the_precision_changes_ends_the_reply(starter: Model, change_at: type) -> None:
    held, wanted = KVSpec.parse("8; page=64, hot=0, warm=0"), KVSpec.parse("4; page=64, hot=0, warm=0")
    cache, prompt, cancel = new_cache(starter, held), prompt_of(starter), CancelAtCheck()
    cache.read(prompt[:128])
    spec = held
    generation = Generation(
        starter, cache, prompt, GREEDY, limit_tokens=8192, cancel=cancel, wanted_kv=lambda: spec
    )
    for event in generation.events():
        if isinstance(event, change_at) and spec is held:
            spec = wanted
            cancel.cancel_after(1 + len(cache.layers) // 2)
    assert isinstance(event, Finished) and event.stats.stop_reason is StopReason.STOPPED
    assert {pair.keys for page in cache.pages() for pair in page.bits[0]} == {4}
    assert {pair.keys for page in cache.pages() for pair in page.bits[len(cache.layers) - 1]} == {8}
    assert layers_hold(cache) == {len(cache.tokens)}
    cache.apply(wanted)
    assert cache.usage().effective == (4, 4)
    outcome(generate(starter, [*cache.tokens, prompt[-1]], cache=cache))


def test_layers_are_waited_for_only_where_a_pass_is_slow(
    starter: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    for target_s, looks in [(0.0, True), (1000.0, False)]:
        monkeypatch.setattr("engine.prefill_chunks.STOP_TARGET_S", target_s)
        monkeypatch.setattr("engine.prefill.STOP_TARGET_S", target_s)
        generation = Generation(
            starter,
            new_cache(starter),
            prompt_of(starter, "Hello"),
            GREEDY,
            limit_tokens=8192,
            cancel=CancelToken(),
        )
        assert generation._reader.checks_layers  # nothing is known yet of this computer's speed
        outcome(generation.events())
        assert generation._reader.checks_layers == looks
