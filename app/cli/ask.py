"""`octavo ask`: one question, one answer, in the terminal."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli import INTERRUPTED
from app.cli.ask_output import JsonOutput, Output, TextOutput
from app.cli.document_report import document_reports
from app.cli.memory_size import MemorySize
from app.documents.document import Document
from app.documents.extract import extract
from app.documents.ways import DocumentWay
from app.kv_config import LEAST_CONTEXT, MOST_CONTEXT, KVConfig, load_kv_config
from app.models.inspection import inspect
from app.models.library import ModelLibrary
from app.paths import AppPaths
from app.settings import DEFAULT_KV, load_memory_limits, load_prefix_settings
from app.store.prefixes.service import PrefixService
from app.valid_unicode import valid_unicode
from engine.admission import AdmissionError, ShorterContext
from engine.cancel import CancelToken
from engine.errors import Cancelled, OctavoError
from engine.events import Finished, StopReason
from engine.guard import Guard, GuardStep
from engine.kv.precision import PRESETS, KVSpec
from engine.memory import MemorySample
from engine.memory_limits import MemoryLimits
from engine.model_info import ModelInfo
from engine.monitor import MemoryMonitor
from engine.sampling import SamplingParams

if TYPE_CHECKING:
    from engine.engine import Engine

DEFAULTS = SamplingParams()
DOCUMENT_WAYS = {
    "auto": None,
    "whole": DocumentWay.WHOLE,
    "segments": DocumentWay.SEGMENTS,
    "look-up": DocumentWay.LOOK_UP,
}
"""How documents are read, by what the option is given."""
FLUSH_S = 10.0
"""How long the program stays after the answer until what was read is on disk."""


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
@click.option(
    "--context",
    type=click.IntRange(LEAST_CONTEXT, MOST_CONTEXT),
    help="Tokens of prompt and answer together.  [default: what fits]",
)
@click.option(
    "--memory",
    type=MemorySize(),
    help="Memory that may be taken, such as 2G.  [default: what the settings allow]",
)
@click.option(
    "--document-mode",
    type=click.Choice(list(DOCUMENT_WAYS)),
    default="auto",
    show_default=True,
    help="How documents are read: whole; in segments, with notes on each; or looked up by the words of the "
    "question. auto reads what fits whole, the rest in segments where that is done in ten minutes.",
)
@click.option(
    "--anyway", is_flag=True, help="Go on where it does not fit into memory, and never wait for some."
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
    context: int | None,
    memory: int | None,
    document_mode: str,
    anyway: bool,
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
    output = JsonOutput() if as_json else TextOutput()
    try:
        wanted = _wanted(model, kv, config, context)
        documents = [extract(path) for path in files]
        way = DOCUMENT_WAYS[document_mode]
        asked = _Asked(question, documents, way, system, sampling, anyway)
        with _watched(_limits(memory), anyway) as watched:
            _answer(asked, wanted, watched, output)
    except Cancelled:
        output.stop()
        sys.exit(INTERRUPTED)
    except OctavoError as error:
        output.fail(error)
        sys.exit(1)


@dataclass(frozen=True)
class _Asked:
    """A question, and how it is to be answered."""

    question: str
    documents: Sequence[Document]
    way: DocumentWay | None
    system: str
    sampling: SamplingParams
    anyway: bool


@dataclass(frozen=True)
class _Watched:
    """The memory that may be taken, and the guard that is given samples of it."""

    limits: MemoryLimits
    guard: Guard


def _wanted(model: str | None, kv: str | None, config: Path | None, context: int | None) -> KVConfig:
    """Return what the options and the configuration file ask for; the options win."""
    wanted = KVConfig(None, DEFAULT_KV, None) if config is None else load_kv_config(config)
    return KVConfig(
        wanted.model if model is None else model,
        wanted.kv if kv is None else KVSpec.parse(kv),
        wanted.max_context if context is None else context,
    )


def _limits(memory: int | None) -> MemoryLimits:
    """Return what the user's settings allow, with another amount where an option names one."""
    limits = load_memory_limits(AppPaths.from_environment().settings_file)
    return limits if memory is None else dataclasses.replace(limits, most_nbytes=memory)


