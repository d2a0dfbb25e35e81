from __future__ import annotations

import dataclasses
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.profiles import BUILT_IN, CUSTOM, DocumentMode, Overflow, Profile
from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError, StoreError
from engine.kv.precision import KVSpec
from tests.app.store.samples import add_chain, add_conversation, add_turn, document


def titles(store: ConversationStore, search: str = "") -> list[str]:
    return [conversation.title for conversation in store.conversations(search)]


def test_a_new_conversation_is_empty_and_dated_in_utc(store: ConversationStore) -> None:
    before = datetime.now(UTC)
    conversation = store.create_conversation()
    assert before <= conversation.created_at <= datetime.now(UTC)
    assert conversation.created_at == conversation.updated_at
    assert conversation.created_at.utcoffset() == UTC.utcoffset(None)
    assert (conversation.title, conversation.draft, conversation.pinned) == ("New conversation", "", False)
    assert conversation.leaf_id is None
    assert store.conversation(conversation.id) == conversation


def test_everything_is_there_after_reopening(store: ConversationStore, db_path: Path) -> None:
    conversation_id = add_conversation(store, 3)
    store.set_draft(conversation_id, "half a thou")
    store.add_attachment(conversation_id, document())
    before = store.conversation(conversation_id)
    assert before.leaf_id is not None
    path = store.path(before.leaf_id)
    attachments = store.draft_attachments(conversation_id)
    store.close()
    store = ConversationStore.open(db_path)
    assert store.conversations() == [before]
    assert store.path(before.leaf_id) == path
    assert store.draft_attachments(conversation_id) == attachments
    store.close()


def test_the_list_is_pinned_first_then_by_last_message(store: ConversationStore) -> None:
    first, second, third = (store.create_conversation(title) for title in ("a", "b", "c"))
    assert titles(store) == ["c", "b", "a"]
    add_turn(store, first.id, None, "hello")
    assert titles(store) == ["a", "c", "b"]
    store.set_pinned(second.id, True)
    assert titles(store) == ["b", "a", "c"]
    store.set_pinned(second.id, False)
    assert titles(store) == ["a", "c", "b"]
    assert third.pinned is False


def test_drafts_names_and_pins_do_not_move_a_conversation_up(store: ConversationStore) -> None:
    old, _ = store.create_conversation("old"), store.create_conversation("new")
    store.set_draft(old.id, "typing")
    store.rename(old.id, "still old")
    store.set_leaf(old.id, None)
    assert titles(store) == ["new", "still old"]


