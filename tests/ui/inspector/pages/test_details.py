from __future__ import annotations

import pytest

from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.precision import BitsPair, Tier
from engine.tokens import TokenCounter
from tests.engine.folders import byte_tokenizer
from tests.ui.inspector.pages.samples import page, page_map
from ui.inspector.pages.details import describe_page, excerpt, layers_text, span_text

DECODE = TokenCounter(byte_tokenizer()).decode
SPAN = TextSpan(SpanKind.DOCUMENT, "owls.pdf", 0, 300)


def layers(text: str) -> dict[int, tuple[BitsPair, ...]]:
    """Return the bits of layers from such as `8 8 k6v4/2`, the heads of a layer apart by strokes."""
    pairs = {"8": BitsPair(8, 8), "4": BitsPair(4, 4), "2": BitsPair(2, 2), "k6v4": BitsPair(6, 4)}
    return {at: tuple(pairs[bits] for bits in heads.split("/")) for at, heads in enumerate(text.split())}


def test_a_page_is_described() -> None:
    shown = page(2, heat=0.0314, last_access=380, pinned=True, references=3, nbytes=1_234_567)

    details = describe_page(page_map(page(0), page(1), shown), 2, SPAN, DECODE)

    assert details.title == "Page 3 of 3, cold"
    assert details.span == "Document: owls.pdf"
    assert dict(details.rows) == {
        "Tokens": "64",
        "Positions": "128 to 191",
        "Bits": "k6v4 in all layers",
        "Size": "1.2 MB",
        "Heat": "3.1% of the attention",
        "Last read": "120 tokens ago",
        "Shared": "in 3 places",
        "Pinned": "yes; lost bits come back when it is read again",
    }
    assert details.beginning == bytes(shown.tokens).decode().strip()


def test_the_open_page_is_described() -> None:
    details = describe_page(page_map(page(0), open_tokens=12), 1, None, DECODE)

    assert (details.title, details.span) == ("Page 2 of 2, open", "Other text")
    assert dict(details.rows) == {
        "Tokens": "12 of 64",
        "Positions": "64 to 75",
        "Bits": "16 in all layers, until the page is full",
    }
    assert details.beginning == "Owls hunt at"


def test_a_pinned_page_that_has_its_bits_promises_nothing() -> None:
    details = describe_page(page_map(page(0, Tier.WARM, pinned=True)), 0, None, None)

    assert dict(details.rows)["Pinned"] == "yes"


def test_what_is_not_known_yet_is_said_so() -> None:
    details = dict(describe_page(page_map(page(0, Tier.HOT)), 0, None, None).rows)

    assert (details["Heat"], details["Last read"], details["Pinned"]) == ("not measured yet", "not yet", "no")
    assert "Shared" not in details


@pytest.mark.parametrize(
    ("last_access", "heat", "words"),
    [
        (500, 0.5, ("just now", "50.0% of the attention")),
        (499, 0.0004, ("1 token ago", "less than 0.1% of the attention")),
    ],
)
def test_heat_and_the_time_since_are_told_in_words(
    last_access: int, heat: float, words: tuple[str, str]
) -> None:
    details = dict(describe_page(page_map(page(0, last_access=last_access, heat=heat)), 0, None, None).rows)

    assert (details["Last read"], details["Heat"]) == words


def test_a_page_that_lost_tokens_says_how_many_are_left() -> None:
    details = describe_page(page_map(page(0, tokens=(79, 119))), 0, None, DECODE)

    assert dict(details.rows)["Tokens"] == "2 of 64"
    assert details.beginning == "Ow"


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("8 8 8", "8 in all layers"),
        ("k6v4 k6v4 4 4", "k6v4 in 0-1, 4 in 2-3"),
        ("8 4 8 4 4 8", "8 in 0 and 2 and 5, 4 in 1 and 3-4"),
        ("8/8 8/2 8/2", "8 in 0, 8/2 in 1-2"),
    ],
)
def test_bits_by_layer_are_short(bits: str, text: str) -> None:
    assert layers_text(layers(bits)) == text


def test_a_long_text_is_shown_by_its_ends_without_halves_of_letters() -> None:
    text = "\ufffd  One\n\ttwo  " + "and so on " * 100 + " the end. \ufffd"

    beginning, end = excerpt(text)

    assert beginning.startswith("One two and so on") and beginning.endswith("…")
    assert end.startswith("…") and end.endswith("so on the end.")
    assert max(len(beginning), len(end)) <= 111


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt(" One  two. ") == ("One two.", "")


def test_an_answer_that_is_being_written_has_only_its_kind() -> None:
    assert span_text(TextSpan(SpanKind.ASSISTANT, "", 0, 5)) == "Answer"
    assert span_text(TextSpan(SpanKind.SUMMARY, "Summary of 3 turns", 0, 5)) == "Summary of 3 turns"
    assert span_text(TextSpan(SpanKind.SUMMARY, "owls.pdf", 0, 5)) == "Summary: owls.pdf"


def test_all_of_it_is_one_sentence_to_be_read_aloud() -> None:
    sentence = describe_page(page_map(page(0, pinned=True)), 0, SPAN, DECODE).sentence

    assert sentence.startswith(
        "Page 1 of 1, cold. Document: owls.pdf. Tokens 64, Positions 0 to 63, Bits k6v4"
    )
    assert "Text: Owls hunt at night" in sentence
