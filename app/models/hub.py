"""Models from Hugging Face."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx2
from huggingface_hub import constants, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from app.models.hub_errors import hub_errors
from app.models.hub_files import HubFile, choose_files, list_files
from app.models.inspection import inspect, require_known_config
from app.models.part_file import PartFile
from app.models.progress import DownloadProgress, ProgressCallback
from app.models.source import CONFIG, GGUF_SUFFIX, HubSource
from app.models.staging import Staging
from engine.errors import ModelError

RETRY_DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits between tries that brought nothing; one that brought something starts anew."""

GGUF_HEADER_NBYTES = 32 << 20
"""More than the longest header, vocabulary and all: enough to tell whether a GGUF file can run."""


def install_from_hub(models: Path, source: HubSource, *, on_progress: ProgressCallback) -> Path:
    """Download a model into a folder of models, unless it is there, and return its folder or file.

    Files come over plain HTTP with `Range`, because huggingface_hub's own download starts each file anew.
    Raises a `ModelError` for whatever goes wrong; what has arrived is kept for the next try.
    """
    target = models / source.folder_name / (source.file or "")
    evidence = target if source.file else target / CONFIG
    if evidence.exists():
        return target
    staging = Staging(models, source.id)
    with staging.claim():
        if evidence.exists():  # another process has just brought it
            return target
        listing = list_files(source)
        files = choose_files(source, listing.files)
        _Download(source, listing.commit, staging, files, on_progress).run()
        _move(staging.folder / (source.file or ""), target)
        staging.discard()
    return target


class _Download:
    """The transfer of the files of one model into its staging folder."""

    def __init__(
        self,
        source: HubSource,
        commit: str,
        staging: Staging,
        files: list[HubFile],
        on_progress: ProgressCallback,
    ) -> None:
        self._source = source
        self._commit = commit
        self._staging = staging
        self._files = files
        self._on_progress = on_progress
        self._total_nbytes = sum(file.checksum.nbytes for file in files)

    def run(self) -> None:
        """Bring every file, the config first: it tells whether the rest is worth its bytes."""
        have = sum(path.stat().st_size for path in self._staging.folder.rglob("*") if path.is_file())
        self._staging.require_space(max(0, self._total_nbytes - have))
        done = 0
        for file in self._files:
            self._bring(file, done)
            done += file.checksum.nbytes
            if file.path == CONFIG:
                self._require(require_known_config, self._staging.folder)
        _remove_others(self._staging.folder, self._files)
        self._require(inspect, self._staging.folder / (self._source.file or ""))

    def _bring(self, file: HubFile, done_nbytes: int) -> None:
        """Download one file, or what is missing of it, and check it."""
        target = self._staging.folder / file.path

        def report(nbytes: int) -> None:
            self._on_progress(DownloadProgress(done_nbytes + nbytes, self._total_nbytes, file.path))

        report(0)
        if file.checksum.matches(target, report):
            return
        with hub_errors(self._source), PartFile(target, file.checksum, report) as part:
            url = hf_hub_url(self._source.repo, file.path, revision=self._commit, endpoint=constants.ENDPOINT)
            if file.path.endswith(GGUF_SUFFIX) and file.checksum.nbytes > GGUF_HEADER_NBYTES:
                _transfer(url, part, GGUF_HEADER_NBYTES)
                self._require_known_header(part)
            _transfer(url, part, file.checksum.nbytes)
            part.finish()

    def _require_known_header(self, part: PartFile) -> None:
        """Refuse a GGUF file that cannot run, judging by its beginning in a sparse file of the full size."""
        self._staging.scratch.mkdir(exist_ok=True)
        sparse = self._staging.scratch / part.target.name
        sparse.write_bytes(part.read_start(GGUF_HEADER_NBYTES))
        os.truncate(sparse, part.checksum.nbytes)
        self._require(inspect, sparse)

    def _require(self, check: Callable[[Path], object], path: Path) -> None:
        """Refuse a model that cannot run, and delete what was downloaded of it."""
        try:
            check(path)
        except ModelError:
            self._staging.discard()
            raise


def _transfer(url: str, part: PartFile, until_nbytes: int) -> None:
    """Append to a file until it has so many bytes; goes on where a broken connection stopped."""
    fruitless = 0
    while part.nbytes < until_nbytes:
        before = part.nbytes
        try:
            _request_rest(url, part, until_nbytes)
            if part.nbytes == before:
                raise httpx2.RemoteProtocolError("the answer has no content")
        except (httpx2.TransportError, HfHubHTTPError) as error:
            fruitless = 1 if part.nbytes > before else fruitless + 1
            if fruitless > len(RETRY_DELAYS_S) or not _passes(error):
                raise
            time.sleep(RETRY_DELAYS_S[fruitless - 1])


def _request_rest(url: str, part: PartFile, until_nbytes: int) -> None:
    """Ask once for what is missing of a file and append what comes, up to about `until_nbytes`."""
    headers = build_hf_headers(library_name="octavo") | {"Accept-Encoding": "identity"}
    if part.nbytes:
        headers["Range"] = f"bytes={part.nbytes}-"
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
        hf_raise_for_status(response)
        if response.status_code != HTTPStatus.PARTIAL_CONTENT:
            part.restart()
        for chunk in response.iter_bytes():
            part.append(chunk)
            if part.nbytes >= until_nbytes:
                return


def _passes(error: Exception) -> bool:
    """Return whether an error may be gone at the next try."""
    if isinstance(error, HfHubHTTPError):
        status: int = error.response.status_code
        return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS
    return not isinstance(error, httpx2.UnsupportedProtocol | httpx2.ProxyError)


def _move(staged: Path, target: Path) -> None:
    """Put a complete model into its place, at once; beside GGUF files that are there, the config last."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        for path in sorted(staged.iterdir(), key=lambda path: path.name == CONFIG):
            path.replace(target / path.name)
    else:
        staged.replace(target)


def _remove_others(folder: Path, files: list[HubFile]) -> None:
    """Delete what an earlier try left of files that the repository no longer has."""
    wanted = {folder / file.path for file in files}
    for path in folder.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
