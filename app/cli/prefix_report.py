"""The tables, the CSV file and the JSON object of `octavo bench prefix`."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator
from typing import Any

from app.cli.bars import bar_lines
from engine.bench.prefix.figures import FirstToken, PrefixBench, PromptCacheFigures, median_of
from engine.wording import format_nbytes

BAR_TOKENS = 6000
"""The bars are set for a document of so many tokens."""
_HEAD = 38


def report(result: PrefixBench) -> str:
    """Return all tables, the bars last."""
    tables = (_first_tokens(result), _on_disk(result), _notes(result), _bars(result))
    return "\n\n".join("\n".join(lines) for lines in tables)


def summary(result: PrefixBench) -> dict[str, Any]:
    """Return all figures as JSON takes them."""
    restarts = {
        start.name.lower(): [dataclasses.asdict(one) for one in answers]
        for start, answers in result.restarts.items()
    }
    bars = [dataclasses.asdict(bar) | {"met": bar.met} for bar in result.bars()]
    return dataclasses.asdict(dataclasses.replace(result, restarts={})) | {
        "restarts": restarts,
        "restore_mbps": result.restore_mbps,
        "decode_ratio": result.decode.ratio,
        "disk_ratio": result.kept.disk_ratio,
        "bars": bars,
    }


def csv_rows(result: PrefixBench) -> list[dict[str, object]]:
    """Return a row for each process or answer that was measured, all with the same columns."""
    ran_on = {"kv": result.kv, "setup": result.setup, "versions": result.versions}
    rows = [*_answer_rows(result), *_cache_rows(result), *_decode_rows(result)]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{**dict.fromkeys(columns, ""), **row, **ran_on} for row in rows]


def _answer_rows(result: PrefixBench) -> Iterator[dict[str, object]]:
    for start, answers in result.first_tokens().items():
        for number, answer in enumerate(answers, 1):
            yield {"measured": start.value, "number": number, **dataclasses.asdict(answer)}


def _cache_rows(result: PrefixBench) -> Iterator[dict[str, object]]:
    kept = dataclasses.asdict(result.kept)
    for name in ("conversation_id", "leaf_id", "first"):
        del kept[name]
    yield {"measured": "kept by Octavo", "number": 1, **kept}
    for number, loaded in enumerate(result.loaded, 1):
        figures = {"disk_nbytes": loaded.nbytes, "load_s": loaded.seconds}
        yield {"measured": "loaded by Octavo", "number": number, **figures}
    for cache in result.prompt_caches:
        figures = dataclasses.asdict(cache.saved) | dataclasses.asdict(cache.loaded)
        yield {"measured": "saved and loaded by mlx-lm", "number": 1, **figures}


def _decode_rows(result: PrefixBench) -> Iterator[dict[str, object]]:
    decode = result.decode
    for what, speeds in (("with nothing to save", decode.idle_tps), ("while saving", decode.writing_tps)):
        for number, speed in enumerate(speeds, 1):
            yield {"measured": f"answer {what}", "number": number, "decode_tps": speed}


def _first_tokens(result: PrefixBench) -> list[str]:
    head = ("prompt", "reused", "first token", "times", "with the start")
    lines = [
        f"First token about a text of {result.num_tokens:,} tokens, each by a process of its own",
        f"{'what was there before':<{_HEAD}}" + "".join(f"{column:>15}" for column in head),
    ]
    for start, answers in result.first_tokens().items():
        one = median_of(answers)
        figures = (
            f"{one.prompt_tokens:,}",
            f"{one.reused_tokens:,}",
            _seconds(one.ttft_s),
            f"{result.speedup(start):.1f}x",
            _seconds(one.process_s),
        )
        lines.append(f"{start.value:<{_HEAD}}" + "".join(f"{figure:>15}" for figure in figures))
    return lines


def _on_disk(result: PrefixBench) -> list[str]:
    head = ("tokens", "memory", "disk", "", "saved in", "loaded in", "MB/s", "first token")
    lines = [
        "The same text on disk, and from the disk into memory",
        f"{'':<{_HEAD // 2}}" + "".join(f"{column:>13}" for column in head),
    ]
    rows = {f"Octavo, {result.kv}": _octavo_cells(result)}
    rows |= {f"mlx-lm, {cache.saved.bits}": _mlx_lm_cells(cache) for cache in result.prompt_caches}
    for title, cells in rows.items():
        lines.append(f"{title:<{_HEAD // 2}}" + "".join(f"{cell:>13}" for cell in cells))
    return lines


def _octavo_cells(result: PrefixBench) -> tuple[str, ...]:
    kept = result.kept
    return (
        f"{kept.num_tokens:,}",
        format_nbytes(kept.nbytes),
        format_nbytes(kept.disk_nbytes),
        f"{kept.disk_ratio:.3f}x",
        _seconds(kept.save_s),
        _seconds(statistics.median(one.seconds for one in result.loaded)),
        f"{result.restore_mbps:.0f}",
        _seconds(median_of([one.first for one in result.loaded]).ttft_s),
    )


def _mlx_lm_cells(cache: PromptCacheFigures) -> tuple[str, ...]:
    saved, loaded = cache.saved, cache.loaded
    return (
        f"{saved.num_tokens:,}",
        format_nbytes(saved.nbytes),
        format_nbytes(saved.disk_nbytes),
        f"{saved.disk_nbytes / saved.nbytes:.3f}x",
        _seconds(saved.save_s),
        _seconds(loaded.load_s),
        f"{cache.load_mbps:.0f}",
        _seconds(loaded.ttft_s - loaded.load_s),
    )


def _notes(result: PrefixBench) -> list[str]:
    kept, decode = result.kept, result.decode
    lines = [
        f"Octavo: {format_nbytes(kept.pages_nbytes)} of pages, and {kept.open_tokens:,} tokens behind them, "
        "kept exactly. mlx-lm keeps the room behind its tokens as well.",
        "Octavo saves after the answer what it has not saved before it, mlx-lm everything.",
        "Here both load before the question, and the first token is counted from the question.",
        f"Answers: {statistics.median(decode.idle_tps):.2f} tokens/s with nothing to save, "
        f"{statistics.median(decode.writing_tps):.2f} while pages always waited to be written "
        f"({decode.written_mbps:.0f} MB/s).",
    ]
    if not result.from_disk:
        lines.append("The files may have come from the system's own memory, as it cannot be asked otherwise.")
    lines += [f"Read again: {note}" for note in sorted({one.note for one in _all(result) if one.note})]
    return lines


def _all(result: PrefixBench) -> Iterator[FirstToken]:
    return (one for answers in result.first_tokens().values() for one in answers)


def _bars(result: PrefixBench) -> list[str]:
    setup = f"{BAR_TOKENS:,} tokens of the starter"
    other = f"The bars are for {BAR_TOKENS:,} tokens: no verdict on others."
    return bar_lines(result.bars(), setup, "" if result.num_tokens == BAR_TOKENS else other)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
