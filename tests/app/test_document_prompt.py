"""Documents in what a model reads."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.document_prompt import (
    chat_message,
    document_passage,
    document_text,
    placed_documents,
    replaced,
    summary_passage,
    with_documents_first,
    without_documents,
    words_inside,
)
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage


@dataclass(frozen=True)
class Paper:
    title: str
    text: str


def user(text: str, *papers: Paper) -> ChatMessage:
    return chat_message("user", text, [document_passage(paper) for paper in papers])


papers = st.lists(st.builds(Paper, st.text(max_size=9), st.text(max_size=30)), max_size=3)
questions = st.text(max_size=20)


@given(first=papers, second=papers, question=questions)
def test_documents_are_found_as_they_were_put_in(
    first: list[Paper], second: list[Paper], question: str
) -> None:
    messages = [ChatMessage("system", "Be brief."), user("One?", *first), user(question, *second)]
    found = placed_documents(messages)
    expected = [(1, paper) for paper in first] + [(2, paper) for paper in second]
    assert [(one.message, one.title, one.text) for one in found] == [
        (message, paper.title, paper.text.strip()) for message, paper in expected
    ]
    assert without_documents(messages[2].content, messages[2].documents) == question.strip()


@given(all_papers=papers, question=questions, data=st.data())
def test_a_document_that_is_replaced_leaves_the_others_as_they_were(
    all_papers: list[Paper], question: str, data: st.DataObject
) -> None:
    message = user(question, *all_papers)
    chosen = {
        document: data.draw(st.text(max_size=10))
        for document in placed_documents([message])
        if data.draw(st.booleans())
    }
    (changed,) = replaced([message], chosen)
    parts = [
        next(
            (text for document, text in chosen.items() if document.range == each),
            document_text(paper.title, paper.text),
        )
        for paper, each in zip(all_papers, message.documents, strict=True)
    ]
    assert changed.content == "\n\n".join([*parts, question] if question else parts)
    assert [changed.content[each.start : each.stop] for each in changed.documents] == parts
    assert [each.title for each in changed.documents] == [paper.title for paper in all_papers]


def test_documents_that_are_put_first_keep_the_places_of_the_others() -> None:
    paper = Paper("Owls", "They hunt.")
    message = with_documents_first(user("When?", paper), [("Bats", "Notes on bats."), ("Cats", "Notes.")])
    assert (
        message.content == "Notes on bats.\n\nNotes.\n\n" + f"{document_text('Owls', 'They hunt.')}\n\nWhen?"
    )
    assert [(each.title, message.content[each.start : each.stop]) for each in message.documents] == [
        ("Bats", "Notes on bats."),
        ("Cats", "Notes."),
        ("Owls", document_text("Owls", "They hunt.")),
    ]


EARLIER = summary_passage("Summary of 2 turns", "the earlier conversation", " They met.\n", "s3")
MET = "Summary of the earlier conversation:\n\nThey met.\n\n(End of the summary.)"


def test_a_message_has_summaries_and_documents_before_its_words_with_their_keys() -> None:
    owls = Paper("Owls", "They hunt.")
    message = chat_message("user", "When?", [EARLIER, document_passage(owls, "a7")], "m5")
    assert message.content == f"{MET}\n\n{document_text('Owls', 'They hunt.')}\n\nWhen?"
    assert message.key == "m5"
    assert [(each.kind, each.key, each.title) for each in message.documents] == [
        (SpanKind.SUMMARY, "s3", "Summary of 2 turns"),
        (SpanKind.DOCUMENT, "a7", "Owls"),
    ]
    assert [words_inside(each, message.content) for each in message.documents] == ["They met.", "They hunt."]
    assert without_documents(message.content, message.documents) == "When?"


def test_a_summary_is_not_taken_for_a_document() -> None:
    owls = Paper("Owls", "They hunt.")
    message = chat_message("user", "When?", [EARLIER, document_passage(owls, "a7")])
    (found,) = placed_documents([message])
    assert (found.title, found.text, found.range.key) == ("Owls", "They hunt.", "a7")


def test_a_document_in_other_words_loses_its_key_and_the_rest_keeps_theirs() -> None:
    passages = [
        EARLIER,
        *(document_passage(Paper(title, "Text."), key) for title, key in (("A", "a1"), ("B", "a2"))),
    ]
    message = chat_message("user", "When?", passages, "m5")
    first, _ = placed_documents([message])
    (changed,) = replaced([message], {first: "Notes."})
    assert changed.key == "m5"
    assert [(each.kind, each.key) for each in changed.documents] == [
        (SpanKind.SUMMARY, "s3"),
        (SpanKind.DOCUMENT, ""),
        (SpanKind.DOCUMENT, "a2"),
    ]


def test_documents_that_are_put_first_stand_behind_summaries_of_what_was_before() -> None:
    for own in ([EARLIER], [EARLIER, document_passage(Paper("Owls", "They hunt."), "a7")]):
        for words in ("", "When?"):
            before = chat_message("user", words, own, "m5")
            message = with_documents_first(before, [("Bats", "Notes on bats."), ("Cats", "Notes.")])
            rest = before.content.removeprefix(MET)
            assert message.content == f"{MET}\n\nNotes on bats.\n\nNotes.{rest}"
            assert [message.content[each.start : each.stop] for each in message.documents] == [
                MET,
                "Notes on bats.",
                "Notes.",
                *(passage.text for passage in own[1:]),
            ]
            assert [each.key for each in message.documents] == ["s3", "", "", *(one.key for one in own[1:])]
