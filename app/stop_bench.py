"""How long a stop takes, from the request to the end of the work, wherever it falls."""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.documents.extract import extract
from app.settings import DEFAULT_KV
from engine.backend import start_backend
from engine.bench.prose import TEXT
from engine.cancel import CancelToken
from engine.errors import Cancelled

MAX_DELAY_S = 0.4
"""A stop falls up to this long after the moment that is measured has begun."""
PARAGRAPHS = 20_000
"""Paragraphs of the document that is read when its reading is stopped."""


@dataclass(frozen=True)
class StopTiming:
    """Seconds from the request to stop until the work had ended, for one kind of work."""

    work: str
    stopped_s: tuple[float, ...]


class _Stopper:
    """Requests a stop from another thread a little later, as a user would, and remembers when."""

    def __init__(self, seed: int) -> None:
        self.token = CancelToken()
        self._delay_s = random.Random(seed).uniform(0, MAX_DELAY_S)
        self._requested_s: float | None = None
        self._timer: threading.Timer | None = None

    def arm(self) -> None:
        """Start the delay; only the first call counts."""
        if self._timer is None:
            self._timer = threading.Timer(self._delay_s, self._request)
            self._timer.start()

    def _request(self) -> None:
        self._requested_s = time.perf_counter()
        self.token.cancel()

    def elapsed_s(self) -> float | None:
        """Return the seconds since the request; None where the work ended before it."""
        now_s = time.perf_counter()
        if self._timer is not None:
            self._timer.cancel()
        return None if self._requested_s is None else now_s - self._requested_s


def bench_stop(model: Path, *, runs: int, prompt_tokens: int) -> Iterator[StopTiming]:
    """Stop each kind of work `runs` times and yield what it took.

    Args:
        model: a model's folder or file.
        runs: stops of each kind, each after a delay of its own.
        prompt_tokens: length of the prompt whose reading is stopped, at its start and after three quarters.

    Raises:
        OctavoError: the model cannot be loaded, or the prompt does not fit its context.
    """
    yield _timing("reading a document", runs, _extraction)
    yield from _engine_timings(model, runs, prompt_tokens)


def _timing(work: str, runs: int, run: Callable[[_Stopper], None]) -> StopTiming:
    stopped = []
    for number in range(runs):
        stopper = _Stopper(number)
        with contextlib.suppress(Cancelled):
            run(stopper)
        elapsed_s = stopper.elapsed_s()
        if elapsed_s is not None:
            stopped.append(elapsed_s)
    return StopTiming(work, tuple(stopped))


def _extraction(stopper: _Stopper) -> None:
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as folder:
        document = Path(folder) / "long.html"
        document.write_text("".join(f"<p>{TEXT[:200]} {number}</p>" for number in range(PARAGRAPHS)), "utf-8")
        stopper.arm()
        extract(document, cancel=stopper.token)


def _engine_timings(path: Path, runs: int, prompt_tokens: int) -> Iterator[StopTiming]:
    backend = start_backend()

    # Nothing may import MLX before the backend is prepared.
    from engine.engine import Engine, GenerationRequest
    from engine.events import PrefillProgress, Token
    from engine.model import ChatMessage
    from engine.sampling import SamplingParams

    engine = Engine(backend)

    def load(stopper: _Stopper) -> None:
        stopper.arm()
        engine.load(path, DEFAULT_KV, cancel=stopper.token, on_progress=lambda progress: None)

    yield _timing("loading the model", runs, load)
    loaded = engine.load(path, DEFAULT_KV, cancel=CancelToken(), on_progress=lambda progress: None)
    repeats = -(-prompt_tokens // loaded.counter.count(TEXT))
    long_text = (TEXT * repeats)[: len(TEXT) * prompt_tokens // loaded.counter.count(TEXT)]

    def reply(stopper: _Stopper, text: str, moment: Callable[[object], bool]) -> None:
        """Answer `text`, the first word changed so that nothing is reused, and stop after `moment`."""
        sampling = SamplingParams(max_tokens=400)
        question = ChatMessage("user", f"{random.random()} {text}")
        for event in engine.generate(GenerationRequest((question,), sampling, DEFAULT_KV), stopper.token):
            if moment(event):
                stopper.arm()

    def reads(share: float) -> Callable[[object], bool]:
        return lambda event: isinstance(event, PrefillProgress) and event.done >= share * event.total

    def writes(event: object) -> bool:
        return isinstance(event, Token)

    yield _timing("reading a prompt, at its start", runs, lambda s: reply(s, long_text, reads(0)))
    yield _timing(
        f"reading a prompt, after {prompt_tokens * 3 // 4:,} tokens",
        max(1, runs // 4),
        lambda s: reply(s, long_text, reads(0.75)),
    )
    yield _timing("writing an answer", runs, lambda s: reply(s, "Tell me a long story.", writes))
