"""One model, one sequence, and the requests to them: what the window and the terminal talk to.

All methods belong to the thread that made the engine: MLX arrays do not cross threads before they are
evaluated. Only plain data goes in and out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx

from engine.backend import Backend
from engine.budget import LoadPlan, effective_bits, plan_load
from engine.cancel import CancelToken
from engine.errors import Cancelled, ContextOverflowError, ModelError, OctavoError
from engine.events import CacheChanged, GenerationEvent, LoadProgress
from engine.generate import Generation
from engine.inspection import inspect_model
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.loader import load_model
from engine.memory import available_nbytes
from engine.model import ChatMessage, Model
from engine.model_info import ModelInfo
from engine.sampling import SamplingParams
from engine.template_cost import TemplateTokens, measure_template
from engine.tokens import TokenCounter

log = logging.getLogger(__name__)

MIN_ANSWER_TOKENS = 16
"""A prompt must leave room for at least this much of an answer."""


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready, as plain data, and a token counter that another thread may use."""

    info: ModelInfo
    backend: Backend
    plan: LoadPlan
    counter: TokenCounter
    template: TemplateTokens

    def plan_at(self, kv: KVSpec) -> LoadPlan:
        """Return the plan of the model as it is loaded for another KV precision.

        With the memory that was free before loading.
        """
        return plan_load(self.info, self.backend, kv, self.plan.available_nbytes, self.plan.dequantize)

    def effective_bits_at(self, kv: KVSpec) -> float:
        """Return the bits that a cached number costs on average at a KV precision, in a cold page."""
        return effective_bits(self.info, self.backend, kv)


@dataclass(frozen=True)
class GenerationRequest:
    """What to answer and how; `max_context` limits the tokens of prompt and answer together."""

    messages: tuple[ChatMessage, ...]
    sampling: SamplingParams
    kv: KVSpec
    max_context: int | None = None


