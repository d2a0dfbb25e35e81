"""Octavo and mlx-lm side by side: the speed of reading a prompt and of writing an answer."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bench.child import run_for_last_line
from engine.bench.measure import Measurement, Side


@dataclass(frozen=True)
class DecodeBench:
    """What was measured, in the order in which it ran."""

    measurements: tuple[Measurement, ...]

    def prefill_tps(self, side: Side) -> float:
        """Return the median of one side's prefill, in tokens per second."""
        return statistics.median(one.prefill_tps for one in self.measurements if one.side is side)

    def decode_tps(self, side: Side) -> float:
        """Return the median of one side's decode, in tokens per second."""
        return statistics.median(one.decode_tps for one in self.measurements if one.side is side)

    @property
    def prefill_ratio(self) -> float:
        """How many times as fast as mlx-lm Octavo reads a prompt."""
        return self.prefill_tps(Side.OCTAVO) / self.prefill_tps(Side.MLX_LM)

    @property
    def decode_ratio(self) -> float:
        """How many times as fast as mlx-lm Octavo writes an answer."""
        return self.decode_tps(Side.OCTAVO) / self.decode_tps(Side.MLX_LM)


def bench_decode(
    model: Path,
    command: Sequence[str],
    *,
    runs: int,
    prompt_tokens: int,
    answer_tokens: int,
    on_measured: Callable[[Measurement], None],
) -> DecodeBench:
    """Measure both sides `runs` times, one after the other, each time in a new process.

    Args:
        model: a GGUF file, which is written as an MLX folder for mlx-lm, or such a folder.
        command: the command line that starts this program's `bench` commands `measure` and `write-folder`.
        runs: measurements of each side.
        prompt_tokens: length of the prompt.
        answer_tokens: length of the answer, at least 2.
        on_measured: told each measurement as it is there.

    Raises:
        OctavoError: a process failed; the message has its last line.
    """
    lengths = ["--prompt-tokens", str(prompt_tokens), "--tokens", str(answer_tokens)]
    measurements: list[Measurement] = []
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as temporary:
        paths = {Side.OCTAVO: model, Side.MLX_LM: model}
        if model.is_file():
            paths[Side.MLX_LM] = Path(temporary) / model.stem
            run_for_last_line([*command, "write-folder", str(model), str(paths[Side.MLX_LM])])
        for side in [Side.OCTAVO, Side.MLX_LM] * runs:
            answer = json.loads(
                run_for_last_line([*command, "measure", side.value, str(paths[side]), *lengths])
            )
            measurements.append(Measurement(**answer | {"side": side}))
            on_measured(measurements[-1])
    return DecodeBench(tuple(measurements))
