"""The guard's bench in words: its steps as they are taken, and what came of them."""

from __future__ import annotations

from engine.bench.guard import ConversationRun, GuardBench, GuardEvent
from engine.wording import format_nbytes


def event_line(event: GuardEvent, begun_s: float) -> str:
    """Return a step with its time, its name, what was done and why, and what the process takes after it."""
    action = event.action
    return (
        f"{event.time_s - begun_s:7.1f} s  {event.title:<23}{action.sentence}\n"
        f"{'':<35}because {action.reason}; {format_nbytes(event.process_nbytes)} taken now"
    )


def report(result: GuardBench) -> str:
    """Return both runs, one below the other, and whether a word was lost."""
    free, guarded = result.free, result.guarded
    lines = [
        f"{'':<15}{'allowed':>10}{'at first':>10}{'at most':>10}{'above':>9}{'tokens':>9}{'steps':>7}",
        _line("without guard", free),
        _line("with guard", guarded),
        "",
        *(f"Without guard: {problem}." for problem in free.problems),
        *(f"With guard: {problem}." for problem in guarded.problems),
    ]
    if not guarded.problems:
        lines.append(f"All {guarded.num_turns} questions were answered, and every word is stored.")
    if guarded.num_left_out_turns:
        lines.append(f"The model no longer reads the {guarded.num_left_out_turns} oldest turns.")
    if guarded.num_overrides:
        lines.append(f"A pause took too long and was ended by hand {guarded.num_overrides} times.")
    return "\n".join(lines)


def _line(title: str, run: ConversationRun) -> str:
    allowed = "all" if run.most_nbytes is None else format_nbytes(run.most_nbytes)
    sizes = (allowed, format_nbytes(run.begun_nbytes), format_nbytes(run.most_taken_nbytes))
    figures = "".join(f"{size:>10}" for size in sizes)
    return f"{title:<15}{figures}{run.over_s:>7.1f} s{run.num_tokens:>9,}{len(run.events):>7}"
