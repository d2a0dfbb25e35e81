from __future__ import annotations

from pathlib import Path

from app.conversation_bench import ConversationPlan, bench_conversation, excerpts_of
from app.documents.document import Document
from app.ledger.entries import EntryKind, EntryState
from app.profiles import Overflow
from engine.backend import Backend
from engine.bench.prose import TEXT
from tests.engine.small_engine import write_small_model

BOATS = " ".join(f"The harbour of the town had {number} boats in it." for number in range(101, 141))
DOCUMENT = Document("Harbour", "harbour.txt", "text", BOATS)
BOTH = (Overflow.SUMMARIZE, Overflow.DROP)


def test_excerpts_are_a_quarter_of_the_context_and_follow_each_other() -> None:
    def count(text: str) -> int:
        return len(text.split())

    excerpts = excerpts_of(TEXT, 9, 1200, count)
    assert len(excerpts) == 3
    assert all(0 < count(excerpt) <= 300 for excerpt in excerpts)
    at = [TEXT.index(excerpt) for excerpt in excerpts]
    assert at == sorted(at) and at[0] == 0


def test_the_same_conversation_is_held_with_each_policy(tmp_path: Path, backend: Backend) -> None:
    told: list[tuple[Overflow, int]] = []
    plan = ConversationPlan(DOCUMENT, num_turns=8, max_context=1200, policies=BOTH)
    result = bench_conversation(
        write_small_model(tmp_path), plan, lambda policy, number, total: told.append((policy, number))
    )
    summarized, dropped = result.conversations
    assert [held.overflow for held in result.conversations] == list(BOTH)
    assert result.num_excerpts == 2
    assert result.handed_tokens < result.document_tokens == len(BOATS)
    for held in result.conversations:
        assert held.run.num_answered == len(held.run.turns) == 8
        assert held.run.trims
        assert held.run.limit_tokens == 1200
        facts = held.facts
        assert facts.asked >= facts.gone > 0
        assert facts.gone >= facts.told >= facts.summarized >= 0
        asked = [number for policy, number in told if policy is held.overflow]
        assert asked == list(range(1, 8 + facts.gone + 1))
    assert summarized.run.summaries.extract > 0
    assert (dropped.run.summaries.model, dropped.run.summaries.extract) == (0, 0)
    assert dropped.facts.summarized == 0
    kinds = [entry.kind for entry in summarized.ledger.entries]
    assert EntryKind.SUMMARY in kinds
    states = [entry.state for entry in dropped.ledger.entries]
    assert EntryState.LEFT_OUT in states
    every = [each for entry in summarized.ledger.entries for each in entry.walk()]
    assert None not in [each.tokens for each in every]
