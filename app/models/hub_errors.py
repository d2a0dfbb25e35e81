"""What goes wrong between Octavo and Hugging Face, in sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from http import HTTPStatus

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from app.models.source import HubSource
from engine.errors import ModelError


@contextlib.contextmanager
def hub_errors(source: HubSource) -> Iterator[None]:
    """Turn what huggingface_hub and its HTTP client raise into a `ModelError`."""
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise ModelError(
            "HF_HUB_OFFLINE is set in the environment, so nothing is downloaded. Unset it and try again."
        ) from error
    except HfHubHTTPError as error:
        raise ModelError(_sentence(source, error)) from error
    except httpx2.TransportError as error:
        raise ModelError(
            f"{constants.ENDPOINT} cannot be reached ({error or type(error).__name__}). Check the network "
            "connection and try again; what has arrived is kept."
        ) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ModelError(
            f"{constants.ENDPOINT} answered with something else than a model. Check HF_ENDPOINT and proxies."
        ) from error


def _sentence(source: HubSource, error: HfHubHTTPError) -> str:
    """Say what a refusing server means for the user."""
    repo = source.repo
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return (
            f"{repo} is only for those who accepted its licence: do that at {constants.ENDPOINT}/{repo}, "
            "then set HF_TOKEN or log in with `hf auth login`, and try again."
        )
    if isinstance(error, RevisionNotFoundError):
        return f"{repo} has no revision “{source.revision}”; leave @{source.revision} out or correct it."
    if isinstance(error, RemoteEntryNotFoundError):
        return f"{repo} no longer has a file that it listed; try again."
    if isinstance(error, DisabledRepoError):
        return f"{repo} was disabled by Hugging Face."
    if isinstance(error, RepositoryNotFoundError) or status == HTTPStatus.NOT_FOUND:
        return (
            f"There is no model {repo} at {constants.ENDPOINT}, or it is private. Check the spelling; for a "
            "private model set HF_TOKEN or log in with `hf auth login`."
        )
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return (
            f"{constants.ENDPOINT} refused the access token. Check HF_TOKEN, or log in anew with "
            "`hf auth login`."
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return f"{constants.ENDPOINT} has had too many requests from here. Wait some minutes and try again."
    return f"{constants.ENDPOINT} has trouble (HTTP {status}). Try again later; what has arrived is kept."
