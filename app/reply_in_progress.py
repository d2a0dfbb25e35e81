"""The text of a reply on its way into the store."""

from __future__ import annotations

import dataclasses
import logging
import time
from dataclasses import dataclass

from app.ledger.records import message_key
from app.reading.records import Source
from app.reading_run import DocumentReadings
from app.segments.progress import SegmentEvent
from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.records import Message, MessageState
from engine.events import AttendedPassage, Finished, GenerationStats, StopReason, Token

log = logging.getLogger(__name__)

SAVE_INTERVAL_S = 0.5
"""A reply is saved with the first token after this long, which keeps a kill from costing a second of it."""


@dataclass(frozen=True)
class ReplyEnded:
    """A reply is over: `message` is its final row, `unsaved` says why its text could not be saved."""

    message: Message
    unsaved: StoreError | None = None


class ReplyInProgress:
    """Gathers what is written of a reply, and saves it.

    Attributes:
        left_out_turns: the turns that the model does not read, for the figures.
        summary_s: how long it waited for summaries of old turns, for the figures.
        readings: what was read of documents for it, for the figures.
        attended: the passages to which the model attended while it wrote it, as it told them.
        sources: the passages that it may rest on.
    """

    def __init__(self, store: ConversationStore, message: Message) -> None:
        self.left_out_turns = 0
        self.summary_s = 0.0
        self.readings = DocumentReadings()
        self.attended: tuple[AttendedPassage, ...] = ()
        self.sources: tuple[Source, ...] = ()
        self._store = store
        self._message = message
        self._parts: list[str] = []
        self._stats: GenerationStats | None = None
        self._saved_s = time.monotonic()
        self._save_failed = False

    @property
    def key(self) -> str:
        """Its key."""
        return message_key(self._message.id)

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped it."""
        return self._stats is not None and self._stats.stop_reason is StopReason.STOPPED

    def take(self, event: SegmentEvent) -> SegmentEvent:
        """Remember a token's text and the figures, and save from time to time; return what to tell."""
        if isinstance(event, Finished):
            self._stats = self._with_summaries(self.readings.in_figures(event).stats)
            self.attended = event.attended
            return dataclasses.replace(event, stats=self._stats)
        if isinstance(event, Token) and event.text:
            self._parts.append(event.text)
            if time.monotonic() - self._saved_s >= SAVE_INTERVAL_S:
                self._save_partial()
        return event

    def _with_summaries(self, stats: GenerationStats) -> GenerationStats:
        """Return the figures as they are for the user, who waited for the summaries, too."""
        return dataclasses.replace(
            stats,
            left_out_turns=self.left_out_turns,
            ttft_s=stats.ttft_s + self.summary_s,
            summary_s=self.summary_s,
        )

    def _save_partial(self) -> None:
        """Save what there is; a full disk must not end the reply, its end tries once more."""
        self._saved_s = time.monotonic()
        try:
            self._store.save_partial(self._message.id, self.text)
        except StoreError as error:
            if not self._save_failed:
                log.warning("The reply could not be saved yet: %s", error)
            self._save_failed = True

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join(self._parts)

    def end(self, state: MessageState, error: str | None = None) -> ReplyEnded:
        """Write the final row; where even that fails, hand the text over with the reason."""
        try:
            message = self._store.finish_reply(
                self._message.id, self.text, state, self._stats, error, sources=self.sources
            )
        except StoreError as unsaved:
            log.error("The reply could not be saved: %s", unsaved)
            return ReplyEnded(self._unsaved_row(state, error), unsaved)
        return ReplyEnded(message)

    def _unsaved_row(self, state: MessageState, error: str | None) -> Message:
        return dataclasses.replace(
            self._message,
            text=self.text,
            state=state,
            stats=self._stats,
            error=error,
            sources=self.sources,
        )
