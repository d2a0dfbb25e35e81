"""What `octavo ask` shows: the answer, its progress and figures, and what the guard does."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.cli.document_report import DocumentReport, report_lines
from app.cli.status_line import StatusLine
from app.duration_words import short_duration
from app.kv_text import bits_text, budget_text, pages_text
from app.segments.progress import SegmentEvent, SegmentProgress
from engine.admission import (
    AdmissionError,
    DropTurns,
    InSegments,
    LongerContext,
    LookUp,
    LowerPrecision,
    PackedWeights,
    ReadWhole,
    ShorterContext,
    SmallerModel,
    SummarizeTurns,
)
from engine.errors import OctavoError
from engine.events import Finished, GenerationStats, LoadProgress, PrefillProgress, Token
from engine.guard import GuardAction
from engine.kv.usage import KVUsage
from engine.wording import format_nbytes


class Output(Protocol):
    """Where events go."""

    def show(self, event: LoadProgress | SegmentEvent) -> None:
        """Show one event."""

    def note(self, sentence: str) -> None:
        """Show what is worth knowing of how the answer is made."""

    def rests_on(self, reports: Sequence[DocumentReport]) -> None:
        """Show what was read of documents that were not read whole, and what the answer rests on."""

    def stop(self) -> None:
        """Show that the user stopped it before there was an answer."""

    def fail(self, error: OctavoError) -> None:
        """Show why there is no answer, and what would help."""


class TextOutput:
    """The answer on standard output; progress and figures on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def show(self, event: LoadProgress | SegmentEvent) -> None:
        """Show one event."""
        match event:
            case LoadProgress(stage, done, total):
                self._status(f"{stage.value} {done / total:.0%}" if total else stage.value)
            case PrefillProgress(done, total):
                self._status(f"Reading {done:,} of {total:,} tokens")
            case SegmentProgress():
                left = "" if event.seconds_left is None else f", {short_duration(event.seconds_left)} left"
                self._status(f"{event.words}, {event.share:.0%}{left}")
            case Token(text):
                self._line.clear()
                print(text, end="", flush=True)
            case GuardAction(reason=reason, sentence=sentence):
                self.note(f"{sentence} {reason[:1].upper()}{reason[1:]}.")
            case Finished(stats):
                self._line.clear()
                print(flush=True)
                self._figures(stats)

    def note(self, sentence: str) -> None:
        """Show what is worth knowing of how the answer is made."""
        self._line.clear()
        self._line.write(f"[{sentence}]")
        self._line.end()

    def rests_on(self, reports: Sequence[DocumentReport]) -> None:
        """Show what was read of documents that were not read whole, and what the answer rests on."""
        for line in report_lines(reports):
            print(line, file=sys.stderr)

    def stop(self) -> None:
        """Show that the user stopped it before there was an answer."""
        self._line.clear()

    def fail(self, error: OctavoError) -> None:
        """Show why there is no answer, and what would help."""
        self._line.clear()
        print(f"octavo: {error}", file=sys.stderr)
        for way_out in ways_out(error):
            print(f"  {way_out.option}: {way_out.effect}", file=sys.stderr)

    def _status(self, text: str) -> None:
        if self._line.on_terminal:
            self._line.write(text)

    def _figures(self, stats: GenerationStats) -> None:
        if self._line.on_terminal:
            num_read = stats.prompt_tokens - stats.reused_tokens
            print(
                f"[{num_read:,} tokens read at {stats.prefill_tps:.0f}/s, first token after "
                f"{stats.ttft_s:.1f} s, {stats.completion_tokens:,} written at {stats.decode_tps:.1f}/s, "
                f"stopped by {stats.stop_reason.value}]",
                file=sys.stderr,
            )
            if stats.reused_tokens or stats.reread_note:
                print(f"[{_reused(stats)}]", file=sys.stderr)
            if stats.kv_usage is not None:
                print(f"[KV cache: {_kv_figures(stats.kv_usage)}]", file=sys.stderr)
                if stats.reused_tokens and stats.kv_usage.num_below:
                    print(f"[{_below(stats.kv_usage.num_below)}]", file=sys.stderr)
            if stats.kv_note is not None:
                print(f"[{stats.kv_note}]", file=sys.stderr)


