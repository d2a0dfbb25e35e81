"""The place of one model at a time: how it is loaded, replaced and given back."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx

from engine import telling
from engine.backend import Backend
from engine.cancel import CancelToken, TimedCancelToken
from engine.errors import Cancelled
from engine.events import LoadProgress
from engine.guard import Guard
from engine.headroom import headroom_nbytes, taken_nbytes
from engine.inspection import inspect_model
from engine.kv.precision import KVSpec
from engine.load_admission import LoadWish
from engine.loader import load_model
from engine.memory_limits import MemoryLimits
from engine.memory_linux import trim_heap
from engine.model import Model
from engine.model_info import ModelInfo
from engine.prefixes.cache import PrefixCache
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import PrefixStore
from engine.requests import LoadedModel
from engine.session import Session
from engine.template_cost import measure_template

log = logging.getLogger(__name__)

LAST_SAVE_S = 10.0
"""How long a model that is unloaded, or a program that ends, saves at most."""

_NO_LIMITS = MemoryLimits()


class ModelSlot:
    """Has one model at a time, and the conversations with it.

    Attributes:
        loaded: the model that is there, None without one.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        limits: MemoryLimits = _NO_LIMITS,
        guard: Guard | None = None,
        spill_folder: Path | None = None,
        prefixes: PrefixStore | None = None,
    ) -> None:
        """Args:
        backend: computes.
        limits: the memory that the user allows.
        guard: says when memory is short; None for never.
        spill_folder: where idle conversations go to disk; None for nowhere.
        prefixes: keeps what was read when the process ends; None for nothing.
        """
        self.loaded: LoadedModel | None = None
        self._backend = backend
        self._limits = limits
        self._guard = guard
        self._spill_folder = spill_folder
        self._prefixes = prefixes
        self._session: Session | None = None

    @property
    def limits(self) -> MemoryLimits:
        """The memory that the user allows; may be replaced at any time."""
        return self._limits

    @limits.setter
    def limits(self, limits: MemoryLimits) -> None:
        self._limits = limits
        if self._session is not None:
            self._session.limits = limits

    def load(
        self,
        path: Path,
        kv: KVSpec,
        *,
        max_context: int | None = None,
        anyway: bool = False,
        cancel: CancelToken,
        on_progress: Callable[[LoadProgress], None],
    ) -> LoadedModel:
        """Replace the loaded model by the one at `path`.

        Args:
            path: its folder or file.
            kv: the precision that is planned with.
            max_context: the context that has to fit, as far as the model has positions.
            anyway: whether to load it even where it does not fit.
            cancel: stops it.
            on_progress: is told how far it is.

        Raises:
            AdmissionError: it does not fit into the memory that there is now, even without the present one,
                which stays; unless its memory was taken by others the moment that it was given back.
            ModelError: the model cannot be read or is not supported: the present one stays.
            Cancelled: the user stopped it: nothing is loaded then, or still the present one where it was
                stopped before that had to make room.
        """
        info = inspect_model(path, cancel).with_context(max_context)
        kv.require_fit(info.num_layers, info.num_kv_heads)
        given_back = 0 if self._session is None else self._session.memory_nbytes
        self._wish(info, kv, max_context, given_back).plan(anyway)
        self.unload(cancel)
        wish = self._wish(info, kv, max_context)
        plan = wish.plan(anyway)
        telling.publish_loading(plan)
        identity = None if self._prefixes is None else ModelIdentity(self._prefixes, path)
        try:
            model = load_model(
                path, self._backend, dequantize=plan.dequantize, cancel=cancel, on_progress=on_progress
            )
        except BaseException:
            self.unload()
            raise
        model.info = info
        counter = model.token_counter()
        template = measure_template(model, counter)
        self.loaded = LoadedModel(
            info, self._backend, plan, counter, template, self.limits, wish.taken_nbytes
        )
        self._session = self._begun(model, self.loaded, identity)
        log.info("Loaded %s: %s", info.name, plan)
        return self.loaded

    def _begun(self, model: Model, loaded: LoadedModel, identity: ModelIdentity | None) -> Session:
        """Return a session in which nothing is held yet."""
        prefixes = None
        if self._prefixes is not None and identity is not None:
            prefixes = PrefixCache(self._prefixes, identity, model)
        return Session(model, loaded, self.limits, self._guard, self._spill_folder, prefixes)

    def unload(self, cancel: CancelToken | None = None) -> None:
        """Save what is due, for some seconds at most, and give the memory of all conversations back.

        And that of the model. `cancel` ends only the saving.
        """
        if self._session is not None:
            self._save_last(self._session, CancelToken() if cancel is None else cancel)
            self._session.close()
        self._session = self.loaded = None
        gc.collect()  # a model that has answered is held by cycles, and with it its weights
        mx.clear_cache()
        trim_heap()
        telling.publish_nothing()

    def _save_last(self, session: Session, cancel: CancelToken) -> None:
        """Save for as long as one waits for a program to end; what goes wrong must not keep the memory."""
        try:
            session.save(TimedCancelToken(cancel, LAST_SAVE_S))
        except Cancelled:
            log.info("Not all that was read could be saved")
        except Exception:
            log.exception("What was read could not be saved")

    def _wish(
        self, info: ModelInfo, kv: KVSpec, max_context: int | None, given_back_nbytes: int = 0
    ) -> LoadWish:
        # The limit apart from what the computer has, so that a plan holds when another one is set later.
        available = headroom_nbytes(_NO_LIMITS) + given_back_nbytes
        taken = max(0, taken_nbytes() - given_back_nbytes)
        return LoadWish(info, self._backend, kv, max_context, available, self.limits, taken)
