"""Whether a model can be loaded: before memory is touched, with what would fit where it cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.admission import AdmissionError, Choice, LowerPrecision, ShorterContext, SmallerModel
from engine.backend import Backend
from engine.budget import MIN_CONTEXT_TOKENS, LoadPlan, kv_nbytes, plan_load
from engine.headroom import more_memory, precisions_below
from engine.kv.precision import KVSpec
from engine.memory import total_nbytes
from engine.memory_limits import MemoryLimits, limits_beside
from engine.model_info import ModelInfo
from engine.wording import format_apart, format_nbytes

_GROWTH_NBYTES = 20_000_000
_GROWTH_SHARE = 0.02
"""What is offered leaves so much of the memory, at most, to what the process grows by until it is chosen."""
_WORDS = {
    ShorterContext: "a shorter context",
    LowerPrecision: "a lower KV precision",
    SmallerModel: "a smaller model",
}


@dataclass(frozen=True)
class LoadWish:
    """A model that is to be loaded, and the room that there is for it.

    Attributes:
        info: the model.
        backend: what it is to compute on.
        kv: the precision that is asked for.
        max_context: the context that has to fit as far as the model has positions; None for the shortest one
            that is worth loading. Weights become float32 where it fits beside them, for None where all does.
        available_nbytes: what can be had.
        limits: what the user allows.
        taken_nbytes: what the process takes of that beside the model.
    """

    info: ModelInfo
    backend: Backend
    kv: KVSpec
    max_context: int | None
    available_nbytes: int
    limits: MemoryLimits
    taken_nbytes: int = 0

    @property
    def least_tokens(self) -> int:
        """The context that has to fit."""
        wanted = MIN_CONTEXT_TOKENS if self.max_context is None else self.max_context
        return min(wanted, self.info.context_tokens)

    def plan(self, anyway: bool) -> LoadPlan:
        """Return how to load it.

        Raises:
            AdmissionError: the context does not fit, and it is not to be loaded `anyway`.
        """
        plan = self._plan_at(self.kv)
        if plan.fitting_tokens < self.least_tokens and not anyway:
            raise self._refusal(plan)
        return plan

    def _plan_at(self, kv: KVSpec, dequantize: bool | None = None) -> LoadPlan:
        return plan_load(
            self.info,
            self.backend,
            kv,
            self.available_nbytes,
            dequantize,
            context=self.max_context,
            limits=limits_beside(self.limits, self.taken_nbytes),
        )

    def _refusal(self, plan: LoadPlan) -> AdmissionError:
        packed = self._plan_at(self.kv, dequantize=False)
        context = self._kv_nbytes(self.kv)
        needed = packed.weights_nbytes + plan.reserve_nbytes + context
        wanted, there = format_apart(needed, plan.usable_nbytes)
        choices = tuple(self._with_growth(plan.usable_nbytes)._choices())
        limit = self.limits.most_nbytes if plan.usable_nbytes < plan.available_nbytes else None
        is_ever = needed <= total_nbytes()
        more = f"{more_memory(limit)}{_or_choose(choices)}" if is_ever else _whatever_is_closed(choices)
        return AdmissionError(
            f"{self.info.name} needs {wanted}: {format_nbytes(packed.weights_nbytes)} for its weights, "
            f"{format_nbytes(context)} for a context of {self.least_tokens:,} tokens and "
            f"{format_nbytes(plan.reserve_nbytes)} to work in. {there} can be had now. "
            f"{more}.{_less_reserve(needed, plan)}",
            needed_nbytes=needed,
            available_nbytes=plan.usable_nbytes,
            choices=choices,
            limit_nbytes=limit if needed <= plan.available_nbytes else None,
        )

    def _with_growth(self, usable_nbytes: int) -> LoadWish:
        """Return the same with the memory that is surely there still when something is chosen."""
        growth = min(_GROWTH_NBYTES, int(usable_nbytes * _GROWTH_SHARE))
        return dataclasses.replace(self, available_nbytes=self.available_nbytes - growth)

    def _choices(self) -> Iterator[Choice]:
        """Yield what would fit, the mildest first."""
        packed = self._plan_at(self.kv, dequantize=False)
        context = self._kv_nbytes(self.kv)
        for lower in precisions_below(self.kv):
            fitting = self._plan_at(lower, dequantize=False).fitting_tokens
            if fitting >= self.least_tokens and self._kv_nbytes(lower) < context:
                yield LowerPrecision(lower, fitting)
                break
        if packed.fits:
            yield ShorterContext(packed.fitting_tokens)
        # What the context of another model takes is its own matter.
        weights = min(packed.usable_nbytes - packed.reserve_nbytes, packed.weights_nbytes - 1)
        if weights > 0:
            yield SmallerModel(weights)

    def _kv_nbytes(self, kv: KVSpec) -> int:
        return kv_nbytes(self.info, self.backend, kv, self.least_tokens)


def _less_reserve(needed_nbytes: int, plan: LoadPlan) -> str:
    """Return where to keep less free, where only that is in the way."""
    if needed_nbytes - plan.reserve_nbytes > plan.usable_nbytes:
        return ""
    return " It fits with less kept free to work in, which is set in the Memory panel under Limits."


def _whatever_is_closed(choices: Sequence[Choice]) -> str:
    """Return what to do where the computer has less than it takes, whatever is closed."""
    words = _named(choices)
    there = f"This computer has {format_nbytes(total_nbytes())}"
    return f"{there}: choose {words}" if words else there


def _or_choose(choices: Sequence[Choice]) -> str:
    """Return what to choose among, as the end of a sentence that says what else helps."""
    words = _named(choices)
    return f", or choose {words}" if words else ""


def _named(choices: Sequence[Choice]) -> str:
    named = [words for kind, words in _WORDS.items() if any(isinstance(each, kind) for each in choices)]
    *first, last = named or [""]
    return f"{', '.join(first)} or {last}" if first else last
