"""Reading the conversation in hand between replies: all of it again, or what is missing of it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterator

from engine.admission import AdmissionError
from engine.branching import departure
from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.events import GenerationEvent, PrefillProgress
from engine.extending import bring_in_line, forgetting_broken
from engine.figures import Phase
from engine.guard import Guard, GuardAction, GuardStep
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.model import Model
from engine.prefill import PromptReader
from engine.prefixes.prompt_saving import NOT_SAVED
from engine.prefixes.saver import PrefixSaver
from engine.reply_admission import require_rebuild_fits
from engine.reply_context import ContextFinder
from engine.reply_room import Admitted, ReplyRoom
from engine.requests import GenerationRequest
from engine.spans import Prompt

Relieve = Callable[[CancelToken], list[GuardAction]]
"""Carries out the guard's ladder between replies, and returns what did something."""

TOO_SHORT = GuardStep.SMALLER_CHUNKS
"""From this step of the ladder on nothing is read that nobody waits for."""


class IdleReader:
    """Reads with one model while no reply is written.

    Args:
        model: reads.
        held: the conversations.
        room: what memory there is for them.
        guard: says when memory is short; None for never.
        relieve: follows the guard between chunks.
        publish: publishes the figures of the engine with what it is doing.
        saver: saves what was read; None for never.
    """

    def __init__(
        self,
        model: Model,
        held: HeldSequences,
        room: ReplyRoom,
        guard: Guard | None,
        relieve: Relieve,
        publish: Callable[[Phase], None],
        saver: PrefixSaver | None = None,
    ) -> None:
        self._model = model
        self._held = held
        self._room = room
        self._finder = ContextFinder(model, held, room)
        self._guard = guard
        self._relieve = relieve
        self._publish = publish
        self._saver = saver

    def rebuild(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Do what `Engine.rebuild` says."""
        context = self._in_hand(request)
        if context is None:
            return
        wanted = self._room.prompt(request).said
        if wanted.tokens:
            self._require_fits(request, context.cache, wanted)
            yield from self._followed(request, self._again(request, context, wanted, cancel), cancel)

    def close_gaps(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Do what `Engine.close_gaps` says."""
        context = self._in_hand(request)
        if context is None:
            return
        wanted = self._room.prompt(request).said
        if not wanted.tokens or departure(context.held, wanted, request.left).leaves_branch:
            return
        self._require_fits(request, context.cache, wanted)
        yield from self._followed(request, self._missing(request, context, wanted, cancel), cancel)

    def read_ahead(
        self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        """Do what `Engine.read_ahead` says of what was admitted.

        Raises:
            AdmissionError: memory is short, which is told at once.
        """
        self._require_ease()
        wanted = dataclasses.replace(admitted, prompt=admitted.prompt.said)
        return self._while_eased(self._followed(request, self._ahead(request, wanted, cancel), cancel))

    def _ahead(
        self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        """Read what is missing as a reply would, but for the marker of its answer."""
        wanted, held = admitted.prompt, self._held
        total = len(wanted.tokens)
        versions = held.in_memory(request.conversation_id)
        if versions is not None and self._room.held_tokens(request, wanted) >= total - 1:
            versions.choose(self._room.kept_tokens(request, wanted))
            held.take(request.conversation_id)
            yield PrefillProgress(total, total, total)
            return
        context = self._finder.for_reply(request, admitted, cancel).context
        pages = SequenceCache.pages_of([context.cache])
        if context.cache.spec != request.kv:
            context.cache.apply(request.kv, cancel.check)
        self._press(context.cache, cancel)
        yield from self._read(request, context, wanted, cancel, admitted.answer_tokens)
        held.use(context.cache, len(pages & SequenceCache.pages_of([context.cache])))

    def _while_eased(self, events: Generator[GenerationEvent, None, None]) -> Iterator[GenerationEvent]:
        """Yield events until memory is short; what was read then is whole, and stays."""
        with contextlib.closing(events):
            for event in events:
                yield event
                self._require_ease()

    def _require_ease(self) -> None:
        if self._guard is not None and self._guard.height >= TOO_SHORT:
            raise AdmissionError(
                "Memory is short, so nothing is read ahead. It will be read when you send the message.",
                needed_nbytes=0,
                available_nbytes=0,
                can_override=False,
            )

    def _in_hand(self, request: GenerationRequest) -> HeldContext | None:
        """Return what is held of the conversation that is asked about, where that is the one in hand."""
        return self._held.in_hand if request.conversation_id == self._held.conversation_id else None

    def _require_fits(self, request: GenerationRequest, cache: SequenceCache, wanted: Prompt) -> None:
        room = self._room.of_rebuild(request.conversation_id)
        require_rebuild_fits(room, cache.spec, len(wanted.tokens), self._room.limits)

    def _followed(
        self, request: GenerationRequest, events: Iterator[GenerationEvent], cancel: CancelToken
    ) -> Generator[GenerationEvent, None, None]:
        """Yield events, and follow the guard between them."""
        try:
            with forgetting_broken(self._held, request.conversation_id):
                for event in events:
                    yield from self._relieve(cancel)
                    self._publish(Phase.PREFILL)
                    yield event
        finally:
            self._publish(Phase.IDLE)

    def _again(
        self, request: GenerationRequest, context: HeldContext, wanted: Prompt, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        self._held.forget_alternatives(request.conversation_id)
        self._press(context.cache, cancel)
        context.rewind(wanted)
        yield from self._read(request, context, wanted, cancel, self._model.info.context_tokens)

    def _missing(
        self, request: GenerationRequest, context: HeldContext, wanted: Prompt, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        self._held.forget_versions(request.conversation_id)  # they would keep the pages of what is read again
        self._press(context.cache, cancel)
        yield from self._read(request, context, wanted, cancel, self._model.info.context_tokens)

    def _read(
        self,
        request: GenerationRequest,
        context: HeldContext,
        wanted: Prompt,
        cancel: CancelToken,
        answer_tokens: int,
    ) -> Iterator[GenerationEvent]:
        """Read what is missing.

        Where an answer of so many tokens would have too few positions, that is from the first unused one on.
        """
        saver = self._saver
        saving = NOT_SAVED if saver is None else saver.prompt(request.conversation_id, context)
        reader = PromptReader(self._model, context.cache, cancel, saving)
        try:
            with reader.watching():
                brought = yield from bring_in_line(
                    context,
                    wanted,
                    answer_tokens=answer_tokens,
                    context_tokens=self._model.info.context_tokens,
                    read=reader.read_into,
                    released=self._held.released(request.conversation_id),
                    check=cancel.check,
                )
                context.pin(request.pinned)
                yield from reader.read_on(wanted.tokens, brought.kept_tokens)
        except Cancelled:
            reader.align()
            raise

    def _press(self, cache: SequenceCache, cancel: CancelToken) -> None:
        """Let pages go to the bits of the settings early while memory is short, and only then."""
        if self._guard is None or self._guard.height < GuardStep.LOWER_TIERS:
            cache.ease()
        else:
            cache.press(cancel.check)
