"""The speeds of models on this machine: kept in the store, and followed while the engine works."""

from __future__ import annotations

import logging
from typing import Protocol

from app.reading_speed import ReadingSpeed, speed_key
from app.store.errors import StoreError
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import LoadedModel
from engine.sampling import SamplingParams

log = logging.getLogger(__name__)

TRIAL_TEXT = "A clear day follows after rain, and the river carries leaves past the old mill. " * 16
"""What is read to find out how fast a model is: some hundred tokens."""
TRIAL_ANSWER_TOKENS = 16
"""What is written then."""
TRIAL_CONVERSATION = -2
"""The conversation of that; the ids of the store are positive, and what is read in segments has another."""


class SpeedStore(Protocol):
    """Where speeds are kept, by model."""

    def speed(self, model: str) -> str | None:
        """Return what was kept of a model, None for nothing."""

    def save_speed(self, model: str, speed: str) -> None:
        """Keep the speed of a model in place of what there was."""


class ModelSpeeds:
    """Knows how fast the loaded model is, and learns it from all that it reads; on the engine's thread."""

    def __init__(self, engine: Engine, store: SpeedStore | None = None) -> None:
        """Make one that keeps what it learns in `store`, or only as long as it lives."""
        self._engine = engine
        self._store = store
        self._known: dict[str, ReadingSpeed] = {}

    def learn(self) -> ReadingSpeed:
        """Take in what tokens of the loaded model have taken since the last call; return its speed now."""
        loaded = self._engine.loaded
        if loaded is None:
            return ReadingSpeed()
        key = speed_key(loaded)
        if key not in self._known:
            self._known[key] = stored_speed(self._store, loaded)
        known = speed = self._known[key]
        for each in self._engine.take_times():
            take = speed.with_written if each.is_written else speed.with_read
            speed = take(each.start, each.stop, each.seconds)
        if speed is not known:
            self._known[key] = speed
            self._save(key, speed)
        return speed

    def _save(self, key: str, speed: ReadingSpeed) -> None:
        """Keep it; a full disk must not end what is being done."""
        if self._store is None:
            return
        try:
            self._store.save_speed(key, speed.as_text)
        except StoreError as error:
            log.warning("The speed of a model could not be saved: %s", error)

    def measure(self, kv: KVSpec, cancel: CancelToken) -> ReadingSpeed:
        """Return the speed; where nothing is known of it, find it out with a short text, which takes seconds.

        Raises:
            ModelError: no model is loaded.
            AdmissionError: there is no memory for it now.
            Cancelled: something else came first.
        """
        speed = self.learn()
        if speed.is_measured:
            return speed
        sampling = SamplingParams(temperature=0, max_tokens=TRIAL_ANSWER_TOKENS)
        request = GenerationRequest(
            (ChatMessage("user", TRIAL_TEXT),),
            sampling,
            kv,
            conversation_id=TRIAL_CONVERSATION,
            is_aside=True,
        )
        for _ in self._engine.generate(request, cancel):
            cancel.check()
        return self.learn()


def stored_speed(store: SpeedStore | None, loaded: LoadedModel) -> ReadingSpeed:
    """Return what is kept of the speed of a loaded model; a store that cannot be read knows nothing."""
    text = None
    try:
        text = None if store is None else store.speed(speed_key(loaded))
    except StoreError as error:
        log.warning("The speed of a model could not be looked up: %s", error)
    return ReadingSpeed.of_model(loaded.info, text)
