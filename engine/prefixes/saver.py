"""When which pages are put into the store: settled ones while a prompt is read, the rest when it is quiet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.precision import KVSpec
from engine.kv.savable import SavablePage
from engine.kv.usage import PageInfo
from engine.prefixes.cache import PrefixCache
from engine.prefixes.prompt_saving import PromptSaving
from engine.prefixes.records import NewPage, SaveMode, StoredSequence

log = logging.getLogger(__name__)

Check = Callable[[], None]
"""Looks for a stop; it raises `Cancelled` to leave."""

WAIT_S = 0.1
"""How long it is waited for room between two looks for a stop."""
MOST_WAITS = 50
"""So often in a row, then what is left waits for the next time."""

_DOCUMENTS = (SpanKind.SYSTEM, SpanKind.DOCUMENT)


@dataclass(frozen=True)
class _State:
    """All that a saved conversation depends on: while it is equal, there is nothing to save."""

    mode: SaveMode
    tokens: tuple[int, ...]
    spans: tuple[TextSpan, ...]
    kv: KVSpec
    pages: tuple[PageInfo, ...]
    num_losses: int


class PrefixSaver:
    """Saves what is held of conversations with one model.

    Nothing is saved while tokens are decoded. What has been saved is neither encoded nor written again,
    unless its pages have other bits since: of these what is settled is written once more.

    Args:
        prefixes: where it goes.
        held: the conversations.
    """

    def __init__(self, prefixes: PrefixCache, held: HeldSequences) -> None:
        self._prefixes = prefixes
        self._store = prefixes.store
        self._held = held
        self._saved: dict[int, _State] = {}
        self._has_told = False

    def save_settled(self, conversation_id: int, context: HeldContext) -> None:
        """Put the pages of a context that lose no more bits by age; between two chunks of its prompt.

        Nothing waits: what there is no room for is left to the next chunk, or to `save`.
        """
        model = self._model_for(conversation_id, context)
        if model is None:
            return
        settled = (page for page in self._allowed(context) if page.is_settled)
        pages = [page for page in settled if page.put_bits != page.bits]
        self._put_pages(conversation_id, context, pages, model, lambda: self._store.has_room)

    def save(self, check: Check) -> bool:
        """Put all that is in memory and not stored yet, idle conversations first, the one in hand last.

        Waits for room, as long as what waits is being written.

        Args:
            check: called between pages and while waiting; it may raise to stop. The next call goes on there.

        Returns: False where some of it has to wait, for room or for the digest of the model.
        """
        if self._prefixes.is_unknown:
            return False
        for conversation_id, context in self._held.contexts():
            model = self._model_for(conversation_id, context)
            if model is not None and not self._save(conversation_id, context, model, check):
                log.info("Not all could be saved for now: what was put before is still being written")
                return False
        return True

    def keep_prefix(self, context: HeldContext, owner_id: int, check: Check) -> int:
        """Put the pages of the system prompt and the documents that a context begins with, as cold ones.

        Waits for room as `save` does.

        Args:
            context: what was read; it may be of what is forgotten at once.
            owner_id: the conversation with which they are deleted; 0 for none.
            check: called between pages and while waiting; it may raise to stop.

        Returns: the tokens of the pages that are stored then.
        """
        cache, model = context.cache, self._prefixes.digest
        if model is None or cache.is_outside or not cache.is_unbroken:
            return 0
        cache.cool(_documents_stop(context.spans))
        pages = _leading(context)
        self._put_pages(owner_id, context, pages, model, lambda: self._wait_for_room(check))
        return sum(page.num_tokens for page in _leading(context) if page.put_bits is not None)

    def prompt(self, conversation_id: int, context: HeldContext) -> SavedPrompt:
        """Return what saves the prompt that is read into a context."""
        return SavedPrompt(self, conversation_id, context)

    def forget(self, conversation_id: int) -> None:
        """Take note that a conversation is held no longer."""
        self._saved.pop(conversation_id, None)

    def disown(self, context: HeldContext) -> None:
        """Have what is stored of a context deleted, since it cannot be used."""
        if self._prefixes.digest is not None:
            for page in context.cache.savable_pages():
                context.cache.note_put(page.chain, None)
                self._store.drop_page(self._prefixes.page_key(context.cache, page.chain))

    def _model_for(self, conversation_id: int, context: HeldContext) -> str | None:
        """Return the digest of the model where a context may be saved.

        Negative ids are of what is forgotten at once, such as the parts of a document.
        """
        if conversation_id < 0 or context.cache.is_outside or not context.cache.num_tokens:
            return None
        if context.cache.can_move:
            return self._prefixes.digest
        if not self._has_told:
            self._has_told = True
            log.info("Conversations with this model are not saved: not all of its layers are in pages")
        return None

    def _allowed(self, context: HeldContext) -> tuple[SavablePage, ...]:
        """Return the pages of a context that may be kept."""
        if self._store.mode is SaveMode.EVERYTHING:
            return context.cache.savable_pages()
        return _leading(context) if context.cache.is_unbroken else ()

    def _save(self, conversation_id: int, context: HeldContext, model: str, check: Check) -> bool:
        """Save what is new of a conversation; return whether there was room for it."""
        cache, mode = context.cache, self._store.mode
        tokens, pages_now = tuple(cache.tokens), tuple(cache.pages())
        state = _State(mode, tokens, context.spans, cache.spec, pages_now, self._store.num_losses)
        if self._saved.get(conversation_id) == state:
            return True
        pages = self._allowed(context)

        def has_room() -> bool:
            return self._wait_for_room(check)

        if not self._put_pages(conversation_id, context, pages, model, has_room):
            return False
        if conversation_id and (pages or mode is SaveMode.EVERYTHING):
            check()
            if not self._store.put_sequence(self._sequence(conversation_id, context, pages, model)):
                return False
        self._saved[conversation_id] = state
        return True

    def _put_pages(
        self,
        conversation_id: int,
        context: HeldContext,
        pages: Sequence[SavablePage],
        model: str,
        has_room: Callable[[], bool],
    ) -> bool:
        """Put those of some pages that are not stored as they are; return whether there was room for all."""
        keys = self._keys(context, pages)
        stored = self._store.stored_bits(keys) if keys else {}
        for page, key in zip(pages, keys, strict=True):
            is_due = self._is_due(page, stored.get(key))
            if is_due and not has_room():
                return False
            if is_due and not self._store.put_page(self._new(conversation_id, context, page, model)):
                return False
            if is_due or page.is_settled:
                context.cache.note_put(page.chain, page.bits)
        return True

    def _is_due(self, page: SavablePage, stored_bits: float | None) -> bool:
        """Whether a page is to be put: it is not stored, or not as it is here.

        What was read again has other content than before. One that the store did not take with fewer bits is
        not put again: another conversation has it.
        """
        if stored_bits is None or stored_bits < page.bits or page.put_bits is None:
            return True
        return page.is_settled and stored_bits > page.bits != page.put_bits

    def _new(self, conversation_id: int, context: HeldContext, page: SavablePage, model: str) -> NewPage:
        cache, prefixes = context.cache, self._prefixes
        return NewPage(
            key=prefixes.page_key(cache, page.chain),
            parent=prefixes.page_key(cache, page.parent) if page.parent else b"",
            model=model,
            position=page.position,
            num_tokens=page.num_tokens,
            bits=page.bits,
            blob=cache.encode_page(page.chain, model),
            conversation_id=conversation_id,
        )

    def _sequence(
        self, conversation_id: int, context: HeldContext, pages: Sequence[SavablePage], model: str
    ) -> StoredSequence:
        cache, keys = context.cache, tuple(self._keys(context, pages))
        if self._store.mode is SaveMode.EVERYTHING:
            manifest = cache.encode_manifest(context.spans, model)
            return StoredSequence(conversation_id, model, keys, manifest, cache.num_tokens)
        return StoredSequence(conversation_id, model, keys, b"", sum(page.num_tokens for page in pages))

    def _keys(self, context: HeldContext, pages: Sequence[SavablePage]) -> list[bytes]:
        return [self._prefixes.page_key(context.cache, page.chain) for page in pages]

    def _wait_for_room(self, check: Check) -> bool:
        for _ in range(MOST_WAITS):
            check()
            if self._store.wait_for_room(WAIT_S):
                return True
        return False


@dataclass(frozen=True, eq=False)
class SavedPrompt(PromptSaving):
    """A prompt of which is saved what is settled, as far as that may be kept."""

    saver: PrefixSaver
    conversation_id: int
    context: HeldContext

    def after_chunk(self) -> None:
        """Save what is settled."""
        self.saver.save_settled(self.conversation_id, self.context)

    def disown(self) -> None:
        """Have all that is stored of it deleted."""
        self.saver.disown(self.context)


def _leading(context: HeldContext) -> tuple[SavablePage, ...]:
    """Return the pages that lie wholly in the system prompt and the documents that a text begins with."""
    stop = _documents_stop(context.spans)
    return tuple(page for page in context.cache.savable_pages() if page.position + page.num_tokens <= stop)


def _documents_stop(spans: Sequence[TextSpan]) -> int:
    """Return where the system prompt and the documents end that a text begins with, markers included."""
    stop = 0
    for span in spans:
        if span.start != stop or span.kind not in _DOCUMENTS:
            break
        stop = span.stop
    return stop
