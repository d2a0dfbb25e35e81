from __future__ import annotations

from app.ledger.positions import question_tokens
from engine.context_usage import SpanUsage
from engine.kv.page_map import SpanKind


def span(kind: SpanKind, num_tokens: int) -> SpanUsage:
    return SpanUsage(kind, "", "", num_tokens, 0, 0.0)


def test_a_question_counts_with_its_documents_but_without_summaries() -> None:
    spans = [
        span(SpanKind.SYSTEM, 30),
        span(SpanKind.SUMMARY, 200),
        span(SpanKind.DOCUMENT, 400),
        span(SpanKind.DOCUMENT, 100),
        span(SpanKind.USER, 20),
        span(SpanKind.ASSISTANT, 50),
        span(SpanKind.USER, 25),
        span(SpanKind.ASSISTANT, 60),
        span(SpanKind.USER, 7),
        span(SpanKind.USER, 8),
        span(SpanKind.DOCUMENT, 300),
        span(SpanKind.ASSISTANT, 60),
        span(SpanKind.DOCUMENT, 90),
    ]
    assert list(question_tokens(spans)) == [520, 25, 7, 8, 300, 90]
