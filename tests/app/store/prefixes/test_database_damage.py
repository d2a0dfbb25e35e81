"""Whatever has happened to the file: nothing wrong is read, and the next page can be kept."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.store import connection as connection_module
from app.store.connection import files_of
from app.store.errors import (
    DamagedStoreError,
    NewerSchemaError,
    StoreLockedError,
    StoreReplacedError,
)
from app.store.prefixes.housekeeping import Housekeeping, taken_nbytes
from app.store.prefixes.recovery import begin_anew, clear, open_prefixes
from tests.app.store.prefixes.databases import chain_of, keys_of, opened, put
from tests.app.store.prefixes.stored_files import (
    assert_whole,
    content_of,
    holds_words_of,
    locked_elsewhere,
    writing_elsewhere,
)
from tests.app.store.prefixes.stored_texts import MODEL, blob_of, key_of, page_of, sequence_of

ROOT = Path(__file__).parents[4]


@pytest.fixture
def filled(prefixes_path: Path) -> Path:
    """The path of a file with pages of a conversation."""
    with opened(prefixes_path) as database:
        put(database, chain_of("text", 20))
        database.put_sequence(sequence_of(1, "text 0"))
    return prefixes_path


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("rb+") as file:
        file.seek(at)
        file.write(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def garble_the_header(path: Path) -> None:
    overwrite(path, 0, os.urandom(100))


def garble_the_first_pages(path: Path) -> None:
    overwrite(path, 0, os.urandom(200_000))


def garble_an_index(path: Path) -> None:
    """Change a key in the index of the keys, and not in the table of the pages."""
    content = path.read_bytes()
    at = content.index(key_of("text 3"))
    while content[at - 8 : at + 40].count(b"a model"):
        at = content.index(key_of("text 3"), at + 1)
    overwrite(path, at, b"\0\0\0\0")


def assert_usable(path: Path) -> None:
    with opened(path) as database:
        put(database, [page_of("new", 7)])
    with opened(path) as database:
        assert database.read_page(key_of("new")) == blob_of("new")
    assert_whole(path)


class TestWhenItIsOpened:
    @pytest.mark.parametrize(
        "damage", [truncate, empty, garble_the_header, garble_the_first_pages, garble_an_index]
    )
    def test_a_damaged_file_is_begun_anew_and_its_words_are_gone(
        self, filled: Path, damage: Callable[[Path], None]
    ) -> None:
        damage(filled)
        opening = open_prefixes(filled)
        opening.database.close()
        assert opening.problem is not None
        assert "has been begun anew" in opening.problem
        assert b"the words of text" not in content_of(filled)
        assert {file.name for file in filled.parent.iterdir()} <= {filled.name, f"{filled.name}.lock"}
        assert_usable(filled)

    @pytest.mark.parametrize("content", [b"Dear diary", b"\0" * 300_000])
    def test_a_file_that_is_not_octavos_is_put_aside(self, prefixes_path: Path, content: bytes) -> None:
        prefixes_path.parent.mkdir()
        prefixes_path.write_bytes(content)
        opening = open_prefixes(prefixes_path)
        opening.database.close()
        (aside,) = prefixes_path.parent.glob("*.foreign-*")
        assert aside.read_bytes() == content
        assert opening.problem is not None
        assert str(aside) in opening.problem
        assert_usable(prefixes_path)

    def test_a_database_of_another_program_is_put_aside_with_its_log(self, prefixes_path: Path) -> None:
        prefixes_path.parent.mkdir()
        with closing(sqlite3.connect(prefixes_path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode=WAL")
            other.execute("CREATE TABLE recipes (text)")
            other.execute("INSERT INTO recipes VALUES ('soup')")
            opening = open_prefixes(prefixes_path)
            opening.database.close()
            (aside,) = (
                file
                for file in prefixes_path.parent.glob("*.foreign-*")
                if not file.name.endswith(("-wal", "-shm"))
            )
            with closing(sqlite3.connect(aside)) as moved:
                assert moved.execute("SELECT text FROM recipes").fetchall() == [("soup",)]
        assert opening.problem is not None
        assert_usable(prefixes_path)

    def test_what_is_written_late_into_its_log_does_not_stay_with_it(self, prefixes_path: Path) -> None:
        prefixes_path.parent.mkdir()
        with closing(sqlite3.connect(prefixes_path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode=WAL")
            other.execute("CREATE TABLE recipes (text)")
            with files_of(prefixes_path)[0].open("ab") as late:
                open_prefixes(prefixes_path).database.close()
                late.write(b"the words of a conversation. ")
        (log,) = prefixes_path.parent.glob("*.foreign-*-wal")
        assert b"CREATE TABLE recipes" in log.read_bytes()
        assert not holds_words_of(prefixes_path, "a conversation")

    def test_a_folder_in_its_place_is_put_aside(self, prefixes_path: Path) -> None:
        (prefixes_path / "photos").mkdir(parents=True)
        opening = open_prefixes(prefixes_path)
        opening.database.close()
        assert opening.problem is not None
        (aside,) = prefixes_path.parent.glob("*.foreign-*")
        assert (aside / "photos").is_dir()
        assert_usable(prefixes_path)

    def test_the_log_of_a_file_that_was_deleted_does_not_get_into_the_new_one(self, filled: Path) -> None:
        with opened(filled) as database:
            put(database, [page_of("in the log")])
            log = files_of(filled)[0].read_bytes()
        filled.unlink()
        files_of(filled)[0].write_bytes(log)
        opening = open_prefixes(filled)
        opening.database.close()
        assert opening.problem is None
        assert b"the words of" not in content_of(filled)
        assert_usable(filled)

    def test_a_newer_file_is_left_as_it_is(self, filled: Path) -> None:
        with closing(sqlite3.connect(filled)) as conn, conn:
            conn.execute(
                """INSERT INTO _sqlite_migrations (migration_set, name, applied_at)
                   VALUES ('prefixes', '999_later', '2100-01-01')"""
            )
        before = filled.read_bytes()
        with pytest.raises(NewerSchemaError, match="newer version of Octavo"):
            open_prefixes(filled)
        assert filled.read_bytes() == before

    def test_a_locked_file_is_left_as_it_is(self, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection_module, "BUSY_TIMEOUT_S", 0.05)
        with locked_elsewhere(filled), pytest.raises(StoreLockedError, match="Another program is using"):
            open_prefixes(filled)
        with opened(filled) as database:
            assert len(database.find_pages(keys_of("text", 20))) == 20

    def test_the_files_are_for_their_owner_only(self, filled: Path) -> None:
        with opened(filled) as database:
            put(database, [page_of("another")])
            assert {file.stat().st_mode & 0o077 for file in filled.parent.iterdir()} == {0}


class TestWhileItIsOpen:
    def test_a_file_that_is_deleted_is_noticed_before_anything_is_read_or_written(self, filled: Path) -> None:
        with opened(filled) as database:
            for part in files_of(filled):
                part.unlink(missing_ok=True)
            for use in (
                lambda: database.read_page(key_of("text 0")),
                lambda: database.put_page(page_of("new")),
                lambda: Housekeeping(database).delete(1),
                lambda: Housekeeping(database).entries(),
            ):
                with pytest.raises(StoreReplacedError):
                    use()
        assert_usable(filled)

    def test_a_file_that_another_takes_the_place_of_is_noticed_and_the_new_one_left_alone(
        self, filled: Path
    ) -> None:
        with opened(filled) as ours:
            with opened(filled) as theirs:
                begin_anew(theirs)
            assert_usable(filled)
            with pytest.raises(StoreReplacedError):
                ours.find_pages(keys_of("text", 20))
            begin_anew(ours)
        with opened(filled) as database:
            assert database.read_page(key_of("new")) is not None

    def test_damage_that_shows_in_use_is_told_and_the_file_begun_anew(self, filled: Path) -> None:
        with opened(filled) as database:
            Housekeeping(database).empty_log()
            content = filled.read_bytes()
            at = content.index(b"the words of text 5") // 16_384 * 16_384
            # A page of the blob that is said to go on beyond the end of the file.
            overwrite(filled, at, b"\x7f\xff\xff\xff")
        with opened(filled) as database:
            with pytest.raises(DamagedStoreError):
                database.read_page(key_of("text 5"))
            begin_anew(database)
        assert b"the words of text" not in content_of(filled)
        assert_usable(filled)

    def test_another_process_that_writes_does_not_keep_anybody_from_reading(self, filled: Path) -> None:
        with opened(filled) as database, writing_elsewhere(filled):
            assert database.read_page(key_of("text 3")) == blob_of("text 3")


class TestClear:
    def test_all_words_are_gone_at_once_and_pins_and_models_stay(self, filled: Path) -> None:
        with opened(filled) as database, opened(filled) as reader:
            database.pin(1, True)
            database.remember_model("/models/a", "print", "digest")
            written = database.written_today()
            clear(database)
            assert b"the words of text" not in content_of(filled)
            assert taken_nbytes(filled) < 500_000
            with pytest.raises(StoreReplacedError):
                reader.read_page(key_of("text 0"))
        with opened(filled) as database:
            assert Housekeeping(database).entries() == ()
            assert database.find_sequence(1, MODEL) is None
            assert database.model_digest("/models/a", "print") == "digest"
            assert database.written_today() == written
            put(database, [page_of("new")])
            (entry,) = Housekeeping(database).entries()
            assert entry.is_pinned
        assert {file.name for file in filled.parent.iterdir()} == {filled.name, f"{filled.name}.lock"}
        assert_whole(filled)


WITHOUT_ROOM = """
import resource, signal, sys
from pathlib import Path
from app.store.errors import StorageFullError
from app.store.prefixes.housekeeping import Housekeeping
from app.store.prefixes.recovery import clear, open_prefixes
from tests.app.store.prefixes.databases import chain_of, keys_of, put
from tests.app.store.prefixes.stored_texts import blob_of, key_of, page_of, sequence_of

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])

