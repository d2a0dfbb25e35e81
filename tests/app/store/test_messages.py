from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError, StoreError
from app.store.messages import stats_text
from app.store.records import MessageState, Role
from tests.app.store.samples import STATS, USAGE, add_chain, add_conversation, add_turn, document


@pytest.fixture
def conversation_id(store: ConversationStore) -> int:
    return store.create_conversation().id


def texts(store: ConversationStore, leaf_id: int, **window: int) -> list[str]:
    return [message.text for message in store.path(leaf_id, **window)]


def test_a_user_message_is_final_and_the_leaf(store: ConversationStore, conversation_id: int) -> None:
    message = store.add_user_message(conversation_id, None, "hello")
    assert (message.role, message.state, message.parent_id) == (Role.USER, MessageState.COMPLETE, None)
    assert (message.model, message.stats, message.error, message.attachments) == (None, None, None, ())
    assert message.siblings == (message.id,)
    assert store.conversation(conversation_id).leaf_id == message.id
    assert store.message(message.id) == message


def test_a_reply_goes_from_streaming_to_complete(store: ConversationStore, conversation_id: int) -> None:
    question = store.add_user_message(conversation_id, None, "hello")
    reply = store.begin_reply(conversation_id, question.id, "A model")
    assert (reply.role, reply.state, reply.text, reply.model) == (
        Role.ASSISTANT,
        MessageState.STREAMING,
        "",
        "A model",
    )
    assert store.conversation(conversation_id).leaf_id == reply.id
    store.save_partial(reply.id, "Good")
    assert store.message(reply.id).text == "Good"
    store.save_partial(reply.id, "Good mor")
    finished = store.finish_reply(reply.id, "Good morning", MessageState.COMPLETE, STATS)
    assert (finished.text, finished.state, finished.stats) == ("Good morning", MessageState.COMPLETE, STATS)
    assert store.path(reply.id) == [question, finished]


@pytest.mark.parametrize("state", [MessageState.STOPPED, MessageState.INTERRUPTED, MessageState.FAILED])
def test_a_reply_can_end_otherwise(
    store: ConversationStore, conversation_id: int, state: MessageState
) -> None:
    question = store.add_user_message(conversation_id, None, "hello")
    reply = store.begin_reply(conversation_id, question.id, "A model")
    finished = store.finish_reply(reply.id, "Good", state, error="The engine failed.")
    assert (finished.state, finished.error, finished.stats) == (state, "The engine failed.", None)


def test_streaming_is_no_end(store: ConversationStore, conversation_id: int) -> None:
    question = store.add_user_message(conversation_id, None, "hello")
    reply = store.begin_reply(conversation_id, question.id, "A model")
    with pytest.raises(ValueError, match="final"):
        store.finish_reply(reply.id, "", MessageState.STREAMING)


def test_a_finished_reply_takes_no_more_text(store: ConversationStore, conversation_id: int) -> None:
    reply = add_turn(store, conversation_id, None, "hello")
    with pytest.raises(StoreError, match="finished"):
        store.save_partial(reply.id, "late")
    with pytest.raises(StoreError, match="finished"):
        store.finish_reply(reply.id, "late", MessageState.STOPPED)
    assert store.message(reply.id) == reply


def test_the_end_of_a_reply_moves_its_conversation_up(store: ConversationStore, conversation_id: int) -> None:
    question = store.add_user_message(conversation_id, None, "hello")
    reply = store.begin_reply(conversation_id, question.id, "A model")
    other = store.create_conversation()
    assert [entry.id for entry in store.conversations()] == [other.id, conversation_id]
    store.finish_reply(reply.id, "Good morning", MessageState.COMPLETE)
    assert [entry.id for entry in store.conversations()] == [conversation_id, other.id]


def test_editing_makes_a_sibling_and_switching_leads_to_its_newest_leaf(
    store: ConversationStore, conversation_id: int
) -> None:
    first = add_turn(store, conversation_id, None, "one")
    second = add_turn(store, conversation_id, first.id, "two")
    old_id = second.parent_id
    assert old_id is not None
    edited = add_turn(store, conversation_id, first.id, "two, edited")
    new_id = edited.parent_id
    assert new_id is not None
    again = store.begin_reply(conversation_id, old_id, "Another model")

    assert store.message(old_id).siblings == store.message(new_id).siblings == (old_id, new_id)
    assert store.message(again.id).siblings == (second.id, again.id)
    assert texts(store, edited.id) == ["one", "Answer to one", "two, edited", "Answer to two, edited"]
    assert texts(store, second.id) == ["one", "Answer to one", "two", "Answer to two"]
    assert store.deepest_leaf(old_id) == again.id
    assert store.deepest_leaf(new_id) == edited.id
    assert store.deepest_leaf(edited.id) == edited.id
    store.set_leaf(conversation_id, second.id)
    assert store.conversation(conversation_id).leaf_id == second.id