class Engine:
    """Loads one model at a time and answers conversations with it.

    The keys and values of the sequence that was read last are kept: a prompt that begins with the same
    tokens is not read again from the start.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._model: Model | None = None
        self._cache: SequenceCache | None = None
        self.loaded: LoadedModel | None = None

    def load(
        self,
        path: Path,
        kv: KVSpec,
        *,
        cancel: CancelToken,
        on_progress: Callable[[LoadProgress], None],
    ) -> LoadedModel:
        """Replace the loaded model by the one at `path`.

        Raises:
            ModelError: the model cannot be read or is not supported: the present one stays. Or it does not
                fit into memory even without the present one: nothing is loaded then.
            Cancelled: the user stopped it: nothing is loaded then, or still the present one where it was
                stopped before that had to make room.
        """
        info = inspect_model(path, cancel)
        kv.require_fit(info.num_layers, info.num_kv_heads)
        self.unload()
        plan = plan_load(info, self._backend, kv, available_nbytes())
        plan.require_fit(info)
        try:
            model = load_model(
                path, self._backend, dequantize=plan.dequantize, cancel=cancel, on_progress=on_progress
            )
        except BaseException:
            mx.clear_cache()
            raise
        counter = model.token_counter()
        self.loaded = LoadedModel(info, self._backend, plan, counter, measure_template(model, counter))
        self._model = model
        log.info("Loaded %s: %s", info.name, plan)
        return self.loaded

    def unload(self) -> None:
        """Give the memory of the model and its sequence back."""
        self._model = self._cache = self.loaded = None
        mx.clear_cache()

    def generate(
        self,
        request: GenerationRequest,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[GenerationEvent]:
        """Answer a conversation: yield progress, tokens and at last the figures.

        `wanted_kv` tells the precision that the user wants now. A change reaches the cache before the next
        prefill chunk or token, with a `CacheChanged`; one at which the reply might no longer fit into
        memory waits for the next.

        Raises:
            ModelError: no model is loaded.
            ContextOverflowError: the conversation does not fit the context.
        """
        if self._model is None or self.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        request.kv.require_fit(self.loaded.info.num_layers, self.loaded.info.num_kv_heads)
        prompt = self._model.render(request.messages)
        limit_tokens = self.loaded.plan_at(request.kv).fitting_tokens
        if request.max_context is not None:
            limit_tokens = min(limit_tokens, request.max_context)
        _require_room(len(prompt), limit_tokens)
        longest = min(limit_tokens, len(prompt) + request.sampling.max_tokens)
        with self._dropping_broken_cache():
            yield from Generation(
                self._model,
                self._cache_for(prompt, request.kv),
                prompt,
                request.sampling,
                limit_tokens=limit_tokens,
                cancel=cancel,
                wanted_kv=_Followed(wanted_kv or (lambda: request.kv), request.kv, self.loaded, longest),
            ).events()

    def apply_kv(self, kv: KVSpec, cancel: CancelToken) -> CacheChanged | None:
        """Change the precision of the conversation that is held, between replies.

        Pages of another size wait for the next reply. Returns None where nothing changes.

        Raises:
            OctavoError: the model does not have a layer or head that is named.
            Cancelled: some layers have been changed, the rest follows with the next change or reply.
        """
        cache = self._cache
        if cache is None or self.loaded is None:
            return None
        kv.require_fit(self.loaded.info.num_layers, self.loaded.info.num_kv_heads)
        kv = dataclasses.replace(kv, page_tokens=cache.spec.page_tokens, group_size=cache.spec.group_size)
        if kv == cache.spec and not cache.is_behind:
            return None
        with self._dropping_broken_cache():
            cache.apply(kv, cancel.check)
        return CacheChanged(cache.spec, cache.usage())

    def held(self) -> CacheChanged | None:
        """Return the precision and the figures of the cache that is held, None where there is none."""
        return None if self._cache is None else CacheChanged(self._cache.spec, self._cache.usage())

    def forget(self) -> None:
        """Give the memory of the conversation back that is held."""
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    @contextlib.contextmanager
    def _dropping_broken_cache(self) -> Iterator[None]:
        """Drop the cache after an error in the middle of a change: its layers may disagree."""
        try:
            yield
        except Cancelled:
            raise
        except Exception:
            self._cache = None
            mx.clear_cache()
            raise

    def _cache_for(self, prompt: Sequence[int], kv: KVSpec) -> SequenceCache:
        """Return the cache to extend: what it holds is a beginning of `prompt`, its last token left out.

        It may still have another precision, to which the generation brings what is kept.
        """
        assert self._model is not None
        cache = self._cache
        if cache is None or not _same_pages(cache.spec, kv):
            self._cache = None
            cache = SequenceCache(self._model.module, kv)
        if not cache.truncate(min(cache.common_prefix(prompt), len(prompt) - 1)):
            cache.clear()
        self._cache = cache
        return cache


class _Followed:
    """The precision that a reply follows: what the user wants now, as long as `longest` tokens fit at it."""

    def __init__(
        self, wanted: Callable[[], KVSpec], first: KVSpec, loaded: LoadedModel, longest: int
    ) -> None:
        self._wanted = wanted
        self._seen = self._kv = first
        self._loaded = loaded
        self._longest = longest

    def __call__(self) -> KVSpec:
        wanted = self._wanted()
        if wanted != self._seen:
            self._seen = wanted
            if self._fits(wanted):
                self._kv = wanted
        return self._kv

    def _fits(self, kv: KVSpec) -> bool:
        info = self._loaded.info
        try:
            kv.require_fit(info.num_layers, info.num_kv_heads)
        except OctavoError:
            return False
        return self._loaded.plan_at(kv).fitting_tokens >= self._longest


def _same_pages(one: KVSpec, other: KVSpec) -> bool:
    return (one.page_tokens, one.group_size) == (other.page_tokens, other.group_size)


def _require_room(prompt_tokens: int, limit_tokens: int) -> None:
    surplus = prompt_tokens + MIN_ANSWER_TOKENS - limit_tokens
    if surplus > 0:
        raise ContextOverflowError(
            f"The conversation has {prompt_tokens:,} tokens and the context holds {limit_tokens:,}, "
            f"{MIN_ANSWER_TOKENS} of them kept for the answer: that is {surplus:,} tokens too many. "
            "Remove a document, shorten the message or start a new conversation.",
            needed_tokens=prompt_tokens + MIN_ANSWER_TOKENS,
            limit_tokens=limit_tokens,
        )
