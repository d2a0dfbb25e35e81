from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from app.command_line import app_command
from app.models.download import get_model
from app.models.library import ModelLibrary
from app.models.progress import DownloadProgress
from app.models.staging import Staging
from app.paths import AppPaths
from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError
from tests.app.models.fake_hub import FakeHub

WEIGHTS = "model.safetensors"


@pytest.fixture
def library(octavo_home: Path) -> ModelLibrary:
    return ModelLibrary(AppPaths(octavo_home))


def ignore(progress: DownloadProgress) -> None:
    pass


@pytest.mark.slow
def test_a_model_comes_through_a_process_of_its_own(hub: FakeHub, library: ModelLibrary) -> None:
    seen: list[DownloadProgress] = []
    model = get_model("org/tiny", library, cancel=CancelToken(), on_progress=seen.append)
    assert (model.id, model.title, model.managed) == ("org/tiny", "tiny", True)
    assert library.installed() == [model]
    assert (model.path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
    assert seen[0].total_nbytes == model.nbytes


@pytest.mark.slow
def test_an_installed_model_starts_no_process(hub: FakeHub, library: ModelLibrary) -> None:
    model = get_model("org/tiny", library, cancel=CancelToken(), on_progress=ignore)
    hub.refusals["/"] = [(500, "")]
    assert get_model("org/tiny", library, cancel=CancelToken(), on_progress=ignore) == model


def test_the_sentence_of_the_process_is_raised_here(hub: FakeHub, library: ModelLibrary) -> None:
    with pytest.raises(ModelError, match=r"^There is no model org/other at http://127"):
        get_model("org/other", library, cancel=CancelToken(), on_progress=ignore)


def test_a_wrong_name_is_refused_without_a_process(library: ModelLibrary) -> None:
    with pytest.raises(ModelError, match="is no model name"):
        get_model("tiny", library, cancel=CancelToken(), on_progress=ignore)
    assert not library.paths.home.exists()


def test_offline_mode_is_honoured(
    hub: FakeHub, library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is set"):
        get_model("org/tiny", library, cancel=CancelToken(), on_progress=ignore)
    assert hub.tokens == []


@pytest.mark.slow
def test_cancel_ends_a_download_that_hangs_and_the_next_one_goes_on(
    hub: FakeHub, library: ModelLibrary
) -> None:
    hub.stall_after = 300_000
    cancel = CancelToken()

    def cancel_when_stalled() -> None:
        hub.stalled.wait()
        cancel.cancel()

    thread = threading.Thread(target=cancel_when_stalled)
    thread.start()
    with pytest.raises(Cancelled):
        get_model("org/tiny", library, cancel=cancel, on_progress=ignore)
    thread.join()
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=10)
    assert alive == []
    assert library.installed() == []
    assert library.unfinished() == ["org/tiny"]

    hub.stall_after = None
    hub.ranges.clear()
    model = get_model("org/tiny", library, cancel=CancelToken(), on_progress=ignore)
    assert [name for name, _ in hub.ranges] == [WEIGHTS]
    assert (model.path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_a_process_that_dies_is_a_sentence(hub: FakeHub, library: ModelLibrary) -> None:
    hub.stall_after = 300_000

    def kill_child(progress: DownloadProgress) -> None:
        for child in psutil.Process().children():
            child.kill()

    with pytest.raises(ModelError, match=r"download of org/tiny ended unexpectedly \(status -9\)"):
        get_model("org/tiny", library, cancel=CancelToken(), on_progress=kill_child)


def test_a_download_that_runs_elsewhere_is_left_alone(hub: FakeHub, library: ModelLibrary) -> None:
    with (
        Staging(library.paths.models, "org/tiny").claim(),
        pytest.raises(ModelError, match="Another Octavo is already downloading org/tiny"),
    ):
        get_model("org/tiny", library, cancel=CancelToken(), on_progress=ignore)


@pytest.mark.slow
def test_a_download_ends_when_the_program_that_wanted_it_is_killed(
    hub: FakeHub, library: ModelLibrary, octavo_home: Path
) -> None:
    hub.files[WEIGHTS] = bytes(50_000_000)
    command = [*app_command(), "models", "get", "org/tiny"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as program:
        assert program.stderr is not None
        assert program.stderr.read(1)
        (download,) = psutil.Process(program.pid).children()
        program.kill()
    _, alive = psutil.wait_procs([download], timeout=30)
    assert alive == []
    with Staging(library.paths.models, "org/tiny").claim():
        pass
