"""Taking a note on a segment, or making notes shorter: the model is asked, and what it wrote is checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from app.document_prompt import Passage, chat_message
from app.ledger.sentences import whole_sentences
from app.ledger.summary_check import repeats
from app.reading.question import DocumentQuestion
from app.segments.budget import MOST_FITTING_TOKENS, SegmentBudget
from app.segments.note_check import adds, is_supported, tells, without_echo
from app.segments.progress import SegmentEvent, SegmentProgress
from app.segments.prompts import (
    join_prompt,
    note_again_prompt,
    note_of,
    question_or_default,
    segment_prompt,
    without_reasoning,
)
from app.sources.evidence import best_sentences, fitting_sentence, is_related
from app.valid_unicode import valid_unicode
from engine.cancel import CancelToken, LinkedCancelToken
from engine.engine import Engine, GenerationRequest
from engine.events import CacheChanged, Finished, PrefillProgress, StopReason, Token
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams

SEGMENT_CONVERSATION = -1
"""The conversation of the segment that is being read; the ids of the store are positive."""
_CHECK_EVERY_TOKENS = 16
"""How often it is looked whether what is written is of use."""

Writing = Generator[SegmentEvent, None, str]
"""Tells how far it is and returns what was written."""


@dataclass(frozen=True)
class Note:
    """What a segment says about a question.

    Attributes:
        text: empty where that is nothing.
        is_extract: whether it is sentences of the segment, as the model's own note was not supported.
    """

    text: str
    is_extract: bool = False


class NoteTaker:
    """Has the model write notes for one question, each in a prompt of its own.

    Attributes:
        question: what is asked, in words.
        budget: how long all of it may be.
        peak_nbytes: the most memory that the engine took.
    """

    def __init__(
        self,
        engine: Engine,
        asked: DocumentQuestion,
        budget: SegmentBudget,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None,
    ) -> None:
        self.question = question_or_default(asked.words)
        self.budget = budget
        self.peak_nbytes = 0
        self._engine = engine
        self._asked = asked
        self._cancel = cancel
        self._wanted_kv = wanted_kv

    def count(self, text: str) -> int:
        """Return the tokens of a text; raises `Cancelled` when it is stopped."""
        assert self._engine.loaded is not None
        return self._engine.loaded.counter.count(text, self._cancel)

    def note(
        self, segment: Passage, words: str, progress: SegmentProgress
    ) -> Generator[SegmentEvent, None, Note]:
        """Have a note written on a segment, and keep what it begins with for other questions.

        Where a sentence of the segment has nearly all that is asked for, it stands before a note that leaves
        out what it tells, and for one that the segment does not support. Else such a note is asked for once
        more, in sentences of the segment, and then replaced by those of them that fit the question best; not
        where no sentence has enough words of the question for that to be of use.

        Args:
            segment: as the model reads it.
            words: those of the document in it.
            progress: what is told meanwhile.

        Raises:
            Cancelled: it was stopped.
            OctavoError: the model could not read it.
        """
        most_tokens = self.budget.note_tokens
        fitting = fitting_sentence(self.question, words, MOST_FITTING_TOKENS, self.count)
        try:
            for prompt in (segment_prompt, note_again_prompt):
                asking = chat_message("user", prompt(self.question), [segment])
                note = note_of((yield from self._written(asking, words, progress)))
                if prompt is segment_prompt:
                    # Before it is asked again: what is cut and goes on is not kept.
                    self._engine.keep_prefix(SEGMENT_CONVERSATION, self._asked.conversation_id, self._cancel)
                if note:
                    note = without_echo(note, prompt(self.question))
                elif not fitting:
                    return Note("")
                is_own = prompt is segment_prompt or is_related(self.question, note)
                if note and is_own and is_supported(note, words):
                    return Note(note if tells(note, fitting, self.question) else f"{fitting} {note}")
                if fitting or not is_related(self.question, words):
                    return Note(fitting, is_extract=bool(fitting))
        finally:
            self._engine.forget(SEGMENT_CONVERSATION)
        return Note(best_sentences(self.question, words, most_tokens, self.count), is_extract=True)

    def shorter(self, notes: Sequence[str], progress: SegmentProgress) -> Writing:
        """Have notes made shorter together; where the model does not, their best sentences stand in."""
        text = "\n\n".join(notes)
        asking = ChatMessage("user", join_prompt(progress.title, text, self.question))
        note = note_of((yield from self._written(asking, text, progress)))
        if note and is_supported(note, text):
            return note
        return best_sentences(self.question, text, self.budget.note_tokens, self.count)

    def _written(self, asking: ChatMessage, source: str, progress: SegmentProgress) -> Writing:
        """Have something written until it is long enough, or of no use; return it in whole sentences.

        It is of no use when it has what is not in `source`, or goes round in circles: each token takes time.
        """
        yield progress
        self._cancel.check()
        enough, written, note_tokens, has_ended = LinkedCancelToken(self._cancel), "", 0, False
        request = note_request(self._asked, asking, self.budget.writing_tokens)
        for event in self._engine.generate(request, enough, self._wanted_kv):
            match event:
                case PrefillProgress(done, total):
                    yield dataclasses.replace(progress, done_tokens=done, total_tokens=total)
                case Token(text):
                    written += text
                    note_tokens += bool(without_reasoning(written))
                    is_due = note_tokens and note_tokens % _CHECK_EVERY_TOKENS == 0
                    if note_tokens >= self.budget.note_tokens or (
                        is_due and self._is_of_no_use(written, source)
                    ):
                        enough.cancel()
                case Finished(stats):
                    self.peak_nbytes = max(self.peak_nbytes, stats.peak_nbytes)
                    has_ended = stats.stop_reason is StopReason.END
                case CacheChanged():
                    pass  # it is told of the conversation, which does not hold the segment
                case _:
                    yield event
        self._cancel.check()
        written = valid_unicode(without_reasoning(written))
        return written if has_ended else whole_sentences(written) or written

    def _is_of_no_use(self, written: str, source: str) -> bool:
        begun = whole_sentences(without_reasoning(written))
        return repeats(begun) or adds(begun, source)


def note_request(asked: DocumentQuestion, asking: ChatMessage, max_tokens: int) -> GenerationRequest:
    """Return a request for a note: the likeliest words, so that asking again gives the same."""
    sampling = SamplingParams(
        temperature=0, repetition_penalty=asked.repetition_penalty, max_tokens=max_tokens
    )
    return GenerationRequest(
        (asking,), sampling, asked.kv, asked.max_context, SEGMENT_CONVERSATION, anyway=asked.anyway
    )
