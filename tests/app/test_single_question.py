"""Questions without a conversation: by which way documents are read, and what the answer rests on."""

from __future__ import annotations

import dataclasses

import pytest

from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.reading.records import SourceKind
from app.segments.progress import SegmentEvent, SegmentProgress
from app.single_question import AskedQuestion, SingleQuestion
from engine.admission import AdmissionError, InSegments, LookUp, ReadWhole
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import Finished, StopReason, Token
from engine.sampling import SamplingParams
from tests.app.test_document_reader import LONG, QUESTION, paper
from tests.app.word_models import KV, loaded, write_talking_model

SHORT = paper("Short", 5)
ASKED = AskedQuestion(
    QUESTION,
    [LONG],
    None,
    "",
    SamplingParams(temperature=0, max_tokens=20, repetition_penalty=1),
    KV,
    max_context=900,
)


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return loaded(write_talking_model(tmp_path_factory.mktemp("talking")), backend)


def asked(engine: Engine, **changes: object) -> tuple[SingleQuestion, list[SegmentEvent]]:
    question = SingleQuestion(engine, dataclasses.replace(ASKED, **changes))  # type: ignore[arg-type]
    return question, list(question.events(CancelToken()))


def code_file(number: int) -> Document:
    """Return a file of two functions of some words; no two files have the same."""
    text = (
        f'def widen_{number}(value):\n    """Return a wider value for the step {number} of the pipeline."""\n'
        f"    return value * {number}\n\n\n"
        f'def narrow_{number}(value):\n    """Return what is left of the value behind step {number}."""\n'
        f"    return value - {number}\n"
    )
    return Document(title=f"pipeline/step_{number}.py", source="", kind="code", text=text)


ODD = Document(
    title="pipeline/valves.py",
    source="",
    kind="code",
    text='def close_valve(pressure):\n    """Shut the relief valve where the pressure is too high."""\n'
    "    return pressure > 9\n",
)
FOLDER = [*(code_file(number) for number in range(40)), ODD, *(code_file(number) for number in range(40, 59))]
"""Sixty files."""


@pytest.mark.parametrize(
    "question",
    ["Which function shuts the relief valve above some pressure?", "What does valves.py do?"],
)
def test_a_folder_of_many_small_files_is_looked_up_and_the_right_one_is_found(
    talking: Engine, question: str
) -> None:
    """In 1,024 tokens for passages, of which each file alone would get 17."""
    answered, events = asked(
        talking, documents=FOLDER, way=DocumentWay.LOOK_UP, question=question, max_context=4096
    )
    assert len(answered.readings) == len(FOLDER) == 60
    assert all(reading.is_done for reading in answered.readings.values())
    first = next(source for source in answered.sources if source.attachment_id == 40)
    assert first.kind is SourceKind.LOOKED_AT
    assert "def close_valve" in ODD.text[first.start : first.stop]
    assert f"[{first.number}] {ODD.text.strip()}" in answered.readings[40].text
    assert len({source.attachment_id for source in answered.sources}) < 10
    stats = finished(events).stats
    assert stats.prompt_tokens < 60 * 5 + 300  # a line for each file, and what was found


def finished(events: list[SegmentEvent]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_what_fits_is_read_whole_and_rests_on_no_passage(talking: Engine) -> None:
    question, events = asked(talking, documents=[SHORT])
    assert not question.readings and not question.sources
    assert not any(isinstance(event, SegmentProgress) for event in events)
    assert finished(events).stats.prompt_tokens > len(SHORT.text.split())


def test_what_does_not_is_read_in_segments_where_that_is_done_soon(talking: Engine) -> None:
    question, events = asked(talking, documents=[SHORT, LONG])
    assert list(question.readings) == [1]
    assert question.readings[1].way is DocumentWay.SEGMENTS
    stats = finished(events).stats
    assert stats.segments == len(question.segments(1)) >= 3
    assert question.answer == "".join(event.text for event in events if isinstance(event, Token))
    assert {(source.attachment_id, source.kind) for source in question.sources} == {(1, SourceKind.NOTED)}
    assert {LONG.text[source.start : source.stop].strip() for source in question.sources} == {
        "The barn owl will hunt voles in fields."
    }


@pytest.mark.parametrize("way", [DocumentWay.SEGMENTS, DocumentWay.LOOK_UP])
def test_a_way_that_is_asked_for_holds_for_all_documents(talking: Engine, way: DocumentWay) -> None:
    question, _ = asked(talking, documents=[SHORT, LONG], way=way)
    assert {reading.way for reading in question.readings.values()} == {way}
    assert len(question.readings) == 2


def test_read_whole_what_does_not_fit_is_refused(talking: Engine) -> None:
    with pytest.raises(AdmissionError):
        asked(talking, way=DocumentWay.WHOLE)


def test_a_question_about_all_of_it_that_would_be_looked_up_is_refused(
    talking: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.document_cost.MOST_AUTO_S", 0)
    with pytest.raises(AdmissionError, match="Looking up finds passages") as caught:
        asked(talking, question="Summarize this document.")
    assert [type(choice) for choice in caught.value.choices] == [InSegments, LookUp]


def test_a_question_about_all_of_it_that_was_looked_up_in_vain_as_asked_for_is_offered_the_other_ways(
    talking: Engine,
) -> None:
    for document, ways in ((LONG, [InSegments]), (SHORT, [ReadWhole, InSegments])):
        with pytest.raises(AdmissionError, match="about all of") as caught:
            asked(talking, question="Summarize this.", documents=[document], way=DocumentWay.LOOK_UP)
        assert [type(choice) for choice in caught.value.choices] == ways


def test_nothing_relevant_is_said(talking: Engine) -> None:
    question, events = asked(talking, question="Who built telescopes?", way=DocumentWay.LOOK_UP)
    assert question.answer.startswith("Nothing was found.")
    assert finished(events).stats.stop_reason is StopReason.END


def test_a_stop_while_segments_are_read_ends_it_with_figures(talking: Engine) -> None:
    cancel = CancelToken()
    events = []
    for event in SingleQuestion(talking, dataclasses.replace(ASKED, way=DocumentWay.SEGMENTS)).events(cancel):
        events.append(event)
        if isinstance(event, SegmentProgress) and event.number == 2:
            cancel.cancel()
    stats = finished(events).stats
    assert (stats.stop_reason, stats.segments) == (StopReason.STOPPED, 1)
