"""The prefixes of one loaded model that a store has: what of a text was read before, by any process."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from engine.held_context import HeldContext
from engine.kv.blob import BlobError
from engine.kv.cache import SequenceCache
from engine.kv.lineage import page_key, prefix_chain, root_key
from engine.kv.manifest import read_manifest
from engine.kv.precision import KVSpec
from engine.lost_text import MODEL_UNKNOWN, NOT_THERE, NOTHING_KEPT, ONLY_DOCUMENTS, OTHER_MODEL
from engine.model import Model
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import PrefixStore, SaveMode, StoredPage
from engine.prefixes.stored_context import StoredContext
from engine.spans import Prompt
from engine.text_spans import between

log = logging.getLogger(__name__)

_ANY = KVSpec.parse("16")
"""Whether layers are paged does not depend on their precision."""


class PrefixCache:
    """Finds what was read before.

    Nothing is found while the store may keep nothing, before the digest of the model is known, and for models
    whose layers are not all paged.

    Args:
        store: has the pages.
        identity: which model it is.
        model: the model that reads.

    Attributes:
        store: as given.
    """

    def __init__(self, store: PrefixStore, identity: ModelIdentity, model: Model) -> None:
        self.store = store
        self._identity = identity
        self._model = model
        self._roots: dict[tuple[int, int], bytes] = {}
        self._is_paged = SequenceCache(model.module, _ANY).can_move

    @property
    def digest(self) -> str | None:
        """The digest of the model, None where it is not known yet, or nothing may be or can be kept."""
        if self.store.mode is SaveMode.NEVER or not self._is_paged:
            return None
        return self._identity.digest

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is kept or found only because the digest of the model is not known yet."""
        return self.store.mode is not SaveMode.NEVER and self._is_paged and self._identity.digest is None

    def page_key(self, cache: SequenceCache, chain: bytes) -> bytes:
        """Return the key of a page of a cache in the store, by its chain key; the digest must be known."""
        return page_key(self._root(cache.spec, cache), chain)

    def sequence(self, conversation_id: int) -> StoredContext | None:
        """Return a conversation as it was saved, None where it was not. One of 0 or less is none.

        A manifest that is not what was written is dropped.
        """
        digest = self.digest
        if digest is None or conversation_id <= 0:
            return None
        found = self.store.find_sequence(conversation_id, digest)
        if found is None or not found.manifest:
            return None
        try:
            manifest = read_manifest(found.manifest, digest)
            cache = SequenceCache.from_manifest(self._model.module, manifest)
        except BlobError as error:
            log.warning("What is stored of conversation %d is dropped: %s", conversation_id, error)
            self.store.drop_sequence(conversation_id, digest)
            return None
        chains = [page.chain for page in manifest.pages]
        root = self._root(cache.spec, cache)
        return StoredContext(HeldContext(cache, manifest.spans), chains, self.store, root)

    def why_absent(self, conversation_id: int) -> str | None:
        """Return why nothing is stored of a conversation that was read, as the beginning of a sentence.

        None for what is no conversation, and where the model's cannot be stored.
        """
        if conversation_id <= 0 or not self._is_paged:
            return None
        mode, digest = self.store.mode, self.digest
        if mode is SaveMode.NEVER:
            return NOTHING_KEPT
        if digest is None:
            return MODEL_UNKNOWN
        if self.store.is_of_other_model(conversation_id, digest):
            return OTHER_MODEL
        return ONLY_DOCUMENTS if mode is SaveMode.DOCUMENTS else NOT_THERE

    def kept_tokens(self, prompt: Prompt, kv: KVSpec, kept_tokens: int) -> int:
        """Return how many tokens of a prompt need not be read, of which so many are held anyway."""
        return max(kept_tokens, sum(page.num_tokens for page in self._pages(prompt, kv, kept_tokens)))

    def beginning(self, prompt: Prompt, kv: KVSpec, kept_tokens: int) -> StoredContext | None:
        """Return the longest beginning of a prompt that is stored, of whatever conversation it was.

        None where it does not spare the reading of at least a page's tokens more than `kept_tokens`.
        """
        pages, digest = self._pages(prompt, kv, kept_tokens), self.digest
        if not pages or digest is None:
            return None
        num_tokens = sum(page.num_tokens for page in pages)
        tokens, spans = prompt.tokens[:num_tokens], tuple(between(prompt.spans, 0, num_tokens))
        nbytes = [page.nbytes for page in pages]
        cache = SequenceCache.from_chain(self._model.module, kv, tokens, digest, nbytes)
        chains = prefix_chain(tokens, kv.page_tokens)
        return StoredContext(HeldContext(cache, spans), chains, self.store, self._root(kv))

    def touch(self, cache: SequenceCache) -> None:
        """Tell the store that the pages of a cache are used now."""
        if self.digest is not None:
            root = self._root(cache.spec, cache)
            self.store.touch([page_key(root, page.chain) for page in cache.savable_pages()])

    def _pages(self, prompt: Prompt, kv: KVSpec, kept_tokens: int) -> Sequence[StoredPage]:
        """Return what is stored of a prompt's full pages, none where that spares less than a page more.

        At least a token is left to read. Where it cannot spare a page, the store is not asked.
        """
        least = kept_tokens + kv.page_tokens
        if self.digest is None or len(prompt.tokens) <= least:
            return ()
        root = self._root(kv)
        chain = prefix_chain(prompt.tokens[:-1], kv.page_tokens)
        pages = self.store.find_pages([page_key(root, each) for each in chain])
        return pages if sum(page.num_tokens for page in pages) >= least else ()

    def _root(self, kv: KVSpec, cache: SequenceCache | None = None) -> bytes:
        """Return what the keys of pages of these sizes have in common; the digest must be known.

        Where there is a cache of these sizes, that spares making one.
        """
        sizes, digest = (kv.page_tokens, kv.group_size), self._identity.digest
        assert digest is not None
        if sizes not in self._roots:
            self._roots[sizes] = root_key(digest, cache or SequenceCache(self._model.module, kv))
        return self._roots[sizes]
