"""What a reply goes on from: what is held of its conversation, what is stored, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from engine.branching import departure
from engine.cancel import CancelToken
from engine.extending import same_pages
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.lost_text import OTHER_PAGES, LostText, answered_tokens
from engine.model import Model
from engine.prefixes.stored_context import StoredContext
from engine.reply_room import Admitted, ReplyRoom
from engine.requests import GenerationRequest
from engine.sharing import shared_beginning


@dataclass(frozen=True, eq=False)
class Found:
    """A context to go on from.

    Attributes:
        context: may hold less than the prompt, or something else.
        lost: what was read before of the conversation and is not in it, None where nothing is known of that.
    """

    context: HeldContext
    lost: LostText | None = None


class ContextFinder:
    """Finds the context that a reply extends, and makes room for it.

    Args:
        model: what answers.
        held: the conversations.
        room: what memory there is for a reply.
    """

    def __init__(self, model: Model, held: HeldSequences, room: ReplyRoom) -> None:
        self._model = model
        self._held = held
        self._room = room

    def for_reply(self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken) -> Found:
        """Return the context to bring in line and to extend, which is in hand then.

        It may still have another precision, to which the generation brings what is kept.

        Raises:
            Cancelled: a conversation was on its way to the disk or back; it is where it was.
        """
        held, conversation_id = self._held, request.conversation_id
        versions = held.in_memory(conversation_id)
        if versions is not None:
            versions.choose(self._room.kept_tokens(request, admitted.prompt))
        lost = self._lost_beforehand(request, admitted)
        kept_tokens = self._room.held_tokens(request, admitted.prompt)
        found = (
            self._shared(request, admitted, kept_tokens, cancel)
            or self._begun(request, admitted, kept_tokens, cancel)
            or self._taken(request, admitted, cancel)
        )
        if found is not None and found.lost is not None:
            found = self._in_place_of_lost(request, admitted, found, found.lost, cancel)
        if found is None:
            held.forget(conversation_id)
            found = Found(HeldContext(SequenceCache(self._model.module, request.kv)))
        held.keep(conversation_id, found.context)
        return Found(self._branched(request, admitted, found.context, cancel), lost or found.lost)

    def for_aside(self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken) -> HeldContext:
        """Return a context for an aside: a fork of a version of the conversation, or one of its own.

        Raises:
            Cancelled: a conversation was on its way to the disk or back; it is where it was.
        """
        held, kept = self._held, self._room.kept_tokens(request, admitted.prompt)
        outside = held.outside(request.conversation_id)
        if outside is not None:
            lacking = self._room.lacking_nbytes(outside.missing_nbytes)
            held.make_room(lacking, request.conversation_id, cancel.check)
        versions = held.bring_back(request.conversation_id, cancel.check)
        best = None if versions is None else versions.best(kept)
        is_shared = best is not None and best.cache.can_edit and same_pages(best.cache.spec, request.kv)
        stored = self._beginning(request, admitted, kept(best) if best is not None and is_shared else 0)
        if best is not None and is_shared and stored is None:
            held.aside = best.fork(is_aside=True)
            self._make_room(request, admitted, held.aside, cancel, shares=True)
        elif stored is not None:
            held.aside = stored.context
            self._make_room(request, admitted, held.aside, cancel)
            stored.bring_in(cancel.check)
        else:
            held.aside = HeldContext(SequenceCache(self._model.module, request.kv))
            self._make_room(request, admitted, held.aside, cancel)
        return held.aside

    def _lost_beforehand(self, request: GenerationRequest, admitted: Admitted) -> LostText | None:
        """Return what was read of the conversation and is not there, or not for pages of this size."""
        former = self._held.context(request.conversation_id)
        if former is not None:
            outside = self._held.outside(request.conversation_id)
            text = former.held if outside is None else outside.text
            return None if same_pages(former.cache.spec, request.kv) else LostText(OTHER_PAGES, text)
        prefixes = self._held.prefixes
        if prefixes is None or not answered_tokens(admitted.prompt):
            return None
        why = prefixes.why_absent(request.conversation_id)
        return None if why is None else LostText(why)

    def _beginning(
        self, request: GenerationRequest, admitted: Admitted, kept_tokens: int
    ) -> StoredContext | None:
        """Return the beginning of the prompt that is stored, where it spares more than what is held does."""
        prefixes = self._held.prefixes
        return None if prefixes is None else prefixes.beginning(admitted.prompt, request.kv, kept_tokens)

    def _shared(
        self, request: GenerationRequest, admitted: Admitted, kept_tokens: int, cancel: CancelToken
    ) -> Found | None:
        """Begin the conversation from pages of another one, where that spares as much as what is stored."""
        held, conversation_id = self._held, request.conversation_id
        shared = shared_beginning(held, conversation_id, admitted.prompt, request.kv, kept_tokens)
        if shared is None or self._beginning(request, admitted, shared.num_tokens) is not None:
            return None
        context = shared.begin()
        held.keep(conversation_id, context)
        self._make_room(request, admitted, context, cancel)
        return Found(context)

    def _begun(
        self, request: GenerationRequest, admitted: Admitted, kept_tokens: int, cancel: CancelToken
    ) -> Found | None:
        """Begin the conversation from what is stored of its prompt, where that spares more."""
        stored = self._beginning(request, admitted, kept_tokens)
        if stored is None:
            return None
        self._held.begin(request.conversation_id, stored)
        return self._taken(request, admitted, cancel)

    def _taken(self, request: GenerationRequest, admitted: Admitted, cancel: CancelToken) -> Found | None:
        """Have the conversation in hand, from disk where it is there; None where it cannot be used."""
        held, conversation_id = self._held, request.conversation_id
        former = held.context(conversation_id)
        self._make_room(request, admitted, former, cancel)
        if former is None or not same_pages(former.cache.spec, request.kv):
            return None
        context = held.take(conversation_id, cancel.check)
        return None if context is None else Found(context, held.lost(conversation_id))

    def _in_place_of_lost(
        self,
        request: GenerationRequest,
        admitted: Admitted,
        found: Found,
        lost: LostText,
        cancel: CancelToken,
    ) -> Found:
        """Look once more for the beginning of the prompt, which another conversation may have as well.

        Only once: a store on a failing disk may name a page again that it does not give.
        """
        kept_tokens = self._room.held_tokens(request, admitted.prompt)
        begun = self._begun(request, admitted, kept_tokens, cancel)
        return Found(found.context if begun is None else begun.context, lost)

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
        kept, own = 0, 0
        if context is not None and context.cache.is_outside:
            own = context.cache.nbytes
        elif context is not None:
            kept = self._room.kept_tokens(request, admitted.prompt)(context)
            own = 0 if shares else context.cache.referred_nbytes
        missing = self._room.missing_nbytes(request.kv, admitted.num_tokens, kept, own)
        outside = self._held.outside(request.conversation_id)
        if outside is not None:
            missing = max(missing, self._room.lacking_nbytes(outside.missing_nbytes))
        self._held.make_room(missing, request.conversation_id, cancel.check)
