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
from app.cli.status_line import StatusLine
from app.documents.document import Document
from app.documents.extract import extract
from app.kv_config import KVConfig, load_kv_config
from app.kv_text import bits_text, budget_text, pages_text
from app.models.library import ModelLibrary
from app.paths import AppPaths
from app.settings import DEFAULT_KV
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
from engine.kv.precision import PRESETS, KVSpec
from engine.kv.usage import KVUsage
from engine.sampling import SamplingParams
from engine.wording import format_nbytes

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
@click.option(
    "--kv",
    help=f"KV cache precision: 8, k8v4, '0-7:8, 8-:4', {', '.join(PRESETS)}.  [default: {DEFAULT_KV}]",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A TOML file that names model, precision and context; options given here win.",
)
@click.option("--max-tokens", type=int, default=DEFAULTS.max_tokens, show_default=True)
@click.option("--temperature", type=float, default=DEFAULTS.temperature, show_default=True)
@click.option("--seed", type=int, help="Makes the answer repeatable.")
@click.option("--system", default="", help="A system prompt instead of the model's own.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: progress, tokens, figures.")
def ask(
    question: str,
    files: tuple[Path, ...],
    model: str | None,
    kv: str | None,
    config: Path | None,
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
        wanted = _wanted(model, kv, config)
        documents = [extract(path) for path in files]
        _answer(question, documents, wanted, sampling, system, output)
    except Cancelled:
        sys.exit(INTERRUPTED)
    except OctavoError as error:
        output.fail(str(error))
        sys.exit(1)


def _wanted(model: str | None, kv: str | None, config: Path | None) -> KVConfig:
    """Return what the options and the configuration file ask for; the options win."""
    wanted = KVConfig(None, DEFAULT_KV, None) if config is None else load_kv_config(config)
    return KVConfig(
        wanted.model if model is None else model,
        wanted.kv if kv is None else KVSpec.parse(kv),
        wanted.max_context,
    )


def _answer(
    question: str,
    documents: Sequence[Document],
    wanted: KVConfig,
    sampling: SamplingParams,
    system: str,
    output: _Output,
) -> None:
    """Load the model and stream the answer to `output`."""
    found = ModelLibrary(AppPaths.from_environment()).named_or_default(wanted.model)

    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    backend = start_backend()

    from app.chat import message_text
    from engine.engine import Engine, GenerationRequest
    from engine.model import ChatMessage

    cancel = CancelToken()
    signal.signal(signal.SIGINT, lambda *_: cancel.cancel())  # before this, Ctrl+C simply ends the process
    engine = Engine(backend)
    engine.load(found.path, wanted.kv, cancel=cancel, on_progress=output.show)
    messages = [ChatMessage("system", system)] if system else []
    messages.append(ChatMessage("user", message_text(question, documents)))
    request = GenerationRequest(tuple(messages), sampling, wanted.kv, wanted.max_context)
    for event in engine.generate(request, cancel):
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
        self._line = StatusLine()

    def show(self, event: LoadProgress | GenerationEvent) -> None:
        match event:
            case LoadProgress(stage, done, total):
                self._status(f"{stage.value} {done / total:.0%}" if total else stage.value)
            case PrefillProgress(done, total):
                self._status(f"Reading {done:,} of {total:,} tokens")
            case Token(text):
                self._line.clear()
                print(text, end="", flush=True)
            case Finished(stats):
                self._line.clear()
                print(flush=True)
                self._figures(stats)

    def fail(self, sentence: str) -> None:
        self._line.clear()
        print(f"octavo: {sentence}", file=sys.stderr)

    def _status(self, text: str) -> None:
        if self._line.on_terminal:
            self._line.write(text)

    def _figures(self, stats: GenerationStats) -> None:
        if self._line.on_terminal:
            print(
                f"[{stats.prompt_tokens:,} tokens read at {stats.prefill_tps:.0f}/s, first token after "
                f"{stats.ttft_s:.1f} s, {stats.completion_tokens:,} written at {stats.decode_tps:.1f}/s, "
                f"stopped by {stats.stop_reason.value}]",
                file=sys.stderr,
            )
            if stats.kv_usage is not None:
                print(f"[KV cache: {_kv_figures(stats.kv_usage)}]", file=sys.stderr)
            if stats.kv_note is not None:
                print(f"[{stats.kv_note}]", file=sys.stderr)


def _kv_figures(usage: KVUsage) -> str:
    parts = [format_nbytes(usage.nbytes)]
    if usage.requested is not None:
        held = "no cold page yet" if usage.effective is None else f"{bits_text(usage.effective)} effective"
        parts.append(f"{bits_text(usage.requested)} bits requested, {held}")
        parts.append(f"pages: {pages_text(usage)}")
    if budget := budget_text(usage):
        parts.append(f"attention: {budget}")
    return "; ".join(parts)


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