@pytest.mark.parametrize(
    ("title", "search"),
    [
        ("Études in C♯", "etudes"),
        ("Étude décomposée", "DÉCOMPOSÉE"),
        ("Über Straßen", "uber strassen"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("Ёлка", "елка"),
        ("ﬁnance", "FINANCE"),
        ("A clock of 4 ㎒", "mhz"),
        ("日本語のメモ", "日本"),
        ("100% sure", "0%"),
        ("snake_case", "e_c"),
        ('it\'s "quoted"', "'s \"q"),
        ("back\\slash", "k\\s"),
        ("emoji 👩‍🚀 here", "👩‍🚀"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_search_ignores_case_and_accents(store: ConversationStore, title: str, search: str) -> None:
    store.create_conversation(title)
    store.create_conversation("something else")
    assert titles(store, f" {search} ") == [title]


@pytest.mark.parametrize("search", ["%", "_", "a%c", "*", "?", "[a-z]", "' OR 1=1 --"])
def test_search_has_no_wildcards(store: ConversationStore, search: str) -> None:
    store.create_conversation("abc")
    assert titles(store, search) == []


def test_an_empty_search_finds_all(store: ConversationStore) -> None:
    store.create_conversation("a")
    store.create_conversation("b")
    assert titles(store, "  ") == ["b", "a"]


def test_a_title_is_one_line_and_never_empty(store: ConversationStore) -> None:
    conversation = store.create_conversation()
    store.rename(conversation.id, "  two\n lines\t")
    assert titles(store) == ["two lines"]
    with pytest.raises(StoreError, match="needs a title"):
        store.rename(conversation.id, " \n")
    assert titles(store) == ["two lines"]


def test_the_first_user_message_names_a_conversation_once(store: ConversationStore) -> None:
    conversation = store.create_conversation()
    question = store.add_user_message(conversation.id, None, "\n  What is a  page table?\nTell me.")
    assert titles(store) == ["What is a page table?"]
    store.add_user_message(conversation.id, question.id, "And what is a slot?")
    store.add_user_message(conversation.id, None, "An edit of the first one")
    assert titles(store) == ["What is a page table?"]


def test_a_title_that_the_user_gave_stays(store: ConversationStore) -> None:
    renamed, created = store.create_conversation(), store.create_conversation("Mine from the start")
    store.rename(renamed.id, "Mine")
    store.add_user_message(renamed.id, None, "hello")
    store.add_user_message(created.id, None, "hello")
    assert titles(store) == ["Mine from the start", "Mine"]


def test_a_message_without_words_is_named_after_its_attachment(store: ConversationStore) -> None:
    conversation = store.create_conversation()
    attachment = store.add_attachment(conversation.id, document(title="Annual report"))
    store.add_user_message(conversation.id, None, " ", [attachment.id])
    assert titles(store) == ["Annual report"]


def test_a_draft_is_kept_and_cleared_by_sending(store: ConversationStore) -> None:
    conversation = store.create_conversation()
    store.set_draft(conversation.id, "half\na question")
    assert store.conversation(conversation.id).draft == "half\na question"
    message = store.add_user_message(conversation.id, None, "half a question, whole")
    assert store.conversation(conversation.id).draft == ""
    store.set_draft(conversation.id, "the next one")
    store.add_user_message(conversation.id, None, "edited", keep_draft=True)
    assert store.conversation(conversation.id).draft == "the next one"
    assert message.text == "half a question, whole"


def test_text_comes_back_as_it_was(store: ConversationStore) -> None:
    conversation = store.create_conversation()
    text = "nul \0 tab \t crlf \r\n emoji 👩‍🚀 arabic مرحبا private \ue000 last \U0010ffff"
    message = store.add_user_message(conversation.id, None, text)
    assert store.message(message.id).text == text


def test_what_utf8_cannot_write_is_replaced(store: ConversationStore) -> None:
    conversation = store.create_conversation("caf\udce9")
    store.set_draft(conversation.id, "\ud83d")
    attachment = store.add_attachment(conversation.id, document(title="n\udcff"))
    assert store.conversation(conversation.id).title == "caf\ufffd"
    assert store.conversation(conversation.id).draft == "\ufffd"
    assert attachment.title == "n\ufffd"


def test_a_deleted_conversation_comes_back_whole(store: ConversationStore) -> None:
    conversation_id = add_conversation(store, 2)
    store.set_draft(conversation_id, "draft")
    before = store.conversation(conversation_id)
    store.delete(conversation_id)
    assert store.conversations() == []
    with pytest.raises(NotFoundError, match="no longer exists"):
        store.conversation(conversation_id)
    with pytest.raises(NotFoundError):
        store.add_user_message(conversation_id, None, "too late")
    store.undo_delete(conversation_id)
    assert store.conversations() == [before]


def test_a_reply_can_end_in_a_conversation_that_was_deleted(store: ConversationStore) -> None:
    conversation = store.create_conversation()
    question = store.add_user_message(conversation.id, None, "hello")
    reply = store.begin_reply(conversation.id, question.id, "A model")
    store.delete(conversation.id)
    store.save_partial(reply.id, "so far")
    assert store.message(reply.id).text == "so far"


def test_purging_removes_the_deleted_from_the_disk_and_nothing_else(
    store: ConversationStore, db_path: Path
) -> None:
    secret, shared = "correct horse battery staple", "a text that both have"
    kept, gone = add_conversation(store, 2), store.create_conversation(secret).id
    add_chain(db_path, gone, 3000, secret)
    own = store.add_attachment(kept, document(shared))
    store.add_attachment(gone, document(shared))
    store.add_attachment(gone, document(f"{secret} " * 3000))
    store.delete(gone)
    assert store.purge_deleted() == 1
    assert store.purge_deleted() == 0
    with pytest.raises(NotFoundError, match="for good"):
        store.undo_delete(gone)
    assert [conversation.id for conversation in store.conversations()] == [kept]
    assert store.draft_attachments(kept) == [own]
    files = list(db_path.parent.iterdir())
    assert db_path in files
    assert not [file for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.parametrize("seed", [26, 27, 33, 38])
def test_no_remains_of_purged_conversations_stay_between_the_rows_of_others(
    seed: int, store: ConversationStore, db_path: Path
) -> None:
    """Without writing the file anew, pages that SQLite had filled again kept some words with these seeds."""
    chance, living, purged = random.Random(seed), [], []
    for number in range(60):
        word = f"secret-{seed}-{number}"
        conversation_id, leaf_id = store.create_conversation().id, None
        for _ in range(chance.randint(1, 6)):
            text = f"{word} " * chance.choice([1, 1, 2, 5, 20, 150])
            leaf_id = store.add_user_message(conversation_id, leaf_id, text).id
        living.append((conversation_id, word))
        if chance.random() < 0.5:
            conversation_id, word = living.pop(chance.randrange(len(living)))
            store.delete(conversation_id)
            purged.append(f"{word} ")
            if chance.random() < 0.3:
                store.purge_deleted()
    store.purge_deleted()
    content = b"".join(file.read_bytes() for file in db_path.parent.iterdir())
    assert not [word for word in purged if word.encode() in content]


def test_ids_of_what_was_purged_are_not_given_again(store: ConversationStore) -> None:
    gone = store.create_conversation()
    store.delete(gone.id)
    store.purge_deleted()
    assert store.create_conversation().id > gone.id


@pytest.mark.parametrize("missing_id", [1, -1, 2**40])
def test_what_does_not_exist_is_said(store: ConversationStore, missing_id: int) -> None:
    for call in (
        lambda: store.conversation(missing_id),
        lambda: store.rename(missing_id, "x"),
        lambda: store.set_draft(missing_id, "x"),
        lambda: store.delete(missing_id),
        lambda: store.undo_delete(missing_id),
        lambda: store.add_user_message(missing_id, None, "x"),
        lambda: store.add_attachment(missing_id, document()),
        lambda: store.message(missing_id),
        lambda: store.path(missing_id),
        lambda: store.deepest_leaf(missing_id),
        lambda: store.save_partial(missing_id, "x"),
        lambda: store.remove_attachment(missing_id),
        lambda: store.update_attachment(missing_id, document()),
    ):
        with pytest.raises(NotFoundError):
            call()


OWN = Profile("Żółć's", KVSpec.parse("0-3:8, 4-:k8v4; warm=2"), None, Overflow.DROP, DocumentMode.SEGMENTS)


@pytest.mark.parametrize("profile", [*BUILT_IN, OWN, dataclasses.replace(OWN, name=CUSTOM), None])
def test_a_conversation_remembers_its_profile(
    store: ConversationStore, db_path: Path, profile: Profile | None
) -> None:
    conversation_id, other_id = add_conversation(store, 1), add_conversation(store, 1)
    store.set_profile(conversation_id, BUILT_IN[2])
    store.set_profile(conversation_id, profile)
    store.close()
    store = ConversationStore.open(db_path)
    assert store.conversation(conversation_id).profile == profile
    assert store.conversation(other_id).profile is None
    store.close()


def profile_text(kv: str = '"8"', max_context: str = "9000", overflow: str = "ask") -> str:
    rest = f'"overflow": "{overflow}", "document_mode": "whole"'
    return f'{{"name": "Chat", "kv": {kv}, "max_context": {max_context}, {rest}}}'


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "3", "null", "[]", '{"name": "Chat"}', "[" * 100_000),
        profile_text(kv='"7"'),
        profile_text(kv="8"),
        profile_text(max_context="1"),
        profile_text(max_context='"many"'),
        profile_text(max_context="true"),
        profile_text(overflow="burn"),
    ],
)
def test_a_profile_that_cannot_be_read_costs_only_itself(
    store: ConversationStore, db_path: Path, text: str
) -> None:
    conversation_id = add_conversation(store, 1)
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("UPDATE conversations SET profile = ?", (text,))
    assert store.conversation(conversation_id).profile is None
    assert titles(store) == ["question 0"]
    store.replace_profile("Chat", OWN)
    store.set_profile(conversation_id, OWN)
    assert store.conversation(conversation_id).profile == OWN


def test_a_profile_is_replaced_in_all_conversations_that_have_it(store: ConversationStore) -> None:
    first, second, third, without = (add_conversation(store, 1) for _ in range(4))
    for conversation_id in (first, second):
        store.set_profile(conversation_id, OWN)
    store.set_profile(third, BUILT_IN[0])
    store.delete(second)
    as_custom = dataclasses.replace(OWN, name=CUSTOM)
    store.replace_profile(OWN.name, as_custom)
    store.undo_delete(second)
    profiles = [store.conversation(each).profile for each in (first, second, third, without)]
    assert profiles == [as_custom, as_custom, BUILT_IN[0], None]
