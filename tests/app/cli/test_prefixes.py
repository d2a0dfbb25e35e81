"""`octavo prefixes` over a real file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.prefixes import prefixes
from app.store.conversations import ConversationStore
from app.store.prefixes.service import PrefixService
from engine.errors import OctavoError
from engine.kv.lineage import KEY_NBYTES
from engine.prefixes.records import NewPage, StoredSequence

MODEL = "a model"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(prefixes, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def page(number: int, conversation_id: int) -> NewPage:
    return NewPage(
        bytes([number]) * KEY_NBYTES, b"", MODEL, 0, 256, 8.0, bytes([number]) * 50_000, conversation_id
    )


@pytest.fixture
def kept(octavo_home: Path) -> Path:
    """A file with two conversations, one of which was deleted from the other store, and a page of neither."""
    octavo_home.mkdir()
    with contextlib.closing(ConversationStore.open(octavo_home / "conversations.db")) as store:
        assert store.create_conversation("Harbour talk").id == 1
    file = octavo_home / "prefixes.db"
    service = PrefixService(file)
    for number, conversation_id in ((1, 1), (2, 1), (3, 9), (4, 0)):
        assert service.put_page(page(number, conversation_id))
    keys = tuple(page(number, 1).key for number in (1, 2))
    assert service.put_sequence(StoredSequence(1, MODEL, keys, b"manifest", 512))
    service.pin(1, True)
    assert service.flush(20)
    service.close()
    return file


def test_what_is_kept_is_told_by_conversation(kept: Path) -> None:
    told = run()
    assert told.startswith("On disk: 4 pages, ") and "Everything that is read is kept." in told
    rows = [" ".join(line.split()) for line in told.splitlines()[4:]]
    assert len(rows) == 3
    pinned, other, none = (
        next(row for row in rows if row.endswith(title))
        for title in (" Harbour talk (pinned)", " conversation 9", " (no conversation: read by `octavo ask`)")
    )
    assert pinned.startswith("512 100 KB 0 bytes 20")
    assert other.startswith("– 50 KB 0 bytes 20") and none.startswith("– 50 KB 0 bytes 20")


def test_the_same_is_told_as_json(kept: Path) -> None:
    told = json.loads(run("--json"))
    assert told["num_pages"] == 4 and told["mode"] == "everything"
    found = {entry["conversation_id"]: entry for entry in told["entries"]}
    assert found[1]["num_tokens"] == 512 and found[1]["is_pinned"]
    assert found[9]["num_pages"] == 1


def test_all_of_it_is_deleted_on_request(kept: Path) -> None:
    assert run("--clear").startswith("On disk: no pages")
    assert b"\x01" * 1000 not in b"".join(file.read_bytes() for file in kept.parent.glob("prefixes.db*"))
    assert json.loads(run("--json"))["entries"] == []


def test_nothing_is_created_by_looking(octavo_home: Path) -> None:
    octavo_home.mkdir()
    (octavo_home / "settings.toml").write_text('[prefixes]\nmode = "documents"\n')
    told = run()
    assert told.startswith("On disk: no pages")
    assert "System prompts and documents are kept, no word of a message." in told
    assert run("--clear") == told
    assert [file.name for file in octavo_home.iterdir()] == ["settings.toml"]


def test_a_file_that_cannot_be_cleared_is_told_at_once_with_the_reason(kept: Path) -> None:
    with contextlib.closing(sqlite3.connect(kept)) as conn, conn:
        conn.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
            "VALUES ('prefixes', '999_newer', '2030-01-01')"
        )
    with pytest.raises(OctavoError, match=r"newer version of Octavo"):
        run("--clear")
