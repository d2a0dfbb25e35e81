from __future__ import annotations

import dataclasses
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.documents.ways import DocumentWay
from app.ledger.records import ContextChange, ItemMark, LedgerRows
from app.reading.records import ReadSegment, SegmentState
from app.store import db as opening
from app.store.connection import create_file
from app.store.conversations import ConversationStore
from app.store.db import OpenReport, open_store
from app.store.errors import DamagedStoreError
from app.store.migrations import CONVERSATIONS
from app.store.records import MessageState
from app.store.rescue import rescue_store
from tests.app.store.samples import STATS, SUMMARY, add_chain, add_conversation, document

PAGE = 4096
ROOT_MESSAGES = 400
SEGMENTS = (ReadSegment(0, 9, SegmentState.READ, "A long text."), ReadSegment(9, 20_000))


@pytest.fixture
def whole(db_path: Path) -> list[str]:
    """A closed store of two conversations; returns the texts of all its messages."""
    store = ConversationStore.open(db_path)
    first = add_conversation(store, 2)
    attachment = store.add_attachment(first, document("long text " * 2000))
    leaf_id = store.conversation(first).leaf_id
    asked = store.add_user_message(first, leaf_id, "Read it.", [attachment.id])
    store.add_summary(first, SUMMARY, ContextChange((ItemMark(f"m{asked.id}", is_pinned=True),)))
    store.begin_reading(asked.id, attachment.id, DocumentWay.SEGMENTS, "A model", SEGMENTS)
    add_chain(db_path, store.create_conversation("Long").id, ROOT_MESSAGES, "words " * 40)
    store.close()
    return all_texts(db_path)


