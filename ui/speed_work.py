"""How fast the loaded model is: found out in quiet time where nothing is known, told when it is learnt."""

from __future__ import annotations

import logging
from collections.abc import Callable

from app.model_speeds import ModelSpeeds
from app.reading_speed import ReadingSpeed
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.kv.precision import KVSpec
from ui.engine_signals import EngineSignals

log = logging.getLogger(__name__)


class SpeedWork:
    """Has the speed of the loaded model measured and told; all of it runs on the engine's thread.

    Args:
        wanted_kv: tells the precision that the user wants now.
    """

    def __init__(
        self, speeds: ModelSpeeds, engine: Engine, told: EngineSignals, wanted_kv: Callable[[], KVSpec]
    ) -> None:
        self._speeds = speeds
        self._engine = engine
        self._told = told
        self._wanted_kv = wanted_kv
        self._is_due = False
        self._last: ReadingSpeed | None = None

    def loaded(self) -> None:
        """Take note that another model may be there, of which nothing may be known."""
        self._is_due = self._engine.loaded is not None

    @property
    def is_due(self) -> bool:
        """Whether the speed of the model is to be found out."""
        return self._is_due

    def learn(self) -> None:
        """Take in what has been read and written, and tell the speed where it is another."""
        speed = self._speeds.learn()
        if speed != self._last:
            self._last = speed
            self._told.speed_changed.emit(speed)

    def measure(self, cancel: CancelToken) -> None:
        """Read and write a few words where the speed is not known yet.

        Raises:
            Cancelled: something else comes first; it is due still.
        """
        self._is_due = False
        try:
            self._speeds.measure(self._wanted_kv(), cancel)
        except Cancelled:
            self._is_due = True
            raise
        except OctavoError as error:
            log.info("The speed of the model was not measured: %s", error)
        self.learn()
