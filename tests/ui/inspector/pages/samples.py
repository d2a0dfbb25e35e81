"""Page maps of conversations that never were."""

from __future__ import annotations

import dataclasses
import random

from engine.kv.page_map import PageCounters, PageMap, SpanKind, TextSpan
from engine.kv.precision import BitsPair, Tier
from engine.kv.usage import PageInfo

PAGE_TOKENS = 64
BITS = {Tier.HOT: BitsPair(16, 16), Tier.WARM: BitsPair(8, 8), Tier.COLD: BitsPair(6, 4)}
WORDS = b"Owls hunt at night, and what they catch they carry home before the sun is up. "


def page(number: int, tier: Tier = Tier.COLD, **changes: object) -> PageInfo:
    """Return a page of the middle of a text that repeats."""
    start = number * PAGE_TOKENS
    info = PageInfo(
        number=1000 + number,
        tier=tier,
        tokens=tuple((WORDS * 4)[start % len(WORDS) :][:PAGE_TOKENS]),
        first_position=start,
        last_position=start + PAGE_TOKENS - 1,
        nbytes=400_000,
        heat=0.0,
        last_access=0,
        pinned=False,
        references=1,
        bits=dict.fromkeys(range(4), (BITS[tier],) * 2),
    )
    return dataclasses.replace(info, **changes)


def page_map(*pages: PageInfo, open_tokens: int = 0, **changes: object) -> PageMap:
    """Return a map without spans."""
    whole = PageMap(
        pages=pages,
        page_tokens=PAGE_TOKENS,
        is_paged=True,
        open_tokens=tuple((WORDS * 4)[:open_tokens]),
        next_position=sum(one.num_tokens for one in pages) + open_tokens,
        num_decoded=500,
        spans=(),
        counters=PageCounters(),
        attention_pages=None,
        caught=None,
    )
    return dataclasses.replace(whole, **changes)


def long_conversation(num_pages: int) -> PageMap:
    """Return a map with a document and turns, all tiers, pinned and shared pages, and uneven heat."""
    chance = random.Random(num_pages)
    pages = []
    for number in range(num_pages):
        left = num_pages - number
        tier = Tier.HOT if left == 1 else Tier.WARM if left <= 5 or number == 0 else Tier.COLD
        heat = 0.5 if number == 0 else chance.lognormvariate(-6, 1.3) if chance.random() < 0.95 else 0.04
        pages.append(
            page(
                number,
                tier,
                heat=heat,
                last_access=chance.randrange(501),
                pinned=number in (7, 8, num_pages // 2),
                references=2 if num_pages // 4 <= number < num_pages // 3 else 1,
                is_on_disk=num_pages // 3 + 3 < number < num_pages // 3 + 3 + num_pages // 9,
            )
        )
    return page_map(
        *pages,
        open_tokens=23,
        spans=_spans(num_pages * PAGE_TOKENS + 23),
        counters=PageCounters(hits=12_304, spills=218, restores=97, evictions=4),
        attention_pages=8,
        caught=0.913,
    )


def _spans(num_tokens: int) -> tuple[TextSpan, ...]:
    turns = (
        (0.01, SpanKind.SYSTEM, "The model's own"),
        (0.45, SpanKind.DOCUMENT, "Ecology of the barn owl, second edition.pdf"),
        (0.12, SpanKind.DOCUMENT, "notes.md"),
        (0.02, SpanKind.SUMMARY, "Summary of 3 turns"),
        (0.02, SpanKind.USER, "What do barn owls hunt in winter, and how does that change their range?"),
        (0.12, SpanKind.ASSISTANT, "Voles, mostly: in winter they"),
        (0.04, SpanKind.USER, "And in summer?"),
        (0.22, SpanKind.ASSISTANT, ""),
    )
    spans, start = [], 0
    for share, kind, title in turns:
        stop = start + round(share * num_tokens)
        spans.append(TextSpan(kind, title, start, stop))
        start = stop
    spans[-1] = dataclasses.replace(spans[-1], stop=num_tokens)
    return tuple(spans)
