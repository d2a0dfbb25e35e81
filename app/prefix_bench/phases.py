"""What each process of the bench does.

Imports MLX: the backend is to be prepared before.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from app.prefix_bench.chat import (
    NEXT_QUESTION,
    QUESTION,
    BenchChat,
    opened,
    process_started_s,
    wait_until_known,
)
from app.prefix_bench.order import Order, Outcome, Phase
from app.prefix_bench.writing import decode_while_writing
from engine.bench.prefix.figures import FirstToken, Kept, Loaded
from engine.bench.prefix.prompt_caches import EXACT_BITS, QUANTIZED_BITS, load, save
from engine.cancel import CancelToken
from engine.errors import OctavoError
from engine.model import ChatMessage
from engine.prefixes.records import SaveMode

KEPT_ANSWER_TOKENS = 16
FLUSH_S = 120.0


def run_phase(order: Order) -> Outcome:
    """Do what one process is asked to do.

    Raises:
        OctavoError: it cannot be done, or nothing of what was kept is found.
    """
    return _PHASES[order.phase](order)


def _cold(order: Order) -> Outcome:
    with opened(order, SaveMode.NEVER) as chat:
        _, answer = chat.begin(QUESTION, 1)
        return _outcome(chat, answer.first)


def _ahead(order: Order) -> Outcome:
    with opened(order, SaveMode.NEVER) as chat:
        return _outcome(chat, chat.begin_ahead(QUESTION, 1).first)


def _keep(order: Order) -> Outcome:
    with opened(order, SaveMode.EVERYTHING) as chat:
        wait_until_known(chat, order)
        conversation_id, answer = chat.begin(QUESTION, KEPT_ANSWER_TOKENS)
        started_s = time.perf_counter()
        chat.engine.save(CancelToken())
        if not chat.prefixes.flush(FLUSH_S):
            late = f"Not all pages were written after {FLUSH_S:.0f} seconds."
            raise OctavoError(chat.prefixes.figures().problem or late)
        save_s = time.perf_counter() - started_s
        stored = _stored_nbytes(chat, conversation_id)
        cache, setup = chat.engine.context.cache, chat.setup
        usage, nbytes = cache.usage(), cache.referred_nbytes - cache.unused_nbytes
    kept = Kept(
        conversation_id=conversation_id,
        leaf_id=answer.leaf_id,
        first=answer.first,
        num_tokens=usage.num_tokens,
        open_tokens=usage.open_tokens,
        nbytes=nbytes,
        pages_nbytes=usage.sealed_nbytes,
        stored_nbytes=stored,
        disk_nbytes=_file_nbytes(order),
        save_s=save_s,
    )
    return Outcome(dataclasses.asdict(kept), setup)


def _conversation(order: Order) -> Outcome:
    with opened(order, SaveMode.EVERYTHING) as chat:
        return _outcome(chat, _found(chat.go_on(NEXT_QUESTION, 1).first))


def _loaded(order: Order) -> Outcome:
    with opened(order, SaveMode.EVERYTHING) as chat:
        nbytes = _stored_nbytes(chat, order.conversation_id)
        started_s = time.perf_counter()
        changed = chat.engine.prefetch(order.conversation_id, CancelToken())
        seconds = time.perf_counter() - started_s
        if changed is None:
            raise OctavoError("Nothing of the conversation that was kept came back.")
        return _outcome(chat, Loaded(_found(chat.go_on(NEXT_QUESTION, 1).first), nbytes, seconds))


def _document(order: Order) -> Outcome:
    with opened(order, SaveMode.EVERYTHING) as chat:
        _, answer = chat.begin(NEXT_QUESTION, 1)
        return _outcome(chat, _found(answer.first))


def _decode(order: Order) -> Outcome:
    with opened(order, SaveMode.EVERYTHING) as chat:
        return _outcome(chat, decode_while_writing(chat, order))


def _save_prompt_caches(order: Order) -> Outcome:
    with opened(order, SaveMode.NEVER) as chat:
        files = {bits: order.prompt_cache_file(bits) for bits in (EXACT_BITS, QUANTIZED_BITS)}
        saved = save(chat.engine.model, chat.prompt_tokens(), files)
        return Outcome({"saved": [dataclasses.asdict(one) for one in saved]}, chat.setup)


def _load_prompt_cache(order: Order) -> Outcome:
    with opened(order, SaveMode.NEVER) as chat:
        model = chat.engine.model
        question = model.prompt((ChatMessage("user", NEXT_QUESTION),)).tokens
        file = order.prompt_cache_file(order.bits)
        return _outcome(chat, load(model, file, question, process_started_s()))


def _found(first: FirstToken) -> FirstToken:
    if not first.reused_tokens:
        why = f": {first.note}" if first.note else "."
        raise OctavoError(f"A process found nothing of what was kept{why}")
    return first


def _stored_nbytes(chat: BenchChat, conversation_id: int) -> int:
    """Return the bytes of a conversation's pages on disk."""
    entries = chat.prefixes.entries()
    return next((entry.nbytes for entry in entries if entry.conversation_id == conversation_id), 0)


def _file_nbytes(order: Order) -> int:
    """Return the bytes of the prefix cache's file and of what SQLite has beside it."""
    return sum(file.stat().st_size for file in order.folder.glob(f"{order.prefixes_db.name}*"))


def _outcome(chat: BenchChat, figures: Any) -> Outcome:
    return Outcome(dataclasses.asdict(figures), chat.setup)


_PHASES: Mapping[Phase, Callable[[Order], Outcome]] = {
    Phase.COLD: _cold,
    Phase.AHEAD: _ahead,
    Phase.KEEP: _keep,
    Phase.CONVERSATION: _conversation,
    Phase.LOADED: _loaded,
    Phase.DOCUMENT: _document,
    Phase.DECODE: _decode,
    Phase.SAVE_PROMPT_CACHES: _save_prompt_caches,
    Phase.LOAD_PROMPT_CACHE: _load_prompt_cache,
}
