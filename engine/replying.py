"""Writing replies: what is held of a conversation is brought in line, the rest read, the answer written."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from engine.branching import departure
from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.events import CacheChanged, Finished, GenerationEvent, GenerationStats, StopReason
from engine.extending import Brought, bring_in_line, forgetting_broken, same_pages
from engine.figures import Phase
from engine.followed_precision import FollowedPrecision
from engine.generate import BringInLine, Generation
from engine.guard import Guard
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import Model
from engine.prefill import PromptReader
from engine.prefixes.prompt_saving import NOT_SAVED, PromptSaving
from engine.prefixes.saver import PrefixSaver
from engine.relief import AsideRelief, ReplyRelief
from engine.reply_room import Admitted, ReplyRoom
from engine.requests import GenerationRequest
from engine.shortening import Shortening


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
                    context = self._context_for(request, admitted, cancel)
                except Cancelled:
                    yield Finished(GenerationStats.of_nothing(request.kv, StopReason.STOPPED))
                    return
                relief = ReplyRelief(
                    self._guard, context, self._held, self._shortening(request, admitted, context)
                )
                yield from self._generation(request, admitted, context, cancel, relief, followed).events()
        finally:
            self._publish(Phase.IDLE)

    def aside(
        self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        """Yield the events of an aside to what was admitted, without the figures of its cache.

        The conversation is held afterwards as it was. An aside ends, as if the user had stopped it, where the
        guard wants text to leave the context, or a pause.
        """
        try:
            try:
                context = self._held.aside = self._fork_for(request, admitted, cancel)
                self._make_room(request, admitted, context, cancel, shares=True)
            except Cancelled:
                yield Finished(GenerationStats.of_nothing(request.kv, StopReason.STOPPED))
                return
            relief = AsideRelief(self._guard, context, self._held)
            for event in self._generation(request, admitted, context, cancel, relief).events():
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
        context: HeldContext,
        cancel: CancelToken,
        relief: ReplyRelief,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Generation:
        return Generation(
            self._model,
            context.cache,
            admitted.prompt.tokens,
            request.sampling,
            limit_tokens=admitted.limit_tokens,
            cancel=cancel,
            wanted_kv=wanted_kv,
            bring_in_line=self._in_line(request, admitted, context, cancel),
            relief=relief,
            publish=self._publish,
            saving=self._saving(request, context),
        )

    def _saving(self, request: GenerationRequest, context: HeldContext) -> PromptSaving:
        if self._saver is None or request.is_aside:
            return NOT_SAVED
        return self._saver.prompt(request.conversation_id, context)

    def _in_line(
        self, request: GenerationRequest, admitted: Admitted, context: HeldContext, cancel: CancelToken
    ) -> BringInLine:
        """Return what makes a context the beginning of a prompt, and names and pins what it will be."""
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
                self._held.count_hits(len(pages & SequenceCache.pages_of([cache])))
            return brought

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

    def _context_for(
        self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken
    ) -> HeldContext:
        """Return the context to bring in line and to extend, which is in hand then.

        It may still have another precision, to which the generation brings what is kept.

        Raises:
            Cancelled: a conversation was on its way to the disk or back; it is where it was.
        """
        held, conversation_id = self._held, request.conversation_id
        kept = self._room.kept_tokens(request, admitted.prompt)
        versions = held.in_memory(conversation_id)
        if versions is not None:
            versions.choose(kept)
        self._make_room(request, admitted, None if versions is None else versions.current, cancel)
        context = held.take(conversation_id, cancel.check)
        if context is None or not same_pages(context.cache.spec, request.kv):
            held.forget(conversation_id)
            context = HeldContext(SequenceCache(self._model.module, request.kv))
        held.keep(conversation_id, context)
        return self._branched(request, admitted, context, cancel)

    def _branched(
        self, request: GenerationRequest, admitted: Admitted, context: HeldContext, cancel: CancelToken
    ) -> HeldContext:
        """Return the context in hand, or a fork of it where what it goes on with is another branch.

        Where text leaves the context, other versions would keep its pages, and are forgotten.
        """
        held, versions = self._held, self._held.versions_in_hand
        found = departure(context.held, admitted.prompt, request.left)
        if found.released:
            held.forget_versions(request.conversation_id)
        if versions is not None and found.leaves_branch and context.cache.can_edit:
            versions.branch()
            context = versions.current
            self._make_room(request, admitted, context, cancel, shares=True)
        context.cache.ease()  # the guard presses again if it still has to
        return context

    def _fork_for(self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken) -> HeldContext:
        """Return a context for an aside: a fork of a version of the conversation, or an empty one.

        Raises:
            Cancelled: a conversation was on its way to the disk or back; it is where it was.
        """
        versions = self._held.bring_back(request.conversation_id, cancel.check)
        best = None if versions is None else versions.best(self._room.kept_tokens(request, admitted.prompt))
        if best is None or not best.cache.can_edit or not same_pages(best.cache.spec, request.kv):
            return HeldContext(SequenceCache(self._model.module, request.kv))
        return best.fork(is_aside=True)

    def _make_room(
        self,
        request: GenerationRequest,
        admitted: Admitted,
        context: HeldContext | None,
        cancel: CancelToken,
        *,
        shares: bool = False,
    ) -> None:
        """Have other conversations and versions give what a context misses to grow by a request.

        With `shares` what it has belongs to another one, which stays whole.
        """
        kept = 0 if context is None else self._room.kept_tokens(request, admitted.prompt)(context)
        own = 0 if context is None or shares else context.cache.referred_nbytes
        missing = self._room.missing_nbytes(request.kv, admitted.num_tokens, kept, own)
        self._held.make_room(missing, request.conversation_id, cancel.check)
