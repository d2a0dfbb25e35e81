"""An engine that counts what it reads and writes, for whatever purpose.

Imports MLX: the backend is to be prepared before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import Finished, GenerationEvent
from engine.kv.precision import KVSpec
from engine.requests import GenerationRequest


class CountingEngine(Engine):
    """An engine with counters.

    Attributes:
        read_tokens: tokens of prompts that were read, without those whose keys and values were there.
        written_tokens: tokens that were written.
    """

    read_tokens = 0
    written_tokens = 0

    def generate(
        self,
        request: GenerationRequest,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[GenerationEvent]:
        """Do what `Engine.generate` does, and count."""
        return self._counted(super().generate(request, cancel, wanted_kv))

    def _counted(self, events: Iterator[GenerationEvent]) -> Iterator[GenerationEvent]:
        for event in events:
            if isinstance(event, Finished):
                self.read_tokens += event.stats.prompt_tokens - event.stats.reused_tokens
                self.written_tokens += event.stats.completion_tokens
            yield event
