"""Conversations that are read, saved, and opened again by another engine, as by the next process."""

from __future__ import annotations

import re
from pathlib import Path

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import GenerationRequest
from engine.spans import DocumentRange
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.small_engine import FOUR, answer, asked, conversation, keyed, small_engine

PAGE_TOKENS = 64
TALK = keyed(conversation(8, length=100))
DOCUMENT = "The lighthouse keeper counted the ships that passed in the night. " * 20


def first(kv: KVSpec = FOUR, conversation_id: int = 1) -> GenerationRequest:
    return asked(TALK, kv, conversation_id=conversation_id, answer_key="answer")


def follow_up(text: str, kv: KVSpec = FOUR, conversation_id: int = 1) -> GenerationRequest:
    """Return the request that follows the answer to `first`."""
    said = ChatMessage("assistant", text, key="answer")
    question = ChatMessage("user", "And then?", key="next")
    return asked((*TALK, said, question), kv, conversation_id=conversation_id, answer_key="last")


def about_document(question: str, key: str, conversation_id: int) -> GenerationRequest:
    place = DocumentRange("Lighthouse", 0, len(DOCUMENT), "a1", SpanKind.DOCUMENT)
    message = ChatMessage("user", f"{DOCUMENT}\n{question}", (place,), key)
    return asked((message,), conversation_id=conversation_id, answer_key=f"{key}-answer")


def saved(engine: Engine, request: GenerationRequest) -> str:
    """Answer a request and save all that was read; return the answer."""
    text, _ = answer(engine, request)
    engine.save(CancelToken())
    return text


def reopened(path: Path, backend: Backend, store: MemoryStore) -> Engine:
    """Return an engine as the next process has it, which forgets what was asked of the store before."""
    store.queries.clear()
    store.read.clear()
    store.touched.clear()
    return small_engine(path, backend, prefixes=store)


def reread(note: str | None, why: str) -> int:
    """Return how many tokens a note says were read again."""
    assert note is not None
    found = re.fullmatch(rf"{why}: ([\d,]+) tokens were read again\.", note)
    assert found is not None, note
    return int(found[1].replace(",", ""))


class StopAfter(CancelToken):
    """Is cancelled when it was looked at so often."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def check(self) -> None:
        if not self._count:
            self.cancel()
        self._count -= 1
        super().check()
