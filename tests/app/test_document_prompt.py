"""Documents in what a model reads."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.document_prompt import (
    chat_message,
    document_passage,
    document_text,
    place_inside,
    summary_passage,
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


@given(all_papers=papers, question=questions)
def test_documents_are_found_as_they_were_put_in(all_papers: list[Paper], question: str) -> None:
    message = user(question, *all_papers)
    found = [(each.title, words_inside(each, message.content)) for each in message.documents]
    assert found == [(paper.title, paper.text.strip()) for paper in all_papers]
    assert without_documents(message.content, message.documents) == question.strip()


@given(text=st.text(min_size=1, max_size=30).filter(str.strip), data=st.data())
def test_a_place_in_what_is_written_of_a_document_is_found_in_its_text(
    text: str, data: st.DataObject
) -> None:
    paper = Paper("Owls", text)
    written = document_text(paper.title, paper.text)
    start = data.draw(st.integers(0, len(written)))
    stop = data.draw(st.integers(start, len(written)))
    place = place_inside(paper, start, stop)
    first = written.index(text.strip(), len("Document: Owls"))
    inside = range(max(start, first), min(stop, first + len(text.strip())))
    if place is None:
        assert not inside
    else:
        assert text[slice(*place)] == written[inside.start : inside.stop]


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
