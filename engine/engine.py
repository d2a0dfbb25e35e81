"""One model and the conversations with it: what the window and the terminal talk to.

All methods belong to the thread that made the engine: MLX arrays do not cross threads before they are
evaluated. Only plain data goes in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.cancel import CancelToken
from engine.context_usage import ContextUsage
from engine.errors import ModelError
from engine.events import CacheChanged, GenerationEvent
from engine.figures import Phase
from engine.guard import GuardAction
from engine.kv.page_map import PageMap
from engine.kv.precision import KVSpec
from engine.model_slot import ModelSlot
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import GenerationRequest, LoadedModel, PromptSize
from engine.session import Session
from engine.token_times import TokenStretch

__all__ = ["MIN_ANSWER_TOKENS", "Engine", "GenerationRequest", "LoadedModel"]


class Engine(ModelSlot):
    """Loads one model at a time and answers conversations with it."""

    # Replies.

    def admit(self, request: GenerationRequest) -> None:
        """Refuse what `generate` would refuse, before anything is touched.

        Raises:
            ModelError: no model is loaded.
            ContextOverflowError: the conversation is longer than what the model can read.
            AdmissionError: it does not fit into `max_context` or into the memory that there is now.
        """
        self._require_session().admit(request)

    def measure(self, request: GenerationRequest) -> PromptSize:
        """Return how long a request's prompt is, and the context that there is for it now.

        Raises:
            ModelError: no model is loaded.
        """
        return self._require_session().measure(request)

    def publish_reading(self) -> None:
        """Publish that something is being made ready to be read, such as a long text that is cut.

        Raises:
            ModelError: no model is loaded.
        """
        self._require_session().publish(Phase.PREFILL)

    def generate(
        self,
        request: GenerationRequest,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[GenerationEvent]:
        """Answer a conversation: return its progress, tokens and at last the figures, as they come.

        `wanted_kv` tells the precision that the user wants now. A change reaches the cache before the next
        prefill chunk or token, with a `CacheChanged`; one at which the reply might no longer fit into
        memory waits for the next.

        Raises:
            ModelError, ContextOverflowError, AdmissionError: as `admit` does, at once.
        """
        session = self._require_session()
        admitted = session.admit(request)
        return session.reply(request, admitted, cancel, wanted_kv or (lambda: request.kv))

    def take_times(self) -> tuple[TokenStretch, ...]:
        """Return what the loaded model's tokens have taken since the last call."""
        return () if self._session is None else self._session.model.times.take()

    def _require_session(self) -> Session:
        if self._session is None:
            raise ModelError("No model is loaded. Choose one first.")
        return self._session

    # Conversations.

    def apply_kv(self, kv: KVSpec, cancel: CancelToken) -> CacheChanged | None:
        """Change the precision of the conversation in hand, between replies.

        Pages of another size wait for the next reply. Returns None where nothing changes.

        Raises:
            OctavoError: the model does not have a layer or head that is named.
            Cancelled: some layers have been changed, the rest follows with the next change or reply.
        """
        return None if self._session is None else self._session.apply_kv(kv, cancel)

    def held(self) -> CacheChanged | None:
        """Return the precision and the figures of the conversation in hand, None where there is none."""
        return None if self._session is None else self._session.held()

    def rebuild(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Read all of a request's messages again: lost bits come back. Return how far that is.

        Between replies, as `close_gaps`, but from the first position on. While memory is short, other
        conversations leave it, and pages go to the bits of the settings early.

        Raises:
            ModelError: no model is loaded, or the template refuses the messages in every form.
            AdmissionError: what it takes at the precision that is asked for cannot be had now.
            Cancelled: the user stopped it; what was read again until then is held, the rest is forgotten.
        """
        return self._require_session().rebuild(request, cancel)

    def close_gaps(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Read the conversation in hand again from its first unused position on, so that none is unused.

        Between replies; the messages may end with an answer, and none is written. What precedes that position
        stays, and what is missing is read. Returns how far that is: nothing where another conversation or
        another branch of it is in hand.

        Raises:
            ModelError: no model is loaded, or the template refuses the messages in every form.
            AdmissionError: what it takes cannot be had now.
            Cancelled: something else comes first; what was read until then is held.
        """
        return self._require_session().close_gaps(request, cancel)

    def read_ahead(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Read what is missing of a request's messages, so that its reply will read only what is new then.

        Between replies; nothing is written. Of any conversation, also of a new one, which is in hand then.
        The last message may be one whose words are still to come: its documents are read. Returns how far
        that is: at least one `PrefillProgress`, and the last one has `done == total`. What was read stays
        held, and is saved like the prompt of a reply: a call after a stop or a restart goes on where it was.

        Raises:
            ModelError: no model is loaded, or the template refuses the messages in every form.
            ContextOverflowError, AdmissionError: as `admit`, at once; or memory is short, at any time. What
                was read until then is held.
            Cancelled: something else comes first; what was read until then is held.
        """
        return self._require_session().read_ahead(request, cancel)

    def keep_prefix(self, conversation_id: int, owner_id: int, cancel: CancelToken) -> int:
        """Keep the system prompt and the documents that a conversation begins with, to be found again.

        For what is read in segments, each in a conversation that is forgotten afterwards: a later prompt that
        begins with the same tokens need not read them. Its full pages go to the bits of cold ones and into
        the prefix cache, as far as they may be kept.

        Args:
            conversation_id: what was read; to be called before it is forgotten.
            owner_id: the conversation with which they are deleted; 0 for none.
            cancel: is looked at between pages.

        Returns: how many tokens are kept, or on their way to the disk; 0 where nothing may be kept.

        Raises:
            Cancelled: some pages were kept.
        """
        return 0 if self._session is None else self._session.keep_prefix(conversation_id, owner_id, cancel)

    def settle(self, request: GenerationRequest) -> CacheChanged | None:
        """Take out of the conversation in hand what a request's messages lack, and give the memory back.

        Between replies, as when the user leaves a turn out; the messages may end with an answer. Nothing is
        read: what they have and the conversation lacks waits for the next reply. Returns None where nothing
        changes, or where another conversation is in hand.

        Raises:
            ModelError: the template refuses the messages in every form.
        """
        return None if self._session is None else self._session.settle(request)

    def prefetch(
        self, conversation_id: int, cancel: CancelToken, on_page: Callable[[], None] = lambda: None
    ) -> CacheChanged | None:
        """Have a conversation in hand that is on disk, where there is memory for it that nothing else has.

        Its hottest pages come first; `on_page` is called before each. Returns None where nothing changes:
        where it is in hand already, nothing is kept of it, or its bytes are more than what is free.

        Raises:
            Cancelled: what has come in stays, and the next call goes on with the rest.
        """
        return None if self._session is None else self._session.prefetch(conversation_id, cancel, on_page)

    @property
    def finds_later(self) -> bool:
        """Whether `prefetch` finds nothing only because the digest of the model is still being found out."""
        return self._session is not None and self._session.finds_later

    def context_usage(self) -> ContextUsage | None:
        """Return what the parts of the conversation in hand take, None where there is none."""
        return None if self._session is None else self._session.context_usage()

    def positions_left(self, conversation_id: int) -> int | None:
        """Return how many more tokens the model has positions for, None where nothing is held or stored.

        Text that was taken out leaves its positions unused: `close_gaps` and `rebuild` bring them back.
        """
        return None if self._session is None else self._session.positions_left(conversation_id)

    def page_map(self) -> PageMap | None:
        """Return the pages of the conversation in hand, None where there is none."""
        return None if self._session is None else self._session.page_map()

    def pin(self, page_number: int, pinned: bool) -> None:
        """Let a page of the conversation in hand stay a tier higher, or no longer."""
        if self._session is not None:
            self._session.pin(page_number, pinned)

    def save(self, cancel: CancelToken) -> bool:
        """Save what is held in memory of all conversations and not stored yet, as far as that may be kept.

        Between replies. Waits while what was put before is being written. Returns False where some of it has
        to wait for longer, as where it is still being found out which model this is.

        Raises:
            Cancelled: within a page; the next call goes on there.
        """
        return self._session is None or self._session.save(cancel)

    def relieve(self, cancel: CancelToken) -> list[GuardAction]:
        """Carry out the guard's ladder between replies; return what did something.

        Raises:
            Cancelled: some was done; the rest is due again.
        """
        return [] if self._session is None else self._session.relieve(cancel)

    def forget(self, conversation_id: int) -> None:
        """Give the memory, or the file, of a conversation back."""
        if self._session is not None:
            self._session.forget(conversation_id)