def leave_room(nbytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, resource.RLIM_INFINITY))

database = open_prefixes(path).database
put(database, chain_of("text", 3))
leave_room(Path(f"{path}-wal").stat().st_size + 50_000)
for attempt in (
    lambda: database.put_page(page_of("large", nbytes=1_000_000)),
    lambda: database.put_sequence(sequence_of(1, "text 0", manifest=b"m" * 500_000)),
):
    try:
        attempt()
    except StorageFullError as error:
        sentence = str(error)
    else:
        sys.exit("there was room")
    assert len(database.find_pages(keys_of("text", 3))) == 3
    assert database.read_page(key_of("text 1")) == blob_of("text 1")
    assert database.read_page(key_of("large")) is None
if sys.argv[2] == "clear":
    leave_room(1)
    clear(database)
    assert not path.exists()
    leave_room(resource.RLIM_INFINITY)
    database = open_prefixes(path).database
    assert Housekeeping(database).num_pages() == 0
leave_room(resource.RLIM_INFINITY)
put(database, [page_of("large", nbytes=1_000_000)])
assert database.read_page(key_of("large")) == blob_of("large", 1_000_000)
database.close()
print(sentence)
"""

AS_SOMEBODY_ELSE = """
import os, sys
from pathlib import Path
from app.store.errors import StoreAccessError
from app.store.prefixes.recovery import open_prefixes

