"""A process that writes to a store until it is killed; prints a line after each thing that is done.

Run as `python -m tests.app.store.writer_process JOB PATH`.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from app.ledger.records import ContextChange, ItemMark, SummaryState
from app.store.conversations import ConversationStore
from tests.app.store.samples import SUMMARY, add_conversation, document


def stream(store: ConversationStore) -> None:
    """Write a reply on and on, after a conversation that is complete."""
    conversation_id = add_conversation(store, 3)
    leaf_id = store.conversation(conversation_id).leaf_id
    attachment = store.add_attachment(conversation_id, document())
    question = store.add_user_message(conversation_id, leaf_id, "Go on for ever.", [attachment.id])
    store.set_draft(conversation_id, "half a question")
    reply = store.begin_reply(conversation_id, question.id, "A model")
    for num_words in itertools.count(1):
        store.save_partial(reply.id, "word " * num_words)
        print(reply.id, num_words, flush=True)


def send(store: ConversationStore) -> None:
    """Send one message with two attachments after the other."""
    conversation_id = store.create_conversation().id
    leaf_id = None
    for number in itertools.count():
        ids = [store.add_attachment(conversation_id, document(f"{number} {part}")).id for part in "ab"]
        store.set_draft(conversation_id, f"message {number}")
        leaf_id = store.add_user_message(conversation_id, leaf_id, f"message {number}", ids).id
        print(number, leaf_id, flush=True)


def trim(store: ConversationStore) -> None:
    """Put a summary in the place of the one before it and drop a message with it, one after the other."""
    conversation_id = store.create_conversation().id
    states: tuple[tuple[int, SummaryState], ...] = ()
    for number in itertools.count(1):
        mark = ItemMark(f"m{number}", is_dropped=True)
        stored = store.add_summary(conversation_id, SUMMARY, ContextChange((mark,), states))
        states = ((stored.id, SummaryState.RETIRED),)
        print(number, flush=True)


if __name__ == "__main__":
    job, path = sys.argv[1:]
    {"stream": stream, "send": send, "trim": trim}[job](ConversationStore.open(Path(path)))
