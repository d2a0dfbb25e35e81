"""What is asked of the engine, and the model that it has loaded, as plain data."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from engine.backend import Backend
from engine.budget import LoadPlan, effective_bits, plan_load
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits, limits_beside
from engine.model import ChatMessage
from engine.model_info import ModelInfo
from engine.sampling import SamplingParams
from engine.template_cost import TemplateTokens
from engine.tokens import TokenCounter
from engine.turns import KEPT_SHARE

_NO_LIMITS = MemoryLimits()


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready, as plain data, and a token counter that another thread may use.

    Attributes:
        limits: the memory that the user allows.
        taken_nbytes: what the process took of that before it was loaded.
    """

    info: ModelInfo
    backend: Backend
    plan: LoadPlan
    counter: TokenCounter
    template: TemplateTokens
    limits: MemoryLimits = _NO_LIMITS
    taken_nbytes: int = 0

    def plan_at(self, kv: KVSpec) -> LoadPlan:
        """Return the plan of the model as it is loaded for another KV precision.

        With the memory that was free before loading.
        """
        return self._plan_at(kv, self.plan.dequantize)

    def packed_plan_at(self, kv: KVSpec) -> LoadPlan | None:
        """Return the plan with the weights as they are stored, None where they are loaded so already."""
        return self._plan_at(kv, False) if self.plan.dequantize and self.info.packed_nbytes else None

    def _plan_at(self, kv: KVSpec, dequantize: bool) -> LoadPlan:
        limits = limits_beside(self.limits, self.taken_nbytes)
        return _plan(self.info, self.backend, kv, self.plan.available_nbytes, dequantize, limits)

    def effective_bits_at(self, kv: KVSpec) -> float:
        """Return the bits that a cached number costs on average at a KV precision, in a cold page."""
        return effective_bits(self.info, self.backend, kv)


@functools.lru_cache(maxsize=32)  # a window asks in several places while a precision is dragged
def _plan(
    info: ModelInfo,
    backend: Backend,
    kv: KVSpec,
    available_nbytes: int,
    dequantize: bool,
    limits: MemoryLimits,
) -> LoadPlan:
    return plan_load(info, backend, kv, available_nbytes, dequantize, limits=limits)


@dataclass(frozen=True)
class PromptSize:
    """Tokens of the prompt that a request makes, and of the context that there is for prompt and answer.

    Attributes:
        fitting_tokens: what memory holds now, whatever `max_context` is.
        unread_tokens: those of the prompt that would have to be read, given what is held.
    """

    num_tokens: int
    limit_tokens: int
    fitting_tokens: int
    unread_tokens: int = 0


@dataclass(frozen=True)
class GenerationRequest:
    """What to answer and how.

    Attributes:
        messages: the conversation as the model is to read it.
        sampling: how tokens are chosen.
        kv: precision of the KV cache.
        max_context: tokens of prompt and answer together at most.
        conversation_id: whose keys and values are kept and used again; 0 for no conversation.
        anyway: whether the user lets it pass that it does not fit into memory or `max_context`.
        answer_key: the key that the answer will have as a message.
        shorter: the same conversation without what may leave it while memory is short, which happens without
            reading; empty where nothing may.
        left: keys of the messages and documents before the last question that left the context.
        pinned: keys of what stays a tier higher in precision.
        is_aside: whether the conversation goes on afterwards as if this had not been asked. What is held of
            it is read from, not changed.
        keep_ratio: the share of the context that leaving turns out brings it down to, for what is offered
            where it does not fit.
    """

    messages: tuple[ChatMessage, ...]
    sampling: SamplingParams
    kv: KVSpec
    max_context: int | None = None
    conversation_id: int = 0
    anyway: bool = False
    answer_key: str = ""
    shorter: tuple[ChatMessage, ...] = ()
    left: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    is_aside: bool = False
    keep_ratio: float = KEPT_SHARE
