from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils

from app.doctor import Check, Status, examine
from app.paths import AppPaths
from app.settings import Settings, save_settings
from app.store.conversations import ConversationStore
from app.store.prefixes.records import PrefixSettings
from engine.prefixes.records import SaveMode
from engine.wording import format_nbytes
from tests.app.store.prefixes.databases import chain_of, opened


def checks(home: Path) -> dict[str, Check]:
    return {check.name: check for check in examine(AppPaths(home))}


def test_a_new_user_has_nothing_that_fails_and_nothing_is_made(octavo_home: Path) -> None:
    found = checks(octavo_home)
    assert not [check for check in found.values() if check.status is Status.FAIL]
    assert "will be made" in found["Data folder"].sentence
    assert "octavo models get starter" in found["Models"].sentence
    assert str(octavo_home / "logs") in found["Log"].sentence
    assert not octavo_home.exists()


def test_conversations_are_counted_and_the_file_stays_as_it_is(octavo_home: Path) -> None:
    path = AppPaths(octavo_home).conversations_db
    store = ConversationStore.open(path)
    store.create_conversation()
    store.create_conversation()
    store.close()
    before = path.read_bytes()
    check = checks(octavo_home)["Conversations"]
    assert (check.status, "2 conversations" in check.sentence) == (Status.OK, True)
    assert path.read_bytes() == before


def test_damaged_conversations_fail_and_stay_where_they_are(octavo_home: Path) -> None:
    path = AppPaths(octavo_home).conversations_db
    octavo_home.mkdir()
    path.write_bytes(b"no database" * 100)
    check = checks(octavo_home)["Conversations"]
    assert (check.status, "is damaged" in check.sentence) == (Status.FAIL, True)
    assert path.read_bytes() == b"no database" * 100


def test_conversations_of_a_newer_version_fail(octavo_home: Path) -> None:
    path = AppPaths(octavo_home).conversations_db
    ConversationStore.open(path).close()
    with closing(sqlite3.connect(path)) as conn:
        database = sqlite_utils.Database(conn, execute_plugins=False)
        last = list(database["_sqlite_migrations"].rows)[-1]
        database["_sqlite_migrations"].insert(last | {"id": 999, "name": "m999_from_the_future"})
    check = checks(octavo_home)["Conversations"]
    assert (check.status, "newer version" in check.sentence) == (Status.FAIL, True)


def test_the_prefix_cache_is_told_with_its_file_size_and_pages(octavo_home: Path) -> None:
    assert str(AppPaths(octavo_home).prefixes_db) in checks(octavo_home)["Prefix cache"].sentence
    path = keep_two_pages(octavo_home)
    before = path.read_bytes()
    check = checks(octavo_home)["Prefix cache"]
    assert check.status is Status.OK
    assert f"{path} is sound and takes {format_nbytes(len(before))} of at most " in check.sentence
    assert "; 2 pages are in it." in check.sentence
    assert path.read_bytes() == before
    save_settings(AppPaths(octavo_home).settings_file, Settings(prefixes=PrefixSettings(SaveMode.NEVER)))
    assert checks(octavo_home)["Prefix cache"].sentence.endswith("It is off.")


def test_a_prefix_cache_that_is_no_good_is_a_warning_and_stays_where_it_is(octavo_home: Path) -> None:
    path = keep_two_pages(octavo_home)
    damaged = bytearray(path.read_bytes())
    damaged[16_384:65_536] = bytes(65_536 - 16_384)
    for content in (b"no database" * 100, bytes(damaged)):
        path.write_bytes(content)
        check = checks(octavo_home)["Prefix cache"]
        assert (check.status, "no words are lost" in check.sentence) == (Status.WARN, True)
        assert path.read_bytes() == content
    path.unlink()
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE songs (title)")
    check = checks(octavo_home)["Prefix cache"]
    assert (check.status, "another program's" in check.sentence) == (Status.WARN, True)


def test_a_prefix_cache_of_a_newer_version_is_a_warning_that_says_so(octavo_home: Path) -> None:
    with closing(sqlite3.connect(keep_two_pages(octavo_home))) as conn:
        database = sqlite_utils.Database(conn, execute_plugins=False)
        last = list(database["_sqlite_migrations"].rows)[-1]
        database["_sqlite_migrations"].insert(last | {"id": 999, "name": "m999_from_the_future"})
    check = checks(octavo_home)["Prefix cache"]
    assert (check.status, "newer version" in check.sentence) == (Status.WARN, True)


def keep_two_pages(home: Path) -> Path:
    path = AppPaths(home).prefixes_db
    with opened(path) as database:
        for page in chain_of("a text", 2):
            database.put_page(page)
    return path


def test_a_data_folder_that_cannot_be_made_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = checks(tmp_path / "file" / "octavo")["Data folder"]
    assert (check.status, "is no folder" in check.sentence) == (Status.FAIL, True)


def test_no_display_is_a_warning_that_names_the_terminal_command(
    octavo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    check = checks(octavo_home)["Display"]
    assert (check.status, "octavo ask" in check.sentence) == (Status.WARN, True)


def doctor(home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "app", "doctor", *arguments],
        env=os.environ | {"OCTAVO_HOME": str(home)} | environ,
        capture_output=True,
        text=True,
    )


def test_the_command_prints_a_line_for_each_check(tmp_path: Path) -> None:
    done = doctor(tmp_path)
    assert done.returncode == 0, done.stdout
    assert {line.split()[0] for line in done.stdout.splitlines()} <= {"ok", "warn"}


def test_the_command_ends_with_1_when_a_check_fails(tmp_path: Path) -> None:
    (tmp_path / "conversations.db").write_bytes(b"no database" * 100)
    done = doctor(tmp_path, "--json")
    assert done.returncode == 1
    assert [one["name"] for one in json.loads(done.stdout) if one["status"] == "fail"] == ["Conversations"]


@pytest.mark.skipif(sys.platform != "linux", reason="MLX brings its own BLAS elsewhere")
def test_an_unfit_blas_is_a_warning_and_no_failure(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json", OCTAVO_OPENBLAS="libm.so.6")
    (blas,) = (one for one in json.loads(done.stdout) if one["name"] == "OpenBLAS")
    assert (done.returncode, blas["status"]) == (0, "warn")
    assert "libm.so.6 cannot be used" in blas["sentence"]
    assert done.stderr == ""
