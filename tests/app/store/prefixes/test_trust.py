"""An engine on a real file that something happened to: never a wrong answer, never a crash.

All pages have 16 bits, so that it makes no difference when a text was read and in how many pieces: the answer
is that of an engine which reads all of it at once and keeps nothing.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from app.store import connection
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import GenerationStats
from engine.kv import blob as blob_module
from engine.kv.precision import KVSpec
from engine.lost_text import DAMAGED, EVICTED, NOT_THERE, OTHER_MODEL
from engine.model import ChatMessage
from engine.prefixes.records import SaveMode
from engine.requests import GenerationRequest
from tests.app.store.prefixes.stored_files import assert_whole, locked_elsewhere
from tests.engine.small_engine import (
    answer,
    asked,
    conversation,
    in_hand,
    keyed,
    small_engine,
    write_templated_model,
)

ROOT = Path(__file__).parents[4]
FLUSH_S = 60.0
EXACT = KVSpec.parse("16; page=64, group=32")
PAGE_TOKENS = 64
TALK = keyed(conversation(8, length=100))
QUESTION = asked(TALK, EXACT, conversation_id=1, answer_key="answer")
OTHER_QUESTION = asked(
    (*TALK[:-1], ChatMessage("user", "And what was said before that?", key="other")),
    EXACT,
    conversation_id=1,
    answer_key="other answer",
)
"""The same turns with another question behind them."""


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer, with all tokens that were read for it, and what the model would say behind it."""

    text: str
    tokens: list[int]
    logits: np.ndarray
    stats: GenerationStats


@dataclass(frozen=True, eq=False)
class Process:
    """An engine with its service, as a process of the program has them."""

    engine: Engine
    service: PrefixService
    told: list[str]

    def ask(self, request: GenerationRequest = OTHER_QUESTION) -> Answered:
        return answered_by(self.engine, request)

    def save(self) -> None:
        self.engine.save(CancelToken())
        assert self.service.flush(FLUSH_S)


def answered_by(engine: Engine, request: GenerationRequest) -> Answered:
    text, stats = answer(engine, request)
    held = in_hand(engine)
    return Answered(text, list(held.tokens), np.array(held.fork().read([65])[0, -1]), stats)


@contextmanager
def process(model: Path, backend: Backend, path: Path) -> Iterator[Process]:
    told: list[str] = []
    service = PrefixService(path, PrefixSettings(), told.append, pause_s=0.2)
    try:
        while service.model_digest(model) is None:
            os.sched_yield()
        yield Process(small_engine(model, backend, prefixes=service), service, told)
    finally:
        service.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def expected(model: Path, backend: Backend) -> Answered:
    """The answer of an engine that reads everything."""
    answered = answered_by(small_engine(model, backend), OTHER_QUESTION)
    assert answered.stats.reused_tokens == 0
    return answered


