"""Writing replies: what is held of a conversation is brought in line, the rest read, the answer written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator

from engine.attended import attended_passages
from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.events import CacheChanged, Finished, GenerationEvent, GenerationStats, StopReason
from engine.extending import Brought, bring_in_line, forgetting_broken
from engine.figures import Phase
from engine.followed_precision import FollowedPrecision
from engine.generate import BringInLine, Generation
from engine.guard import Guard
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.lost_text import LostText
from engine.model import Model
from engine.prefill import PromptReader
from engine.prefixes.prompt_saving import NOT_SAVED, PromptSaving
from engine.prefixes.saver import PrefixSaver
from engine.relief import AsideRelief, ReplyRelief
from engine.reply_context import ContextFinder, Found
from engine.reply_room import Admitted, ReplyRoom
from engine.requests import GenerationRequest
from engine.shortening import Shortening
from engine.spans import Prompt


class ReplyWriter:
    """Writes replies and asides with one model and what is held of its conversations.

    Args:
        model: what answers.
        held: the conversations.
        room: what memory there is for a reply.
        guard: says when memory is short; None for never.
        publish: publishes the figures of the engine with what a reply is doing.
        saver: saves what was read; None for never.
    """

    def __init__(
        self,
        model: Model,
        held: HeldSequences,
        room: ReplyRoom,
        guard: Guard | None,
        publish: Callable[[Phase], None],
        saver: PrefixSaver | None = None,
    ) -> None:
        self._model = model
        self._held = held
        self._room = room
        self._finder = ContextFinder(model, held, room)
        self._guard = guard
        self._publish = publish
        self._saver = saver

    def reply(
        self,
        request: GenerationRequest,
        admitted: Admitted,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec],
    ) -> Iterator[GenerationEvent]:
        """Yield the events of a reply to what was admitted."""
        followed = FollowedPrecision(
            wanted_kv,
            request.kv,
            lambda: self._room.of_request(request, admitted.prompt),
            admitted.num_tokens,
            request.anyway,
        )
        try:
            with forgetting_broken(self._held, request.conversation_id):
                try:
                    found = self._finder.for_reply(request, admitted, cancel)
                except Cancelled:
                    yield Finished(GenerationStats.of_nothing(request.kv, StopReason.STOPPED))
                    return
                shortening = self._shortening(request, admitted, found.context)
                relief = ReplyRelief(self._guard, found.context, self._held, shortening)
                generation = self._generation(request, admitted, found, cancel, relief, followed)
                if any(span.kind is SpanKind.DOCUMENT for span in admitted.prompt.spans):
                    found.context.cache.watch_answer()
                for event in generation.events():
                    yield self._with_attended(event, found.context)
        finally:
            self._publish(Phase.IDLE)

    def _with_attended(self, event: GenerationEvent, context: HeldContext) -> GenerationEvent:
        """Return the end of a reply with what it attended to."""
        if not isinstance(event, Finished):
            return event
        bins = context.cache.attended()
        return Finished(event.stats, attended_passages(bins, context.held, self._model.characters))

    def aside(
        self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        """Yield the events of an aside to what was admitted, without the figures of its cache.

        The conversation is held afterwards as it was. An aside ends, as if the user had stopped it, where the
        guard wants text to leave the context, or a pause.
        """
        try:
            try:
                context = self._finder.for_aside(request, admitted, cancel)
            except Cancelled:
                yield Finished(GenerationStats.of_nothing(request.kv, StopReason.STOPPED))
                return
            relief = AsideRelief(self._guard, context, self._held)
            for event in self._generation(request, admitted, Found(context), cancel, relief).events():
                if not isinstance(event, CacheChanged):
                    yield event
        finally:
            if self._held.aside is not None:
                self._held.aside.close()
                self._held.aside = None
            self._publish(Phase.IDLE)

    def _generation(
        self,
        request: GenerationRequest,
        admitted: Admitted,
        found: Found,
        cancel: CancelToken,
        relief: ReplyRelief,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Generation:
        return Generation(
            self._model,
            found.context.cache,
            admitted.prompt.tokens,
            request.sampling,
            limit_tokens=admitted.limit_tokens,
            cancel=cancel,
            wanted_kv=wanted_kv,
            bring_in_line=self._in_line(request, admitted, found, cancel),
            relief=relief,
            publish=self._publish,
            saving=self._saving(request, found.context),
        )

    def _saving(self, request: GenerationRequest, context: HeldContext) -> PromptSaving:
        if self._saver is None or request.is_aside:
            return NOT_SAVED
        return self._saver.prompt(request.conversation_id, context)

    def _in_line(
        self, request: GenerationRequest, admitted: Admitted, found: Found, cancel: CancelToken
    ) -> BringInLine:
        """Return what makes a context the beginning of a prompt, and names and pins what it will be."""
        context = found.context
        released = None if request.is_aside else self._held.released(request.conversation_id)

        def bring(reader: PromptReader) -> Generator[GenerationEvent, None, Brought]:
            cache, prompt = context.cache, admitted.prompt
            pages = SequenceCache.pages_of([cache])
            brought = yield from bring_in_line(
                context,
                prompt,
                answer_tokens=admitted.answer_tokens,
                context_tokens=self._model.info.context_tokens,
                read=reader.read_into,
                released=released,
                check=cancel.check,
            )
            context.read_is(prompt, request.answer_key)
            context.pin(request.pinned)
            if not request.is_aside:
                self._held.use(cache, len(pages & SequenceCache.pages_of([cache])))
            return brought if found.lost is None else _with_lost(brought, found.lost, prompt)

        return bring

    def _shortening(
        self, request: GenerationRequest, admitted: Admitted, context: HeldContext
    ) -> Shortening | None:
        if not request.shorter:
            return None
        model, prompt = self._model, admitted.prompt
        return Shortening(
            context,
            prompt,
            request.answer_key,
            lambda: model.as_held(model.prompt(request.shorter), [prompt]),
        )


def _with_lost(brought: Brought, lost: LostText, prompt: Prompt) -> Brought:
    """Return what bringing in line came to, with a note on what was lost before."""
    note = lost.note(prompt, brought.kept_tokens + brought.spliced_tokens)
    return dataclasses.replace(brought, note=" ".join(each for each in (brought.note, note) if each))
