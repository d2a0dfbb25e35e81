"""What requests take, and the context and memory that there is for them, given what is held."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from engine.alignment import kept_of
from engine.extending import kept_tokens_of, same_pages
from engine.headroom import CacheRoom, headroom_nbytes
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.model import Model
from engine.released import ReleasedText
from engine.reply_admission import MIN_ANSWER_TOKENS, Question
from engine.requests import GenerationRequest, LoadedModel, PromptSize
from engine.sharing import shared_beginning
from engine.spans import Prompt
from engine.versions import Versions


@dataclass(frozen=True)
class Admitted:
    """A request that fits: its prompt, its context, and the longest answer."""

    prompt: Prompt
    limit_tokens: int
    answer_tokens: int

    @property
    def num_tokens(self) -> int:
        """Tokens of the prompt and of the longest answer."""
        return len(self.prompt.tokens) + self.answer_tokens


class ReplyRoom:
    """Measures requests against the model's context and the memory that can be had now.

    Attributes:
        limits: the memory that the user allows.
    """

    def __init__(self, model: Model, loaded: LoadedModel, limits: MemoryLimits, held: HeldSequences) -> None:
        self.limits = limits
        self._model = model
        self._loaded = loaded
        self._held = held

    def question(self, request: GenerationRequest) -> tuple[Prompt, Question]:
        """Return a request's prompt, and the room that there is for it.

        Raises:
            OctavoError: the model does not have a layer or head whose precision is named.
        """
        request.kv.require_fit(self._model.info.num_layers, self._model.info.num_kv_heads)
        rendered = self._model.prompt(request.messages)
        held = self._held_texts(request, rendered)
        prompt = self._model.as_held(rendered, held)
        question = Question(
            request.messages,
            len(prompt.tokens),
            request.kv,
            request.max_context,
            self.of_request(request, prompt),
            dataclasses.replace(self._loaded, limits=self.limits),
            lambda messages: self._model.as_held(self._model.prompt(messages), held).tokens,
            request.keep_ratio,
            request.pinned,
        )
        return prompt, question

    def prompt(self, request: GenerationRequest) -> Prompt:
        """Return the prompt of a request, with the tokens that are held of what it says."""
        rendered = self._model.prompt(request.messages)
        return self._model.as_held(rendered, self._held_texts(request, rendered))

    def measure(self, request: GenerationRequest) -> PromptSize:
        """Do what `Engine.measure` says."""
        prompt, question = self.question(request)
        released = None if request.is_aside else self._held.released(request.conversation_id)
        kept_tokens = self.held_tokens(request, prompt, released)
        if not request.is_aside:
            kept_tokens = self._shared_tokens(request, prompt, kept_tokens)
        if self._held.prefixes is not None:
            kept_tokens = self._held.prefixes.kept_tokens(prompt, request.kv, kept_tokens)
        return PromptSize(
            question.num_tokens,
            question.limit_tokens,
            question.fitting_tokens,
            unread_tokens=question.num_tokens - kept_tokens,
        )

    def admit(self, request: GenerationRequest) -> Admitted:
        """Do what `Engine.admit` says; return what was found out."""
        prompt, question = self.question(request)
        question.require_positions()
        if not request.anyway:
            question.require_fit()
        limit = question.room.info.context_tokens if request.anyway else question.limit_tokens
        return Admitted(prompt, limit, min(request.sampling.max_tokens, limit - len(prompt.tokens)))

    def kept_tokens(
        self, request: GenerationRequest, prompt: Prompt, released: ReleasedText | None = None
    ) -> Callable[[HeldContext], int]:
        """Return what tells of a version how many tokens of a request's prompt need not be read.

        Those that it has, and with `released` those that come back to it.
        """
        positions = self._model.info.context_tokens
        limit = positions if request.anyway else min(positions, request.max_context or positions)
        answer = min(request.sampling.max_tokens, max(MIN_ANSWER_TOKENS, limit - len(prompt.tokens)))

        def count(version: HeldContext) -> int:
            if not same_pages(version.cache.spec, request.kv):
                return 0
            return kept_tokens_of(
                version, prompt, answer_tokens=answer, context_tokens=positions, released=released
            )

        return count

    def held_tokens(
        self, request: GenerationRequest, prompt: Prompt, released: ReleasedText | None = None
    ) -> int:
        """Return how many tokens of a prompt need not be read, given what is held, in memory or on disk.

        Of the version that has most of them; on disk about so many. `released` is as in `kept_tokens`.
        """
        conversation_id = request.conversation_id
        versions, context = self._held.in_memory(conversation_id), self._held.context(conversation_id)
        outside = self._held.outside(conversation_id)
        if versions is not None:
            kept = self.kept_tokens(request, prompt, released)
            return kept(versions.best(kept))
        if context is None or outside is None or not same_pages(context.cache.spec, request.kv):
            return 0
        return kept_of(outside.text, prompt)

    def of_request(self, request: GenerationRequest, prompt: Prompt) -> CacheRoom:
        """Return the memory for a request: what is free, and what others that are held can give."""
        versions = self._held.in_memory(request.conversation_id)
        if versions is None:
            return self._room()
        kept = self.kept_tokens(request, prompt)
        best = versions.best(kept)
        return self._room(_nbytes_of(versions, best), kept(best), adds=request.is_aside)

    def of_rebuild(self, conversation_id: int) -> CacheRoom:
        """Return the memory for a conversation that is read again."""
        versions = self._held.in_memory(conversation_id)
        return self._room(0 if versions is None else _nbytes_of(versions, versions.current))

    def missing_nbytes(self, kv: KVSpec, num_tokens: int, kept_tokens: int, own_nbytes: int = 0) -> int:
        """Return the bytes that others have to give for a context to grow to so many tokens.

        Args:
            kv: the precision that it grows with.
            num_tokens: what it will have.
            kept_tokens: what there is of it.
            own_nbytes: bytes that it has now; 0 where they belong to another one, which stays whole.
        """
        room = self._room(own_nbytes, kept_tokens)
        return room.needed_nbytes(kv, num_tokens) - headroom_nbytes(self.limits)

    def lacking_nbytes(self, nbytes: int) -> int:
        """Return the bytes that others have to give for so many to come into memory from disk."""
        return max(0, nbytes + min(nbytes, self.limits.reserve_nbytes) - headroom_nbytes(self.limits))

    def _shared_tokens(self, request: GenerationRequest, prompt: Prompt, kept_tokens: int) -> int:
        """Return how many tokens need not be read with the pages of other conversations."""
        shared = shared_beginning(self._held, request.conversation_id, prompt, request.kv, kept_tokens)
        return kept_tokens if shared is None else shared.num_tokens

    def _held_texts(self, request: GenerationRequest, rendered: Prompt) -> list[Prompt]:
        """Return the text of the version that a request would go on with, and what is on disk."""
        versions = self._held.in_memory(request.conversation_id)
        on_disk = self._held.texts(request.conversation_id)
        if versions is None:
            return on_disk

        def kept(version: HeldContext) -> int:
            prompt = self._model.as_held(rendered, [version.held, *on_disk])
            return self.kept_tokens(request, prompt)(version)

        return [versions.best(kept).held, *on_disk]

    def _room(self, own_nbytes: int = 0, kept_tokens: int = 0, *, adds: bool = False) -> CacheRoom:
        """Return the memory for a context of which so much is there; with `adds` that stays beside it."""
        return CacheRoom(
            self._model.info,
            self._model.backend,
            headroom_nbytes=headroom_nbytes(self.limits) + self._held.memory_nbytes - own_nbytes,
            held_nbytes=0 if adds else own_nbytes,
            held_tokens=kept_tokens,
            reserve_nbytes=self.limits.reserve_nbytes,
        )


def _nbytes_of(versions: Versions, version: HeldContext) -> int:
    """Return the bytes of one version; unused room in the pools counts to the only one."""
    return version.cache.referred_nbytes if versions.num_others else version.cache.nbytes
