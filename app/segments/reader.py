"""Answering with documents that do not fit whole: they are read in parts, with notes on each.

Each part is read alone with the question, in a conversation of its own, so that keys and values of one part
at a time are in memory. Those of the conversation stay held meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.profiles import DocumentMode
from app.segments.plan import plan_segments
from app.segments.progress import SegmentEvent
from app.segments.reading import Notes, SegmentReading
from engine.admission import AdmissionError
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.kv.precision import KVSpec


class SegmentReader:
    """Answers requests; documents that do not fit whole are read in parts where that is wanted.

    Notes are kept while the program runs: the same question about the same part is not asked twice.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._notes: Notes = {}

    def admit(self, request: GenerationRequest, mode: DocumentMode) -> None:
        """Refuse what `reply` would refuse, before anything is touched.

        Raises:
            AdmissionError: it does not fit, and would not in parts either.
            ModelError: no model is loaded.
        """
        try:
            self._engine.admit(request)
        except AdmissionError:
            if mode is not DocumentMode.SEGMENTS or plan_segments(self._engine, request) is None:
                raise

    def reply(
        self,
        request: GenerationRequest,
        mode: DocumentMode,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[SegmentEvent]:
        """Do what `Engine.generate` does, in parts where `mode` says so and the documents do not fit whole.

        Raises:
            AdmissionError: it does not fit, and would not in parts either.
            ModelError: no model is loaded.
        """
        try:
            return self._engine.generate(request, cancel, wanted_kv)
        except AdmissionError:
            plan = plan_segments(self._engine, request) if mode is DocumentMode.SEGMENTS else None
            if plan is None:
                raise
        return SegmentReading(self._engine, plan, self._notes, cancel, wanted_kv).events()
