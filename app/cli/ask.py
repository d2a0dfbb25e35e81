"""`octavo ask`: one question, one answer, in the terminal."""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from app.cli import INTERRUPTED
from app.documents.document import Document
from app.documents.extract import extract
from app.models.library import ModelLibrary
from app.models.source import STARTER_ID
from app.paths import AppPaths
from app.valid_unicode import valid_unicode
from engine.cancel import CancelToken
from engine.errors import Cancelled, OctavoError
from engine.events import (
    Finished,
    GenerationEvent,
    GenerationStats,
    LoadProgress,
    PrefillProgress,
    StopReason,
    Token,
)
from engine.kv.precision import KVBits
from engine.sampling import SamplingParams

DEFAULTS = SamplingParams()


@click.command()
@click.argument("question")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A document to read with the question; may be given more than once.",
)
@click.option("--model", help="A model's id, name or path.  [default: the only one, else the starter]")
@click.option("--kv-bits", type=click.Choice(["16", "8", "4"]), default="16", show_default=True)
@click.option("--max-tokens", type=int, default=DEFAULTS.max_tokens, show_default=True)
@click.option("--temperature", type=float, default=DEFAULTS.temperature, show_default=True)
@click.option("--seed", type=int, help="Makes the answer repeatable.")
@click.option("--system", default="", help="A system prompt instead of the model's own.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: progress, tokens, figures.")
def ask(
    question: str,
    files: tuple[Path, ...],
    model: str | None,
    kv_bits: str,
    max_tokens: int,
    temperature: float,
    seed: int | None,
    system: str,
    as_json: bool,
) -> None:
    """Answer QUESTION, streamed; `-` reads it from standard input. Ctrl+C stops."""
    if question == "-":
        question = sys.stdin.read()
    if not question.strip() and not files:
        raise click.UsageError("There is no question, and no --file either.")
    question, system = valid_unicode(question), valid_unicode(system)
    sampling = dataclasses.replace(DEFAULTS, max_tokens=max_tokens, temperature=temperature, seed=seed)
    output = _JsonOutput() if as_json else _TextOutput()
    try:
        documents = [extract(path) for path in files]
        _answer(question, documents, model, KVBits.parse(kv_bits), sampling, system, output)
    except Cancelled:
        sys.exit(INTERRUPTED)
    except OctavoError as error:
        output.fail(str(error))
        sys.exit(1)


def _answer(
    question: str,
    documents: Sequence[Document],
    model: str | None,
    kv_bits: KVBits,
    sampling: SamplingParams,
    system: str,
    output: _Output,
) -> None:
    """Load the model and stream the answer to `output`."""
    library = ModelLibrary(AppPaths.from_environment())
    only = library.only() if model is None else None
    found = only or library.find(STARTER_ID if model is None else model)

    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    backend = start_backend()

    from app.chat import message_text
    from engine.engine import Engine, GenerationRequest
    from engine.model import ChatMessage

    cancel = CancelToken()
    signal.signal(signal.SIGINT, lambda *_: cancel.cancel())  # before this, Ctrl+C simply ends the process
    engine = Engine(backend)
    engine.load(found.path, kv_bits, cancel=cancel, on_progress=output.show)
    messages = [ChatMessage("system", system)] if system else []
    messages.append(ChatMessage("user", message_text(question, documents)))
    for event in engine.generate(GenerationRequest(tuple(messages), sampling, kv_bits), cancel):
        output.show(event)
        if isinstance(event, Finished) and event.stats.stop_reason is StopReason.STOPPED:
            raise Cancelled


class _Output(Protocol):
    """Where events go."""

    def show(self, event: LoadProgress | GenerationEvent) -> None:
        """Show one event."""

    def fail(self, sentence: str) -> None:
        """Show why there is no answer."""


class _TextOutput:
    """The answer on standard output; progress and figures on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._status_shown = False

    def show(self, event: LoadProgress | GenerationEvent) -> None:
        match event:
            case LoadProgress(stage, done, total):
                self._status(f"{stage.value} {done / total:.0%}" if total else stage.value)
            case PrefillProgress(done, total):
                self._status(f"Reading {done:,} of {total:,} tokens")
            case Token(text):
                self._status("")
                print(text, end="", flush=True)
            case Finished(stats):
                self._status("")
                print(flush=True)
                self._figures(stats)

    def fail(self, sentence: str) -> None:
        self._status("")
        print(f"octavo: {sentence}", file=sys.stderr)

    def _status(self, text: str) -> None:
        """Replace the status line; an empty text takes it away."""
        if sys.stderr.isatty() and (text or self._status_shown):
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
            self._status_shown = bool(text)

    def _figures(self, stats: GenerationStats) -> None:
        if sys.stderr.isatty():
            print(
                f"[{stats.prompt_tokens:,} tokens read at {stats.prefill_tps:.0f}/s, first token after "
                f"{stats.ttft_s:.1f} s, {stats.completion_tokens:,} written at {stats.decode_tps:.1f}/s, "
                f"stopped by {stats.stop_reason.value}]",
                file=sys.stderr,
            )
            if stats.kv_note is not None:
                print(f"[{stats.kv_note}]", file=sys.stderr)


class _JsonOutput:
    """One JSON object a line, each with its event's name under `event`."""

    def show(self, event: LoadProgress | GenerationEvent) -> None:
        match event:
            case LoadProgress(stage, done, total):
                self._line("load", stage=stage.name.lower(), done=done, total=total)
            case PrefillProgress(done, total, reused):
                self._line("prefill", done=done, total=total, reused=reused)
            case Token(text, token_id):
                self._line("token", text=text, token_id=token_id)
            case Finished(stats):
                self._line("finished", **dataclasses.asdict(stats) | {"stop_reason": stats.stop_reason.value})

    def fail(self, sentence: str) -> None:
        self._line("error", message=sentence)

    def _line(self, event: str, **fields: Any) -> None:
        print(json.dumps({"event": event} | fields), flush=True)
