"""How far a download has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class DownloadProgress:
    """Progress of getting a model.

    Attributes:
        done_nbytes: bytes that have arrived, those of an earlier try included.
        total_nbytes: bytes of the whole, None while unknown.
        file: the name of the file that is being worked on.
    """

    done_nbytes: int
    total_nbytes: int | None
    file: str


ProgressCallback = Callable[[DownloadProgress], None]
