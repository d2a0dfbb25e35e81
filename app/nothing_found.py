"""What is answered where nothing that was read of documents says anything about the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.documents.ways import DocumentWay
from app.reading.records import Reading
from app.segments.numbering import first_number
from app.segments.prompts import nothing_found_sentence
from engine.events import Finished, GenerationEvent, GenerationStats, StopReason, Token
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage

NO_TOKEN = -1
"""The id of words that no model wrote."""
_MOST_NAMED = 3
"""So many documents that were looked up in vain are named."""


def nothing_found(
    readings: Sequence[Reading], messages: Sequence[ChatMessage], titles: Mapping[int, str]
) -> str | None:
    """Return the answer where there is nothing to answer from; None where there is something.

    A document that is read whole, notes or passages, a summary and an earlier answer are that.

    Args:
        readings: what was read of documents for the question.
        messages: all that the model would read.
        titles: of the documents, by attachment.
    """
    if not readings or any(first_number(each) is not None for each in readings):
        return None
    kinds = {each.kind for message in messages for each in message.documents}
    if kinds & {SpanKind.DOCUMENT, SpanKind.SUMMARY} or any(each.role == "assistant" for each in messages):
        return None
    return nothing_found_sentence(list(_reasons(readings, titles)))


def _reasons(readings: Sequence[Reading], titles: Mapping[int, str]) -> Iterator[str]:
    """Yield why there is nothing, document by document; in one sentence for many that were looked up."""
    looked_up = [each for each in readings if each.way is DocumentWay.LOOK_UP]
    is_many = len(looked_up) > _MOST_NAMED
    for each in readings:
        if not is_many or each not in looked_up:
            yield _reason(each, titles[each.attachment_id])
    if is_many:
        yield f"No passage of {len(looked_up):,} documents has the words of the question."


def _reason(reading: Reading, title: str) -> str:
    if reading.way is DocumentWay.LOOK_UP:
        return f"No passage of “{title}” has the words of the question."
    if reading.num_read == reading.num_segments:
        return (
            f"“{title}” was read in segments, {reading.num_read:,} in all, and none says anything about it."
        )
    return (
        f"{reading.num_read:,} of {reading.num_segments:,} segments of “{title}” were read, and none of them "
        "says anything about it."
    )


def unwritten_answer(text: str, kv: KVSpec) -> Iterator[GenerationEvent]:
    """Yield an answer that no model wrote, and the figures of that."""
    yield Token(text, NO_TOKEN)
    yield Finished(GenerationStats.of_nothing(kv, StopReason.END))
