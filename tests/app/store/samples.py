"""Content for stores under test."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from app.documents.document import Document
from app.ledger.records import Summary, SummarySource, SummaryState
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.events import GenerationStats, StopReason
from engine.kv.usage import KVUsage

USAGE = KVUsage(
    num_tokens=1_153,
    open_tokens=129,
    hot_pages=1,
    warm_pages=2,
    cold_pages=1,
    nbytes=123_456,
    hot_nbytes=60_000,
    warm_nbytes=30_000,
    cold_nbytes=10_000,
    effective_bits=10.5,
    requested=(8.0, 4.0),
    effective=(8.0, 3.0),
    num_below=1,
    attention_pages=8,
    caught=0.97,
)

STATS = GenerationStats(
    prompt_tokens=120,
    reused_tokens=20,
    completion_tokens=33,
    ttft_s=0.25,
    prefill_tps=400.5,
    decode_tps=31.25,
    kv="k8v4; warm=2",
    kv_usage=USAGE,
    peak_nbytes=987_654_321,
    stop_reason=StopReason.END,
)

SUMMARY = Summary(
    id=0,
    text="They spoke of owls.",
    covers=("m1", "m2"),
    source=SummarySource.MODEL,
    note="",
    model="A model",
    source_tokens=120,
    num_tokens=12,
    state=SummaryState.USED,
)


def document(text: str = "The text of a document.", title: str = "A document") -> Document:
    return Document(
        title=title,
        source=f"/home/somebody/{title}.txt",
        kind="text",
        text=text,
        encoding="utf-8",
        encoding_guessed=True,
    )


def add_turn(
    store: ConversationStore,
    conversation_id: int,
    parent_id: int | None,
    text: str,
    stats: GenerationStats = STATS,
) -> Message:
    """Add a question and its answer and return the answer."""
    question = store.add_user_message(conversation_id, parent_id, text)
    reply = store.begin_reply(conversation_id, question.id, "A model")
    return store.finish_reply(reply.id, f"Answer to {text}", MessageState.COMPLETE, stats)


def add_conversation(store: ConversationStore, num_turns: int, words: str = "question") -> int:
    """Add a conversation of `num_turns` questions and answers and return its id."""
    conversation_id = store.create_conversation().id
    leaf_id = None
    for number in range(num_turns):
        leaf_id = add_turn(store, conversation_id, leaf_id, f"{words} {number}").id
    return conversation_id


def add_chain(db_path: Path, conversation_id: int, num_messages: int, words: str = "message") -> list[int]:
    """Write a long conversation past the store, in one transaction, and return its ids."""
    with closing(sqlite3.connect(db_path, timeout=60)) as conn, conn:
        (last,) = conn.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()
        ids = list(range(last + 1, last + num_messages + 1))
        conn.executemany(
            "INSERT INTO messages (id, conversation_id, parent_id, role, text, created_at, state)"
            " VALUES (?, ?, ?, ?, ?, '2026-01-02T03:04:05.000006+00:00', 'complete')",
            [
                (
                    message_id,
                    conversation_id,
                    message_id - 1 if number else None,
                    ("user", "assistant")[number % 2],
                    f"{words} {number}",
                )
                for number, message_id in enumerate(ids)
            ],
        )
        conn.execute("UPDATE conversations SET leaf_id = ? WHERE id = ?", (ids[-1], conversation_id))
    return ids
