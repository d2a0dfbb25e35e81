"""What the engine's thread does between replies for the prefix cache: loads what is open, saves the rest."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from ui.held_telling import HeldTelling

SAVE_AFTER_S = 3.0
"""What was read is saved once nothing has been asked of the engine for so long."""

SAVE_APART_S = 300.0
"""While one conversation stays open, saving waits until it is so long since the last time.

Its newest pages and tokens are exact and therefore large, and would be written anew after each answer.
"""

SAVE_AGAIN_S = 10.0
"""What could not be saved yet is tried again after so long."""

LOAD_AGAIN_S = 0.5
"""While the digest of the model is being found out, what is open is looked for again after so long."""


class PrefixWork:
    """Loads the conversation that is open before it is asked for, and saves what was read once it is quiet.

    All of it runs on the engine's thread, and whatever else is asked of that comes first.

    Args:
        open_id: tells which conversation is open, None for none.
    """

    def __init__(self, engine: Engine, held: HeldTelling, open_id: Callable[[], int | None]) -> None:
        self._engine = engine
        self._held = held
        self._open_id = open_id
        self._load_at_s = math.inf
        self._save_at_s = math.inf
        self._was_used = False
        self._saved_at_s = -math.inf

    def opened(self) -> None:
        """Take note that another conversation is open: it is to be loaded, and what was read to be saved."""
        self._begin()
        self._save_at_s = time.monotonic()

    def loaded(self) -> None:
        """Take note that another model is there, which may have read the open conversation before.

        Or the same one, where another did not fit: what was due to be saved is due still.
        """
        self._begin()

    def _begin(self) -> None:
        self._load_at_s, self._was_used, self._saved_at_s = -math.inf, False, -math.inf

    def used(self) -> None:
        """Take note that the engine was asked for something; it saves when it has been quiet since."""
        self._was_used = True
        self._save_at_s = max(time.monotonic() + SAVE_AFTER_S, self._saved_at_s + SAVE_APART_S)

    @property
    def due_in_s(self) -> float | None:
        """Seconds until something is to be done, unless something else is; None where nothing is."""
        due_at_s = min(self._load_at_s, self._save_at_s)
        if self._engine.loaded is None or due_at_s == math.inf:
            return None
        return max(0.0, due_at_s - time.monotonic())

    @property
    def is_due(self) -> bool:
        """Whether something is to be done now, unless something else is."""
        return self.due_in_s == 0

    def work(self, cancel: CancelToken) -> None:
        """Load what is open, then save what is due.

        Raises:
            Cancelled: something else comes first; what is left is due still.
        """
        if self._load_at_s <= time.monotonic():
            self._load(cancel)
        if self._save_at_s <= time.monotonic():
            self._save(cancel)

    def _load(self, cancel: CancelToken) -> None:
        conversation_id, self._load_at_s = self._open_id(), math.inf
        if conversation_id is None:
            return
        try:
            changed = self._engine.prefetch(conversation_id, cancel, lambda: self._held.come(conversation_id))
        except Cancelled:
            self._load_at_s = -math.inf
            self._held.tell()
            raise
        if changed is not None:
            self._held.take(conversation_id, changed)
        elif self._engine.finds_later:
            self._load_at_s = time.monotonic() + LOAD_AGAIN_S

    def _save(self, cancel: CancelToken) -> None:
        due_s, self._save_at_s = self._save_at_s, math.inf
        try:
            is_done = self._engine.save(cancel)
        except Cancelled:
            self._save_at_s = due_s
            raise
        if not is_done:
            self._save_at_s = time.monotonic() + SAVE_AGAIN_S
        elif self._was_used:
            self._saved_at_s = time.monotonic()
