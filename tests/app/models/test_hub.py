from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.models.fetch import fetch_model
from app.models.progress import DownloadProgress
from app.models.staging import unfinished_ids
from engine.errors import ModelError
from tests.app.models.fake_hub import COMMIT, FakeHub, serving
from tests.app.models.full_disk import file_size_limit

WEIGHTS = "model.safetensors"
INSTALLED = ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]


def ignore(progress: DownloadProgress) -> None:
    pass


def files_below(folder: Path) -> Sequence[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refuse(models: Path, source: str, sentence: str) -> None:
    """Expect a refusal that leaves nothing that could be taken for a model."""
    with pytest.raises(ModelError, match=sentence):
        fetch_model(source, models, on_progress=ignore)
    installed = models.iterdir() if models.is_dir() else []
    assert [path.name for path in installed if path.name != ".staging"] == []


def test_a_model_is_installed_with_what_it_needs_and_nothing_else(hub: FakeHub, models: Path) -> None:
    path = fetch_model("org/tiny", models, on_progress=ignore)
    assert path == models / "org--tiny"
    assert files_below(path) == INSTALLED
    assert all((path / name).read_bytes() == hub.files[name] for name in INSTALLED)
    assert unfinished_ids(models) == []


def test_progress_runs_from_nothing_to_the_whole(hub: FakeHub, models: Path) -> None:
    seen: list[DownloadProgress] = []
    fetch_model("org/tiny", models, on_progress=seen.append)
    total = sum(len(hub.files[name]) for name in INSTALLED)
    done = [progress.done_nbytes for progress in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, total)
    assert {progress.total_nbytes for progress in seen} == {total}
    assert seen[-1].file == WEIGHTS


def test_an_installed_model_is_not_asked_for_again(hub: FakeHub, models: Path) -> None:
    fetch_model("org/tiny", models, on_progress=ignore)
    hub.ranges.clear()
    fetch_model("org/tiny", models, on_progress=ignore)
    assert hub.ranges == []


def test_a_broken_connection_is_gone_on_with(hub: FakeHub, models: Path) -> None:
    hub.drop_after = [10**9, 10**9, 10**9, 300_000, 400_000]
    path = fetch_model("org/tiny", models, on_progress=ignore)
    assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
    assert [start for name, start in hub.ranges if name == WEIGHTS] == [
        None,
        "bytes=300000-",
        "bytes=700000-",
    ]


def test_a_server_that_stays_broken_is_a_sentence_and_the_next_try_goes_on(
    hub: FakeHub, models: Path
) -> None:
    hub.drop_after = [10**9, 10**9, 10**9, 300_000, 0, 0, 0, 0, 0, 0]
    refuse(models, "org/tiny", r"http://127.* cannot be reached \(.+\).*what has arrived is kept")
    assert unfinished_ids(models) == ["org/tiny"]
    hub.drop_after = []
    hub.ranges.clear()
    path = fetch_model("org/tiny", models, on_progress=ignore)
    assert hub.ranges == [(WEIGHTS, "bytes=300000-")]
    assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_a_server_without_ranges_sends_the_file_anew(hub: FakeHub, models: Path) -> None:
    hub.drop_after = [10**9, 10**9, 10**9, 300_000]
    hub.ignores_range = True
    path = fetch_model("org/tiny", models, on_progress=ignore)
    assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_files_that_changed_between_two_tries_are_fetched_anew(hub: FakeHub, models: Path) -> None:
    hub.drop_after = [10**9, 10**9, 10**9, 300_000, 0, 0, 0, 0, 0, 0]
    refuse(models, "org/tiny", "cannot be reached")
    hub.drop_after = []
    hub.commit = COMMIT[::-1]
    hub.files["tokenizer.json"] = b'{"version": "2"}'
    hub.files[WEIGHTS] = hub.files[WEIGHTS][:-4] + b"abcd"
    del hub.files["chat_template.jinja"]
    path = fetch_model("org/tiny", models, on_progress=ignore)
    assert files_below(path) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
    assert (path / "tokenizer.json").read_bytes() == b'{"version": "2"}'


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json"])
def test_a_file_with_a_wrong_checksum_is_refused(hub: FakeHub, models: Path, name: str) -> None:
    hub.announced[name] = hub.files[name][:-1] + b"?"
    refuse(models, "org/tiny", f"{name} arrived damaged.*nothing was installed")
    hub.announced.clear()
    assert (fetch_model("org/tiny", models, on_progress=ignore) / name).read_bytes() == hub.files[name]


def test_a_busy_server_is_tried_again(hub: FakeHub, models: Path) -> None:
    hub.refusals["/org/tiny/resolve"] = [(503, ""), (429, "")]
    assert (fetch_model("org/tiny", models, on_progress=ignore) / WEIGHTS).exists()


@pytest.mark.parametrize(
    ("prefix", "refusal", "sentence"),
    [
        ("/api", (401, "RepoNotFound"), "There is no model org/tiny at .*, or it is private"),
        ("/api", (404, ""), "There is no model org/tiny"),
        ("/api", (404, "RevisionNotFound"), "org/tiny has no revision"),
        ("/api", (403, "GatedRepo"), "accepted its licence: do that at .*/org/tiny, then set HF_TOKEN"),
        ("/org", (401, "GatedRepo"), "accepted its licence"),
        ("/org", (404, "EntryNotFound"), "no longer has a file"),
        ("/org", (403, ""), "refused the access token"),
        ("/api", (429, ""), "too many requests"),
        ("/api", (500, ""), r"has trouble \(HTTP 500\)"),
    ],
)
def test_a_refusing_server_is_a_sentence(
    hub: FakeHub, models: Path, prefix: str, refusal: tuple[int, str], sentence: str
) -> None:
    hub.refusals[prefix] = [refusal] * 10
    refuse(models, "org/tiny", sentence)


def test_an_unknown_name_and_an_unknown_revision_are_sentences(hub: FakeHub, models: Path) -> None:
    refuse(models, "org/other", "There is no model org/other")
    refuse(models, "org/tiny@v9", "org/tiny has no revision “v9”")
    refuse(models, "tiny", "is no model name")


def test_a_revision_is_a_model_of_its_own(hub: FakeHub, models: Path) -> None:
    assert fetch_model("org/tiny@v1", models, on_progress=ignore) == models / "org--tiny@v1"


def test_the_access_token_is_sent(hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    fetch_model("org/tiny", models, on_progress=ignore)
    assert set(hub.tokens) == {"Bearer hf_secret"}


def test_files_that_lie_on_another_server_come_from_there_without_the_token(
    hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with serving(FakeHub(files=hub.files, drop_after=[10**9, 10**9, 10**9, 300_000])) as storage:
        hub.redirect_to = storage.url
        path = fetch_model("org/tiny", models, on_progress=ignore)
        assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
        assert storage.ranges[-1] == (WEIGHTS, "bytes=300000-")
        assert set(storage.tokens) == {None}


def test_an_answer_that_is_no_listing_is_a_sentence(
    hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeHub, "listing", lambda self: {"id": self.repo, "siblings": [{"rfilename": "x"}]})
    refuse(models, "org/tiny", "answered with something else than a model")


def test_nobody_listening_is_a_sentence(hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    refuse(models, "org/tiny", r"http://127.0.0.1:9 cannot be reached \(.+\). Check the network")


def test_a_model_that_cannot_run_is_refused_before_its_weights_come(hub: FakeHub, models: Path) -> None:
    hub.files["config.json"] = json.dumps({"model_type": "no_such_model"}).encode()
    refuse(models, "org/tiny", "no_such_model")
    assert [name for name, _ in hub.ranges] == ["config.json"]
    assert unfinished_ids(models) == []


def test_a_repository_without_weights_is_refused(hub: FakeHub, models: Path) -> None:
    del hub.files[WEIGHTS]
    refuse(models, "org/tiny", "org/tiny has no weights in MLX or GGUF form")


def test_a_repository_of_gguf_files_is_answered_with_their_names(hub: FakeHub, models: Path) -> None:
    del hub.files[WEIGHTS]
    hub.files |= {"tiny.Q4_0.gguf": b"x" * 1500, "tiny.Q8_0.gguf": b"y" * 3000}
    names = r"org/tiny/tiny.Q4_0.gguf \(1.5 KB\), org/tiny/tiny.Q8_0.gguf \(3.0 KB\)"
    refuse(models, "org/tiny", names)
    refuse(models, "org/tiny/tiny.Q5_0.gguf", f"has no file tiny.Q5_0.gguf. .*{names}")


def test_a_full_disk_is_a_sentence_and_the_next_try_goes_on(hub: FakeHub, models: Path) -> None:
    with file_size_limit(500_000):
        refuse(models, "org/tiny", f"The disk of {models} is full. Nothing was installed")
    hub.ranges.clear()
    path = fetch_model("org/tiny", models, on_progress=ignore)
    assert hub.ranges == [(WEIGHTS, "bytes=500000-")]
    assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_a_download_larger_than_the_disk_is_refused_before_it_starts(
    hub: FakeHub, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listing(self: FakeHub) -> dict[str, object]:
        siblings = [{"rfilename": name, "size": 10**15, "blobId": "0" * 40} for name in self.files]
        return {"id": self.repo, "sha": COMMIT, "siblings": siblings}

    monkeypatch.setattr(FakeHub, "listing", listing)
    refuse(models, "org/tiny", r"org/tiny needs 4,000,000 GB more .*Free at least")
    assert hub.ranges == []


@pytest.mark.slow
def test_a_gguf_file_is_installed_by_its_name(hub: FakeHub, models: Path, starter_gguf: Path) -> None:
    hub.files["sub/tiny.gguf"] = starter_gguf.read_bytes()
    path = fetch_model("org/tiny/sub/tiny.gguf", models, on_progress=ignore)
    assert path == models / "org--tiny" / "sub" / "tiny.gguf"
    assert path.read_bytes() == hub.files["sub/tiny.gguf"]
    assert fetch_model("org/tiny", models, on_progress=ignore) == models / "org--tiny"
    assert files_below(models / "org--tiny") == sorted([*INSTALLED, "sub/tiny.gguf"])


def test_a_gguf_file_that_cannot_run_is_refused_by_its_beginning(
    hub: FakeHub, models: Path, starter_gguf: Path
) -> None:
    content = starter_gguf.read_bytes().replace(b"llama", b"lxxma")
    hub.files["tiny.gguf"] = content
    refuse(models, "org/tiny/tiny.gguf", "lxxma")
    assert [start for _, start in hub.ranges] == [None]
    assert unfinished_ids(models) == []
