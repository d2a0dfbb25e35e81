from __future__ import annotations

import dataclasses

from app.segments.progress import SegmentProgress
from engine.events import GenerationStats, StopReason
from engine.kv.precision import KVSpec
from tests.app.store.samples import USAGE
from ui.chat.reply_status import prefill_text, stats_text

STATS = GenerationStats(
    prompt_tokens=6_031,
    reused_tokens=5_000,
    completion_tokens=1,
    ttft_s=0.844,
    prefill_tps=100,
    decode_tps=12.34,
    kv="4",
    kv_usage=USAGE,
    peak_nbytes=1,
    stop_reason=StopReason.END,
)


def test_the_figures_of_a_reply_are_one_line() -> None:
    line = "12.3 tok/s · first token 0.84 s · 1 token · end · reused 5,000 of 6,031"
    assert stats_text(STATS) == line
    note = "30 of 30 layers keep their cache at 16 bits."
    assert stats_text(dataclasses.replace(STATS, kv_note=note)) == f"{line} · {note.removesuffix('.')}"


def test_a_reply_says_how_many_turns_were_not_read_and_what_was_read_again_and_why() -> None:
    why = "The system prompt is another one: 4,000 tokens were read again."
    line = stats_text(dataclasses.replace(STATS, left_out_turns=3, reread_note=why))
    assert line.endswith(f" · 3 turns summarized or left out · {why.removesuffix('.')}")
    waited = stats_text(dataclasses.replace(STATS, ttft_s=20.11, summary_s=18.2))
    assert " · first token 20.11 s (summary 18.2 s) · " in waited
    assert " · 1 turn summarized" in stats_text(dataclasses.replace(STATS, left_out_turns=1))


def test_a_reply_stopped_while_its_prompt_was_read_shows_no_speed() -> None:
    stats = dataclasses.replace(STATS, completion_tokens=0, decode_tps=0.0, stop_reason=StopReason.STOPPED)
    assert stats_text(stats) == "stopped before the first token · 0.84 s · reused 5,000 of 6,031"


def test_a_reply_from_notes_says_in_how_many_segments_documents_were_read() -> None:
    assert " · read in 12 segments · reused" in stats_text(dataclasses.replace(STATS, segments=12))
    assert " · read in 1 segment · reused" in stats_text(dataclasses.replace(STATS, segments=1))


def test_an_answer_that_no_model_wrote_says_so() -> None:
    nothing = GenerationStats.of_nothing(KVSpec.parse("8"), StopReason.END)
    assert stats_text(nothing) == "the model was not asked · 0.00 s"
    read = dataclasses.replace(nothing, ttft_s=90.0, segments=12)
    assert stats_text(read) == "the model was not asked · 90.00 s · read in 12 segments"
    stopped = GenerationStats.of_nothing(KVSpec.parse("8"), StopReason.STOPPED)
    assert stats_text(stopped).startswith("stopped before the first token")


def test_reading_in_segments_says_how_long_it_still_takes_once_that_is_known() -> None:
    assert prefill_text(SegmentProgress(3, 12, "book")) == "Reading segment 3 of 12"
    assert prefill_text(SegmentProgress(3, 12, "book", seconds_left=42)) == (
        "Reading segment 3 of 12, about 40\N{NO-BREAK SPACE}s left"
    )
    last = SegmentProgress(12, 12, "book", done_tokens=50, total_tokens=100, seconds_left=60)
    assert prefill_text(last).endswith("about 30\N{NO-BREAK SPACE}s left")
    read = dataclasses.replace(last, done_tokens=100)
    assert prefill_text(read).endswith("about 6\N{NO-BREAK SPACE}s left")