def all_texts(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as conn:
        conn.text_factory = lambda content: content.decode("utf-8", "replace")
        return [text for (text,) in conn.execute("SELECT text FROM messages ORDER BY id")]


def leave_open_log(path: Path) -> None:
    """Put `path` into the state after a crash: with the newest message in the log only."""
    store = ConversationStore.open(path)
    conversation = store.conversations()[-1]
    store.add_user_message(conversation.id, conversation.leaf_id, "newest")
    copies = [path.with_name(f"copy-{part.name}") for part in parts_of(path)]
    for part, copy in zip(parts_of(path), copies, strict=True):
        shutil.copyfile(part, copy)
    store.close()
    for part, copy in zip((path, Path(f"{path}-wal")), copies, strict=True):
        copy.rename(part)


def parts_of(path: Path) -> list[Path]:
    return [part for part in (path, Path(f"{path}-wal")) if part.exists()]


def flip(path: Path, *ranges: range) -> None:
    content = bytearray(path.read_bytes())
    for span in ranges:
        for index in span:
            content[index] ^= 0xFF
    path.write_bytes(content)


def damage_header(path: Path) -> None:
    flip(path, range(0, 100))


def damage_first_page(path: Path) -> None:
    flip(path, range(0, PAGE))


def damage_page_size(path: Path) -> None:
    flip(path, range(16, 18))


def root_of(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as conn:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        return int(conn.execute(sql, (table,)).fetchone()[0])


def damage_the_root_of_the_messages(path: Path) -> None:
    root = root_of(path, "messages")
    flip(path, range((root - 1) * PAGE, root * PAGE))


def damage_a_word_of_the_schema(path: Path) -> None:
    start = path.read_bytes().index(b"CREATE TABLE messages")
    flip(path, range(start, start + 12))


def damage_all_pages_of_the_schema(path: Path) -> None:
    content = path.read_bytes()
    pages = {content.index(name) // PAGE for name in (b"CREATE TABLE messages", b"CREATE TRIGGER documents")}
    flip(path, range(PAGE), *(range(page * PAGE, (page + 1) * PAGE) for page in pages if page))


def damage_a_leaf(path: Path) -> None:
    page = path.read_bytes().index(b"words words") // PAGE + 5
    flip(path, range(page * PAGE, (page + 1) * PAGE))


def damage_by_truncating(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5 * PAGE - 100)


def damage_by_emptying(path: Path) -> None:
    os.truncate(path, 0)


def damage_by_text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 2000)


def damage_by_zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def check_rescue(path: Path, content: bytes) -> tuple[ConversationStore, Path]:
    """Open a damaged store; the damaged file must lie unchanged under the reported name."""
    store, report = open_store(path)
    assert report.moved_aside is not None
    assert report.message is not None
    assert str(report.moved_aside) in report.message
    assert report.moved_aside.parent == path.parent
    assert report.moved_aside.name.startswith(f"{path.name}.damaged-20")
    assert report.moved_aside.read_bytes() == content
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    return store, report.moved_aside


def check_it_works(store: ConversationStore, path: Path) -> None:
    """A rescued store takes new messages, and the next opening finds nothing wrong."""
    conversation_id = add_conversation(store, 1, "after the rescue")
    leaf_id = store.conversation(conversation_id).leaf_id
    store.close()
    store, report = open_store(path)
    assert report == OpenReport()
    assert leaf_id is not None
    assert store.path(leaf_id)[0].text == "after the rescue 0"
    store.close()
    names = {file.name for file in path.parent.iterdir() if ".damaged-" not in file.name}
    assert names == {path.name}


@pytest.mark.parametrize(
    "damage",
    [
        damage_header,
        damage_page_size,
        damage_the_root_of_the_messages,
        damage_a_word_of_the_schema,
        damage_all_pages_of_the_schema,
    ],
)
def test_a_lost_beginning_costs_no_message(
    db_path: Path, whole: list[str], damage: Callable[[Path], None]
) -> None:
    damage(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert all_texts(db_path) == whole
    long, first = store.conversations()
    assert (long.title, first.title) == ("Long", "question 0")
    assert first.leaf_id is not None
    path = store.path(first.leaf_id)
    assert path[-1].attachments[0].text == "long text " * 2000
    assert path[1].stats == STATS
    rows = store.ledger(first.id)
    assert list(rows.marks.values()) == [ItemMark(f"m{path[-1].id}", is_pinned=True)]
    assert rows.summaries == (dataclasses.replace(SUMMARY, id=1),)
    assert [store.reading_segments(each.id) for each in rows.readings] == [SEGMENTS]
    check_it_works(store, db_path)


def test_a_lost_first_page_costs_no_message(db_path: Path, whole: list[str]) -> None:
    damage_first_page(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert all_texts(db_path) == whole
    check_it_works(store, db_path)


def test_a_lost_page_costs_only_its_messages(db_path: Path, whole: list[str]) -> None:
    damage_a_leaf(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    rescued = all_texts(db_path)
    assert len(whole) - 30 <= len(rescued) < len(whole)
    assert set(rescued) <= set(whole)
    long = store.conversations()[0]
    assert long.leaf_id is not None
    # The messages below the gap still follow those above it.
    path = store.path(long.leaf_id)
    assert [message.text for message in path] == [text for text in rescued if text.startswith("words")]
    check_it_works(store, db_path)


def test_a_truncated_file_keeps_what_lies_before_its_end(db_path: Path, whole: list[str]) -> None:
    damage_by_truncating(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    rescued = all_texts(db_path)
    assert len(whole) // 2 < len(rescued) < len(whole)
    assert set(rescued) <= set(whole)
    check_it_works(store, db_path)


@pytest.mark.parametrize("damage", [damage_by_emptying, damage_by_text, damage_by_zeros])
def test_a_file_that_is_no_database_is_replaced_and_kept(
    db_path: Path, whole: list[str], damage: Callable[[Path], None]
) -> None:
    damage(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert store.conversations() == []
    check_it_works(store, db_path)
    assert whole


def test_a_folder_in_the_place_of_the_file_is_moved_aside(db_path: Path) -> None:
    db_path.mkdir(parents=True)
    (db_path / "precious").write_text("words")
    store, report = open_store(db_path)
    assert report.moved_aside is not None
    assert (report.moved_aside / "precious").read_text() == "words"
    check_it_works(store, db_path)


def test_a_database_of_another_program_is_moved_aside_unread(db_path: Path) -> None:
    db_path.parent.mkdir()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("CREATE TABLE recipes (id INTEGER PRIMARY KEY, name TEXT)")
        conn.execute("INSERT INTO recipes (name) VALUES ('soup')")
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert store.conversations() == []
    check_it_works(store, db_path)


def test_a_file_of_a_crash_opens_without_a_word(db_path: Path, whole: list[str]) -> None:
    leave_open_log(db_path)
    store, report = open_store(db_path)
    assert report == OpenReport()
    store.close()
    assert all_texts(db_path) == [*whole, "newest"]


def test_a_garbled_log_is_kept_and_the_file_below_it_is_rescued(db_path: Path, whole: list[str]) -> None:
    leave_open_log(db_path)
    log_file = Path(f"{db_path}-wal")
    garbage = random.Random(1).randbytes(log_file.stat().st_size)
    log_file.write_bytes(garbage)
    store, aside = check_rescue(db_path, db_path.read_bytes())
    assert Path(f"{aside}-wal").read_bytes() == garbage
    assert all_texts(db_path) == whole
    check_it_works(store, db_path)


def test_what_is_in_the_log_of_a_damaged_file_is_rescued_too(db_path: Path, whole: list[str]) -> None:
    leave_open_log(db_path)
    damage_a_leaf(db_path)
    log_content = Path(f"{db_path}-wal").read_bytes()
    store, aside = check_rescue(db_path, db_path.read_bytes())
    assert Path(f"{aside}-wal").read_bytes() == log_content
    rescued = all_texts(db_path)
    assert len(whole) - 30 <= len(rescued) < len(whole)
    assert rescued[-1] == "newest"
    check_it_works(store, db_path)


def test_a_log_without_its_file_is_kept(db_path: Path, whole: list[str]) -> None:
    leave_open_log(db_path)
    db_path.rename(db_path.with_name("elsewhere"))
    log_content = Path(f"{db_path}-wal").read_bytes()
    store, report = open_store(db_path)
    assert report.moved_aside is not None
    assert Path(f"{report.moved_aside}-wal").read_bytes() == log_content
    assert store.conversations() == []
    store.close()
    assert whole


def test_a_reply_that_was_streaming_is_rescued_as_such(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    conversation = store.create_conversation()
    question = store.add_user_message(conversation.id, None, "hello")
    reply = store.begin_reply(conversation.id, question.id, "A model")
    store.save_partial(reply.id, "Good mor")
    store.close()
    damage_header(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert store.mark_interrupted() == 1
    assert (store.message(reply.id).text, store.message(reply.id).state) == (
        "Good mor",
        MessageState.INTERRUPTED,
    )
    store.close()


def test_messages_whose_conversation_is_lost_get_a_new_one(db_path: Path, whole: list[str]) -> None:
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("DELETE FROM conversations WHERE title = 'Long'")
    damage_header(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert "Rescued conversation" in [conversation.title for conversation in store.conversations()]
    assert all_texts(db_path) == whole
    check_it_works(store, db_path)


def test_what_belonged_to_a_lost_conversation_without_messages_is_left_behind(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    lost = store.create_conversation("Lost").id
    store.add_attachment(lost, document())
    store.add_summary(lost, SUMMARY, ContextChange((ItemMark("m1", is_pinned=True),)))
    store.close()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("DELETE FROM conversations")
    damage_header(db_path)
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert store.conversations() == []
    check_it_works(store, db_path)


def test_two_damaged_files_on_one_day_are_both_kept(db_path: Path) -> None:
    db_path.parent.mkdir()
    for content in ("one", "two"):
        db_path.unlink(missing_ok=True)
        db_path.write_text(content)
        store, _ = check_rescue(db_path, content.encode())
        store.close()
    assert len(list(db_path.parent.glob("*.damaged-*"))) == 2


def test_damage_in_use_is_said_and_repaired_at_the_next_start(
    db_path: Path, whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "ALWAYS_CHECKED_NBYTES", 0)
    damage_a_leaf(db_path)
    store, report = open_store(db_path)
    assert report == OpenReport()
    leaf_id = store.conversations()[0].leaf_id
    assert leaf_id is not None
    with pytest.raises(DamagedStoreError, match=r"is damaged\. Restart Octavo"):
        store.path(leaf_id)
    store.close()
    store, _ = check_rescue(db_path, db_path.read_bytes())
    assert len(all_texts(db_path)) > len(whole) - 30
    check_it_works(store, db_path)


def test_a_circle_in_the_tree_has_an_end(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    ids = add_chain(db_path, store.create_conversation().id, 3)
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("DROP TRIGGER messages_final")
        conn.execute("DROP TRIGGER messages_place")
        conn.execute("PRAGMA ignore_check_constraints=ON")
        conn.execute("UPDATE messages SET parent_id = ? WHERE id = ?", (ids[2], ids[0]))
    assert [message.id for message in store.path(ids[2], limit=10)] == ids
    store.close()


@pytest.mark.parametrize("complete", [False, True])
def test_a_rescue_that_was_cut_off_is_finished(db_path: Path, whole: list[str], complete: bool) -> None:
    pristine = db_path.read_bytes()
    damage_header(db_path)
    content = db_path.read_bytes()
    # What a killed rescue leaves: a new file that is complete, or one that is not yet.
    name = f"{db_path.name}.{'rescued' if complete else 'rescuing'}"
    db_path.with_name(name).write_bytes(pristine if complete else b"half a file")
    store, _ = check_rescue(db_path, content)
    assert all_texts(db_path) == whole
    check_it_works(store, db_path)


def test_a_rescue_that_was_cut_off_between_its_renames_is_finished(db_path: Path, whole: list[str]) -> None:
    db_path.rename(db_path.with_name(f"{db_path.name}.rescued"))
    with pytest.raises(DamagedStoreError):
        ConversationStore.open(db_path)
    store, _ = open_store(db_path)
    assert all_texts(db_path) == whole
    check_it_works(store, db_path)


def test_a_linked_file_is_moved_aside_where_it_lies(db_path: Path, whole: list[str], tmp_path: Path) -> None:
    real = tmp_path / "other disk" / "real.db"
    real.parent.mkdir()
    db_path.rename(real)
    db_path.symlink_to(real)
    damage_header(real)
    store, report = open_store(db_path)
    assert report.moved_aside is not None
    assert report.moved_aside.parent == real.parent
    assert db_path.is_symlink()
    assert all_texts(db_path) == whole
    store.close()


@pytest.mark.slow
def test_no_damage_anywhere_stops_the_opening(db_path: Path, whole: list[str]) -> None:
    pristine = db_path.read_bytes()
    rng = random.Random(7)
    for _ in range(60):
        for file in db_path.parent.iterdir():
            file.unlink()
        content = bytearray(pristine)
        for _ in range(rng.randint(1, 6)):
            start = rng.randrange(len(content))
            length = rng.choice([1, 4, 100, PAGE, 3 * PAGE])
            content[start : start + length] = rng.randbytes(len(content[start : start + length]))
        db_path.write_bytes(content)
        store, report = open_store(db_path)
        assert not report.moved_aside or report.moved_aside.read_bytes() == content
        for conversation in store.conversations():
            if conversation.leaf_id is not None:
                store.path(conversation.leaf_id)
            store.add_user_message(conversation.id, conversation.leaf_id, "after the rescue")
        store.close()
        assert len(set(whole) & set(all_texts(db_path))) > len(whole) // 3


@pytest.mark.parametrize("version", ["old", "new"])
def test_settings_of_a_wrong_type_cost_a_conversation_neither_its_title_nor_its_draft(
    db_path: Path, version: str
) -> None:
    damage, last = "profile = x'ff00'", None
    if version == "old":
        damage, last = f"{damage}, context_from = 'none'", "003_context"
    db_path.parent.mkdir()
    create_file(db_path, CONVERSATIONS, stop_before=last)
    with closing(sqlite3.connect(db_path)) as conn, conn:  # as if the disk had changed the types
        conn.execute("PRAGMA writable_schema=ON")
        conn.execute("UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') WHERE name = 'conversations'")
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute(
            """INSERT INTO conversations (title, draft, created_at, updated_at)
               VALUES ('Mine', 'half', '1', '2')"""
        )
        conn.execute(f"UPDATE conversations SET {damage}")
    rescue_store(db_path, CONVERSATIONS)
    store = ConversationStore.open(db_path)
    (mine,) = store.conversations()
    assert (mine.title, mine.draft, mine.profile) == ("Mine", "half", None)
    assert store.ledger(mine.id) == LedgerRows()
    store.close()
