from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils
from sqlite_utils import Migrations

from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext
from app.ledger.records import ItemMark, LedgerRows
from app.profiles import BUILT_IN, CUSTOM, DocumentMode, Overflow, Profile
from app.reading.records import Reading, ReadSegment, SegmentState, Source, SourceKind
from app.store.backups import MAX_COPIES
from app.store.connection import StoreConnection, create_file, migration_names
from app.store.conversations import ConversationStore
from app.store.db import open_store
from app.store.errors import NewerSchemaError, StoreError
from app.store.migrations import CONVERSATIONS
from app.store.records import MessageState
from app.store.rescue import rescue_store
from app.store.stray_pages import PAGE_NBYTES, schema_offsets
from engine.kv.precision import KVSpec
from tests.app.store.samples import SUMMARY, add_chain, add_conversation

ROOT = Path(__file__).parents[3]
SCHEMAS = Path(__file__).parent / "schemas"
OLD_SCHEMAS = sorted(SCHEMAS.glob("*.sql"))


def add_tags(db: sqlite_utils.Database) -> None:
    db.execute("ALTER TABLE conversations ADD COLUMN tag TEXT NOT NULL DEFAULT 'none'")


def fail_half_way(db: sqlite_utils.Database) -> None:
    add_tags(db)
    db.execute("UPDATE conversations SET title = NULL")


def rebuild_the_conversations(db: sqlite_utils.Database) -> None:
    db.executescript("""
        CREATE TABLE rebuilt (
            id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT, renamed, created_at, updated_at, pinned, draft,
            leaf_id, deleted_at, profile
        );
        INSERT INTO rebuilt SELECT * FROM conversations;
        DROP TRIGGER messages_kept;
        DROP TRIGGER summaries_kept;
        DROP TABLE conversations;
        ALTER TABLE rebuilt RENAME TO conversations;
    """)


def next_version(migration: Callable[[sqlite_utils.Database], None] = add_tags) -> Migrations:
    """The migrations of a later version of the program."""
    later = Migrations("conversations")
    with closing(sqlite_utils.Database(memory=True)) as empty:
        for entry in CONVERSATIONS.pending(empty):
            later(name=entry.name)(entry.fn)
    later(name="099_later")(migration)
    return later


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as conn:
        return list(conn.iterdump())


def copies_of(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.before-*"))


def test_every_migration_has_left_a_sample_of_its_schema() -> None:
    names = migration_names(CONVERSATIONS)
    assert [schema.stem for schema in OLD_SCHEMAS] == names


@pytest.mark.parametrize("schema", OLD_SCHEMAS, ids=lambda schema: schema.stem)
def test_a_file_of_every_older_version_opens_with_all_it_holds(db_path: Path, schema: Path) -> None:
    db_path.parent.mkdir()
    with closing(sqlite3.connect(db_path)) as conn:
        conn.executescript(schema.read_text())
    store, report = open_store(db_path)
    assert report.message is None

    pinned, mine = store.conversations()
    assert (pinned.title, pinned.pinned, pinned.draft) == ("question 0", True, "half")
    assert (mine.title, mine.pinned) == ("Mine", False)
    assert pinned.leaf_id is not None
    path = store.path(pinned.leaf_id)
    assert [message.text for message in path] == [
        "question 0",
        "Answer to question 0",
        "question 1",
        "Answer to question 1",
        "Read it well.",
    ]
    assert path[1].stats is not None and path[1].stats.decode_tps == 31.25
    assert path[1].stats.kv_usage is None  # its figures of the KV cache were others
    assert [attachment.text for attachment in path[-1].attachments] == ["Zażółć gęślą jaźń"]
    sibling = store.message(path[-1].siblings[0])
    assert (sibling.text, sibling.attachments) == ("Read it.", path[-1].attachments)
    failed = store.message(store.deepest_leaf(sibling.id))
    assert (failed.state, failed.error) == (MessageState.FAILED, "The engine failed.")
    assert [attachment.title for attachment in store.draft_attachments(pinned.id)] == ["Waiting"]
    assert mine.leaf_id is not None
    assert store.mark_interrupted() == 1
    assert store.message(mine.leaf_id).text == "Good mor"
    assert store.purge_deleted() == 1
    store.close()


def opened_from(db_path: Path, schema: str) -> ConversationStore:
    db_path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(db_path)) as conn:
        conn.executescript((SCHEMAS / schema).read_text())
    store, _ = open_store(db_path)
    return store


@pytest.mark.parametrize("schema", ["002_profiles.sql", "003_context.sql", "004_readings.sql"])
def test_profiles_are_kept_where_a_file_has_them(db_path: Path, schema: str) -> None:
    store = opened_from(db_path, schema)
    first, second = store.conversations()
    assert first.profile == Profile(
        CUSTOM, KVSpec.parse("k8v4; warm=2"), 8192, Overflow.DROP, DocumentMode.SEGMENTS
    )
    assert second.profile is None
    store.close()


