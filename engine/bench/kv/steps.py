"""Where the time of a decode step goes: attention over the cache, the weights, sampling, the rest.

Attention alone is timed by making the calls again that the model made in one step, with its own queries.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import make_prompt_cache

from engine.bench.kv.figures import Step
from engine.bench.kv.kinds import CacheKind
from engine.bench.kv.subjects import Subject
from engine.model import Model

REPLAYS = 3
"""How often one step's attention is timed after each answer."""
_ATTENTION = "scaled_dot_product_attention"

Attention = Callable[[], mx.array]
"""One layer's attention of one decode step, to be queued again."""


@dataclass
class _Taken:
    """Seconds, one by one."""

    totals: list[float] = field(default_factory=list)
    attention: list[float] = field(default_factory=list)
    building: list[float] = field(default_factory=list)


def measure_steps(
    model: Model, subjects: Mapping[CacheKind, Subject], token: int, answer_tokens: int, runs: int
) -> dict[CacheKind, Step]:
    """Have all caches write behind what they hold, by turns, and time a step's parts between the answers.

    Args:
        model: what they write with.
        subjects: caches of the same text.
        token: what is read before each answer.
        answer_tokens: length of an answer, at least 2.
        runs: answers of each cache.
    """
    taken = {kind: _Taken() for kind in subjects}
    weights_s: list[float] = []
    sampling_s: list[float] = []
    logits = model.module(mx.array([[token]]))[:, -1, :]
    mx.eval(logits)
    for _ in range(runs):
        for kind, subject in subjects.items():
            taken[kind].totals.append(_answer_step_s(subject, token, answer_tokens))
            calls, building_s = _attention_calls(model.module, subject, token)
            taken[kind].building.append(building_s)
            taken[kind].attention += [_seconds(partial(_again, calls)) for _ in range(REPLAYS)]
            del calls  # they hold the cache's arrays, which would then be copied when tokens are added
            subject.took(token)
            weights_s.append(_seconds(partial(_step_behind_nothing, model.module, token)))
            sampling_s.append(_seconds(partial(_sample, logits)))
    return {
        kind: Step(
            total_s=statistics.median(one.totals),
            attention_s=statistics.median(one.attention),
            model_s=statistics.median(weights_s),
            sampling_s=statistics.median(sampling_s),
            building_s=statistics.median(one.building),
            caught=subjects[kind].caught,
        )
        for kind, one in taken.items()
    }


def _answer_step_s(subject: Subject, token: int, answer_tokens: int) -> float:
    arrivals_s = [time.perf_counter() for _ in subject.stream([token], answer_tokens)]
    return (arrivals_s[answer_tokens - 1] - arrivals_s[0]) / (answer_tokens - 1)


def _step_behind_nothing(module: nn.Module, token: int) -> Any:
    return module(mx.array([[token]]), cache=make_prompt_cache(module))


def _sample(logits: mx.array) -> Any:
    return (logits - mx.logsumexp(logits, axis=-1, keepdims=True)).argmax(axis=-1)


def _again(layers: Sequence[Attention]) -> list[mx.array]:
    return [layer() for layer in layers]


def _seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of computing what `work` queues; queuing it is not counted."""
    queued = work()
    started_s = time.perf_counter()
    mx.eval(queued)
    return time.perf_counter() - started_s


def _attention_calls(module: nn.Module, subject: Subject, token: int) -> tuple[list[Attention], float]:
    """Take one step; return the attention calls that were made in it, and the seconds until all was queued.

    The cache is left with the token.
    """
    calls: list[Attention] = []
    with _recorded(module, calls):
        started_s = time.perf_counter()
        logits = module(mx.array([[token]]), cache=subject.layers)
        building_s = time.perf_counter() - started_s
        mx.eval(logits)
    return calls, building_s


@contextlib.contextmanager
def _recorded(module: nn.Module, calls: list[Attention]) -> Iterator[None]:
    """Note down each call of the attention function that mlx-lm's models import by name."""
    homes = {sys.modules[type(part).__module__] for part in module.modules()}
    originals = {home: getattr(home, _ATTENTION) for home in homes if hasattr(home, _ATTENTION)}
    try:
        for home, original in originals.items():
            setattr(home, _ATTENTION, _recorder(original, calls))
        yield
    finally:
        for home, original in originals.items():
            setattr(home, _ATTENTION, original)


def _recorder(original: Callable[..., mx.array], calls: list[Attention]) -> Callable[..., mx.array]:
    def record(queries: mx.array, *arguments: Any, **named: Any) -> mx.array:
        # mlx-lm's quantized attention scales its queries in place: every call gets its own.
        calls.append(lambda: original(queries + 0, *arguments, **named))
        return original(queries + 0, *arguments, **named)

    return record