def test_first_messages_of_other_conversations_are_no_siblings(store: ConversationStore) -> None:
    ids = [add_conversation(store, 1) for _ in range(3)]
    leaf_ids = [store.conversation(conversation_id).leaf_id for conversation_id in ids]
    for leaf_id in leaf_ids:
        assert leaf_id is not None
        assert store.path(leaf_id)[0].siblings == (leaf_id - 1,)


def test_a_path_can_be_read_from_its_end_in_windows(store: ConversationStore, conversation_id: int) -> None:
    parent_id = None
    for number in range(7):
        parent_id = store.add_user_message(conversation_id, parent_id, str(number)).id
    assert parent_id is not None
    assert texts(store, parent_id, limit=3) == ["4", "5", "6"]
    window = store.path(parent_id, limit=3)
    earlier = store.path(parent_id, limit=3, before=window[0].id)
    assert [message.text for message in earlier] == ["1", "2", "3"]
    assert texts(store, parent_id, limit=3, before=earlier[0].id) == ["0"]
    assert texts(store, parent_id, before=window[0].id) == ["0", "1", "2", "3"]
    root = store.path(parent_id)[0]
    assert store.path(parent_id, limit=3, before=root.id) == []


def test_a_path_of_thousands_of_messages_is_whole(
    store: ConversationStore, conversation_id: int, db_path: Path
) -> None:
    ids = add_chain(db_path, conversation_id, 3000)
    path = store.path(ids[-1])
    assert [message.id for message in path] == ids
    assert [message.siblings for message in path] == [(message_id,) for message_id in ids]
    assert [message.text for message in path[-2:]] == ["message 2998", "message 2999"]
    assert store.deepest_leaf(ids[0]) == ids[-1]


def test_a_message_stays_in_its_conversation(store: ConversationStore, conversation_id: int) -> None:
    other = store.create_conversation()
    message = store.add_user_message(other.id, None, "hello")
    with pytest.raises(NotFoundError, match="another conversation"):
        store.add_user_message(conversation_id, message.id, "here?")
    with pytest.raises(NotFoundError, match="another conversation"):
        store.begin_reply(conversation_id, message.id, "A model")
    with pytest.raises(NotFoundError, match="another conversation"):
        store.set_leaf(conversation_id, message.id)
    assert store.conversation(conversation_id).leaf_id is None


def test_replies_of_an_earlier_process_become_interrupted(
    store: ConversationStore, conversation_id: int
) -> None:
    question = store.add_user_message(conversation_id, None, "hello")
    reply = store.begin_reply(conversation_id, question.id, "A model")
    store.save_partial(reply.id, "Good mor")
    finished = add_turn(store, conversation_id, question.id, "another")
    assert store.mark_interrupted() == 1
    assert store.mark_interrupted() == 0
    interrupted = store.message(reply.id)
    assert (interrupted.text, interrupted.state) == ("Good mor", MessageState.INTERRUPTED)
    assert store.message(finished.id) == finished


def test_figures_that_cannot_be_read_are_left_out(store: ConversationStore, db_path: Path) -> None:
    conversation = store.create_conversation()
    question = store.add_user_message(conversation.id, None, "hello")
    with sqlite3.connect(db_path) as conn:
        for stats in ("{}", "no json", '{"kv_usage": {}, "stop_reason": "unheard of"}', "[1]"):
            conn.execute(
                "INSERT INTO messages (conversation_id, parent_id, role, text, created_at, state, stats)"
                " VALUES (?, ?, 'assistant', 'x', '2026-01-01T00:00:00.000000+00:00', 'complete', ?)",
                (conversation.id, question.id, stats),
            )
    conn.close()
    replies = [store.message(message_id) for message_id in range(question.id + 1, question.id + 5)]
    assert [reply.stats for reply in replies] == [None] * 4


def test_the_figures_of_a_cache_come_back_as_they_were(
    store: ConversationStore, conversation_id: int
) -> None:
    without_pages = dataclasses.replace(USAGE, effective_bits=None, effective=None, caught=None)
    for usage in (USAGE, without_pages):
        reply = add_turn(store, conversation_id, None, "hello", dataclasses.replace(STATS, kv_usage=usage))
        stats = store.message(reply.id).stats
        assert stats is not None and stats.kv_usage is not None
        assert stats.kv_usage == usage
        assert isinstance(stats.kv_usage.requested, tuple)


