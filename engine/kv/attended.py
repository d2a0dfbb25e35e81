"""What an answer attended to: places of a few tokens, watched while it is decoded.

Models attend most to the first tokens, whatever these say, and to the last ones. So heads count by the square
of the share that they give to a place: one that looks at a single place counts, one that looks everywhere
hardly does. Early layers, which look for words beside each other, are not watched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.kv.attention import Partial, attend_scored, for_all_heads, page_scores
from engine.kv.groups import MASKED, PageGroup
from engine.kv.page_table import PageReference, PageTable

BIN_TOKENS = 32
"""Tokens of a place."""
LAYERS_A_TOKEN = 2
"""So many layers are watched for each decoded token, others each time."""
LIMITED_EVERY_TOKENS = 16
"""Where decode reads some of the pages only, layers are watched with one of so many tokens."""
_FIRST_WATCHED = 1 / 3
"""The share of a model's layers that come before those that are watched."""
_GOLDEN = 0.618034
"""Steps of this share of a range come everywhere soon and evenly."""

_ScoredGroup = tuple[PageGroup, mx.array]
"""Pages of one precision, and the scores of all their tokens, `[heads, pages, repeats, page_tokens]`."""


@dataclass(frozen=True)
class AttendedBin:
    """A place of the text that is held.

    Attributes:
        start: index of its first token among those held.
        stop: the one behind its last.
        weight: the attention that it got; only sums and ratios mean anything.
    """

    start: int
    stop: int
    weight: float


@dataclass(frozen=True)
class _Look:
    """What one layer attended to in one step.

    Attributes:
        references: the pages as they were.
        open_positions: first and last position of each place among the open tokens.
        squares: of each place in pages, then of each among the open tokens: `[places]`.
    """

    references: tuple[PageReference, ...]
    open_positions: tuple[tuple[int, int], ...]
    squares: mx.array