def _reused(stats: GenerationStats) -> str:
    why = f". {stats.reread_note.removesuffix('.')}" if stats.reread_note else ""
    return f"reused {stats.reused_tokens:,} of {stats.prompt_tokens:,} tokens{why}"


def _below(num_pages: int) -> str:
    pages = "1 page was" if num_pages == 1 else f"{num_pages:,} pages were"
    return f"{pages} on disk with fewer bits; after `octavo prefixes --clear` all is read again"


def _kv_figures(usage: KVUsage) -> str:
    parts = [format_nbytes(usage.nbytes)]
    if usage.requested is not None:
        held = "no cold page yet" if usage.effective is None else f"{bits_text(usage.effective)} effective"
        parts.append(f"{bits_text(usage.requested)} bits requested, {held}")
        parts.append(f"pages: {pages_text(usage)}")
    if budget := budget_text(usage):
        parts.append(f"attention: {budget}")
    return "; ".join(parts)


@dataclass(frozen=True)
class WayOut:
    """An option with which `octavo ask` would go on, and what it does."""

    option: str
    effect: str


def ways_out(error: OctavoError) -> Iterator[WayOut]:
    """Yield the options that help against a refusal, the mildest first; none against other errors."""
    if not isinstance(error, AdmissionError):
        return
    for choice in error.choices:
        match choice:
            case LowerPrecision(kv, fitting_tokens):
                option = f"--kv {shlex.quote(str(kv))}"
                yield WayOut(option, f"a lower KV precision, at which {fitting_tokens:,} tokens fit")
            case LongerContext(max_context):
                yield WayOut(f"--context {max_context}", "a longer context")
            case ShorterContext(max_context):
                yield WayOut(f"--context {max_context}", "a shorter context")
            case PackedWeights(fitting_tokens):
                yield WayOut(f"--context {fitting_tokens}", "weights as they are stored, which is slower")
            case SmallerModel(nbytes):
                yield WayOut("--model MODEL", f"a model with at most {format_nbytes(nbytes)} of weights")
            case InSegments(num_segments):
                about = f"read documents in segments, {num_segments} or a few more"
                yield WayOut("--document-mode segments", about)
            case LookUp():
                yield WayOut("--document-mode look-up", "read only passages that fit the question")
            case ReadWhole():
                yield WayOut("--document-mode whole", "read documents whole")
            case SummarizeTurns() | DropTurns():
                pass  # a question in the terminal has no former turns
    if error.can_override:
        yield WayOut("--anyway", "go on all the same; the computer may become very slow")


class JsonOutput:
    """One JSON object a line, each with its event's name under `event`."""

    def show(self, event: LoadProgress | SegmentEvent) -> None:
        """Show one event."""
        match event:
            case LoadProgress(stage, done, total):
                self._line("load", stage=stage.name.lower(), done=done, total=total)
            case PrefillProgress(done, total, reused):
                self._line("prefill", done=done, total=total, reused=reused)
            case SegmentProgress():
                self._line("segment", **dataclasses.asdict(event) | {"stage": event.stage.name.lower()})
            case Token(text, token_id):
                self._line("token", text=text, token_id=token_id)
            case GuardAction():
                self._line("guard", **dataclasses.asdict(event) | {"step": event.step.name.lower()})
            case Finished(stats):
                self._line("finished", **dataclasses.asdict(stats) | {"stop_reason": stats.stop_reason.value})

    def note(self, sentence: str) -> None:
        """Show what is worth knowing of how the answer is made."""
        self._line("note", text=sentence)

    def rests_on(self, reports: Sequence[DocumentReport]) -> None:
        """Show what was read of documents that were not read whole, and what the answer rests on."""
        for report in reports:
            self._line("document", **dataclasses.asdict(report))

    def stop(self) -> None:
        """Show that the user stopped it before there was an answer."""
        self._line("stopped")

    def fail(self, error: OctavoError) -> None:
        """Show why there is no answer, and what would help."""
        helps = [dataclasses.asdict(way_out) for way_out in ways_out(error)]
        self._line("error", message=str(error), **({"helps": helps} if helps else {}))

    def _line(self, event: str, **fields: Any) -> None:
        print(json.dumps({"event": event} | fields), flush=True)