@pytest.fixture(scope="module")
def kept(model: Path, backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in which a conversation is kept."""
    path = tmp_path_factory.mktemp("kept") / "prefixes.db"
    with process(model, backend, path) as first:
        first.ask(QUESTION)
        first.save()
    return path


@pytest.fixture
def path(kept: Path, tmp_path: Path) -> Path:
    """A copy of it for this test to damage."""
    return Path(shutil.copy(kept, tmp_path / "prefixes.db"))


@pytest.fixture
def opened(model: Path, backend: Backend, path: Path) -> Iterator[Process]:
    """The next process on the file; the file is damaged before anything of it is read."""
    with process(model, backend, path) as next_process:
        yield next_process


def change(path: Path, sql: str, *values: object) -> None:
    """Change the file behind the program's back."""
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(sql, values)


def blobs_of(path: Path) -> list[tuple[int, bytes]]:
    """Return the number and the content of each page, in the order of the text."""
    sql = "SELECT id, blob FROM pages JOIN page_blobs ON page_id = id ORDER BY position"
    with closing(sqlite3.connect(path)) as conn:
        return conn.execute(sql).fetchall()


def replace_blob(path: Path, place: int, damage: Callable[[bytearray], bytes | bytearray]) -> None:
    page_id, blob = blobs_of(path)[place]
    damaged = damage(bytearray(blob))
    change(path, "UPDATE page_blobs SET blob = ? WHERE page_id = ?", damaged, page_id)


def flipped(blob: bytearray) -> bytearray:
    blob[len(blob) // 2] ^= 4
    return blob


def of_newer_format(blob: bytearray) -> bytearray:
    magic, version, *rest = blob_module._START.unpack_from(blob)
    blob_module._START.pack_into(blob, 0, magic, version + 1, *rest)
    return blob


def assert_right(answered: Answered, expected: Answered) -> None:
    """The same words after the same text, whatever was reused of it."""
    assert answered.text == expected.text
    assert answered.tokens == expected.tokens
    np.testing.assert_allclose(answered.logits, expected.logits, atol=1e-4 * np.abs(expected.logits).max())


def test_a_conversation_comes_back_whole(opened: Process, expected: Answered) -> None:
    answered = opened.ask()
    assert_right(answered, expected)
    assert answered.stats.reused_tokens > 25 * PAGE_TOKENS
    assert answered.stats.reread_note is None
    assert opened.service.figures().damaged == 0


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        of_newer_format,
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob[:-1],
        lambda blob: b"",
        lambda blob: blob + b"more",
        lambda blob: bytes(len(blob)),
    ],
    ids=["flipped bit", "newer format", "half", "a byte short", "empty", "longer", "zeros"],
)
def test_a_page_that_is_not_what_was_written_is_dropped_counted_and_read_again(
    opened: Process, path: Path, expected: Answered, damage: Callable[[bytearray], bytes | bytearray]
) -> None:
    num_pages = len(blobs_of(path))
    replace_blob(path, 5, damage)
    answered = opened.ask()
    assert_right(answered, expected)
    assert answered.stats.reused_tokens == 5 * PAGE_TOKENS
    assert answered.stats.reread_note is not None
    assert answered.stats.reread_note.startswith(DAMAGED)
    assert opened.service.figures().damaged == 1
    opened.save()
    assert len(blobs_of(path)) >= num_pages
    assert opened.service.figures().damaged == 1
    assert opened.told == []


def test_pages_under_each_others_keys_are_never_used(opened: Process, path: Path, expected: Answered) -> None:
    (one, _), (other, _) = blobs_of(path)[3], blobs_of(path)[9]
    change(path, "UPDATE page_blobs SET page_id = -1 WHERE page_id = ?", one)
    change(path, "UPDATE page_blobs SET page_id = ? WHERE page_id = ?", one, other)
    change(path, "UPDATE page_blobs SET page_id = ? WHERE page_id = -1", other)
    answered = opened.ask()
    assert_right(answered, expected)
    assert answered.stats.reused_tokens == 3 * PAGE_TOKENS
    assert opened.service.figures().damaged >= 1


def test_a_manifest_that_is_not_what_was_written_is_dropped_and_the_pages_are_found_by_the_text(
    opened: Process, path: Path, expected: Answered
) -> None:
    change(path, "UPDATE manifests SET manifest = zeroblob(length(manifest))")
    answered = opened.ask()
    assert_right(answered, expected)
    assert answered.stats.reused_tokens > 20 * PAGE_TOKENS
    assert opened.service.figures().damaged == 1


def test_another_model_under_the_same_name_uses_nothing(
    model: Path, backend: Backend, path: Path, tmp_path: Path
) -> None:
    """Its shapes, its name and even its weights are the same; a constant in its config is not."""
    folder = tmp_path / model.name
    shutil.copytree(model, folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace("1e-05", "1e-01"))
    expected = answered_by(small_engine(folder, backend), OTHER_QUESTION)
    with process(folder, backend, path) as other:
        answered = other.ask()
        assert_right(answered, expected)
        assert answered.stats.reused_tokens == 0
        assert (answered.stats.reread_note or "").startswith(OTHER_MODEL)
        assert other.service.figures().restored == 0


def test_a_file_that_is_deleted_between_two_answers_takes_nothing_with_it(
    opened: Process, path: Path, expected: Answered
) -> None:
    opened.service.find_pages([])
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    answered = opened.ask()
    assert_right(answered, expected)
    assert (answered.stats.reread_note or "").startswith(NOT_THERE)
    opened.save()
    assert len(blobs_of(path)) > 20
    assert opened.told == []


