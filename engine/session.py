"""The conversations with one loaded model: what was read of them, and the replies that are written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from engine import telling
from engine.branching import departure
from engine.cancel import CancelToken
from engine.context_usage import ContextUsage
from engine.events import CacheChanged, GenerationEvent
from engine.extending import forgetting_broken, settle
from engine.figures import Phase
from engine.guard import Guard, GuardAction, GuardStep
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.idle_reading import IdleReader
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageMap, TextSpan
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.model import Model
from engine.prefixes.cache import PrefixCache
from engine.prefixes.saver import PrefixSaver
from engine.relief import IdleRelief
from engine.reply_room import Admitted, ReplyRoom
from engine.replying import ReplyWriter
from engine.requests import GenerationRequest, LoadedModel, PromptSize


class Session:
    """Answers conversations with one model and keeps the keys and values of each.

    A prompt that begins with tokens that were read is not read again from the start.

    Attributes:
        weights_nbytes: bytes of the model's weights.
    """

    def __init__(
        self,
        model: Model,
        loaded: LoadedModel,
        limits: MemoryLimits,
        guard: Guard | None,
        spill_folder: Path | None,
        prefixes: PrefixCache | None = None,
    ) -> None:
        self.weights_nbytes = model.weights_nbytes
        self._model = model
        self._loaded = loaded
        self._guard = guard
        self._prefixes = prefixes
        self._held = HeldSequences(spill_folder, prefixes)
        self._room = ReplyRoom(model, loaded, limits, self._held)
        self._saver = None if prefixes is None else PrefixSaver(prefixes, self._held)
        self._writer = ReplyWriter(model, self._held, self._room, guard, self.publish, self._saver)
        self._relief = IdleRelief(guard, self._held)
        self._reader = IdleReader(
            model, self._held, self._room, guard, self.relieve, self.publish, self._saver
        )
        self.publish(Phase.IDLE)

    @property
    def limits(self) -> MemoryLimits:
        """The memory that the user allows; may be replaced at any time."""
        return self._room.limits

    @limits.setter
    def limits(self, limits: MemoryLimits) -> None:
        self._room.limits = limits

    @property
    def memory_nbytes(self) -> int:
        """Bytes of the weights and of all conversations that are in memory."""
        return self.weights_nbytes + self._held.memory_nbytes

    @property
    def model(self) -> Model:
        """What answers."""
        return self._model

    @property
    def context(self) -> HeldContext | None:
        """What is held of the conversation in hand, None where there is none."""
        return self._held.in_hand

    @property
    def finds_later(self) -> bool:
        """What `Engine.finds_later` says."""
        return self._prefixes is not None and self._prefixes.is_unknown

    def save(self, cancel: CancelToken) -> bool:
        """Do what `Engine.save` says."""
        return self._saver is None or self._saver.save(cancel.check)

    def close(self) -> None:
        """Give the memory of all conversations back."""
        self._held.close()

    # Replies.

    def measure(self, request: GenerationRequest) -> PromptSize:
        """Do what `Engine.measure` says."""
        return self._room.measure(request)

    def admit(self, request: GenerationRequest) -> Admitted:
        """Do what `Engine.admit` says; return what was found out."""
        return self._room.admit(request)

    def reply(
        self,
        request: GenerationRequest,
        admitted: Admitted,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec],
    ) -> Iterator[GenerationEvent]:
        """Yield the events of a reply, or of an aside, to what was admitted."""
        if request.is_aside:
            return self._writer.aside(request, admitted, cancel)
        return self._writer.reply(request, admitted, cancel, wanted_kv)

    # The conversation in hand.

    def apply_kv(self, kv: KVSpec, cancel: CancelToken) -> CacheChanged | None:
        """Do what `Engine.apply_kv` says."""
        if self._held.in_hand is None:
            return None
        cache = self._held.in_hand.cache
        kv.require_fit(self._loaded.info.num_layers, self._loaded.info.num_kv_heads)
        kv = dataclasses.replace(kv, page_tokens=cache.spec.page_tokens, group_size=cache.spec.group_size)
        if kv == cache.spec and not cache.is_behind:
            return None
        with forgetting_broken(self._held, self._held.conversation_id):
            cache.apply(kv, cancel.check)
        return self._changed(cache)

    def held(self) -> CacheChanged | None:
        """Return the precision and the figures of the conversation in hand, None where there is none."""
        context = self._held.in_hand
        return None if context is None else CacheChanged(context.cache.spec, context.cache.usage())

    def settle(self, request: GenerationRequest) -> CacheChanged | None:
        """Do what `Engine.settle` says."""
        context, conversation_id = self._held.in_hand, request.conversation_id
        if context is None or conversation_id != self._held.conversation_id:
            return None
        wanted = self._room.prompt(request)
        found = departure(context.held, wanted, request.left)
        with forgetting_broken(self._held, conversation_id):
            if found.released and context.cache.can_edit:
                self._held.forget_versions(conversation_id)
                settle(context, wanted, released=self._held.released(conversation_id), check=lambda: None)
                context.pin(request.pinned)
            elif not context.pin(request.pinned):
                return None
        return self._changed(context.cache)

    def prefetch(
        self, conversation_id: int, cancel: CancelToken, on_page: Callable[[], None]
    ) -> CacheChanged | None:
        """Do what `Engine.prefetch` says."""

        def check() -> None:
            on_page()
            cancel.check()

        held = self._held
        outside = held.outside(conversation_id)
        is_short = self._guard is not None and self._guard.height is not GuardStep.NONE
        if held.context(conversation_id) is None:
            return None
        if outside is None and held.conversation_id == conversation_id:
            return None
        if outside is not None and (is_short or self._room.lacking_nbytes(outside.missing_nbytes)):
            return None
        held.conversation_id = conversation_id  # its pages are seen while they come
        try:
            held.bring_back(conversation_id, check)
            context = held.take(conversation_id)
        finally:
            self.publish(Phase.IDLE)
        return None if context is None else self._changed(context.cache)

    def rebuild(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Do what `Engine.rebuild` says."""
        return self._reader.rebuild(request, cancel)

    def close_gaps(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Do what `Engine.close_gaps` says."""
        return self._reader.close_gaps(request, cancel)

    def read_ahead(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Do what `Engine.read_ahead` says."""
        return self._reader.read_ahead(request, self._room.admit(request), cancel)

    def keep_prefix(self, conversation_id: int, owner_id: int, cancel: CancelToken) -> int:
        """Do what `Engine.keep_prefix` says."""
        versions = self._held.in_memory(conversation_id)
        if self._saver is None or versions is None:
            return 0
        return self._saver.keep_prefix(versions.current, owner_id, cancel.check)

    def context_usage(self) -> ContextUsage | None:
        """Do what `Engine.context_usage` says."""
        context, versions = self._held.in_hand, self._held.versions_in_hand
        released = self._held.released(self._held.conversation_id)
        if context is None or versions is None or released is None:
            return None
        cache = context.cache
        return ContextUsage(
            cache.span_usage([_named(span) for span in context.spans]),
            released.spans,
            cache.num_tokens,
            cache.referred_nbytes,
            cache.next_position,
            self._loaded.info.context_tokens,
            versions.num_others,
            versions.others_nbytes,
            cache.unused_nbytes,
        )

    def positions_left(self, conversation_id: int) -> int | None:
        """Do what `Engine.positions_left` says."""
        context = self._held.context(conversation_id)
        if context is None:
            return None
        return max(0, self._loaded.info.context_tokens - context.cache.next_position)

    def page_map(self) -> PageMap | None:
        """Return the pages of the conversation in hand, also while they come from disk."""
        held = self._held
        context = None if held.conversation_id is None else held.context(held.conversation_id)
        return None if context is None else context.cache.page_map(context.spans, self._held.counters)

    def pin(self, page_number: int, pinned: bool) -> None:
        """Let a page of the conversation in hand stay a tier higher, or no longer."""
        if self._held.in_hand is not None:
            self._held.in_hand.cache.pin_page(page_number, pinned)

    def relieve(self, cancel: CancelToken) -> list[GuardAction]:
        """Do what `Engine.relieve` says."""
        if not self._relief.is_due:
            return []
        self.publish(Phase.TRIM)
        try:
            return list(self._relief.follow(cancel.check))
        finally:
            self.publish(Phase.IDLE)

    def forget(self, conversation_id: int) -> None:
        """Give the memory, or the file, of a conversation back."""
        self._held.forget(conversation_id)
        if self._saver is not None:
            self._saver.forget(conversation_id)
        self.publish(Phase.IDLE)

    def publish(self, phase: Phase) -> None:
        """Publish the engine's figures."""
        loaded = self._loaded
        telling.publish_model(
            phase, loaded.info, loaded.backend, loaded.plan, self.weights_nbytes, self._held
        )

    def _changed(self, cache: SequenceCache) -> CacheChanged:
        self.publish(Phase.IDLE)
        return CacheChanged(cache.spec, cache.usage())


def _named(span: TextSpan) -> TextSpan:
    """Return a span, without its key where only its marker is held: what left may leave it to the next."""
    is_left = span.stop - span.start <= span.marker_tokens
    return dataclasses.replace(span, key="") if is_left else span
