from __future__ import annotations

import threading
from pathlib import Path

from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.records import MessageState
from tests.app.store.samples import document


def test_two_threads_write_at_once_and_lose_nothing(store: ConversationStore, db_path: Path) -> None:
    conversation = store.create_conversation()
    question = store.add_user_message(conversation.id, None, "hello")
    other = store.create_conversation()
    failures: list[Exception] = []
    start = threading.Barrier(2)

    def write_replies() -> None:
        try:
            own = ConversationStore.open(db_path)
            start.wait()
            for number in range(30):
                reply = own.begin_reply(conversation.id, question.id, "A model")
                for part in range(3):
                    own.save_partial(reply.id, f"{number} {part}")
                own.finish_reply(reply.id, f"reply {number}", MessageState.COMPLETE)
            own.close()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=write_replies)
    thread.start()
    start.wait()
    leaf_id = None
    for number in range(40):
        attachment = store.add_attachment(other.id, document(f"text {number}"))
        leaf_id = store.add_user_message(other.id, leaf_id, f"message {number}", [attachment.id]).id
        store.set_draft(conversation.id, f"draft {number}")
        assert store.path(leaf_id)[-1].attachments == (attachment,)
    thread.join()

    assert failures == []
    assert leaf_id is not None
    assert [message.text for message in store.path(leaf_id)] == [f"message {number}" for number in range(40)]
    last = store.conversation(conversation.id).leaf_id
    assert last is not None
    siblings = store.message(last).siblings
    assert [store.message(sibling).text for sibling in siblings] == [
        f"reply {number}" for number in range(30)
    ]
    assert {store.message(sibling).state for sibling in siblings} == {MessageState.COMPLETE}


def test_what_one_thread_writes_the_other_reads(store: ConversationStore, db_path: Path) -> None:
    conversation = store.create_conversation()
    question = store.add_user_message(conversation.id, None, "hello")

    def reply() -> None:
        own = ConversationStore.open(db_path)
        own.save_partial(own.begin_reply(conversation.id, question.id, "A model").id, "Good mor")
        own.close()

    thread = threading.Thread(target=reply)
    thread.start()
    thread.join()
    leaf_id = store.conversation(conversation.id).leaf_id
    assert leaf_id is not None
    assert [message.text for message in store.path(leaf_id)] == ["hello", "Good mor"]


def test_a_store_used_by_another_thread_says_so(store: ConversationStore) -> None:
    caught: list[StoreError] = []

    def misuse() -> None:
        try:
            store.conversations()
        except StoreError as error:
            caught.append(error)

    thread = threading.Thread(target=misuse)
    thread.start()
    thread.join()
    assert "thread" in str(caught[0])


def test_many_threads_can_create_the_file_at_once(db_path: Path) -> None:
    start = threading.Barrier(4)
    titles = [f"from {number}" for number in range(4)]

    def create(title: str) -> None:
        start.wait()
        own = ConversationStore.open(db_path)
        own.create_conversation(title)
        own.close()

    threads = [threading.Thread(target=create, args=(title,)) for title in titles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = ConversationStore.open(db_path)
    assert sorted(conversation.title for conversation in store.conversations()) == titles
    store.close()
    assert [file.name for file in db_path.parent.iterdir()] == [db_path.name]
