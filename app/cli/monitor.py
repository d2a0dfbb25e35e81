"""`octavo monitor`: memory and its pressure in the terminal, while something runs or just now."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import click

from app.cli.finite_range import FiniteRange
from app.cli.output_file import OUTPUT_FILE, require_writable
from app.cli.status_line import StatusLine
from app.memory_csv import MemoryCsvLog
from app.paths import AppPaths
from app.running_window import window_process
from app.settings import load_memory_limits
from engine.errors import OctavoError
from engine.guard import Guard, GuardStep
from engine.memory import MemorySample, PressureLevel
from engine.memory_limits import MemoryLimits
from engine.memory_sensor import MemorySensor
from engine.monitor import MemoryMonitor
from engine.wording import format_nbytes

LONGEST_S = 366 * 24 * 3600.0
"""Longer than a year no watch is meant to last; the system's clocks have an end as well."""

ASKS = {
    GuardStep.CLEAR_CACHE: "to give MLX's free buffers back",
    GuardStep.LOWER_TIERS: "to keep exact pages at fewer bits",
    GuardStep.SPILL_IDLE: "to move conversations that wait to disk",
    GuardStep.SMALLER_CHUNKS: "to read in smaller pieces",
    GuardStep.TRIM: "to leave the oldest turns out",
    GuardStep.PAUSE: "to pause the reply",
}
"""What the guard asks the engine for at each step."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--interval",
    "interval_s",
    type=FiniteRange(0.1, 3600),
    default=1.0,
    show_default=True,
    help="Seconds between two samples.",
)
@click.option(
    "--duration",
    "duration_s",
    type=FiniteRange(0, LONGEST_S, min_open=True),
    help="Seconds after which it ends.  [default: when the command ends, or at Ctrl+C]",
)
@click.option("--csv", "csv_file", type=OUTPUT_FILE, help="Write each sample.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def monitor(
    interval_s: float, duration_s: float | None, csv_file: Path | None, command: tuple[str, ...]
) -> None:
    """Watch memory, and tell what the guard would ask for.

    With a COMMAND of Octavo, such as `-- ask "What is it about?" --file paper.pdf`, it is run and watched.
    Without one the computer is watched, and Octavo's window where it is open. Ctrl+C ends it.
    """
    if command and duration_s is not None:
        raise click.UsageError("--duration is for watching without a command.")
    if command and command[0] == "monitor":
        raise click.UsageError("A monitor cannot watch another one.")
    if csv_file:
        require_writable(csv_file, "--csv")
    log = MemoryCsvLog(csv_file, is_own_process=bool(command)) if csv_file else None
    view = _View(shows_samples=not command, log=log)
    watch = _of_this_process if command else _of_the_window
    watched, limits = watch()
    guard = Guard()
    monitor = MemoryMonitor(guard, limits, interval_s=interval_s, rests=False, sensor=MemorySensor(watched))
    monitor.subscribe(lambda sample, changed: view.show(sample, guard if changed else None))
    until_ended = contextlib.nullcontext() if command else _interruptible()
    try:
        with until_ended as ended:
            monitor.start()
            if ended is None:
                _run(command)
            else:
                ended.wait(duration_s)
    finally:
        monitor.stop()
        view.end()
    if view.failure is not None:
        raise view.failure


def _of_this_process() -> tuple[Callable[[], int | None], Callable[[], MemoryLimits]]:
    return os.getpid, MemoryLimits


def _of_the_window() -> tuple[Callable[[], int | None], Callable[[], MemoryLimits]]:
    """Return what finds the window, which may open later, and the limits that its user has set."""
    paths = AppPaths.from_environment()

    def limits() -> MemoryLimits:
        is_open = window_process(paths) is not None
        return load_memory_limits(paths.settings_file) if is_open else MemoryLimits()

    return lambda: window_process(paths), limits


def _run(command: tuple[str, ...]) -> None:
    """Run a command of Octavo in this process."""
    from app.cli import cli

    status = cli.main(list(command), prog_name="octavo", standalone_mode=False)
    if status:
        sys.exit(status)


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Yield what is set by Ctrl+C, or by the signal with which a system ends a process."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class _View:
    """Samples on a line that is written over, each wish of the guard on a line of its own.

    Attributes:
        failure: why the samples could not be written any more, None while they are.
    """

    def __init__(self, shows_samples: bool, log: MemoryCsvLog | None) -> None:
        self.failure: OctavoError | None = None
        self._log = log
        self._line = StatusLine()
        self._shows_samples = shows_samples and self._line.on_terminal
        self._height = GuardStep.NONE
        self._num_samples = 0
        self._num_pressed = 0
        self._least_available_nbytes = 0
        self._most_process_nbytes = 0
        self._num_changes = 0

    def show(self, sample: MemorySample, changed: Guard | None) -> None:
        """Show a sample, and what the guard asks for where that has changed."""
        self._count(sample)
        if changed is not None:
            self._num_changes += 1
            self._tell(_wish(self._height, changed))
            self._height = changed.height
        if self._shows_samples:
            self._line.write(_words(sample))

    def _count(self, sample: MemorySample) -> None:
        free = sample.available_nbytes
        self._least_available_nbytes = min(free, self._least_available_nbytes) if self._num_samples else free
        self._most_process_nbytes = max(self._most_process_nbytes, sample.process_nbytes)
        self._num_samples += 1
        self._num_pressed += sample.level is not PressureLevel.NORMAL
        if self._log is not None and self.failure is None:
            try:
                self._log.add(sample)
            except OctavoError as error:
                self.failure = error
                self._tell(f"{error} Watching goes on without it.")

    def _tell(self, sentence: str) -> None:
        self._line.clear()
        click.echo(f"{time.strftime('%H:%M:%S')} {sentence}", err=True)

    def end(self) -> None:
        """Leave the line and sum up."""
        self._line.end()
        if self._log is not None:
            self._log.close()
        if not self._num_samples:
            click.echo("Memory could not be read. The log says why.", err=True)
            return
        most = self._most_process_nbytes
        octavo = f", Octavo took up to {format_nbytes(most)}" if most else ""
        count = "1 sample" if self._num_samples == 1 else f"{self._num_samples:,} samples"
        click.echo(
            f"{count}, {self._num_pressed:,} of them with short memory; "
            f"at least {format_nbytes(self._least_available_nbytes)} were free{octavo}; "
            f"the guard asked for {_times(self._num_changes)}.",
            err=True,
        )


def _wish(before: GuardStep, guard: Guard) -> str:
    """Return what a guard asks for now, or no longer."""
    if guard.height > before:
        return f"The guard asks {ASKS[guard.height]}: {guard.reason}"
    return f"The guard no longer asks {ASKS[before]}: {guard.ease}"


def _times(count: int) -> str:
    if count == 0:
        return "nothing"
    return "a change once" if count == 1 else f"a change {count:,} times"


def _words(sample: MemorySample) -> str:
    """Return a sample in a line."""
    parts = [sample.level.name.lower(), sample.reason]
    if sample.swap_nbytes:
        parts.append(f"swap {format_nbytes(sample.swap_nbytes)}")
    if sample.swap_rate >= 1:
        parts.append(f"swap grows by {format_nbytes(int(sample.swap_rate))} a second")
    if sample.process_nbytes:
        parts.append(f"Octavo takes {format_nbytes(sample.process_nbytes)}")
    return ", ".join(parts)
