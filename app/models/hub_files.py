"""Which files of a repository make a model."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from huggingface_hub import HfApi

from app.models.hub_errors import hub_errors
from app.models.part_file import Checksum
from app.models.source import CONFIG, GGUF_SUFFIX, HubSource
from engine.errors import ModelError
from engine.wording import format_nbytes

LIST_TIMEOUT_S = 30.0

_WEIGHTS = "model*.safetensors"
_PATTERNS = (
    _WEIGHTS,
    "*.json",
    "*.jinja",
    "*.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
    "LICENSE*",
    "NOTICE*",
    "additional_chat_templates/*.jinja",
)


@dataclass(frozen=True)
class HubFile:
    """One file of a repository: its path there and what it must be."""

    path: str
    checksum: Checksum


@dataclass(frozen=True)
class HubListing:
    """The files of a repository at one commit."""

    commit: str
    files: tuple[HubFile, ...]


def list_files(source: HubSource) -> HubListing:
    """Ask the hub for the files of a repository; a `ModelError` says why there is no answer."""
    with hub_errors(source):
        info = HfApi(library_name="octavo").model_info(
            source.repo, revision=source.revision or "main", files_metadata=True, timeout=LIST_TIMEOUT_S
        )
        files = []
        for sibling in info.siblings or ():
            if sibling.lfs is not None:
                checksum = Checksum(sibling.lfs.size, sibling.lfs.sha256)
            elif sibling.size is not None and sibling.blob_id is not None:
                checksum = Checksum(sibling.size, sibling.blob_id, git_blob=True)
            else:
                raise ValueError(f"no size or checksum of {sibling.rfilename}")
            files.append(HubFile(sibling.rfilename, checksum))
        if info.sha is None:
            raise ValueError("no commit")
    return HubListing(info.sha, tuple(files))


def choose_files(source: HubSource, files: tuple[HubFile, ...]) -> list[HubFile]:
    """Return what to download, small files first; a `ModelError` says when the repository holds no model."""
    if source.file is not None:
        chosen = [file for file in files if file.path == source.file]
        if not chosen:
            raise ModelError(
                f"{source.repo} has no file {source.file}. {_gguf_files(source, files)}".rstrip()
            )
        return chosen
    chosen = [file for file in files if any(_matches(file.path, pattern) for pattern in _PATTERNS)]
    has_config = any(file.path == CONFIG for file in chosen)
    if not has_config or not any(fnmatchcase(file.path, _WEIGHTS) for file in chosen):
        gguf_files = _gguf_files(source, files)
        raise ModelError(
            gguf_files or f"{source.repo} has no weights in MLX or GGUF form; choose another model."
        )
    return sorted(chosen, key=lambda file: (file.path != CONFIG, file.checksum.nbytes))


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path fits a pattern, folder by folder: `*` does not cross a slash."""
    parts, patterns = PurePosixPath(path).parts, PurePosixPath(pattern).parts
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _gguf_files(source: HubSource, files: tuple[HubFile, ...]) -> str:
    """Return a sentence that names the GGUF files of a repository, empty when it has none."""
    names = [
        f"{source.repository_id}/{file.path} ({format_nbytes(file.checksum.nbytes)})"
        for file in files
        if file.path.endswith(GGUF_SUFFIX)
    ]
    return f"It holds these GGUF files, name one: {', '.join(names)}." if names else ""