def test_a_locked_file_costs_time_and_no_answer(
    model: Path, backend: Backend, path: Path, expected: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", 0.05)
    with process(model, backend, path) as opened:
        opened.service.leave()
        with locked_elsewhere(path):
            assert_right(opened.ask(), expected)
            opened.engine.save(CancelToken())
        assert len(opened.told) == 1
        assert opened.service.flush(FLUSH_S)


def test_a_page_that_made_room_is_read_again(opened: Process, path: Path, expected: Answered) -> None:
    page_id, _ = blobs_of(path)[7]
    change(path, "DELETE FROM page_blobs WHERE page_id = ?", page_id)
    change(path, "DELETE FROM page_uses WHERE page_id = ?", page_id)
    change(path, "DELETE FROM pages WHERE id = ?", page_id)
    answered = opened.ask()
    assert_right(answered, expected)
    assert answered.stats.reused_tokens == 7 * PAGE_TOKENS
    assert (answered.stats.reread_note or "").startswith(EVICTED)


def test_what_is_deleted_while_it_is_in_use_is_read_again_and_not_kept(
    opened: Process, expected: Answered
) -> None:
    opened.service.delete(1)
    assert opened.service.flush(FLUSH_S)
    answered = opened.ask()
    assert_right(answered, expected)
    assert answered.stats.reused_tokens == 0
    opened.save()
    assert opened.service.entries() == ()


def test_a_cleared_conversation_is_kept_again_when_it_goes_on_and_not_before(
    opened: Process, path: Path
) -> None:
    opened.ask()
    opened.save()
    opened.service.clear()
    assert opened.service.flush(FLUSH_S)
    opened.save()
    assert blobs_of(path) == []
    opened.ask(QUESTION)
    opened.save()
    assert len(blobs_of(path)) > 20


def test_two_processes_answer_the_same_conversation_on_one_file(
    opened: Process, model: Path, backend: Backend, path: Path, expected: Answered
) -> None:
    with process(model, backend, path) as other:
        for each in (opened, other):
            assert_right(each.ask(), expected)
        opened.engine.save(CancelToken())
        other.engine.save(CancelToken())
        assert opened.service.flush(FLUSH_S)
        assert other.service.flush(FLUSH_S)
        assert_whole(path)
        other.service.settings = PrefixSettings(SaveMode.NEVER)
        assert_right(other.ask(), expected)


@pytest.mark.slow
def test_bits_that_flip_anywhere_in_the_file_never_change_an_answer(
    model: Path, backend: Backend, kept: Path, tmp_path: Path, expected: Answered
) -> None:
    random.seed(8)
    with closing(sqlite3.connect(kept)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for trial in range(25):
        path = Path(shutil.copy(kept, tmp_path / f"{trial}.db"))
        content = bytearray(path.read_bytes())
        for _ in range(random.choice((1, 3, 30))):
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        path.write_bytes(content)
        with process(model, backend, path) as damaged:
            assert_right(damaged.ask(), expected)
            damaged.save()
        with process(model, backend, path) as mended:
            assert_right(mended.ask(), expected)


KILLED = """
import sys
from pathlib import Path
from engine.backend import start_backend
backend = start_backend()
from tests.app.store.prefixes.test_trust import QUESTION, process
from engine.cancel import CancelToken
with process(Path(sys.argv[1]), backend, Path(sys.argv[2])) as first:
    first.ask(QUESTION)
    print("answered", flush=True)
    first.engine.save(CancelToken())
    first.service.flush(60)
    print("saved", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(6))
def test_an_engine_that_is_killed_while_it_saves_leaves_what_answers_rightly(
    model: Path, backend: Backend, tmp_path: Path, expected: Answered, moment: int
) -> None:
    path = tmp_path / "prefixes.db"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(model), str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "answered\n"
        # So many pages on disk, and it is in the midst of the others.
        while moment < 5 and num_pages(path) < 6 * moment:
            os.sched_yield()
        if moment == 5:
            assert killed.stdout.readline() == "saved\n"
        killed.kill()
    with process(model, backend, path) as after:
        answered = after.ask()
        assert_right(answered, expected)
        if moment == 5:
            assert answered.stats.reused_tokens > 25 * PAGE_TOKENS
        assert after.service.figures().damaged == 0
        assert after.told == []
    assert_whole(path)


def num_pages(path: Path) -> int:
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as conn:
        ((number,),) = conn.execute("SELECT count(*) FROM pages").fetchall()
    return int(number)