def _require_positions(info: ModelInfo, context: int) -> None:
    """Raise an `AdmissionError` for a context that is longer than what the model is known to read.

    It would be made shorter, and what is asked for never is without a word.
    """
    if info.is_context_assumed or context <= info.context_tokens:
        return
    raise AdmissionError(
        f"{info.name} was made for {info.context_tokens:,} tokens and cannot read {context:,}.",
        needed_nbytes=0,
        available_nbytes=0,
        choices=(ShorterContext(info.context_tokens),),
        can_override=False,
    )


@contextlib.contextmanager
def _watched(limits: MemoryLimits, anyway: bool) -> Iterator[_Watched]:
    """Watch the memory while this lasts; `anyway` lets no answer wait for it."""
    guard = Guard()

    def go_on(sample: MemorySample, changed: bool) -> None:
        if guard.height is GuardStep.PAUSE:
            guard.go_on()

    monitor = MemoryMonitor(guard, lambda: limits)
    if anyway:
        monitor.subscribe(go_on)
    monitor.start()
    try:
        yield _Watched(limits, guard)
    finally:
        monitor.stop()


def _slow_weights(unpacked_tokens: int) -> str:
    """Return why an answer is slow where weights stay packed on the CPU, and what helps."""
    if unpacked_tokens < LEAST_CONTEXT:
        return "The weights stay packed, as there is no room to unpack them. That is slower on the CPU."
    return (
        "The weights stay packed for so long a context, which is slower on the CPU. "
        f"--context {unpacked_tokens} leaves room to unpack them."
    )


@contextlib.contextmanager
def _kept_prefixes(output: Output) -> Iterator[PrefixService]:
    """Open the prefix cache while this lasts; what is wrong with it is told at the end."""
    paths = AppPaths.from_environment()
    problems: list[str] = []  # told on another thread, which must not write between the answer's words
    prefixes = PrefixService(
        paths.prefixes_db, load_prefix_settings(paths.settings_file), on_problem=problems.append
    )
    try:
        yield prefixes
    finally:
        prefixes.close()
        for problem in problems:
            output.note(problem)


def _answer(asked: _Asked, wanted: KVConfig, watched: _Watched, output: Output) -> None:
    """Load the model and stream the answer to `output`."""
    found = ModelLibrary(AppPaths.from_environment()).named_or_default(wanted.model)

    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    backend = start_backend()
    if wanted.max_context is not None:
        _require_positions(inspect(found.path), wanted.max_context)

    from engine.engine import Engine

    cancel = CancelToken()
    signal.signal(signal.SIGINT, lambda *_: cancel.cancel())  # before this, Ctrl+C simply ends the process
    with _kept_prefixes(output) as prefixes:
        engine = Engine(backend, limits=watched.limits, guard=watched.guard, prefixes=prefixes)
        loaded = engine.load(
            found.path,
            wanted.kv,
            max_context=wanted.max_context,
            anyway=asked.anyway,
            cancel=cancel,
            on_progress=output.show,
        )
        if loaded.plan.unpacked_tokens is not None:
            output.note(_slow_weights(loaded.plan.unpacked_tokens))
        _reply(engine, asked, wanted, cancel, output)
        with contextlib.suppress(Cancelled):  # the answer is there
            engine.save(cancel)
            prefixes.flush(FLUSH_S, cancel)


def _reply(engine: Engine, asked: _Asked, wanted: KVConfig, cancel: CancelToken, output: Output) -> None:
    """Stream the answer to `output`, then what it rests on; a stop ends the program."""
    from app.single_question import AskedQuestion, SingleQuestion

    question = SingleQuestion(
        engine,
        AskedQuestion(
            asked.question,
            asked.documents,
            asked.way,
            asked.system,
            asked.sampling,
            wanted.kv,
            wanted.max_context,
            asked.anyway,
        ),
    )
    for event in question.events(cancel):
        output.show(event)
        if isinstance(event, Finished) and event.stats.stop_reason is StopReason.STOPPED:
            sys.exit(INTERRUPTED)
    output.rests_on(document_reports(question, asked.documents))
