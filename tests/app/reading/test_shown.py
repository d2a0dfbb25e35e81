"""What is shown under an answer, made of stored rows."""

from __future__ import annotations

from app.documents.places import Places
from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState, Source, SourceKind
from app.reading.shown import DocumentText, evidence_of, first_words

TEXT = "# Owls\n\nOwls hunt at night.\n\n# Larks\n\nLarks sing in the morning."
DOCUMENT = DocumentText("birds.pdf", TEXT, Places.of(TEXT, "pdf", (0, TEXT.index("# Larks"))))
OWLS, LARKS = TEXT.index("Owls hunt"), TEXT.index("Larks sing")


def reading(text: str = "") -> Reading:
    return Reading(3, 1, 7, DocumentWay.SEGMENTS, "A model", text, 3, 1, 1)


def test_a_source_is_shown_with_its_place_and_first_words() -> None:
    source = Source(2, 7, LARKS, len(TEXT), SourceKind.NOTED, is_cited=True)
    (shown,) = evidence_of([source], [], {7: DOCUMENT}).passages
    assert (shown.title, shown.place.words) == ("birds.pdf", "p. 2, Larks")
    assert shown.words == "Larks sing in the morning."


def test_cited_sources_come_by_number_and_attention_by_its_share() -> None:
    sources = [
        Source(5, 7, 0, 4, SourceKind.NOTED, is_cited=True),
        Source(2, 7, 0, 4, SourceKind.NOTED, is_cited=True),
        Source(3, 7, 0, 4, SourceKind.NOTED),
        Source(0, 7, 0, 4, SourceKind.ATTENDED, share=0.1),
        Source(0, 7, 8, 9, SourceKind.ATTENDED, share=0.4),
    ]
    evidence = evidence_of(sources, [], {7: DOCUMENT})
    assert [each.source.number for each in evidence.cited] == [2, 5]
    assert [each.source.share for each in evidence.of_kind(SourceKind.ATTENDED)] == [0.4, 0.1]
    assert sorted(evidence.by_number) == [2, 3, 5]


def test_what_belongs_to_a_document_that_is_gone_is_left_out() -> None:
    source = Source(1, 8, 0, 4, SourceKind.NOTED, is_cited=True)
    evidence = evidence_of([source], [(reading(), [])], {})
    assert evidence.passages == () and evidence.coverages == ()


def test_coverage_counts_segments_and_says_whether_the_reading_is_to_go_on() -> None:
    segments = [
        ReadSegment(0, OWLS, SegmentState.READ, "Owls hunt."),
        ReadSegment(OWLS, LARKS, SegmentState.FAILED, error="No memory."),
        ReadSegment(LARKS, len(TEXT)),
    ]
    evidence = evidence_of([], [(reading(), segments)], {7: DOCUMENT})
    (coverage,) = evidence.coverages
    assert (coverage.num_read, coverage.num_failed, len(coverage.segments)) == (1, 1, 3)
    assert [each.place.words for each in coverage.segments] == ["p. 1, Owls", "p. 1, Owls", "p. 2, Larks"]
    assert coverage.is_unfinished
    done = evidence_of([], [(reading("[1] Owls hunt."), segments)], {7: DOCUMENT})
    assert not done.coverages[0].is_unfinished


def test_first_words_leave_out_signs_and_end_with_a_word() -> None:
    text = "- A *title* | of | a table\n\n- and " + "many words " * 60
    words = first_words(text, 0, len(text))
    assert words.startswith("A *title* of a table - and many words")
    assert words.endswith(("many…", "words…"))
    assert first_words("語" * 400, 0, 400) == "語" * 160 + "…"


def test_first_words_leave_out_headings_that_the_place_names() -> None:
    text = "# Birds\n\n## Owls\n\nOwls hunt.\n\n## Larks"
    assert first_words(text, 0, len(text)) == "Owls hunt. ## Larks"
    assert first_words(text, text.index("## Larks"), len(text)) == "Larks"


def test_an_answer_knows_only_what_had_been_read_when_it_was_written() -> None:
    segments = [
        ReadSegment(0, OWLS, SegmentState.READ, "Owls hunt."),
        ReadSegment(OWLS, 9, SegmentState.READ),
    ]
    readings = [(reading("[1] Owls hunt."), segments)]
    known = [evidence_of([], readings, {7: DOCUMENT}, num_known=number) for number in (0, 1, 2, None)]
    assert [each.num_read_since for each in known] == [0, 1, 0, 0]
    assert [len(each.in_segments) for each in known] == [0, 1, 1, 1]


def test_a_reading_that_lost_its_segments_says_nothing_of_them() -> None:
    assert evidence_of([], [(reading("[1] Owls hunt."), [])], {7: DOCUMENT}).in_segments == ()


def test_nothing_was_found_only_for_an_answer_that_has_nothing_of_the_document() -> None:
    looked_up = Reading(3, 1, 7, DocumentWay.LOOK_UP, "A model", "Nothing was found.", 0, 0, 0)
    noted = Source(1, 7, OWLS, LARKS, SourceKind.NOTED, is_cited=True)
    assert evidence_of([], [(looked_up, [])], {7: DOCUMENT}).found_nothing == ("birds.pdf",)
    assert evidence_of([noted], [(looked_up, [])], {7: DOCUMENT}).found_nothing == ()
    assert evidence_of([], [(looked_up, [])], {7: DOCUMENT}, is_by_model=False).found_nothing == ()


def test_of_many_documents_that_were_looked_up_together_those_without_a_passage_are_not_named() -> None:
    def looked_up(number: int, *segments: ReadSegment) -> tuple[Reading, list[ReadSegment]]:
        count = len(segments)
        done = Reading(number, 1, number, DocumentWay.LOOK_UP, "A model", "Done.", count, count, 0)
        return done, list(segments)

    in_vain = [looked_up(number) for number in range(1, 6)]
    documents = dict.fromkeys(range(1, 7), DOCUMENT)
    passage = ReadSegment(OWLS, LARKS, SegmentState.READ)
    assert len(evidence_of([], in_vain, documents).found_nothing) == 5
    assert evidence_of([], [*in_vain, looked_up(6, passage)], documents).found_nothing == ()
    assert len(evidence_of([], [*in_vain[:2], looked_up(6, passage)], documents).found_nothing) == 2
