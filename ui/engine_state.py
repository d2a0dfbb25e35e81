"""What the engine's thread is doing, and what went wrong there."""

from __future__ import annotations

import enum
import traceback
from dataclasses import dataclass

from engine.errors import OctavoError


class EngineState(enum.Enum):
    """What the engine is doing."""

    EMPTY = "no model"
    LOADING = "loading"
    READY = "ready"
    GENERATING = "generating"
    REBUILDING = "reading again"
    SUMMARIZING = "summarizing"


@dataclass(frozen=True)
class Failure:
    """Something went wrong: a short title, a sentence for the user, and details for a report."""

    title: str
    message: str
    details: str


def failure_of(error: Exception) -> Failure:
    """Return what to say of an error."""
    details = "".join(traceback.format_exception(error))
    if isinstance(error, OctavoError):
        return Failure("That did not work", str(error), details)
    sentence = "The engine met an unexpected error and goes on. Copy the details if you want to report it."
    return Failure("Something went wrong", f"{sentence} ({type(error).__name__}: {error})", details)
