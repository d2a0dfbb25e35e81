from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.ledger.records import SummaryState
from app.store.db import OpenReport, open_store
from app.store.records import MessageState

ROOT = Path(__file__).parents[3]


def kill_writer(job: str, path: Path, num_lines: int) -> list[int]:
    """Run the writer until it has printed `num_lines`, kill it outright and return its last whole line."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.app.store.writer_process", job, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(num_lines)]
        process.kill()
        lines += process.stdout.readlines()
    return [int(word) for word in [line for line in lines if line.endswith("\n")][-1].split()]


def test_a_killed_reply_is_there_as_far_as_it_was_saved_and_nothing_else_is_lost(db_path: Path) -> None:
    reply_id, num_words = kill_writer("stream", db_path, num_lines=20)
    store, report = open_store(db_path)
    assert report == OpenReport()
    reply = store.message(reply_id)
    assert reply.state is MessageState.STREAMING
    # The process may have been killed after a save and before it could print it.
    assert reply.text in {"word " * num_words, "word " * (num_words + 1)}
    assert store.mark_interrupted() == 1
    assert store.message(reply_id).state is MessageState.INTERRUPTED
    assert store.message(reply_id).text == reply.text

    (conversation,) = store.conversations()
    assert (conversation.leaf_id, conversation.draft) == (reply_id, "half a question")
    path = store.path(reply_id)
    assert [message.text for message in path[:-1]] == [
        "question 0",
        "Answer to question 0",
        "question 1",
        "Answer to question 1",
        "question 2",
        "Answer to question 2",
        "Go on for ever.",
    ]
    assert [attachment.text for attachment in path[-2].attachments] == ["The text of a document."]
    assert {message.state for message in path[:-1]} == {MessageState.COMPLETE}
    store.close()


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_whole_messages(tmp_path: Path) -> None:
    random.seed(20)
    for attempt in range(15):
        path = tmp_path / str(attempt) / "conversations.db"
        number, leaf_id = kill_writer("send", path, num_lines=random.randint(1, 40))
        store, report = open_store(path)
        assert report == OpenReport()
        (conversation,) = store.conversations()
        assert conversation.leaf_id is not None
        messages = store.path(conversation.leaf_id)
        assert len(messages) in {number + 1, number + 2}
        assert messages[number].id == leaf_id
        for index, message in enumerate(messages):
            assert message.text == f"message {index}"
            assert [attachment.text for attachment in message.attachments] == [f"{index} a", f"{index} b"]
        waiting = store.draft_attachments(conversation.id)
        assert [attachment.text for attachment in waiting] == [
            f"{len(messages)} {part}" for part in "ab"[: len(waiting)]
        ]
        assert conversation.draft in {"", f"message {len(messages)}"}
        store.close()
        with closing(sqlite3.connect(path)) as conn:
            assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.slow
def test_a_process_killed_in_the_middle_of_a_trim_leaves_marks_and_summaries_that_belong_together(
    tmp_path: Path,
) -> None:
    random.seed(21)
    for attempt in range(8):
        path = tmp_path / str(attempt) / "conversations.db"
        (number,) = kill_writer("trim", path, num_lines=random.randint(1, 40))
        store, report = open_store(path)
        assert report == OpenReport()
        rows = store.ledger(store.conversations()[0].id)
        assert len(rows.summaries) in {number, number + 1}
        assert rows.marks.keys() == {f"m{one}" for one in range(1, len(rows.summaries) + 1)}
        *former, last = rows.summaries
        assert {each.state for each in former} <= {SummaryState.RETIRED}
        assert last.state is SummaryState.USED
        store.close()


@pytest.mark.slow
def test_a_process_killed_while_it_creates_the_file_leaves_one_that_opens(tmp_path: Path) -> None:
    for attempt in range(6):
        path = tmp_path / str(attempt) / "conversations.db"
        with subprocess.Popen(
            [sys.executable, "-m", "tests.app.store.writer_process", "send", str(path)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        ) as process:
            while not path.parent.exists() and process.poll() is None:
                time.sleep(0.0005)
            process.kill()
        store, report = open_store(path)
        assert report == OpenReport()
        store.create_conversation()
        store.close()
