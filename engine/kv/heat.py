"""Heat: which pages the attention goes to, sampled from one layer of one decoded token at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import mlx.core as mx
import numpy as np

from engine.kv.attended import AnswerWatch
from engine.kv.attention import Partial, choose_pages, page_scores
from engine.kv.groups import MASKED, PageGroup
from engine.kv.page import Page
from engine.kv.page_table import PageReference

SAMPLE_EVERY_TOKENS = 16
"""Decoded tokens between two samples."""
DECAY = 0.9
"""What a moving average keeps of its former value at each sample."""
ENOUGH_CAUGHT = 0.85
"""An attention budget that catches less than this share of the attention is too small."""
MIN_SAMPLES = 4
"""Layers differ: so many of them are asked before a budget grows."""
ACCESS_SHARE = 0.01
"""A page was accessed when it got at least this share of the attention."""


@dataclass(frozen=True)
class Sample:
    """Where one layer's attention went in one step.

    Attributes:
        page_mass: the share of the attention that each page gets in a full read, `[pages]`.
        caught: the share that the open tokens and the pages within the attention budget get.
        most_pages: pages of the largest group, each of which the budget is for.
    """

    page_mass: mx.array
    caught: mx.array
    most_pages: int


@dataclass(eq=False)
class Watcher:
    """What the layers of one cache share.

    Attributes:
        attention_pages: how many pages at each precision decode reads now, None for all.
        before_layer: called with a layer's new keys; it may raise to leave the forward pass.
        sampled_layer: the layer whose attention the next decoded token samples, None for none.
        sample: what the last such layer has queued.
        answer: what an answer attends to, None while that is not watched.
    """

    attention_pages: int | None = None
    before_layer: Callable[[mx.array], None] | None = None
    sampled_layer: int | None = None
    sample: Sample | None = None
    answer: AnswerWatch | None = None

    @property
    def seen(self) -> list[mx.array]:
        """What was seen in the last pass beside its result, to be evaluated with that."""
        sampled = [] if self.sample is None else [self.sample.page_mass, self.sample.caught]
        return sampled if self.answer is None else [*sampled, *self.answer.looks]


@dataclass(frozen=True)
class HeatState:
    """Where a sampler stands, as plain values.

    Attributes:
        num_decoded: tokens decoded so far.
        num_samples: those that `caught` is the mean of.
        caught: as the sampler's.
        attention_pages: how many pages decode reads now.
        sampled_layer: the layer whose attention the next decoded token samples.
        samples: that were taken and not learned yet, the older one first, None for none: page mass, caught
            share and most pages of each.
    """

    num_decoded: int
    num_samples: int
    caught: float | None
    attention_pages: int | None
    sampled_layer: int | None
    samples: Sequence[tuple[Sequence[float], float, int] | None]


class HeatSampler:
    """Samples one layer after another every few decoded tokens and learns the heat of the pages from that.

    Attributes:
        caught: moving average of the share of attention within the attention budget, None before a sample.
        num_decoded: tokens decoded so far, of which only some are sampled.
    """

    def __init__(
        self, watcher: Watcher, layers: Sequence[int], attention_pages: int | None, grows: bool
    ) -> None:
        self.caught: float | None = None
        self._watcher = watcher
        self._layers = layers
        self.num_decoded = 0
        self._num_samples = 0
        self._queued: Sample | None = None
        self._asked = attention_pages, grows
        watcher.attention_pages = attention_pages

    def step(self, references: Sequence[PageReference]) -> None:
        """Count a decoded token.

        What is read here was queued in the step before the last, so that it is computed and nothing waits.
        """
        self.num_decoded += 1
        if self._watcher.answer is not None:
            self._watcher.answer.step(self._watcher.attention_pages is not None)
        if self._queued is not None:
            self._learn(self._queued, references)
        self._queued, self._watcher.sample = self._watcher.sample, None
        turn, rest = divmod(self.num_decoded, SAMPLE_EVERY_TOKENS)
        due = self._layers and not rest
        self._watcher.sampled_layer = self._layers[turn % len(self._layers)] if due else None

    @property
    def state(self) -> HeatState:
        """Where it stands, to be gone on from in another process."""
        samples = [
            None
            if one is None
            else (np.array(one.page_mass).tolist(), cast(float, one.caught.item()), one.most_pages)
            for one in (self._queued, self._watcher.sample)
        ]
        watcher = self._watcher
        return HeatState(
            self.num_decoded,
            self._num_samples,
            self.caught,
            watcher.attention_pages,
            watcher.sampled_layer,
            samples,
        )

    def go_on_from(self, state: HeatState) -> None:
        """Stand where another one stood that was made for the same precision."""
        self.num_decoded, self._num_samples, self.caught = state.num_decoded, state.num_samples, state.caught
        self._queued, self._watcher.sample = (
            None if one is None else Sample(mx.array(list(one[0])), mx.array(one[1]), one[2])
            for one in state.samples
        )
        self._watcher.attention_pages = state.attention_pages
        self._watcher.sampled_layer = state.sampled_layer

    def limit(self, attention_pages: int | None, grows: bool) -> None:
        """Set the attention budget anew; one that is asked for again keeps what it has grown to."""
        if (attention_pages, grows) != self._asked:
            self._asked = attention_pages, grows
            self._watcher.attention_pages = attention_pages
            self._begin_average()

    def forget(self) -> None:
        """Drop what was sampled of pages that are no longer those."""
        self._queued = self._watcher.sample = self._watcher.sampled_layer = None
        self._begin_average()

    def _begin_average(self) -> None:
        self.caught, self._num_samples = None, 0

    def _learn(self, sample: Sample, references: Sequence[PageReference]) -> None:
        shares: Counter[Page] = Counter()
        for reference, share in zip(references, np.array(sample.page_mass).tolist(), strict=False):
            shares[reference.page] += share
        for page, share in shares.items():
            page.heat = _average(page.heat, share)
            if share >= ACCESS_SHARE:
                page.last_access = self.num_decoded
        caught = cast(float, sample.caught.item())
        self.caught = caught if self.caught is None else _average(self.caught, caught)
        self._num_samples += 1
        if self._num_samples >= MIN_SAMPLES and self.caught < ENOUGH_CAUGHT:
            self._grow(sample.most_pages)

    def _grow(self, most_pages: int) -> None:
        """Have twice as many pages read, if that is allowed, and see anew what that catches."""
        _, grows = self._asked
        pages = self._watcher.attention_pages
        if grows and pages is not None and pages < most_pages:
            self._watcher.attention_pages = min(2 * pages, most_pages)
            self._begin_average()


def _average(former: float, new: float) -> float:
    return DECAY * former + (1 - DECAY) * new


def sample_attention(
    queries: mx.array,
    groups: Sequence[PageGroup],
    num_pages: int,
    rest: Sequence[Partial],
    attention_pages: int | None,
) -> Sample:
    """Read all pages' keys and return where the attention of one token's queries goes, the mean of all heads.

    Args:
        queries: `[kv_heads, repeats, head_dim]`, scaled.
        groups: the pages.
        num_pages: how many those are.
        rest: the parts of what is no page: the open tokens and sinks.
        attention_pages: how many pages of a group are read, None for all.
    """
    num_heads, repeats = queries.shape[:2]
    page_score = mx.full((num_heads, num_pages, repeats), MASKED)
    is_read = mx.ones((num_heads, num_pages))
    for group in groups:
        where = mx.array(group.heads)[:, None], mx.array(group.pages)[None]
        scores = page_scores(queries, group, group.key_slots, group.mask)
        page_score[where] = mx.logsumexp(scores, axis=-1)
        if group.bounds is not None and attention_pages is not None:
            chosen = choose_pages(queries, group, attention_pages)
            none = mx.zeros((len(group.heads), len(group.pages)))
            is_read[where] = mx.put_along_axis(none, chosen, mx.array(1.0), axis=1)
    rest_scores = [part.peak + mx.log(part.total) for part in rest]
    mass = mx.softmax(mx.concatenate([page_score.swapaxes(1, 2), *rest_scores], axis=-1), axis=-1)
    page_mass = mass[..., :num_pages]
    caught = (page_mass * is_read[:, None]).sum(axis=-1) + mass[..., num_pages:].sum(axis=-1)
    most_pages = max(len(group.pages) for group in groups)
    return Sample(page_mass.mean(axis=(0, 1)), caught.mean(), most_pages)