def test_what_stood_above_the_beginning_of_the_context_is_left_out(db_path: Path) -> None:
    store = opened_from(db_path, "002_profiles.sql")
    first, second = store.conversations()
    assert store.ledger(first.id) == LedgerRows(
        {"m1": ItemMark("m1", is_dropped=True), "m2": ItemMark("m2", is_dropped=True)}
    )
    assert first.leaf_id is not None
    context = ConversationContext.of(store.path(first.leaf_id), store.ledger(first.id))
    assert [message.key for message in context.messages] == ["m3", "m4", "m7"]
    assert store.ledger(second.id) == LedgerRows()
    assert [copy.name[:-17] for copy in copies_of(db_path)] == ["conversations.db.before-003-"]
    store.close()


@pytest.mark.parametrize("start", ["NULL", "8", "99", "-1", "1"])
def test_a_context_that_begins_nowhere_on_its_path_is_whole(db_path: Path, start: str) -> None:
    db_path.parent.mkdir()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.executescript((SCHEMAS / "002_profiles.sql").read_text())
        conn.execute(f"UPDATE conversations SET context_from = {start} WHERE id = 1")
    store = ConversationStore.open(db_path)
    assert store.ledger(1) == LedgerRows()
    store.close()


def test_a_long_context_is_left_out_whole(db_path: Path) -> None:
    db_path.parent.mkdir()
    create_file(db_path, CONVERSATIONS, stop_before="003_context")
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("INSERT INTO conversations (title, created_at, updated_at) VALUES ('Long', '1', '2')")
    ids = add_chain(db_path, 1, 2000)
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("UPDATE conversations SET context_from = ?", (ids[-2],))
    store = ConversationStore.open(db_path)
    assert store.ledger(1).marks.keys() == {f"m{message_id}" for message_id in ids[:-2]}
    store.close()


def test_marks_and_summaries_are_kept_where_a_file_has_them(db_path: Path) -> None:
    store = opened_from(db_path, "003_context.sql")
    first, _ = store.conversations()
    assert store.ledger(first.id) == LedgerRows(
        {
            "m1": ItemMark("m1", is_dropped=True),
            "m2": ItemMark("m2", is_dropped=True),
            "a1": ItemMark("a1", is_pinned=True),
        },
        (dataclasses.replace(SUMMARY, id=1, covers=("m1", "m2", "m3", "m4")),),
    )
    store.close()


def test_what_was_read_of_documents_is_kept_where_a_file_has_it(db_path: Path) -> None:
    store = opened_from(db_path, "004_readings.sql")
    first, mine = store.conversations()
    rows = store.ledger(first.id)
    assert rows.marks["a1"] == ItemMark("a1", is_pinned=True, way=DocumentWay.SEGMENTS)
    (reading,) = rows.readings
    assert reading == Reading(
        3,
        7,
        1,
        DocumentWay.SEGMENTS,
        "A model",
        "[1] (p. 1) Yellow.",
        num_segments=2,
        num_read=1,
        num_failed=1,
    )
    assert store.reading_segments(3) == (
        ReadSegment(0, 6, SegmentState.READ, "Yellow."),
        ReadSegment(6, 18, SegmentState.FAILED, error="The model wrote nothing."),
    )
    assert mine.leaf_id is not None
    assert store.message(mine.leaf_id).sources == (
        Source(1, 1, 0, 6, SourceKind.NOTED, is_cited=True),
        Source(0, 1, 6, 18, SourceKind.ATTENDED, share=0.5),
    )
    assert [each.page_starts for each in store.draft_attachments(first.id)] == [(0, 4)]
    assert store.speed("A model") == "{}"
    store.close()


