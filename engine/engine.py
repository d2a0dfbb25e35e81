"""One model and the conversations with it: what the window and the terminal talk to.

All methods belong to the thread that made the engine: MLX arrays do not cross threads before they are
evaluated. Only plain data goes in and out.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import mlx.core as mx

from engine import telling
from engine.backend import Backend
from engine.cancel import CancelToken, TimedCancelToken
from engine.context_usage import ContextUsage
from engine.errors import Cancelled, ModelError
from engine.events import CacheChanged, GenerationEvent, LoadProgress
from engine.figures import Phase
from engine.guard import Guard, GuardAction
from engine.headroom import headroom_nbytes, taken_nbytes
from engine.inspection import inspect_model
from engine.kv.page_map import PageMap
from engine.kv.precision import KVSpec
from engine.load_admission import LoadWish
from engine.loader import load_model
from engine.memory_limits import MemoryLimits
from engine.memory_linux import trim_heap
from engine.model_info import ModelInfo
from engine.prefixes.cache import PrefixCache
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import PrefixStore
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import GenerationRequest, LoadedModel, PromptSize
from engine.session import Session
from engine.template_cost import measure_template

__all__ = ["MIN_ANSWER_TOKENS", "Engine", "GenerationRequest", "LoadedModel"]

log = logging.getLogger(__name__)

LAST_SAVE_S = 10.0
"""How long a model that is unloaded, or a program that ends, saves at most."""

_NO_LIMITS = MemoryLimits()


class Engine:
    """Loads one model at a time and answers conversations with it.

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

    # The model.

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
        prefixes = None
        if self._prefixes is not None and identity is not None:
            prefixes = PrefixCache(self._prefixes, identity, model)
        self._session = Session(model, self.loaded, self.limits, self._guard, self._spill_folder, prefixes)
        log.info("Loaded %s: %s", info.name, plan)
        return self.loaded

    def unload(self, cancel: CancelToken | None = None) -> None:
        """Save what is due, for some seconds at most, and give the memory of all conversations back.

        And that of the model. `cancel` ends only the saving.
        """
        if self._session is not None:
            self._save_last(CancelToken() if cancel is None else cancel)
            self._session.close()
        self._session = self.loaded = None
        gc.collect()  # a model that has answered is held by cycles, and with it its weights
        mx.clear_cache()
        trim_heap()
        telling.publish_nothing()

    def _save_last(self, cancel: CancelToken) -> None:
        """Save for as long as one waits for a program to end; what goes wrong must not keep the memory."""
        try:
            self.save(TimedCancelToken(cancel, LAST_SAVE_S))
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

    # Replies.

    def admit(self, request: GenerationRequest) -> None:
        """Refuse what `generate` would refuse, before anything is touched.

        Raises:
            ModelError: no model is loaded.
            ContextOverflowError: the conversation is longer than what the model can read.
            AdmissionError: it does not fit into `max_context` or into the memory that there is now.
        """
        self._require_session().admit(request)

    def measure(self, request: GenerationRequest) -> PromptSize:
        """Return how long a request's prompt is, and the context that there is for it now.

        Raises:
            ModelError: no model is loaded.
        """
        return self._require_session().measure(request)

    def publish_reading(self) -> None:
        """Publish that something is being made ready to be read, such as a long text that is cut.

        Raises:
            ModelError: no model is loaded.
        """
        self._require_session().publish(Phase.PREFILL)

    def generate(
        self,
        request: GenerationRequest,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[GenerationEvent]:
        """Answer a conversation: return its progress, tokens and at last the figures, as they come.

        `wanted_kv` tells the precision that the user wants now. A change reaches the cache before the next
        prefill chunk or token, with a `CacheChanged`; one at which the reply might no longer fit into
        memory waits for the next.

        Raises:
            ModelError, ContextOverflowError, AdmissionError: as `admit` does, at once.
        """
        session = self._require_session()
        admitted = session.admit(request)
        return session.reply(request, admitted, cancel, wanted_kv or (lambda: request.kv))

    def _require_session(self) -> Session:
        if self._session is None:
            raise ModelError("No model is loaded. Choose one first.")
        return self._session

    # Conversations.

    def apply_kv(self, kv: KVSpec, cancel: CancelToken) -> CacheChanged | None:
        """Change the precision of the conversation in hand, between replies.

        Pages of another size wait for the next reply. Returns None where nothing changes.

        Raises:
            OctavoError: the model does not have a layer or head that is named.
            Cancelled: some layers have been changed, the rest follows with the next change or reply.
        """
        return None if self._session is None else self._session.apply_kv(kv, cancel)

    def held(self) -> CacheChanged | None:
        """Return the precision and the figures of the conversation in hand, None where there is none."""
        return None if self._session is None else self._session.held()

    def rebuild(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Read all of a request's messages again: lost bits come back. Return how far that is.

        Between replies, as `read_ahead`, but from the first position on. While memory is short, other
        conversations leave it, and pages go to the bits of the settings early.

        Raises:
            ModelError: no model is loaded, or the template refuses the messages in every form.
            AdmissionError: what it takes at the precision that is asked for cannot be had now.
            Cancelled: the user stopped it; what was read again until then is held, the rest is forgotten.
        """
        return self._require_session().rebuild(request, cancel)

    def read_ahead(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        """Bring the conversation in hand in line with a request's messages and read what it lacks of them.

        Between replies; the messages may end with an answer, and none is written. All behind the first unused
        position is read again, so that none is unused afterwards; what precedes it stays. Returns how far
        that is: nothing where another conversation or another branch of it is in hand.

        Raises:
            ModelError: no model is loaded, or the template refuses the messages in every form.
            AdmissionError: what it takes cannot be had now.
            Cancelled: something else comes first; what was read until then is held.
        """
        return self._require_session().read_ahead(request, cancel)

    def settle(self, request: GenerationRequest) -> CacheChanged | None:
        """Take out of the conversation in hand what a request's messages lack, and give the memory back.

        Between replies, as when the user leaves a turn out; the messages may end with an answer. Nothing is
        read: what they have and the conversation lacks waits for the next reply. Returns None where nothing
        changes, or where another conversation is in hand.

        Raises:
            ModelError: the template refuses the messages in every form.
        """
        return None if self._session is None else self._session.settle(request)

    def prefetch(
        self, conversation_id: int, cancel: CancelToken, on_page: Callable[[], None] = lambda: None
    ) -> CacheChanged | None:
        """Have a conversation in hand that is on disk, where there is memory for it that nothing else has.

        Its hottest pages come first; `on_page` is called before each. Returns None where nothing changes:
        where it is in hand already, nothing is kept of it, or its bytes are more than what is free.

        Raises:
            Cancelled: what has come in stays, and the next call goes on with the rest.
        """
        return None if self._session is None else self._session.prefetch(conversation_id, cancel, on_page)

    def context_usage(self) -> ContextUsage | None:
        """Return what the parts of the conversation in hand take, None where there is none."""
        return None if self._session is None else self._session.context_usage()

    def positions_left(self, conversation_id: int) -> int | None:
        """Return how many more tokens the model has positions for, None where nothing is held or stored.

        Text that was taken out leaves its positions unused: `read_ahead` and `rebuild` bring them back.
        """
        return None if self._session is None else self._session.positions_left(conversation_id)

    def page_map(self) -> PageMap | None:
        """Return the pages of the conversation in hand, None where there is none."""
        return None if self._session is None else self._session.page_map()

    def pin(self, page_number: int, pinned: bool) -> None:
        """Let a page of the conversation in hand stay a tier higher, or no longer."""
        if self._session is not None:
            self._session.pin(page_number, pinned)

    def save(self, cancel: CancelToken) -> bool:
        """Save what is held in memory of all conversations and not stored yet, as far as that may be kept.

        Between replies. Waits while what was put before is being written. Returns False where some of it has
        to wait for longer, as where it is still being found out which model this is.

        Raises:
            Cancelled: within a page; the next call goes on there.
        """
        return self._session is None or self._session.save(cancel)

    def relieve(self, cancel: CancelToken) -> list[GuardAction]:
        """Carry out the guard's ladder between replies; return what did something.

        Raises:
            Cancelled: some was done; the rest is due again.
        """
        return [] if self._session is None else self._session.relieve(cancel)

    def forget(self, conversation_id: int) -> None:
        """Give the memory, or the file, of a conversation back."""
        if self._session is not None:
            self._session.forget(conversation_id)
