"""A conversation that grows and is trimmed again and again: what that leaves in memory."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from tests.engine.tiny_models import tiny_model

SYSTEM_TOKENS = 40
LIMIT_TOKENS = 600
KEPT_TOKENS = LIMIT_TOKENS * 6 // 10
NUM_TRIMS = 64
pytestmark = pytest.mark.usefixtures("one_blas_thread")


@dataclass
class Conversation:
    """A cache and the turns and summaries behind the system prompt, each given by its kind and length."""

    cache: SequenceCache
    num_pins: int
    items: list[tuple[str, int]] = field(default_factory=list)
    random: random.Random = field(default_factory=lambda: random.Random(5))

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(100) for _ in range(count)]

    def start(self, item: int) -> int:
        return SYSTEM_TOKENS + sum(length for _, length in self.items[:item])

    def grow(self) -> None:
        """Read turns of 20 to 80 tokens until the limit is reached; some of the first ones are pinned."""
        while self.cache.num_tokens < LIMIT_TOKENS:
            turn = self.tokens(self.random.randrange(20, 80))
            self.cache.read(turn)
            is_pinned = sum(kind == "pinned" for kind, _ in self.items) < self.num_pins
            self.items.append(("pinned" if is_pinned and self.random.random() < 0.2 else "turn", len(turn)))

    def trim(self) -> None:
        """Put a summary of 15 % in the place of each run of old turns and of the summaries in it."""
        left, last = self.cache.num_tokens, 0
        while left > KEPT_TOKENS:
            kind, length = self.items[last]
            left -= length if kind == "turn" else 0
            last += 1
        runs = [0, *(at + 1 for at in range(last) if self.items[at][0] == "pinned")]
        stops = [*(start - 1 for start in runs[1:]), last]
        for start, stop in reversed(list(zip(runs, stops, strict=True))):
            if start < stop:
                self.summarize(start, stop)

    def summarize(self, start: int, stop: int) -> None:
        first, last = self.start(start), self.start(stop)
        self.cache.detach(first, last).close()
        summary = self.tokens((last - first) * 15 // 100)
        self.cache.splice(first, summary)
        self.items[start:stop] = [("summary", len(summary))] if summary else []


@pytest.mark.parametrize(
    ("spec", "num_pins"), [("4; page=64, group=32, hot=1, warm=2", 4), ("16; page=64, group=32", 0)]
)
def test_what_a_conversation_takes_does_not_grow_with_its_trims(spec: str, num_pins: int) -> None:
    cache = SequenceCache(tiny_model("llama", sharp=True), KVSpec.parse(spec))
    conversation = Conversation(cache, num_pins)
    cache.read(conversation.tokens(SYSTEM_TOKENS))
    nbytes, num_pages = [], []
    for _ in range(NUM_TRIMS):
        conversation.grow()
        nbytes.append(cache.nbytes)
        conversation.trim()
        assert cache.num_tokens <= KEPT_TOKENS + LIMIT_TOKENS // 10
        num_pages.append(len(cache.pages()))
    assert cache.next_position > 20 * LIMIT_TOKENS
    assert max(nbytes[10:]) <= 1.05 * max(nbytes[:10])
    # Beside full pages: what is left of the first page, of that before each kept run and of that behind it,
    # and each summary.
    runs = 1 + num_pins
    assert max(num_pages) <= KEPT_TOKENS // 64 + 1 + 3 * runs
    fresh = SequenceCache(cache._module, cache.spec)
    fresh.read(cache.tokens)
    assert cache.nbytes <= fresh.nbytes + (1 + 3 * runs) * max(page.nbytes for page in cache.pages())