# Everything is imported while the files of the interpreter can still be read.
open_prefixes(Path(sys.argv[2])).database.close()
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
try:
    open_prefixes(Path(sys.argv[1]))
except StoreAccessError as error:
    print(error)
"""

A_WRITER = """
import sys
from pathlib import Path
from app.store.prefixes.housekeeping import Housekeeping
from app.store.prefixes.recovery import open_prefixes
from tests.app.store.prefixes.databases import chain_of

name, path = sys.argv[1], Path(sys.argv[2])
database = open_prefixes(path).database
print("open", flush=True)
sys.stdin.readline()
for page in chain_of("both", 20, conversation_id=1) + chain_of(name, 20, conversation_id=int(name)):
    database.put_page(page)
    Housekeeping(database).make_room(0, 100_000_000)
Housekeeping(database).delete(int(name))
Housekeeping(database).give_back()
for page in chain_of(name, 20, conversation_id=int(name)):
    database.put_page(page)
database.close()
"""


def run(script: str, *arguments: str | Path) -> str:
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a file")
@pytest.mark.parametrize("then", ["go on", "clear"])
def test_a_full_disk_loses_only_what_was_being_written_and_can_be_cleared(
    prefixes_path: Path, then: str
) -> None:
    assert "the disk is full" in run(WITHOUT_ROOM, prefixes_path, then)
    assert_whole(prefixes_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
@pytest.mark.parametrize(("of_file", "of_folder"), [(0o000, 0o755), (0o444, 0o755), (0o444, 0o555)])
def test_a_file_without_rights_is_said_and_left_alone(tmp_path: Path, of_file: int, of_folder: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "prefixes.db"
        with opened(path) as database:
            put(database, [page_of("page")])
        before = path.read_bytes()
        path.chmod(of_file)
        path.parent.chmod(of_folder)
        assert f"may not read or write {path}" in run(AS_SOMEBODY_ELSE, path, tmp_path / "warm-up.db")
        path.parent.chmod(0o755)
        assert path.read_bytes() == before


def test_two_processes_write_and_delete_at_once_and_the_file_stays_whole(prefixes_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", A_WRITER]
    writers = [
        subprocess.Popen(
            [*command, name, str(prefixes_path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("2", "3")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], errors
    with opened(prefixes_path) as database:
        for name in ("both", "2", "3"):
            for number in range(20):
                assert database.read_page(key_of(f"{name} {number}")) == blob_of(f"{name} {number}")
    assert_whole(prefixes_path)
