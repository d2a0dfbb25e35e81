"""Documents in what a model reads."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.document_prompt import (
    document_ranges,
    document_text,
    message_text,
    placed_documents,
    replaced,
    with_documents_first,
    without_documents,
)
from engine.model import ChatMessage


@dataclass(frozen=True)
class Paper:
    title: str
    text: str


def user(text: str, *papers: Paper) -> ChatMessage:
    return ChatMessage("user", message_text(text, papers), document_ranges(papers))


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
    assert message.content == "Notes on bats.\n\nNotes.\n\n" + message_text("When?", [paper])
    assert [(each.title, message.content[each.start : each.stop]) for each in message.documents] == [
        ("Bats", "Notes on bats."),
        ("Cats", "Notes."),
        ("Owls", document_text("Owls", "They hunt.")),
    ]
