"""Reading documents in parts: notes on each part, shorter notes where those are too long, then the answer."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from app.document_prompt import PlacedDocument
from app.segments.plan import MARGIN_TOKENS, SEGMENT_CONVERSATION, SegmentPlan
from app.segments.progress import SegmentEvent, SegmentProgress, SegmentStage
from app.segments.prompts import (
    join_prompt,
    note_of,
    nothing_found_sentence,
    segment_prompt,
    without_reasoning,
)
from app.segments.splitting import split_text
from engine.cancel import CancelToken, LinkedCancelToken
from engine.engine import Engine, GenerationRequest
from engine.errors import Cancelled
from engine.events import Finished, GenerationStats, PrefillProgress, StopReason, Token
from engine.kv.precision import KVSpec

MOST_KEPT_NOTES = 2000
"""Beyond that the oldest are forgotten."""
NO_TOKEN = -1
"""The id of words that no model wrote."""

Notes = dict[tuple[str, str, str], str]
"""Notes by model, KV precision and prompt."""


class SegmentReading:
    """One answer that is written from notes.

    Args:
        engine: reads and writes.
        plan: what is read in parts.
        notes: those that were taken before; new ones are added.
        cancel: stops it at any point.
        wanted_kv: tells the precision that is wanted now.
    """

    def __init__(
        self,
        engine: Engine,
        plan: SegmentPlan,
        notes: Notes,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._notes = notes
        self._cancel = cancel
        self._wanted_kv = wanted_kv
        self._segments: dict[PlacedDocument, list[str]] = {}
        self._num_read = 0
        self._stats: GenerationStats | None = None
        self._peak_nbytes = 0
        self._started_s = time.perf_counter()

    def events(self) -> Iterator[SegmentEvent]:
        """Yield progress, the tokens of the answer, and at last `Finished`; a stop ends it with that too."""
        try:
            yield from self._split()
            notes = {}
            for document in self._plan.documents:
                notes[document] = yield from self._notes_on(document)
        except Cancelled:
            yield self._ended(StopReason.STOPPED)
            return
        finally:
            self._engine.forget(SEGMENT_CONVERSATION)
        if any(notes.values()) or self._plan.has_more:
            yield from self._answer(notes)
        else:
            yield from self._nothing_found()

    # Notes.

    def _split(self) -> Iterator[SegmentEvent]:
        """Cut the documents into parts, which takes half a minute for some megabytes."""
        self._engine.publish_reading()
        for document in self._plan.documents:
            yield SegmentProgress(0, 0, document.title, SegmentStage.SPLITTING)
            spans = split_text(document.text, self._plan.segment_tokens, self._count)
            self._segments[document] = [document.text[start:stop] for start, stop in spans]

    def _count(self, text: str) -> int:
        assert self._engine.loaded is not None
        return self._engine.loaded.counter.count(text, self._cancel)

    @property
    def _total(self) -> int:
        return sum(len(segments) for segments in self._segments.values())

    def _notes_on(self, document: PlacedDocument) -> Generator[SegmentEvent, None, str]:
        """Read a document and return the notes on its parts, short enough for the answer."""
        segments, notes = self._segments[document], []
        for number, segment in enumerate(segments, start=1):
            progress = SegmentProgress(self._num_read + 1, self._total, document.title)
            prompt = segment_prompt(document.title, segment, number, len(segments), self._plan.question)
            note = yield from self._written(prompt, progress)
            self._num_read += 1
            if note:
                notes.append(f"Part {number}: {note}")
        progress = SegmentProgress(self._num_read, self._total, document.title, SegmentStage.JOINING)
        while len(notes) > 1 and self._count("\n\n".join(notes)) > self._plan.notes_tokens:
            notes = yield from self._joined(notes, progress)
        return "\n\n".join(notes)

    def _joined(
        self, notes: Sequence[str], progress: SegmentProgress
    ) -> Generator[SegmentEvent, None, list[str]]:
        """Return fewer notes: one for each two or more of them that fit into a prompt together."""
        shorter = []
        for batch in self._batches(notes):
            text = "\n\n".join(batch)
            note = text
            if len(batch) > 1:
                note = yield from self._written(
                    join_prompt(progress.title, text, self._plan.question), progress
                )
            # A model that leaves all of it out has not done what it was asked: the beginning is kept, then.
            start, stop = split_text(text, self._plan.note_tokens, self._count)[0]
            shorter.append(note or text[start:stop])
        return shorter

    def _batches(self, notes: Sequence[str]) -> list[list[str]]:
        batches: list[list[str]] = []
        room = 0
        for note in notes:
            num_tokens = self._count(note) + MARGIN_TOKENS
            if not batches or (len(batches[-1]) > 1 and num_tokens > room):
                batches.append([])
                room = self._plan.join_tokens
            batches[-1].append(note)
            room -= num_tokens
        return batches

    def _written(self, prompt: str, progress: SegmentProgress) -> Generator[SegmentEvent, None, str]:
        """Return the note that the model writes, or wrote before, for a prompt.

        Raises:
            Cancelled: the user stopped it.
        """
        yield progress
        self._cancel.check()
        assert self._engine.loaded is not None
        request = self._plan.note_request(prompt)
        key = self._engine.loaded.info.name, str(request.kv), prompt
        if key not in self._notes:
            written = yield from self._generated(request, progress)
            if len(self._notes) >= MOST_KEPT_NOTES:
                del self._notes[next(iter(self._notes))]
            self._notes[key] = note_of(written)
        return self._notes[key]

    def _generated(
        self, request: GenerationRequest, progress: SegmentProgress
    ) -> Generator[SegmentEvent, None, str]:
        """Have a note written until it is long enough; return all that was written."""
        cancel, written, note_tokens = LinkedCancelToken(self._cancel), "", 0
        for event in self._engine.generate(request, cancel, self._wanted_kv):
            match event:
                case PrefillProgress(done, total):
                    yield dataclasses.replace(progress, done_tokens=done, total_tokens=total)
                case Token(text):
                    written += text
                    note_tokens += bool(without_reasoning(written))
                    if note_tokens >= self._plan.note_tokens:
                        cancel.cancel()
                case Finished(stats):
                    self._stats = stats
                    self._peak_nbytes = max(self._peak_nbytes, stats.peak_nbytes)
                case _:
                    yield event
        self._cancel.check()
        return written

    # The answer.

    def _answer(self, notes: Mapping[PlacedDocument, str]) -> Iterator[SegmentEvent]:
        totals = {document: len(segments) for document, segments in self._segments.items()}
        read_s = time.perf_counter() - self._started_s
        request = self._plan.answer_request(notes, totals)
        for event in self._engine.generate(request, self._cancel, self._wanted_kv):
            if isinstance(event, Finished):
                yield Finished(self._with_parts(event.stats, ttft_s=event.stats.ttft_s + read_s))
            else:
                yield event

    def _nothing_found(self) -> Iterator[SegmentEvent]:
        titles = [document.title for document in self._plan.documents]
        yield Token(nothing_found_sentence(titles, self._total), NO_TOKEN)
        yield self._ended(StopReason.END)

    def _ended(self, reason: StopReason) -> Finished:
        """Return the end of an answer to which the model wrote nothing."""
        stats = self._stats or GenerationStats.of_nothing(self._plan.request.kv, reason)
        elapsed_s = time.perf_counter() - self._started_s
        return Finished(self._with_parts(stats, ttft_s=elapsed_s, completion_tokens=0, stop_reason=reason))

    def _with_parts(self, stats: GenerationStats, **changes: Any) -> GenerationStats:
        peak_nbytes = max(self._peak_nbytes, stats.peak_nbytes)
        return dataclasses.replace(stats, segments=self._num_read, peak_nbytes=peak_nbytes, **changes)
