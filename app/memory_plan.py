"""What a model would take in memory, by KV precision and by context, and what fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.kv_config import LEAST_CONTEXT
from engine.backend import Backend
from engine.budget import LoadPlan, kv_nbytes, plan_load
from engine.kv.precision import PRESETS, KVSpec
from engine.memory_limits import MemoryLimits
from engine.model_info import ModelInfo
from engine.wording import format_nbytes

EXACT = "16"
ASKED = "--kv"
"""The name of a precision that was asked for and has no other."""


@dataclass(frozen=True)
class PrecisionPlan:
    """The plan at one KV precision.

    Attributes:
        name: `16`, a preset's, or `--kv`.
        kv: the precision.
        plan: what fits.
        packed_tokens: what fits with quantized weights packed, at least what fits as planned.
        nbytes_at: the bytes of the KV cache, by the tokens of the context.
    """

    name: str
    kv: KVSpec
    plan: LoadPlan
    packed_tokens: int
    nbytes_at: Mapping[int, int]


@dataclass(frozen=True)
class MemoryPlan:
    """The plans of a model at several precisions, all with its weights in the same form.

    Attributes:
        info: the model.
        backend: what it would compute on.
        limits: what the user allows.
        precisions: 16 bits, the presets and what was asked for, the most exact first.
        asked: the one that was asked for.
        context: the tokens that were asked for, else all that the model was made for.
    """

    info: ModelInfo
    backend: Backend
    limits: MemoryLimits
    precisions: tuple[PrecisionPlan, ...]
    asked: PrecisionPlan
    context: int

    @property
    def fits(self) -> bool:
        """Whether the weights fit, and the context at the precision, as they were asked for."""
        return self.asked.plan.fits and self.context <= self.asked.plan.fitting_tokens

    @property
    def verdict(self) -> str:
        """Whether it fits, in a sentence, and what would."""
        plan, name = self.asked.plan, self.info.name
        if not plan.fits:
            return _no_room(self.info, plan)
        if self.context > plan.context_tokens:
            return f"{name} was made for {plan.context_tokens:,} tokens and cannot read {self.context:,}."
        tokens = f"{self.context:,} tokens at {_named(self.asked)}"
        needed = format_nbytes(self.asked.nbytes_at[self.context])
        left = format_nbytes(plan.kv_budget_nbytes)
        if not self.fits:
            return f"{tokens} do not fit: they take {needed} and {left} are left. {self._what_fits()}"
        if self.context > plan.safe_tokens:
            safe = f"Up to {plan.safe_tokens:,} tokens there is room for surprises."
            return f"{tokens} fit, just: they take {needed} of {left}. {safe}"
        return f"{tokens} fit: they take {needed} of {left}."

    def _what_fits(self) -> str:
        """Return the mildest lower precision and the longest context that fit, in a sentence."""
        shorter = f"up to {self.asked.plan.fitting_tokens:,} tokens at {_named(self.asked)}"
        lower = [
            one
            for one in self.precisions
            if one.plan.fitting_tokens >= self.context
            and one.plan.kv_nbytes_per_token < self.asked.plan.kv_nbytes_per_token
        ]
        if not lower:
            return f"What fits is {shorter}."
        return f"What fits is {self.context:,} tokens at {_named(lower[0])}, or {shorter}."


def plan_memory(
    info: ModelInfo,
    backend: Backend,
    kv: KVSpec,
    available_nbytes: int,
    *,
    context: int | None,
    limits: MemoryLimits,
) -> MemoryPlan:
    """Plan a model at 16 bits, the presets and `kv`; None for the context means all that it was made for.

    Its weights have the form in which it would be loaded for this context.
    """
    named = {EXACT: KVSpec.parse(EXACT)} | PRESETS
    name = next((name for name, spec in named.items() if spec == kv), ASKED)
    info = info.with_context(context)
    contexts = _contexts(info.context_tokens, context)
    dequantize = plan_load(info, backend, kv, available_nbytes, context=context, limits=limits).dequantize

    def planned(name: str, spec: KVSpec) -> PrecisionPlan:
        plan, packed = (
            plan_load(info, backend, spec, available_nbytes, form, limits=limits)
            for form in (dequantize, False)
        )
        nbytes_at = {tokens: kv_nbytes(info, backend, spec, tokens) for tokens in contexts}
        return PrecisionPlan(name, spec, plan, packed.fitting_tokens, nbytes_at)

    plans = [planned(*one) for one in (named | {name: kv}).items()]
    plans.sort(key=lambda one: -one.plan.kv_nbytes_per_token)
    asked = next(one for one in plans if one.name == name)
    return MemoryPlan(info, backend, limits, tuple(plans), asked, context or info.context_tokens)


def _contexts(most: int, asked: int | None) -> list[int]:
    """Return the contexts to show: doubled from the least to all, and the one that was asked for."""
    contexts = {most}
    tokens = LEAST_CONTEXT
    while tokens < most:
        contexts.add(tokens)
        tokens *= 2
    if asked is not None and asked <= most:
        contexts.add(asked)
    return sorted(contexts)


def _named(precision: PrecisionPlan) -> str:
    """Return a precision in a sentence: `16 bits`, `balanced`, or as it was written."""
    if precision.name == EXACT:
        return "16 bits"
    return str(precision.kv) if precision.name == ASKED else precision.name


def _no_room(info: ModelInfo, plan: LoadPlan) -> str:
    needed = format_nbytes(plan.weights_nbytes + plan.reserve_nbytes)
    return (
        f"{info.name} does not fit: with {format_nbytes(plan.weights_nbytes)} of weights and "
        f"{format_nbytes(plan.reserve_nbytes)} kept free it takes {needed} and a KV cache, and there are "
        f"{format_nbytes(plan.usable_nbytes)}. Choose a smaller model or one with fewer bits."
    )
