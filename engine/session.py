"""The conversations with one loaded model: what was read of them, and the replies that are written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from engine import telling
from engine.cancel import CancelToken
from engine.context_usage import ContextUsage
from engine.errors import Cancelled
from engine.events import (
    CacheChanged,
    Finished,
    GenerationEvent,
    GenerationStats,
    PrefillProgress,
    StopReason,
    TurnsLeftOut,
)
from engine.extending import forgetting_broken, keep_prefix, same_pages
from engine.figures import Phase
from engine.followed_precision import FollowedPrecision
from engine.generate import Generation
from engine.guard import Guard, GuardAction, GuardStep
from engine.headroom import CacheRoom, headroom_nbytes
from engine.held import HeldSequences
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageMap
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.model import Model
from engine.prefill import read_again
from engine.relief import IdleRelief, ReplyRelief
from engine.reply_admission import Admitted, Question, require_rebuild_fits
from engine.requests import GenerationRequest, LoadedModel, PromptSize
from engine.spans import Prompt
from engine.turns import TurnTrimmer, common_prefix, without_oldest


class Session:
    """Answers conversations with one model and keeps the keys and values of each.

    A prompt that begins with tokens that were read is not read again from the start.

    Attributes:
        limits: the memory that the user allows.
        weights_nbytes: bytes of the model's weights.
    """

    def __init__(
        self,
        model: Model,
        loaded: LoadedModel,
        limits: MemoryLimits,
        guard: Guard | None,
        spill_folder: Path | None,
    ) -> None:
        self.limits = limits
        self.weights_nbytes = model.weights_nbytes
        self._model = model
        self._loaded = loaded
        self._guard = guard
        self._held = HeldSequences(spill_folder)
        self._prompts: dict[int, Prompt] = {}
        self._left_out: dict[int, int] = {}
        self._relief = IdleRelief(guard, self._held)
        self.publish(Phase.IDLE)

    @property
    def memory_nbytes(self) -> int:
        """Bytes of the weights and of all conversations that are in memory."""
        return self.weights_nbytes + self._held.memory_nbytes

    def close(self) -> None:
        """Give the memory of all conversations back."""
        self._held.close()

    # Replies.

    def turns_to_leave_out(self, request: GenerationRequest) -> int:
        """Do what `Engine.turns_to_leave_out` says."""
        _, question = self._question(request)
        return question.surplus_turns(request.sampling.max_tokens, request.anyway)

    def measure(self, request: GenerationRequest) -> PromptSize:
        """Do what `Engine.measure` says."""
        _, question = self._question(request)
        return PromptSize(question.num_tokens, question.limit_tokens, question.fitting_tokens)

    def admit(self, request: GenerationRequest) -> Admitted:
        """Do what `Engine.admit` says; return what was found out."""
        prompt, question = self._question(request)
        question.require_positions()
        if not request.anyway:
            question.require_fit()
        limit = question.room.info.context_tokens if request.anyway else question.limit_tokens
        answer = min(request.sampling.max_tokens, limit - len(prompt.tokens))
        needed = question.room.needed_nbytes(request.kv, len(prompt.tokens) + answer)
        missing = needed - (question.room.headroom_nbytes - self._others_nbytes(request.conversation_id))
        return Admitted(prompt, limit, answer, missing)

    def _question(self, request: GenerationRequest) -> tuple[Prompt, Question]:
        request.kv.require_fit(self._model.info.num_layers, self._model.info.num_kv_heads)
        prompt = self._model.prompt(request.messages)
        room = self._room(request.conversation_id, request.kv, prompt.tokens)
        question = Question(
            request.messages,
            len(prompt.tokens),
            request.kv,
            request.max_context,
            room,
            dataclasses.replace(self._loaded, limits=self.limits),
            self._model.render,
        )
        return prompt, question

    def _room(self, conversation_id: int, kv: KVSpec, prompt: Sequence[int]) -> CacheRoom:
        """Return the memory for a conversation: what is free, and what idle ones can give."""
        cache = self._held.in_memory(conversation_id)
        reusable = cache is not None and same_pages(cache.spec, kv)
        return CacheRoom(
            self._model.info,
            self._model.backend,
            headroom_nbytes=headroom_nbytes(self.limits) + self._others_nbytes(conversation_id),
            held_nbytes=0 if cache is None else cache.nbytes,
            held_tokens=common_prefix(cache.tokens, prompt) if cache is not None and reusable else 0,
            reserve_nbytes=self.limits.reserve_nbytes,
        )

    def _others_nbytes(self, conversation_id: int) -> int:
        cache = self._held.in_memory(conversation_id)
        return self._held.memory_nbytes - (0 if cache is None else cache.nbytes)

    def reply(
        self,
        request: GenerationRequest,
        admitted: Admitted,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec],
    ) -> Iterator[GenerationEvent]:
        """Yield the events of a reply to what was admitted."""
        tokens = admitted.prompt.tokens
        followed = FollowedPrecision(
            wanted_kv,
            request.kv,
            lambda: self._room(request.conversation_id, request.kv, tokens),
            len(tokens) + admitted.answer_tokens,
            request.anyway,
        )
        left_out = request.left_out_turns
        try:
            with forgetting_broken(self._held, request.conversation_id):
                try:
                    cache = self._cache_for(request, admitted, cancel)
                except Cancelled:
                    yield Finished(GenerationStats.of_nothing(request.kv, StopReason.STOPPED))
                    return
                generation = Generation(
                    self._model,
                    cache,
                    tokens,
                    request.sampling,
                    limit_tokens=admitted.limit_tokens,
                    cancel=cancel,
                    wanted_kv=followed,
                    relief=self._reply_relief(request, cache),
                    publish=self.publish,
                )
                for event in generation.events():
                    if isinstance(event, TurnsLeftOut):
                        left_out += event.num_turns
                        kept = without_oldest(request.messages, left_out - request.left_out_turns)
                        self._read_is(request.conversation_id, self._model.prompt(kept), left_out)
                    elif isinstance(event, Finished):
                        event = Finished(dataclasses.replace(event.stats, left_out_turns=left_out))
                    yield event
        finally:
            self.publish(Phase.IDLE)

    def _reply_relief(self, request: GenerationRequest, cache: SequenceCache) -> ReplyRelief:
        trimmer = TurnTrimmer(self._model.render, request.messages) if request.may_trim else None
        return ReplyRelief(self._guard, cache, self._held, trimmer)

    def _cache_for(
        self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken
    ) -> SequenceCache:
        """Return the cache to extend: what it holds is a beginning of the prompt, its last token left out.

        It may still have another precision, to which the generation brings what is kept.

        Raises:
            Cancelled: a conversation was on its way to the disk or back; it is where it was.
        """
        self._held.make_room(admitted.missing_nbytes, request.conversation_id, cancel.check)
        cache = self._held.take(request.conversation_id, cancel.check)
        if cache is None or not same_pages(cache.spec, request.kv):
            self._held.forget(request.conversation_id)
            cache = SequenceCache(self._model.module, request.kv)
        self._held.keep(request.conversation_id, cache)
        keep_prefix(
            cache,
            admitted.prompt.tokens,
            turns_left_out=request.left_out_turns > self._left_out.get(request.conversation_id, 0),
            answer_tokens=admitted.answer_tokens,
            context_tokens=self._model.info.context_tokens,
        )
        self._read_is(request.conversation_id, admitted.prompt, request.left_out_turns)
        cache.ease()  # the guard presses again if it still has to
        self._held.count_hits(cache.num_pages)
        return cache

    def _read_is(self, conversation_id: int, prompt: Prompt, left_out_turns: int) -> None:
        """Remember what is read of a conversation, and how many of its turns are not."""
        self._prompts[conversation_id], self._left_out[conversation_id] = prompt, left_out_turns

    # The conversation in hand.

    def apply_kv(self, kv: KVSpec, cancel: CancelToken) -> CacheChanged | None:
        """Do what `Engine.apply_kv` says."""
        cache = self._held.in_hand
        if cache is None:
            return None
        kv.require_fit(self._loaded.info.num_layers, self._loaded.info.num_kv_heads)
        kv = dataclasses.replace(kv, page_tokens=cache.spec.page_tokens, group_size=cache.spec.group_size)
        if kv == cache.spec and not cache.is_behind:
            return None
        with forgetting_broken(self._held, self._held.conversation_id):
            cache.apply(kv, cancel.check)
        self.publish(Phase.IDLE)
        return CacheChanged(cache.spec, cache.usage())

    def held(self) -> CacheChanged | None:
        """Return the precision and the figures of the conversation in hand, None where there is none."""
        cache = self._held.in_hand
        return None if cache is None else CacheChanged(cache.spec, cache.usage())

    def rebuild(self, cancel: CancelToken) -> Iterator[PrefillProgress | CacheChanged | GuardAction]:
        """Do what `Engine.rebuild` says."""
        cache, conversation_id = self._held.in_hand, self._held.conversation_id
        if cache is None or conversation_id is None:
            return
        room = self._room(conversation_id, cache.spec, ())
        require_rebuild_fits(room, cache.spec, cache.num_tokens, self.limits)
        try:
            with forgetting_broken(self._held, conversation_id):
                if self._guard is None or self._guard.height < GuardStep.LOWER_TIERS:
                    cache.ease()
                else:
                    cache.press(cancel.check)
                for event in read_again(self._model, cache, cancel):
                    yield from self.relieve(cancel)
                    self.publish(Phase.PREFILL)
                    yield event
        finally:
            self.publish(Phase.IDLE)

    def settle(self, request: GenerationRequest) -> CacheChanged | None:
        """Do what `Engine.settle` says."""
        return None

    def context_usage(self) -> ContextUsage | None:
        """Do what `Engine.context_usage` says."""
        return None

    def positions_left(self, conversation_id: int) -> int | None:
        """Do what `Engine.positions_left` says."""
        cache = self._held.in_memory(conversation_id)
        return None if cache is None else self._loaded.info.context_tokens - cache.next_position

    def page_map(self) -> PageMap | None:
        """Return the pages of the conversation in hand, None where there is none."""
        cache, conversation_id = self._held.in_hand, self._held.conversation_id
        if cache is None or conversation_id is None:
            return None
        spans = self._prompts[conversation_id].held_spans(cache.num_tokens)
        return cache.page_map(spans, self._held.counters)

    def pin(self, page_number: int, pinned: bool) -> None:
        """Let a page of the conversation in hand stay a tier higher, or no longer."""
        if self._held.in_hand is not None:
            self._held.in_hand.pin_page(page_number, pinned)

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
        self._prompts.pop(conversation_id, None)
        self._left_out.pop(conversation_id, None)
        self.publish(Phase.IDLE)

    def publish(self, phase: Phase) -> None:
        """Publish the engine's figures."""
        loaded = self._loaded
        telling.publish_model(
            phase, loaded.info, loaded.backend, loaded.plan, self.weights_nbytes, self._held
        )
