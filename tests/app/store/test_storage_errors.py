"""Full disks, locked files and missing rights, each made by the operating system itself."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.store import connection
from app.store.conversations import ConversationStore
from app.store.db import open_store
from app.store.errors import StoreLockedError
from tests.app.store.samples import add_conversation

ROOT = Path(__file__).parents[3]

WITHOUT_ROOM = """
import resource, signal, sys
from pathlib import Path
from app.store.db import open_store
from app.store.errors import StorageFullError
from tests.app.store.samples import add_conversation, document

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])

def leave_room(nbytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, resource.RLIM_INFINITY))

store, _ = open_store(path)
conversation_id = add_conversation(store, 2)
leaf_id = store.conversation(conversation_id).leaf_id
reply = store.begin_reply(conversation_id, leaf_id, "A model")

def content():
    return store.conversations(), store.path(reply.id), store.draft_attachments(conversation_id)

before = content()
leave_room(Path(f"{path}-wal").stat().st_size + 20_000)
sentences = set()
for attempt in (
    lambda: store.add_attachment(conversation_id, document("long text " * 10_000)),
    lambda: store.add_user_message(conversation_id, leaf_id, "long " * 20_000),
    lambda: store.save_partial(reply.id, "long " * 20_000),
    lambda: store.set_draft(conversation_id, "long " * 20_000),
):
    try:
        attempt()
    except StorageFullError as error:
        sentences.add(str(error))
    else:
        sys.exit("there was room")
    assert content() == before
(sentence,) = sentences
leave_room(resource.RLIM_INFINITY)
store.save_partial(reply.id, "room again")
store.add_attachment(conversation_id, document("long text " * 10_000))
after = content()
assert after[1][:-1] == before[1][:-1]
store.close()
store, report = open_store(path)
assert report.message is None
assert content() == after
store.close()
print(sentence)
"""

AS_SOMEBODY_ELSE = """
import os, sys, urllib.parse
from pathlib import Path
from app.store.conversations import ConversationStore
from app.store.db import open_store
from app.store.errors import StoreAccessError

# Everything is imported while the files of the interpreter can still be read.
warm_up = Path(sys.argv[2])
open_store(warm_up)[0].close()
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
for open_it in (open_store, ConversationStore.open):
    try:
        open_it(Path(sys.argv[1]))
    except StoreAccessError as error:
        print(error)
"""


def run(script: str, *arguments: str | Path) -> str:
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a file")
def test_a_full_disk_loses_only_what_was_being_written(db_path: Path) -> None:
    sentence = run(WITHOUT_ROOM, db_path)
    assert "the disk is full" in sentence
    assert "Free some space" in sentence


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
class TestWithoutRights:
    def check(self, path: Path, tmp_path: Path) -> None:
        before = {file: file.read_bytes() for file in path.parent.iterdir()} if path.exists() else {}
        sentences = run(AS_SOMEBODY_ELSE, path, tmp_path / "warm-up.db").splitlines()
        assert len(sentences) == 2
        assert all(f"may not read or write {path}" in sentence for sentence in sentences)
        assert {file: file.read_bytes() for file in before} == before

    def test_an_unreadable_file_is_left_alone(self, open_folder: Path, tmp_path: Path) -> None:
        path = open_folder / "conversations.db"
        ConversationStore.open(path).close()
        path.chmod(0)
        self.check(path, tmp_path)

    def test_a_read_only_folder_is_said(self, open_folder: Path, tmp_path: Path) -> None:
        path = open_folder / "conversations.db"
        ConversationStore.open(path).close()
        path.chmod(0o444)
        open_folder.chmod(0o555)
        self.check(path, tmp_path)
        open_folder.chmod(0o755)

    def test_a_folder_that_cannot_be_made_is_said(self, open_folder: Path, tmp_path: Path) -> None:
        (open_folder / "locked").mkdir(mode=0o555)
        self.check(open_folder / "locked" / "octavo" / "conversations.db", tmp_path)

    def test_a_damaged_file_in_a_read_only_folder_is_left_alone(
        self, open_folder: Path, tmp_path: Path
    ) -> None:
        path = open_folder / "conversations.db"
        path.write_text("Dear diary")
        path.chmod(0o444)
        open_folder.chmod(0o555)
        sentences = run(
            AS_SOMEBODY_ELSE.replace("ConversationStore.open", "open_store"), path, tmp_path / "w.db"
        )
        assert "may not read or write" in sentences
        assert path.read_text() == "Dear diary"
        open_folder.chmod(0o755)


def test_the_files_are_for_their_owner_only(store: ConversationStore, db_path: Path) -> None:
    store.create_conversation()
    if sys.platform != "win32":
        assert {file.stat().st_mode & 0o077 for file in db_path.parent.iterdir()} == {0}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", 0.05)


@pytest.mark.usefixtures("impatient")
class TestALockedFile:
    def test_cannot_be_written_until_it_is_free(self, db_path: Path) -> None:
        store = ConversationStore.open(db_path)
        conversation_id = add_conversation(store, 1)
        with closing(sqlite3.connect(db_path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreLockedError, match="Another program is using"):
                store.set_draft(conversation_id, "text")
            assert store.conversation(conversation_id).draft == ""
            other.execute("ROLLBACK")
        store.set_draft(conversation_id, "text")
        assert store.conversation(conversation_id).draft == "text"
        store.close()

    def test_cannot_be_opened_and_is_not_taken_for_damaged(self, db_path: Path) -> None:
        ConversationStore.open(db_path).close()
        with closing(sqlite3.connect(db_path, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode=EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            for open_it in (open_store, ConversationStore.open):
                with pytest.raises(StoreLockedError, match="Another program is using"):
                    open_it(db_path)
        store, report = open_store(db_path)
        assert report.message is None
        store.close()
