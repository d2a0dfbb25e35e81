"""What is to be summarized, part by part."""

from __future__ import annotations

import pytest

from app.document_prompt import chat_message, summary_passage
from app.ledger.summary_request import PartKind, SourcePart, SummaryRequest
from engine.kv.precision import KVSpec
from engine.model import ChatMessage

ANSWER = ChatMessage("assistant", "It is old.", key="m6")


def request(summary: str, *, num_turns: int) -> SummaryRequest:
    earlier = summary_passage("Summary", "the earlier conversation", summary, "s1")
    asking = chat_message("user", "Tell me about Rome.", [earlier], "m5")
    return SummaryRequest((asking, ANSWER), 0, ("m5", "m6"), num_turns, 400, KVSpec.parse("8"), 7)


def test_an_earlier_extract_is_parts_by_who_said_them() -> None:
    parts = request("A head.\nUser: I pay 730 euros.\nAssistant: Good.\nAnd more.", num_turns=3).parts
    assert parts == (
        SourcePart("", "A head.", PartKind.EARLIER),
        SourcePart("User", "I pay 730 euros.", PartKind.EARLIER),
        SourcePart("Assistant", "Good.\nAnd more.", PartKind.EARLIER),
        SourcePart("User", "Tell me about Rome.", PartKind.USER),
        SourcePart("Assistant", "It is old.", PartKind.ANSWER),
    )
    assert [part.is_answer for part in parts] == [False, False, True, False, True]


@pytest.mark.parametrize(("num_turns", "share"), [(1, 0), (2, 1 / 2), (3, 2 / 3), (9, 2 / 3)])
def test_an_earlier_summary_has_the_share_of_its_turns_and_leaves_a_third(
    num_turns: int, share: float
) -> None:
    assert request("We go to Lisbon.", num_turns=num_turns).earlier_share == pytest.approx(share)
