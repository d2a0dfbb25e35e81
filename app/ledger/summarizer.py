"""Writing one summary: the model is asked beside the conversation; where it fails, an extract stands in."""

from __future__ import annotations

import enum
import logging
from collections.abc import Generator, Iterator

from app.ledger.extract import extract
from app.ledger.progress import SummaryProgress
from app.ledger.records import Summary, SummarySource, SummaryState
from app.ledger.summary_check import Flaw, finished, flaw_of, forgets, repeats
from app.ledger.summary_prompts import asking_messages, summary_instruction
from app.ledger.summary_request import SummaryRequest
from app.segments.prompts import without_reasoning
from app.valid_unicode import valid_unicode
from engine.admission import AdmissionError, note_room_tokens
from engine.cancel import CancelToken, LinkedCancelToken
from engine.engine import Engine, GenerationRequest, LoadedModel
from engine.errors import Cancelled, ModelError
from engine.events import Finished, GenerationEvent, PrefillProgress, StopReason, Token
from engine.sampling import SamplingParams

log = logging.getLogger(__name__)

LEAST_YARDSTICK_TOKENS = 64
"""A summary that is shorter though it might be longer is compared with an extract of so many tokens."""
REPEATS_EVERY_TOKENS = 32
"""How often it is looked whether the model goes round in circles."""

SummaryEvent = SummaryProgress | GenerationEvent


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
    ) -> Generator[SummaryEvent, None, Summary]:
        """Yield how far it is, and what the engine tells; return a draft that is not stored yet.

        The draft has the id 0 and is PREPARED. Its words are at most `request.most_tokens` long. When the
        model cannot be asked, writes nothing usable or is stopped, they are an extract, and its note says
        why. So `summary = yield from summarizer.write(...)` always gives a summary.

        Raises:
            Cancelled: `cancel` was called, and `on_stop` says so.
            ModelError: no model is loaded.
        """
        loaded = self._loaded
        most_tokens = request.most_tokens
        instruction = summary_instruction(request, most_tokens)
        writing = _Writing(request.num_turns, most_tokens)
        try:
            yield from writing.events(self._engine, _aside(request, instruction, loaded), cancel)
        except Cancelled:
            if on_stop is OnStop.RAISE:
                raise
            return self.extract(request, _note("The summary was stopped"))
        except AdmissionError:
            return self.extract(request, _note("There was no room to have the model write a summary"))
        except ModelError as error:
            log.warning("The model could not be asked for a summary: %s", error)
            return self.extract(request, _note("The model could not write a summary"))
        text = finished(valid_unicode(writing.text), writing.has_ended, most_tokens, loaded.counter.count)
        flaw = writing.flaw(text) or flaw_of(text, request.source, instruction)
        flaw = flaw or forgets(text, self._yardstick(request, text), request.parts)
        if flaw is not None:
            log.info("A summary is not used: %s", flaw.value)
            return self.extract(request, _note(flaw.value))
        return self._draft(request, text, SummarySource.MODEL, model=loaded.info.name)

    def extract(self, request: SummaryRequest, note: str) -> Summary:
        """Return a draft with sentences of the text itself, chosen by rules in milliseconds.

        Args:
            request: what it stands for.
            note: a sentence for the user that says why the model did not write it.

        Raises:
            ModelError: no model is loaded.
        """
        text = self._extracted(request, request.most_tokens)
        return self._draft(request, text, SummarySource.EXTRACT, note=note)

    def _yardstick(self, request: SummaryRequest, text: str) -> str:
        """Return the extract that a summary is compared with: about as long, since facts take room."""
        room = min(request.most_tokens, LEAST_YARDSTICK_TOKENS)
        return self._extracted(request, max(self._loaded.counter.count(text), room))

    def _extracted(self, request: SummaryRequest, most_tokens: int) -> str:
        return extract(request.parts, most_tokens, self._loaded.counter.count, request.earlier_share)

    def _draft(
        self, request: SummaryRequest, text: str, source: SummarySource, *, note: str = "", model: str = ""
    ) -> Summary:
        return Summary(
            id=0,
            text=text,
            covers=request.covers,
            source=source,
            note=note,
            model=model,
            source_tokens=request.source_tokens,
            num_tokens=self._loaded.counter.count(text),
            state=SummaryState.PREPARED,
        )

    @property
    def _loaded(self) -> LoadedModel:
        if self._engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        return self._engine.loaded


def _note(reason: str) -> str:
    return f"{reason}, so these are sentences of the text itself."


def _aside(request: SummaryRequest, instruction: str, loaded: LoadedModel) -> GenerationRequest:
    """Return what asks the model: the likeliest words, so that asking again gives the same.

    The context limit of the conversation is not the aside's: what is over it is held already, and only the
    instruction and the summary come on top for as long as it is written.
    """
    sampling = SamplingParams(
        temperature=0,
        repetition_penalty=request.repetition_penalty,
        max_tokens=request.most_tokens + note_room_tokens(loaded.info.context_tokens),
    )
    return GenerationRequest(
        asking_messages(request, instruction),
        sampling,
        request.kv,
        conversation_id=request.conversation_id,
        anyway=request.anyway,
        is_aside=True,
    )


class _Writing:
    """What a model writes for a summary, until it ends, has written enough, or goes round in circles."""

    def __init__(self, num_turns: int, most_tokens: int) -> None:
        self.has_ended = False
        self._num_turns = num_turns
        self._most_tokens = most_tokens
        self._written = ""
        self._num_tokens = 0
        self._num_read = self._num_to_read = 0
        self._repeats = False

    @property
    def text(self) -> str:
        """What it wrote beside its reasoning."""
        return without_reasoning(self._written)

    def flaw(self, text: str) -> Flaw | None:
        """Return what is wrong with how it was written, given what is left of it."""
        if self._repeats:
            return Flaw.REPEATED
        return Flaw.UNFINISHED if self.text and not text else None

    def events(
        self, engine: Engine, request: GenerationRequest, cancel: CancelToken
    ) -> Iterator[SummaryEvent]:
        """Yield how far it is, and what else the engine tells.

        Raises:
            AdmissionError, ModelError: as `Engine.generate`.
            Cancelled: `cancel` was called.
        """
        yield self._progress
        cancel.check()
        enough = LinkedCancelToken(cancel)
        for event in engine.generate(request, enough):
            match event:
                case PrefillProgress(done, total, reused):
                    self._num_read, self._num_to_read = done - reused, total - reused
                    yield self._progress
                case Token(text):
                    self._take(text)
                    yield self._progress
                    if self._num_tokens >= self._most_tokens or self._repeats:
                        enough.cancel()
                case Finished(stats):
                    self.has_ended = stats.stop_reason is StopReason.END
                case _:
                    yield event
        cancel.check()

    def _take(self, text: str) -> None:
        self._written += text
        self._num_tokens += bool(self.text)
        if self._num_tokens and self._num_tokens % REPEATS_EVERY_TOKENS == 0:
            self._repeats = repeats(self.text)

    @property
    def _progress(self) -> SummaryProgress:
        return SummaryProgress(
            self._num_turns,
            self._num_read + self._num_tokens,
            self._num_to_read + self._most_tokens,
        )
