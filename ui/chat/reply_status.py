"""The quiet line under a reply, in words."""

from __future__ import annotations

from app.duration_words import short_duration
from app.reading.shown import ShownPassage
from app.segments.progress import ReadingProgress, SegmentProgress
from app.store.records import Message, MessageState
from engine.events import GenerationStats, PrefillProgress, StopReason

_STOP_WORDS = {
    StopReason.END: "end",
    StopReason.LENGTH: "length limit reached",
    StopReason.CONTEXT: "context full",
    StopReason.STOPPED: "stopped",
}


def stats_text(stats: GenerationStats) -> str:
    """Return the figures of a reply, such as `12.3 tok/s · first token 0.84 s · 214 tokens · end · …`."""
    if not stats.was_asked:
        parts = ["the model was not asked", f"{stats.ttft_s:.2f} s"]
        return " · ".join([*parts, *_segments_part(stats)])
    stop = _STOP_WORDS[stats.stop_reason]
    if stats.completion_tokens == 0:
        parts = [f"{stop} before the first token", f"{stats.ttft_s:.2f} s{_summary_part(stats)}"]
    else:
        parts = [
            f"{stats.decode_tps:.1f} tok/s",
            f"first token {stats.ttft_s:.2f} s{_summary_part(stats)}",
            f"{stats.completion_tokens:,} token" + ("" if stats.completion_tokens == 1 else "s"),
            stop,
        ]
    parts += _segments_part(stats)
    parts.append(f"reused {stats.reused_tokens:,} of {stats.prompt_tokens:,}")
    if stats.left_out_turns:
        turns = "1 turn" if stats.left_out_turns == 1 else f"{stats.left_out_turns:,} turns"
        parts.append(f"{turns} summarized or left out")
    parts += [note.removesuffix(".") for note in (stats.reread_note, stats.kv_note) if note]
    return " · ".join(parts)


def _segments_part(stats: GenerationStats) -> list[str]:
    """Return in how many segments documents were read, if any were."""
    plural = "" if stats.segments == 1 else "s"
    return [f"read in {stats.segments:,} segment{plural}"] if stats.segments else []


def _summary_part(stats: GenerationStats) -> str:
    """Return what of the time to the first token went into summaries of old turns, if any did."""
    return f" (summary {stats.summary_s:.1f} s)" if stats.summary_s else ""


def source_tip(passage: ShownPassage) -> str:
    """Return what is said of a source that an answer names by its number: its place, and its first words."""
    place = ", ".join(filter(None, (passage.title, passage.place.words)))
    return f"{place}\n{passage.words}"


def state_text(message: Message) -> str:
    """Return what became of a reply that did not end by itself, else an empty string."""
    if message.state is MessageState.INTERRUPTED:
        return "Interrupted: Octavo was closed while this was written."
    if message.state is MessageState.FAILED:
        return message.error or "This reply failed."
    if message.state is MessageState.STOPPED and message.stats is None:
        return "Stopped."
    return ""


def prefill_text(progress: ReadingProgress) -> str:
    """Return how far the prompt is read, such as `Reading 1,200 of 6,031 tokens (reused 0)`.

    Where documents are read in segments, the segment is what counts: `Reading segment 3 of 12, about 40 s
    left`; where old turns are summarized first, that: `Summarizing 6 turns`.
    """
    if isinstance(progress, PrefillProgress):
        return f"Reading {progress.done:,} of {progress.total:,} tokens (reused {progress.reused:,})"
    if isinstance(progress, SegmentProgress) and progress.seconds_from_now is not None:
        return f"{progress.words}, {short_duration(progress.seconds_from_now)} left"
    return progress.words
