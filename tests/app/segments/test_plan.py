"""Where notes stand in a conversation whose documents were read in parts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.document_prompt import (
    chat_message,
    document_passage,
    placed_documents,
    summary_passage,
)
from app.segments.plan import SegmentPlan, with_notes, without_document_texts
from engine.engine import GenerationRequest
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams


@dataclass(frozen=True)
class Paper:
    title: str
    text: str


OWLS, BATS = Paper("Owls", "They hunt."), Paper("Bats", "They hang.")


def user(text: str, *papers: Paper) -> ChatMessage:
    return chat_message("user", text, [document_passage(paper) for paper in papers])


def request(*messages: ChatMessage) -> GenerationRequest:
    return GenerationRequest(messages, SamplingParams(), KVSpec.parse("8"))


CONVERSATION = request(
    ChatMessage("system", "Be brief."),
    user("What hunts?", OWLS),
    ChatMessage("assistant", "Owls."),
    user("What hangs?", BATS),
)


def test_notes_on_documents_of_earlier_messages_stand_with_the_last_question() -> None:
    owls, bats = placed_documents(CONVERSATION.messages)
    system, first, answer, last = with_notes(CONVERSATION, {owls: "On owls.", bats: "On bats."}).messages
    assert (system, answer) == (CONVERSATION.messages[0], CONVERSATION.messages[2])
    assert "They hunt." not in first.content
    assert "Notes on it stand with the last question." in first.content
    assert first.content.endswith("What hunts?")
    assert last.content == "On owls.\n\nOn bats.\n\nWhat hangs?"
    assert [last.content[each.start : each.stop] for each in last.documents] == ["On owls.", "On bats."]


def test_documents_without_notes_stay_whole() -> None:
    owls, _ = placed_documents(CONVERSATION.messages)
    last = with_notes(CONVERSATION, {owls: "On owls."}).messages[-1]
    assert last.content == "On owls.\n\n" + user("What hangs?", BATS).content
    assert [each.title for each in last.documents] == ["Owls", "Bats"]


def test_all_documents_can_be_left_to_their_notes() -> None:
    contents = [message.content for message in without_document_texts(CONVERSATION.messages)]
    assert not any("They h" in content for content in contents)
    assert [content.startswith("Document: ") for content in contents] == [False, True, False, True]


SUMMARY = summary_passage("Summary of 1 turn", "the earlier conversation", "They met.", "s3")


@pytest.mark.parametrize("has_summary", [True, False])
def test_a_summary_is_something_to_answer_from_and_stays_whole(has_summary: bool) -> None:
    head = [SUMMARY] if has_summary else []
    asked = request(chat_message("user", "What hunts?", [*head, document_passage(OWLS, "a7")], "m5"))
    owls = placed_documents(asked.messages)
    assert len(owls) == 1
    assert SegmentPlan(asked, owls, "What hunts?", 1, 1, 1, 1, 1).has_more is has_summary
    (last,) = with_notes(asked, {owls[0]: "On owls."}).messages
    assert last.content == "\n\n".join([*(each.text for each in head), "On owls.", "What hunts?"])
