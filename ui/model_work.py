"""How the engine's thread loads and ejects a model, and what it tells of that."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from app.settings import DEFAULT_KV
from app.store.prefixes.service import PrefixService
from engine.admission import AdmissionError
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.kv.precision import KVSpec, PrecisionError
from ui.engine_signals import EngineSignals

log = logging.getLogger(__name__)

SAVING = "Saving what was read."
MOST_END_S = 10.0
"""How long the end of the thread waits at most for what was read to be written."""


class ModelWork:
    """Loads and ejects models, on the engine's thread."""

    def __init__(self, engine: Engine, stored: PrefixService | None, told: EngineSignals) -> None:
        self._engine = engine
        self._stored = stored
        self._told = told

    def load(
        self, path: Path, kv: KVSpec, max_context: int | None, anyway: bool, cancel: CancelToken
    ) -> None:
        """Load a model, or tell that it does not fit.

        A precision kept from another model is no reason to be without this one.
        """
        try:
            try:
                self._load(path, kv, max_context, anyway, cancel)
            except PrecisionError as error:
                self._told.kv_refused.emit(error)
                self._load(path, DEFAULT_KV, max_context, anyway, cancel)
        except AdmissionError as error:
            log.info("%s was not loaded: %s", path, error)
            self._told.load_refused.emit(path, error)

    def _load(
        self, path: Path, kv: KVSpec, max_context: int | None, anyway: bool, cancel: CancelToken
    ) -> None:
        self._engine.load(
            path,
            kv,
            max_context=max_context,
            anyway=anyway,
            cancel=cancel,
            on_progress=self._told.load_progress.emit,
        )

    def unload(self, cancel: CancelToken) -> None:
        """Eject the model, once what it has read is saved, and say so meanwhile."""
        self._told.background_changed.emit(SAVING)
        try:
            self._engine.unload(cancel)
        finally:
            self._told.background_changed.emit("")

    def end(self, leaving: CancelToken) -> None:
        """Eject the model for good, and have all that it has read written, for `MOST_END_S` at most."""
        end_s = time.monotonic() + MOST_END_S
        self._engine.unload(leaving)
        if self._stored is not None:
            self._stored.flush(end_s - time.monotonic(), leaving)
            self._stored.leave()