def test_an_old_file_and_a_new_one_have_the_same_schema(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with closing(sqlite3.connect(old)) as conn:
        conn.executescript(OLD_SCHEMAS[0].read_text())
    schemas = []
    for path in (old, new):
        ConversationStore.open(path).close()
        with closing(sqlite3.connect(path)) as conn:
            schemas.append(conn.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall())
            assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    assert schemas[0] == schemas[1]


def test_a_copy_is_made_before_a_migration(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    add_conversation(store, 2)
    store.close()
    before = dump(db_path)
    StoreConnection.open(db_path, next_version()).close()
    (copy,) = copies_of(db_path)
    assert copy.name.startswith("conversations.db.before-099-20")
    assert dump(copy) == before
    assert copy.stat().st_mode & 0o077 == 0
    assert "tag" in "".join(dump(db_path))
    StoreConnection.open(db_path, next_version()).close()
    assert copies_of(db_path) == [copy]


def test_no_copy_is_made_of_a_file_that_is_new(db_path: Path) -> None:
    StoreConnection.open(db_path, next_version()).close()
    assert [file.name for file in db_path.parent.iterdir()] == [db_path.name]


def test_only_the_newest_copies_are_kept(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    for number in range(MAX_COPIES + 2):
        store.create_conversation(f"number {number}")
        with pytest.raises(StoreError):
            StoreConnection.open(db_path, next_version(fail_half_way))
    copies = sorted(copies_of(db_path), key=lambda copy: copy.stat().st_mtime_ns)
    assert ["".join(dump(copy)).count("'number ") for copy in copies] == [3, 4, 5]
    store.close()


def test_a_migration_that_fails_changes_nothing(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    conversation_id = add_conversation(store, 2)
    store.close()
    before = dump(db_path)
    with pytest.raises(StoreError, match="NOT NULL constraint"):
        StoreConnection.open(db_path, next_version(fail_half_way))
    assert dump(db_path) == before
    store = ConversationStore.open(db_path)
    assert store.conversation(conversation_id).title == "question 0"
    store.close()


def test_a_migration_may_rebuild_a_table_that_others_refer_to(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    ids = add_chain(db_path, store.create_conversation().id, 10)
    store.close()
    StoreConnection.open(db_path, next_version(rebuild_the_conversations)).close()
    with closing(sqlite3.connect(db_path)) as conn:
        assert [message_id for (message_id,) in conn.execute("SELECT id FROM messages ORDER BY id")] == ids


def test_a_newer_file_is_refused_and_left_as_it_is(db_path: Path) -> None:
    StoreConnection.open(db_path, next_version()).close()
    content = db_path.read_bytes()
    for open_it in (open_store, ConversationStore.open):
        with pytest.raises(NewerSchemaError, match="newer version of Octavo"):
            open_it(db_path)
    assert db_path.read_bytes() == content
    assert not [file for file in db_path.parent.iterdir() if "damaged" in file.name]


def test_a_newer_file_that_is_damaged_is_refused_too(db_path: Path) -> None:
    StoreConnection.open(db_path, next_version()).close()
    content = bytearray(db_path.read_bytes())
    content[:16] = bytes(16)
    db_path.write_bytes(content)
    with pytest.raises(NewerSchemaError):
        open_store(db_path)
    assert db_path.read_bytes() == content
    assert [file.name for file in db_path.parent.iterdir()] == [db_path.name]


def test_a_damaged_old_file_is_rescued_in_its_own_schema_and_then_migrated(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    add_chain(db_path, store.create_conversation("Long").id, 100)
    store.close()
    content = bytearray(db_path.read_bytes())
    content[:100] = bytes(100)
    db_path.write_bytes(content)
    rescue = rescue_store(db_path, next_version())
    assert rescue.num_messages == 100
    assert "tag" not in "".join(dump(db_path))
    StoreConnection.open(db_path, next_version()).close()
    assert "tag" in "".join(dump(db_path))


@pytest.mark.parametrize("is_migrated", [False, True], ids=["old", "migrated"])
def test_an_older_file_that_has_lost_its_schema_keeps_its_messages(db_path: Path, is_migrated: bool) -> None:
    db_path.parent.mkdir()
    create_file(db_path, CONVERSATIONS, stop_before="002_profiles")
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("INSERT INTO conversations (title, created_at, updated_at) VALUES ('Long', '1', '2')")
    add_chain(db_path, 1, 400, "words " * 40)
    if is_migrated:
        store = ConversationStore.open(db_path)
        store.set_profile(1, BUILT_IN[1])
        store.close()
    content = bytearray(db_path.read_bytes())
    for start in schema_offsets(bytes(content)):
        content[start : start + PAGE_NBYTES] = bytes(PAGE_NBYTES)
    db_path.write_bytes(content)
    store, report = open_store(db_path)
    assert report.message is not None
    (long,) = store.conversations()
    assert long.leaf_id is not None
    assert len(store.path(long.leaf_id)) == 400
    assert long.profile == (BUILT_IN[1] if is_migrated else None)
    store.close()


WITHOUT_ROOM_FOR_A_COPY = """
import resource, signal, sys
from pathlib import Path
from app.store.connection import StoreConnection
from app.store.errors import StorageFullError
from tests.app.store.test_migrations import next_version

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
try:
    StoreConnection.open(Path(sys.argv[1]), next_version())
except StorageFullError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a file")
def test_without_room_for_a_copy_nothing_is_migrated(db_path: Path) -> None:
    store = ConversationStore.open(db_path)
    add_chain(db_path, store.create_conversation().id, 2000)
    store.close()
    before = dump(db_path)
    command = [sys.executable, "-c", WITHOUT_ROOM_FOR_A_COPY, str(db_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "the disk is full" in done.stdout, done.stderr
    assert dump(db_path) == before
    assert [file.name for file in db_path.parent.iterdir()] == [db_path.name]
