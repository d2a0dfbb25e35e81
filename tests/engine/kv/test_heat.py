"""An attention budget that grows while it catches too little, and heat learned from samples."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.kv.heat import MIN_SAMPLES, SAMPLE_EVERY_TOKENS, HeatSampler, Sample, Watcher
from engine.kv.page import Page
from engine.kv.page_table import PageReference
from engine.kv.precision import Tier


def pages(count: int) -> list[PageReference]:
    return [
        PageReference(Page(number, (1,), (number,), Tier.COLD), np.ones(1, bool)) for number in range(count)
    ]


def decode(
    sampler: HeatSampler, watcher: Watcher, references: list[PageReference], *, caught: float, samples: int
) -> list[int | None]:
    """Decode tokens as the loop does, and return the layers that were sampled."""
    layers = []
    for _ in range(samples * SAMPLE_EVERY_TOKENS + 2):
        if watcher.sampled_layer is not None:
            layers.append(watcher.sampled_layer)
            mass = mx.array([0.5] + [0.0] * (len(references) - 1))
            watcher.sample = Sample(mass, mx.array(caught), len(references))
        sampler.step(references)
    return layers


@pytest.mark.parametrize(("grows", "caught", "expected"), [(True, 0.5, 4), (True, 0.9, 2), (False, 0.5, 2)])
def test_a_budget_that_catches_too_little_grows_if_it_may(grows: bool, caught: float, expected: int) -> None:
    watcher = Watcher()
    sampler = HeatSampler(watcher, [0], 2, grows)
    decode(sampler, watcher, pages(9), caught=caught, samples=MIN_SAMPLES)
    assert watcher.attention_pages == expected


def test_a_single_layer_that_reads_elsewhere_does_not_grow_the_budget() -> None:
    watcher = Watcher()
    sampler = HeatSampler(watcher, [0], 2, True)
    decode(sampler, watcher, pages(9), caught=0.1, samples=1)
    assert watcher.attention_pages == 2


def test_a_budget_never_grows_beyond_what_there_is_to_read() -> None:
    watcher = Watcher()
    sampler = HeatSampler(watcher, [0], 2, True)
    decode(sampler, watcher, pages(9), caught=0.1, samples=5 * MIN_SAMPLES)
    assert watcher.attention_pages == 9


def test_a_budget_asked_for_again_keeps_what_it_has_grown_to() -> None:
    watcher = Watcher()
    sampler = HeatSampler(watcher, [0], 2, True)
    decode(sampler, watcher, pages(9), caught=0.5, samples=MIN_SAMPLES)
    sampler.limit(2, True)
    assert watcher.attention_pages == 4
    sampler.limit(3, True)
    assert watcher.attention_pages == 3


def test_what_a_budget_caught_of_other_text_is_forgotten_with_it() -> None:
    watcher = Watcher()
    sampler = HeatSampler(watcher, [0], 2, False)
    decode(sampler, watcher, pages(9), caught=0.5, samples=1)
    assert sampler.caught == pytest.approx(0.5)
    sampler.forget()
    assert sampler.caught is None


def test_layers_take_turns_and_what_is_read_much_becomes_hot() -> None:
    watcher = Watcher()
    references = pages(3)
    sampler = HeatSampler(watcher, [0, 4, 7], None, False)
    assert decode(sampler, watcher, references, caught=1, samples=4) == [4, 7, 0, 4]
    hot, *cold = (reference.page for reference in references)
    assert hot.heat == pytest.approx(0.5 * (1 - 0.9**4))
    assert hot.last_access > 3 * SAMPLE_EVERY_TOKENS
    assert [(page.heat, page.last_access) for page in cold] == [(0, 0), (0, 0)]


def test_a_page_that_a_table_has_twice_gets_the_heat_of_both_places() -> None:
    watcher = Watcher()
    first, second = pages(2)
    decode(HeatSampler(watcher, [0], None, False), watcher, [first, second, first], caught=1, samples=1)
    assert first.page.heat == pytest.approx(0.1 * 0.5)
    watcher.sample = Sample(mx.array([0.25, 0.25, 0.5]), mx.array(1.0), 3)
    sampler = HeatSampler(watcher, [0], None, False)
    for _ in range(2):
        sampler.step([first, second, first])
    assert first.page.heat == pytest.approx(0.9 * 0.05 + 0.1 * 0.75)
    assert second.page.heat == pytest.approx(0.1 * 0.25)
