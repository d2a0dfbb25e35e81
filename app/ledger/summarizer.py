"""Writing one summary: the model is asked beside the conversation; where it fails, an extract stands in."""

from __future__ import annotations

import enum
from collections.abc import Generator

from app.ledger.progress import SummaryProgress
from app.ledger.records import Summary
from app.ledger.summary_request import SummaryRequest
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import GenerationEvent


class OnStop(enum.Enum):
    """What becomes of a summary that is cancelled while the model writes it."""

    EXTRACT = "extract"
    """The user stopped it and the reply goes on: an extract stands in."""
    RAISE = "raise"
    """Something else comes first: `Cancelled` is raised, and nothing is kept."""


class Summarizer:
    """Writes summaries with an engine; belongs to its thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def write(
        self, request: SummaryRequest, cancel: CancelToken, on_stop: OnStop = OnStop.EXTRACT
    ) -> Generator[SummaryProgress | GenerationEvent, None, Summary]:
        """Yield how far it is, and what the engine tells; return a draft that is not stored yet.

        The draft has the id 0 and is PREPARED. Its words are at most `most_summary_tokens` long. When the
        model cannot be asked, writes nothing usable or is stopped, they are an extract, and its note says why.
        So `summary = yield from summarizer.write(...)` always gives a summary.

        Raises:
            Cancelled: `cancel` was called, and `on_stop` says so.
            ModelError: no model is loaded.
        """
        raise NotImplementedError

    def extract(self, request: SummaryRequest, note: str) -> Summary:
        """Return a draft with sentences of the text itself, chosen by rules in milliseconds.

        Args:
            request: what it stands for.
            note: a sentence for the user that says why the model did not write it.

        Raises:
            ModelError: no model is loaded.
        """
        raise NotImplementedError
