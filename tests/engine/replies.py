"""Replies of the starter model, taken whole."""

from __future__ import annotations

from collections.abc import Iterator

from engine.cancel import CancelToken
from engine.events import Finished, GenerationEvent, GenerationStats, Token
from engine.generate import Generation
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import ChatMessage, Model
from engine.sampling import SamplingParams

GREEDY = SamplingParams(temperature=0, repetition_penalty=1, max_tokens=12)
TEXT = "The lighthouse keeper counted the ships that passed in the night. " * 14
EXACT = KVSpec.parse("16")


def new_cache(model: Model, kv: KVSpec = EXACT) -> SequenceCache:
    return SequenceCache(model.module, kv)


def prompt_of(model: Model, text: str = TEXT) -> list[int]:
    return model.render([ChatMessage("user", text)])


def generate(
    model: Model,
    prompt: list[int],
    *,
    cache: SequenceCache | None = None,
    sampling: SamplingParams = GREEDY,
    limit_tokens: int = 8192,
    cancel: CancelToken | None = None,
) -> Iterator[GenerationEvent]:
    return Generation(
        model,
        cache if cache is not None else new_cache(model),
        prompt,
        sampling,
        limit_tokens=limit_tokens,
        cancel=cancel or CancelToken(),
    ).events()


def outcome(events: Iterator[GenerationEvent]) -> tuple[list[int], str, GenerationStats]:
    """Return token ids, text and figures of a whole reply."""
    taken = list(events)
    tokens = [event for event in taken if isinstance(event, Token)]
    finished = taken[-1]
    assert isinstance(finished, Finished)
    return [token.token_id for token in tokens], "".join(t.text for t in tokens), finished.stats


def layers_hold(cache: SequenceCache) -> set[int]:
    return {layer.offset for layer in cache.layers}