class AnswerWatch:
    """Adds up what the layers of one cache attend to while an answer is decoded.

    Attributes:
        layers: those that are watched with the next token.
    """

    def __init__(self, layers: Sequence[int], page_tokens: int) -> None:
        self._candidates = layers[int(len(layers) * _FIRST_WATCHED) :]
        self._bin_tokens = min(BIN_TOKENS, page_tokens)
        self._num_chosen = self._num_tokens = 0
        self._new: list[_Look] = []
        self._queued: list[_Look] = []
        self._pages: list[tuple[tuple[PageReference, ...], npt.NDArray[np.float64]]] = []
        self._open = Counter[int]()
        self._open_ends: dict[int, int] = {}
        self.layers = self._choose()

    def attend(
        self,
        table: PageTable,
        groups: Sequence[PageGroup],
        queries: mx.array,
        keys: mx.array,
        sinks: Sequence[Partial],
        dtype: mx.Dtype,
    ) -> list[Partial]:
        """Attend over pages as `attend_pages` does, and look at the scores of all tokens.

        Args:
            table: the pages and the open tokens.
            groups: the pages by their precision.
            queries: `[kv_heads, repeats, head_dim]`, scaled, in float32.
            keys: those of the open tokens, `[kv_heads, tokens, head_dim]`.
            sinks: the parts of the softmax that are of no token.
            dtype: of the activations.
        """
        own, parts, seen = queries.astype(dtype), list[Partial](), list[_ScoredGroup]()
        for group in groups:
            scores = page_scores(own, group, group.key_slots, group.mask)
            seen.append((group, scores))
            part = attend_scored(dtype, group, scores, group.value_slots)
            parts.append(for_all_heads(part, group.heads, queries.shape[0]))
        open_scores = queries @ keys.astype(mx.float32).swapaxes(1, 2)
        squares = _squares(seen, len(table.references), open_scores, sinks, self._bin_tokens)
        self._new.append(_Look(table.references, self._open_places(table, open_scores.shape[2]), squares))
        return parts

    def _open_places(self, table: PageTable, num_open: int) -> tuple[tuple[int, int], ...]:
        """Return the first and last position of each place among the open tokens.

        Those that are decoded now are not in the table yet.
        """
        coming = range(table.next_position, table.next_position + num_open)
        positions = [*table.open_positions, *coming][:num_open]
        places = (positions[at : at + self._bin_tokens] for at in range(0, num_open, self._bin_tokens))
        return tuple((each[0], each[-1]) for each in places)

    @property
    def looks(self) -> list[mx.array]:
        """What was seen in the last pass, to be evaluated with that."""
        return [look.squares for look in self._new]

    def step(self, is_limited: bool) -> None:
        """Count a decoded token; what is added up was queued in the step before, so that nothing waits.

        Where decode reads some of the pages only, watched layers read all of them, and that less often.
        """
        for look in self._queued:
            self._add(look)
        self._queued, self._new = self._new, []
        self._num_tokens += 1
        is_due = not is_limited or self._num_tokens % LIMITED_EVERY_TOKENS == 0
        self.layers = self._choose() if is_due else frozenset()

    def bins(self, positions: Sequence[int]) -> list[AttendedBin]:
        """Return the places that got attention, in order; `positions` are those of all tokens held."""
        for look in (*self._queued, *self._new):
            self._add(look)
        self._queued, self._new = [], []
        weights, ends = Counter(self._open), dict(self._open_ends)
        for references, squares in self._pages:
            for reference, row in zip(references, squares, strict=True):
                own = reference.page.positions
                for number, weight in enumerate(row[: -(-len(own) // self._bin_tokens)].tolist()):
                    inside = own[number * self._bin_tokens : (number + 1) * self._bin_tokens]
                    weights[inside[0]] += weight
                    ends[inside[0]] = max(inside[-1], ends.get(inside[0], 0))
        held = np.asarray(positions)
        firsts = sorted(weights)
        starts = np.searchsorted(held, firsts).tolist()
        stops = np.searchsorted(held, [ends[first] for first in firsts], side="right").tolist()
        return [
            AttendedBin(start, stop, weights[first])
            for first, start, stop in zip(firsts, starts, stops, strict=True)
            if stop > start and weights[first] > 0
        ]

    def _choose(self) -> frozenset[int]:
        """Return the layers whose turn it is."""
        count, chosen = len(self._candidates), set()
        for _ in range(min(LAYERS_A_TOKEN, count)):
            self._num_chosen += 1
            chosen.add(self._candidates[int(self._num_chosen * _GOLDEN % 1 * count)])
        return frozenset(chosen)

    def _add(self, look: _Look) -> None:
        squares = np.array(look.squares).astype(np.float64)
        num_open = len(look.open_positions)
        if look.references:
            sealed = squares[: len(squares) - num_open].reshape(len(look.references), -1)
            if not self._pages or self._pages[-1][0] is not look.references:
                self._pages.append((look.references, np.zeros_like(sealed)))
            np.add(self._pages[-1][1], sealed, out=self._pages[-1][1])
        for (first, last), weight in zip(
            look.open_positions, squares[len(squares) - num_open :].tolist(), strict=True
        ):
            self._open[first] += weight
            self._open_ends[first] = max(last, self._open_ends.get(first, 0))


def _squares(
    groups: Sequence[_ScoredGroup],
    num_pages: int,
    open_scores: mx.array,
    sinks: Sequence[Partial],
    bin_tokens: int,
) -> mx.array:
    """Return the mean of all heads of the square of the share that each place gets, `[places]`."""
    num_heads, repeats, num_open = open_scores.shape
    room = -num_open % bin_tokens
    padded = mx.pad(open_scores, [(0, 0), (0, 0), (0, room)], constant_values=MASKED)
    scores = [_binned(padded, bin_tokens)]
    if groups:
        num_bins = groups[0][1].shape[-1] // bin_tokens
        sealed = mx.full((num_heads, num_pages, repeats, num_bins), MASKED)
        for group, token_scores in groups:
            sealed[mx.array(group.heads)[:, None], mx.array(group.pages)[None]] = _binned(
                token_scores, bin_tokens
            )
        scores.insert(0, sealed.swapaxes(1, 2).reshape(num_heads, repeats, -1))
    binned = mx.concatenate(scores, axis=-1)
    beside = [part.peak + mx.log(part.total) for part in sinks]
    whole = mx.logsumexp(mx.concatenate([binned, *beside], axis=-1), axis=-1, keepdims=True)
    shares = mx.exp(binned - whole)
    return (shares * shares).mean(axis=(0, 1))


def _binned(scores: mx.array, bin_tokens: int) -> mx.array:
    """Return the logarithm of the sum of the exponentials of each few scores of the last axis."""
    return mx.logsumexp(scores.reshape(*scores.shape[:-1], -1, bin_tokens), axis=-1)
