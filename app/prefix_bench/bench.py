"""The bench of prefixes that outlive the process: starts its processes one after the other.

Does not import MLX: this process sleeps while the others measure.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.prefix_bench.order import Order, Outcome, Phase
from app.settings import DEFAULT_KV
from engine.bench.loading import package_versions
from engine.bench.prefix.figures import (
    DecodeWhileWriting,
    FirstToken,
    Loaded,
    LoadedPromptCache,
    PrefixBench,
    PromptCacheFigures,
    SavedPromptCache,
    Start,
    decode_from,
    kept_from,
    loaded_from,
)

RunPhase = Callable[[Order], Outcome]
OnStage = Callable[[str], None]
"""Told in words what is being measured."""


@dataclass(frozen=True)
class PrefixBenchPlan:
    """What is measured.

    Attributes:
        num_tokens: of the document.
        runs: restarts of each kind, and answers of each kind whose speed is measured.
        answer_tokens: of such an answer, at least 2.
    """

    num_tokens: int = 6000
    runs: int = 3
    answer_tokens: int = 32


def bench_prefix(
    model: Path, text: str, plan: PrefixBenchPlan, folder: Path, run: RunPhase, on_stage: OnStage
) -> PrefixBench:
    """Measure all; with the starter on two cores of a CPU it takes about five minutes.

    Args:
        model: a model's folder or file.
        text: what the document is the beginning of.
        plan: how much is measured.
        folder: on the disk that is measured; a folder in it is used and removed.
        run: does what `run_phase` does, in a process of its own.
        on_stage: told what is being done.

    Raises:
        OctavoError: a process failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="octavo-bench-", dir=folder) as own:
        order = Order(Phase.COLD, model.resolve(), Path(own), plan.num_tokens)
        order.text_file.write_text(text, "utf-8")
        return _PrefixBench(order, plan, run, on_stage).run()


class _PrefixBench:
    """Runs the processes of one bench."""

    def __init__(self, order: Order, plan: PrefixBenchPlan, run: RunPhase, on_stage: OnStage) -> None:
        self._order = order
        self._plan = plan
        self._run_phase = run
        self._on_stage = on_stage
        self._from_disk = True

    def run(self) -> PrefixBench:
        tokens = f"{self._plan.num_tokens:,} tokens"
        self._on_stage(f"reading {tokens} with nothing kept")
        outcome = self._run(Phase.COLD)
        cold = FirstToken(**outcome.figures)
        self._on_stage(f"reading {tokens} ahead of the question")
        ahead = FirstToken(**self._run(Phase.AHEAD).figures)
        self._on_stage(f"reading {tokens} and keeping them")
        kept = kept_from(self._run(Phase.KEEP).figures)
        self._order = dataclasses.replace(
            self._order, conversation_id=kept.conversation_id, leaf_id=kept.leaf_id
        )
        restarts = {
            Start.CONVERSATION: self._restarts(Phase.CONVERSATION, "the conversation that was kept"),
            Start.DOCUMENT: self._restarts(Phase.DOCUMENT, "a new conversation about the document"),
        }
        loaded = self._loaded()
        decode = self._decode()
        return PrefixBench(
            num_tokens=self._plan.num_tokens,
            setup=outcome.setup,
            versions=package_versions(),
            kv=str(DEFAULT_KV),
            cold=cold,
            ahead=ahead,
            kept=kept,
            restarts=restarts,
            loaded=loaded,
            decode=decode,
            prompt_caches=self._prompt_caches(),
            from_disk=self._from_disk,
        )

    def _restarts(self, phase: Phase, what: str) -> tuple[FirstToken, ...]:
        return tuple(FirstToken(**outcome.figures) for outcome in self._started_afresh(phase, what))

    def _loaded(self) -> tuple[Loaded, ...]:
        outcomes = self._started_afresh(Phase.LOADED, "loading the conversation before the question")
        return tuple(loaded_from(outcome.figures) for outcome in outcomes)

    def _started_afresh(self, phase: Phase, what: str) -> Iterable[Outcome]:
        for number in range(1, self._plan.runs + 1):
            self._on_stage(f"restart {number} of {self._plan.runs}: {what}")
            self._let_go(self._order.prefixes_db)
            yield self._run(phase)

    def _decode(self) -> DecodeWhileWriting:
        self._on_stage("writing answers, by turns while pages are saved and without")
        answers = {"answer_tokens": self._plan.answer_tokens, "runs": self._plan.runs}
        return decode_from(self._run(Phase.DECODE, **answers).figures)

    def _prompt_caches(self) -> tuple[PromptCacheFigures, ...]:
        self._on_stage(f"reading {self._plan.num_tokens:,} tokens with mlx-lm and saving its cache")
        outcome = self._run(Phase.SAVE_PROMPT_CACHES)
        figures = []
        for saved in (SavedPromptCache(**fields) for fields in outcome.figures["saved"]):
            self._on_stage(f"restart: loading mlx-lm's cache at {saved.bits} bits")
            self._let_go(self._order.prompt_cache_file(saved.bits))
            loaded = self._run(Phase.LOAD_PROMPT_CACHE, bits=saved.bits)
            figures.append(PromptCacheFigures(saved, LoadedPromptCache(**loaded.figures)))
        return tuple(figures)

    def _run(self, phase: Phase, **fields: Any) -> Outcome:
        return self._run_phase(dataclasses.replace(self._order, phase=phase, **fields))

    def _let_go(self, file: Path) -> None:
        """Have the next process read a file from the disk, where the system can be asked to."""
        self._from_disk = let_go_of(file) and self._from_disk


def let_go_of(file: Path) -> bool:
    """Take a file out of the system's own memory; return whether the system can be asked to."""
    if not hasattr(os, "posix_fadvise"):
        return False
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True
