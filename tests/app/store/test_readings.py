"""What is stored of reading documents for questions, and of the sources of answers."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState, Source, SourceKind
from app.store.conversations import ConversationStore
from app.store.db import open_store
from app.store.errors import NotFoundError, StoreError
from app.store.records import Attachment, Message, MessageState
from tests.app.store.samples import SUMMARY, document

UNREAD = (ReadSegment(0, 10), ReadSegment(10, 20), ReadSegment(20, 23))
NOTED = ReadSegment(10, 20, SegmentState.READ, "Owls hunt.", is_extract=True)
FAILED = ReadSegment(20, 23, SegmentState.FAILED, error="No answer.")
SOURCES = (
    Source(1, 1, 10, 20, SourceKind.NOTED, is_cited=True),
    Source(0, 1, 0, 4, SourceKind.ATTENDED, share=0.25),
)


@pytest.fixture
def asked(store: ConversationStore) -> Message:
    """A question with one document of 23 characters."""
    conversation_id = store.create_conversation().id
    owls = store.add_attachment(conversation_id, document())
    return store.add_user_message(conversation_id, None, "What do owls do?", [owls.id])


def owls_of(asked: Message) -> Attachment:
    return asked.attachments[0]


def begun(
    store: ConversationStore,
    asked: Message,
    way: DocumentWay = DocumentWay.SEGMENTS,
    model: str = "A model",
    segments: tuple[ReadSegment, ...] = UNREAD,
) -> Reading:
    return store.begin_reading(asked.id, owls_of(asked).id, way, model, segments)


def break_header(db_path: Path) -> None:
    """Damage a file that nobody has open."""
    content = bytearray(db_path.read_bytes())
    content[:100] = bytes(100)
    db_path.write_bytes(content)


def readings(store: ConversationStore, asked: Message) -> tuple[Reading, ...]:
    return store.ledger(asked.conversation_id).readings


def test_a_reading_grows_by_segments_and_ends_with_its_text(store: ConversationStore, asked: Message) -> None:
    reading = begun(store, asked)
    assert readings(store, asked) == (reading,)
    assert (reading.num_segments, reading.num_read, reading.num_failed, reading.is_done) == (3, 0, 0, False)
    assert store.reading_segments(reading.id) == UNREAD

    store.save_segment(reading.id, 1, NOTED)
    store.save_segment(reading.id, 2, FAILED)
    assert store.reading_segments(reading.id) == (UNREAD[0], NOTED, FAILED)
    done = store.finish_reading(reading.id, "[1] Owls hunt.")
    assert done == dataclasses.replace(reading, text="[1] Owls hunt.", num_read=1, num_failed=1)
    assert done.is_done and readings(store, asked) == (done,)


def test_a_reading_goes_on_where_it_was_after_a_restart(db_path: Path) -> None:
    store, _ = open_store(db_path)
    conversation_id = store.create_conversation().id
    owls = store.add_attachment(conversation_id, document())
    asked = store.add_user_message(conversation_id, None, "What do owls do?", [owls.id])
    store.save_segment(begun(store, asked).id, 1, NOTED)
    store.close()
    store, _ = open_store(db_path)
    again = begun(store, asked)
    assert (again.num_read, again.key) == (1, "r1")
    assert store.reading_segments(again.id) == (UNREAD[0], NOTED, UNREAD[2])
    store.close()


@pytest.mark.parametrize(
    ("way", "model", "segments"),
    [
        (DocumentWay.LOOK_UP, "A model", UNREAD),
        (DocumentWay.SEGMENTS, "Another model", UNREAD),
        (DocumentWay.SEGMENTS, "A model", (ReadSegment(0, 23),)),
    ],
    ids=["way", "model", "places"],
)
def test_a_reading_by_another_way_or_model_or_in_other_places_takes_the_place_of_the_former(
    store: ConversationStore,
    asked: Message,
    way: DocumentWay,
    model: str,
    segments: tuple[ReadSegment, ...],
) -> None:
    former = begun(store, asked)
    store.save_segment(former.id, 1, NOTED)
    reading = begun(store, asked, way, model, segments)
    assert reading.id != former.id  # a key promises words
    assert readings(store, asked) == (reading,)
    assert store.reading_segments(reading.id) == segments
    assert store.reading_segments(former.id) == ()
    with pytest.raises(NotFoundError):
        store.save_segment(former.id, 0, UNREAD[0])


def test_a_finished_reading_never_changes(store: ConversationStore, asked: Message, db_path: Path) -> None:
    reading = begun(store, asked)
    store.finish_reading(reading.id, "Nothing.")
    with pytest.raises(StoreError, match="can no longer change"):
        store.save_segment(reading.id, 1, NOTED)
    with pytest.raises(StoreError, match="can no longer change"):
        store.finish_reading(reading.id, "Something.")
    with closing(sqlite3.connect(db_path)) as conn:
        for change in ("UPDATE readings SET text = ''", "UPDATE reading_segments SET note = 'No.'"):
            with pytest.raises(sqlite3.IntegrityError, match="never changes"):
                conn.execute(change)
    assert begun(store, asked).text == "Nothing."
    with pytest.raises(ValueError, match="not finished"):
        store.finish_reading(begun(store, asked, DocumentWay.LOOK_UP).id, "")


def test_a_reading_that_was_answered_from_half_way_can_be_gone_on_with(
    store: ConversationStore, asked: Message
) -> None:
    reading = begun(store, asked)
    store.save_segment(reading.id, 1, NOTED)
    store.save_segment(reading.id, 2, FAILED)
    store.finish_reading(reading.id, "[1] Owls hunt.")
    again = store.reopen_reading(reading.id)
    assert (again.is_done, again.num_read, again.num_failed) == (False, 1, 0)
    assert again.id != reading.id
    assert store.reading_segments(again.id) == (UNREAD[0], NOTED, UNREAD[2])


def test_a_segment_stays_where_it_is_in_the_document(store: ConversationStore, asked: Message) -> None:
    reading = begun(store, asked)
    for index, segment in ((0, NOTED), (3, NOTED)):
        with pytest.raises(StoreError, match="not one of those"):
            store.save_segment(reading.id, index, segment)
    assert store.reading_segments(reading.id) == UNREAD


def test_a_document_of_another_conversation_is_not_read(store: ConversationStore, asked: Message) -> None:
    other = store.create_conversation().id
    bats = store.add_attachment(other, document("Bats hang."))
    with pytest.raises(NotFoundError):
        store.begin_reading(asked.id, bats.id, DocumentWay.SEGMENTS, "A model", UNREAD)


def test_readings_go_with_their_conversation(store: ConversationStore, asked: Message, db_path: Path) -> None:
    reading = begun(store, asked)
    reply = store.begin_reply(asked.conversation_id, asked.id, "A model")
    store.finish_reply(reply.id, "They hunt [1].", MessageState.COMPLETE, sources=SOURCES)
    store.delete(asked.conversation_id)
    store.purge_deleted()
    assert store.reading_segments(reading.id) == ()
    with closing(sqlite3.connect(db_path)) as conn:
        for table in ("readings", "reading_segments", "sources"):
            assert conn.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_what_is_purged_leaves_no_word_of_its_notes(
    store: ConversationStore, asked: Message, db_path: Path
) -> None:
    kept = store.create_conversation("Kept").id
    store.add_user_message(kept, None, "Words that stay.")
    reading = begun(store, asked, model="Hidden model")
    note = ReadSegment(0, 10, SegmentState.READ, "Hidden note. " * 400)
    store.save_segment(reading.id, 0, note)
    store.save_segment(reading.id, 2, dataclasses.replace(FAILED, error="Hidden error."))
    store.finish_reading(reading.id, "Hidden text. " * 400)
    store.finish_reading(store.reopen_reading(reading.id).id, "Hidden again. " * 400)
    begun(store, asked, DocumentWay.LOOK_UP)
    files = [db_path, *db_path.parent.glob(f"{db_path.name}-*")]
    assert any(b"Hidden note" in file.read_bytes() for file in files)
    store.delete(asked.conversation_id)
    store.purge_deleted()
    assert not any(b"Hidden" in file.read_bytes() for file in files)
    assert any(b"Words that stay" in file.read_bytes() for file in files)


def test_a_reply_keeps_its_sources_and_they_never_change(
    store: ConversationStore, asked: Message, db_path: Path
) -> None:
    reply = store.begin_reply(asked.conversation_id, asked.id, "A model")
    ended = store.finish_reply(reply.id, "They hunt [1].", MessageState.COMPLETE, sources=SOURCES)
    assert ended.sources == SOURCES
    assert [message.sources for message in store.path(reply.id)] == [(), SOURCES]
    with pytest.raises(StoreError):
        store.finish_reply(reply.id, "They hunt.", MessageState.COMPLETE, sources=SOURCES)
    with closing(sqlite3.connect(db_path)) as conn:
        for change in ("UPDATE sources SET number = 7", "DELETE FROM sources"):
            with pytest.raises(sqlite3.IntegrityError, match="never changes"):
                conn.execute(change)


def test_what_is_damaged_of_readings_and_sources_costs_no_conversation(
    store: ConversationStore, asked: Message, db_path: Path
) -> None:
    reading = begun(store, asked)
    reply = store.begin_reply(asked.conversation_id, asked.id, "A model")
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute(f"INSERT INTO sources VALUES (1, {reply.id}, 0, 1, 1, 0, 2, 'no kind', 0, NULL)")
        conn.execute("UPDATE reading_segments SET state = 'no state' WHERE position = 0")
        conn.execute("INSERT INTO context_marks VALUES (1, 'a1', 1, 0, 'no way', 0)")
    assert store.reading_segments(reading.id) == UNREAD
    assert store.message(reply.id).sources == ()
    mark = store.ledger(asked.conversation_id).marks["a1"]
    assert (mark.is_pinned, mark.way) == (True, None)
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("UPDATE readings SET way = 'no way'")
    assert readings(store, asked) == ()
    assert begun(store, asked).num_segments == 3


def test_a_rescue_takes_readings_and_sources_along(
    store: ConversationStore, asked: Message, db_path: Path
) -> None:
    reading = begun(store, asked)
    store.save_segment(reading.id, 1, NOTED)
    done = store.finish_reading(reading.id, "[1] Owls hunt.")
    reply = store.begin_reply(asked.conversation_id, asked.id, "A model")
    store.finish_reply(reply.id, "They hunt [1].", MessageState.COMPLETE, sources=SOURCES)
    store.add_summary(asked.conversation_id, SUMMARY)
    store.save_speed("A model", "fast")
    store.close()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        # What belongs to nothing any more must not stand in the way.
        conn.execute("INSERT INTO readings VALUES (9, 1, 99, 1, 'look_up', 'A model', 'Lost.')")
        conn.execute("INSERT INTO reading_segments VALUES (90, 9, 0, 0, 1, 'read', '', 0, '')")
        conn.execute("INSERT INTO sources VALUES (90, 99, 0, 1, 1, 0, 2, 'noted', 0, NULL)")
    break_header(db_path)
    rescued, report = open_store(db_path)
    assert report.moved_aside is not None
    assert readings(rescued, asked) == (done,)
    assert rescued.reading_segments(done.id) == (UNREAD[0], NOTED, UNREAD[2])
    assert rescued.message(reply.id).sources == SOURCES
    assert rescued.speed("A model") == "fast"
    with closing(sqlite3.connect(db_path)) as conn:
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
    rescued.close()


@pytest.mark.parametrize("lost", [[0], [1], [2], [1, 2], [0, 2], [0, 1, 2]])
def test_segments_that_are_lost_are_unread_again_where_a_reading_is_to_be_gone_on_with(
    store: ConversationStore, asked: Message, db_path: Path, lost: list[int]
) -> None:
    text = owls_of(asked).text
    spans = [(0, 10), (10, 20), (20, len(text))]
    segments = tuple(ReadSegment(*span) for span in spans)
    reading = begun(store, asked, segments=segments)
    for index, each in enumerate(segments):
        store.save_segment(
            reading.id, index, dataclasses.replace(each, state=SegmentState.READ, note="Owls.")
        )
    store.close()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.executemany("DELETE FROM reading_segments WHERE position = ?", [(index,) for index in lost])
    break_header(db_path)
    rescued, _ = open_store(db_path)
    found = rescued.reading_segments(reading.id)
    unread = "".join(text[each.start : each.stop] for each in found if each.state is SegmentState.UNREAD)
    noted = [(each.start, each.stop) for each in found if each.note]
    assert noted == [span for index, span in enumerate(spans) if index not in lost]
    if noted:
        assert unread == "".join(text[slice(*spans[index])] for index in lost)
    else:
        assert found == readings(rescued, asked) == ()
    for index, each in enumerate(found):  # each can be read
        rescued.save_segment(reading.id, index, dataclasses.replace(each, state=SegmentState.READ))
    rescued.close()


def test_damaged_page_starts_cost_no_document(
    store: ConversationStore, asked: Message, db_path: Path
) -> None:
    store.close()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        (sql,) = conn.execute("SELECT sql FROM sqlite_schema WHERE name = 'attachments'").fetchone()
        conn.execute("PRAGMA writable_schema=ON")
        loose = sql.replace("STRICT", "")
        conn.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'attachments'", (loose,))
        conn.execute("DROP TRIGGER attachments_sent")
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("UPDATE attachments SET page_starts = x'00'")
    break_header(db_path)
    rescued, _ = open_store(db_path)
    assert [each.title for each in rescued.message(asked.id).attachments] == [owls_of(asked).title]
    rescued.close()


def test_the_speed_of_a_model_is_kept_by_its_name(store: ConversationStore) -> None:
    assert store.speed("A model") is None
    store.save_speed("A model", "slow")
    store.save_speed("A model", "fast")
    store.save_speed("Another model", "slow")
    assert (store.speed("A model"), store.speed("Another model")) == ("fast", "slow")