def test_figures_of_the_former_version_are_shown_without_those_of_the_cache(
    store: ConversationStore, db_path: Path, conversation_id: int, caplog: pytest.LogCaptureFixture
) -> None:
    question = store.add_user_message(conversation_id, None, "hello")
    former = {key: value for key, value in json.loads(stats_text(STATS)).items() if not key.startswith("kv")}
    with sqlite3.connect(db_path) as conn:
        conn.execute(
            "INSERT INTO messages (conversation_id, parent_id, role, text, created_at, state, stats)"
            " VALUES (?, ?, 'assistant', 'x', '2026-01-01T00:00:00.000000+00:00', 'complete', ?)",
            (conversation_id, question.id, json.dumps(former | {"kv_bits": 8, "kv_nbytes": 123_456})),
        )
    conn.close()
    assert store.message(question.id + 1).stats == dataclasses.replace(STATS, kv="8", kv_usage=None)
    assert caplog.messages == []


class TestTheDatabaseItselfRefuses:
    @pytest.fixture
    def conn(self, store: ConversationStore, db_path: Path) -> Iterator[sqlite3.Connection]:
        """A conversation of two messages, of which the first has an attachment, and a reply in progress."""
        conversation = store.create_conversation()
        attachment = store.add_attachment(conversation.id, document())
        question = store.add_user_message(conversation.id, None, "hello", [attachment.id])
        reply = store.begin_reply(conversation.id, question.id, "A model")
        store.finish_reply(reply.id, "Good morning", MessageState.COMPLETE, STATS)
        store.begin_reply(conversation.id, question.id, "A model")
        store.add_attachment(conversation.id, document("another"))
        store.create_conversation()
        opened = sqlite3.connect(db_path)
        opened.execute("PRAGMA foreign_keys=ON")
        yield opened
        opened.close()

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE messages SET text = 'forged' WHERE id = 1",
            "UPDATE messages SET text = 'forged' WHERE id = 2",
            "UPDATE messages SET role = 'assistant' WHERE id = 1",
            "UPDATE messages SET parent_id = NULL WHERE id = 2",
            "UPDATE messages SET state = 'streaming' WHERE id = 2",
            "UPDATE messages SET conversation_id = 2 WHERE id = 1",
            "UPDATE messages SET model = 'other', error = 'x', stats = NULL WHERE id = 2",
            "UPDATE messages SET role = 'user' WHERE id = 3",
            "UPDATE messages SET parent_id = 2 WHERE id = 3",
            "UPDATE messages SET conversation_id = 2 WHERE id = 3",
            "UPDATE messages SET state = 'unheard of' WHERE id = 3",
            "DELETE FROM messages WHERE id = 2",
            "DELETE FROM messages WHERE id = 3",
            "UPDATE message_attachments SET attachment_id = 2",
            "DELETE FROM message_attachments",
            "INSERT INTO message_attachments (message_id, attachment_id, position) VALUES (1, 2, 1)",
            "UPDATE attachments SET title = 'forged' WHERE id = 1",
            "UPDATE attachments SET document_id = 2 WHERE id = 1",
            "DELETE FROM attachments WHERE id = 1",
            "UPDATE documents SET text = 'forged' WHERE id = 1",
            "DELETE FROM documents WHERE id = 1",
            "UPDATE conversations SET leaf_id = 1 WHERE id = 2",
            "UPDATE conversations SET leaf_id = 99 WHERE id = 1",
            "INSERT INTO messages (id, conversation_id, parent_id, role, text, created_at, state)"
            " VALUES (50, 1, 50, 'user', '', '', 'complete')",
            "INSERT INTO messages (conversation_id, parent_id, role, text, created_at, state)"
            " VALUES (2, 1, 'user', '', '', 'complete')",
        ],
    )
    def test_changes_of_what_is_final(self, conn: sqlite3.Connection, change: str) -> None:
        before = list(conn.iterdump())
        with pytest.raises(sqlite3.IntegrityError), conn:
            conn.execute(change)
        assert list(conn.iterdump()) == before

    def test_but_not_the_end_of_a_reply(self, conn: sqlite3.Connection) -> None:
        conn.execute("UPDATE messages SET text = 'more', state = 'stopped' WHERE id = 3")
        assert conn.execute("SELECT text, state FROM messages WHERE id = 3").fetchall() == [
            ("more", "stopped")
        ]
