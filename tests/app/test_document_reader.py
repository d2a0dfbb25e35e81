"""Documents that are read in segments or looked up, with tiny models that write whatever they write."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.document_reader import DocumentReader
from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.reading.keeping import PassingReadings
from app.reading.question import DocumentQuestion, DocumentToRead
from app.reading.records import Reading, ReadSegment, SegmentState
from app.reading_run import DocumentReadings
from app.segments.numbering import numbered
from app.segments.progress import SegmentEvent, SegmentProgress, SegmentStage
from engine.admission import AdmissionError, LongerContext, reading_room_tokens
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.errors import Cancelled, ModelError
from engine.events import CacheChanged, Finished, GenerationEvent
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams
from tests.app.word_models import KV, loaded, write_silent_model, write_talking_model
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.small_engine import FOUR, small_engine, write_small_model

LIMIT = 600
"""Tokens of the context; a token is a word here."""
QUESTION = "What does the barn owl hunt?"


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return loaded(write_talking_model(tmp_path_factory.mktemp("talking")), backend)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return loaded(write_silent_model(tmp_path_factory.mktemp("silent")), backend)


def paper(title: str, num_sentences: int) -> Document:
    """Return a document of so many sentences of eight words; every fiftieth tells of the barn owl."""
    told = ("The barn owl will hunt voles in fields.", "Sentence {} tells of weather and the harvest.")
    text = " ".join(told[number % 50 > 0].format(number) for number in range(num_sentences))
    return Document(title=title, source=f"/tmp/{title}", kind="text", text=text)


LONG = paper("Long", 200)


def in_segments(*documents: Document, stored: Reading | None = None) -> list[DocumentToRead]:
    return [
        DocumentToRead(number, each, DocumentWay.SEGMENTS, stored) for number, each in enumerate(documents)
    ]


def looked_up(*documents: Document) -> list[DocumentToRead]:
    return [DocumentToRead(number, each, DocumentWay.LOOK_UP) for number, each in enumerate(documents)]


def question(words: str = QUESTION, **changes: object) -> DocumentQuestion:
    asked = DocumentQuestion(1, words, KV, room_tokens=200, max_context=LIMIT)
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


class Read:
    """A reading of documents: its events, and what came of it."""

    def __init__(
        self,
        engine: Engine,
        documents: Sequence[DocumentToRead],
        asked: DocumentQuestion | None = None,
        keeper: PassingReadings | None = None,
        on_event: Callable[[SegmentEvent], None] = lambda event: None,
        cancel: CancelToken | None = None,
    ) -> None:
        self.keeper = keeper or PassingReadings()
        self.events: list[SegmentEvent] = []
        self.held: list[CacheChanged] = []
        """What the engine had in hand at each event."""
        self.result = DocumentReadings()
        reader = DocumentReader(engine, self.keeper)
        generator = reader.read(asked or question(), documents, cancel or CancelToken())
        while True:
            try:
                event = next(generator)
            except StopIteration as ended:
                self.result = ended.value
                return
            self.events.append(event)
            if held := engine.held():
                self.held.append(held)
            on_event(event)

    @property
    def begun(self) -> list[tuple[int, int, str]]:
        """The segments that were begun: number, total and title, each once."""
        told = (event for event in self.events if isinstance(event, SegmentProgress))
        reading = (event for event in told if event.stage is SegmentStage.READING)
        return list(dict.fromkeys((event.number, event.total, event.title) for event in reading))

    def segments(self, number: int = 0) -> tuple[ReadSegment, ...]:
        return self.keeper.reading_segments(self.result.readings[number].id)


@pytest.fixture(scope="module")
def long_read(talking: Engine) -> Read:
    return Read(talking, in_segments(LONG))


def test_a_document_is_read_segment_by_segment_and_all_of_it(long_read: Read) -> None:
    segments = long_read.segments()
    assert [number for number, _, _ in long_read.begun] == list(range(1, len(segments) + 1))
    assert len(segments) >= 4 and {total for _, total, _ in long_read.begun} == {len(segments)}
    words = " ".join(LONG.text[each.start : each.stop] for each in segments)
    assert words.split() == LONG.text.split()
    assert {each.state for each in segments} == {SegmentState.READ}
    assert long_read.result.num_segments == len(segments)
    assert long_read.events[0] == SegmentProgress(0, 0, "Long", SegmentStage.SPLITTING)


def test_keys_and_values_of_one_segment_at_a_time_are_held(long_read: Read) -> None:
    held = [each.usage.num_tokens for each in long_read.held]
    assert 100 < max(held) <= LIMIT < len(LONG.text.split())


def test_what_the_model_makes_up_is_replaced_by_sentences_of_the_segment(long_read: Read) -> None:
    """It writes random words, which no segment has."""
    noted = [each for each in long_read.segments() if each.note]
    about_owls = [each for each in long_read.segments() if "owl" in LONG.text[each.start : each.stop]]
    assert noted == about_owls and len(noted) == 4
    assert {each.note for each in noted} == {"The barn owl will hunt voles in fields."}
    assert all(each.is_extract for each in noted)


def test_what_the_document_is_said_to_say_stands_in_it_whatever_notes_tell(talking: Engine) -> None:
    keeper = PassingReadings()
    first = Read(talking, in_segments(LONG), keeper=keeper).result.readings[0]
    for index, segment in enumerate(keeper.reading_segments(first.id)):
        noted = dataclasses.replace(segment, note=segment.note and "The barn owl hunts 77 voles.")
        keeper.save_segment(first.id, index, noted)
    unfinished = dataclasses.replace(first, text="")
    again = Read(talking, in_segments(LONG, stored=unfinished), keeper=keeper)
    text = again.result.readings[0].text
    assert "77 voles" in text
    assert text.endswith("The document says: “The barn owl will hunt voles in fields.”")


def test_notes_have_numbers_places_and_the_coverage_and_fit_the_room(talking: Engine) -> None:
    document = dataclasses.replace(LONG, kind="pdf", page_starts=(0, len(LONG.text) // 2))
    read = Read(talking, in_segments(document))
    text = read.result.readings[0].text
    assert f"It was read in {len(read.segments())} segments." in text
    assert "[1] (p. 1) The barn owl" in text and "[4] (p. 2) The barn owl" in text
    assert [number for number, _ in numbered(read.result.readings[0], read.segments())] == [1, 2, 3, 4]
    assert len(text.split()) <= 200


def test_notes_that_are_too_long_are_joined_by_levels_and_keep_their_numbers(
    talking: Engine,
) -> None:
    read = Read(talking, in_segments(paper("Longer", 1200)), question(room_tokens=130))
    stages = [event.stage for event in read.events if isinstance(event, SegmentProgress)]
    assert SegmentStage.JOINING in stages
    text = read.result.readings[0].text
    assert len(text.split()) <= 130
    assert "[1, 2" in text
    assert len([each for each in read.segments() if each.note]) == 24


def test_several_documents_are_numbered_together(talking: Engine) -> None:
    read = Read(talking, in_segments(LONG, paper("Other", 120)), question(first_number=5, room_tokens=400))
    first, second = read.result.readings
    assert [number for number, _ in numbered(first, read.segments(0))] == [5, 6, 7, 8]
    assert [number for number, _ in numbered(second, read.segments(1))] == [9, 10, 11]
    total = len(read.segments(0)) + len(read.segments(1))
    assert [number for number, _, _ in read.begun] == list(range(1, total + 1))
    assert len(first.text.split()) + len(second.text.split()) <= 400


def test_a_document_that_says_nothing_about_the_question_says_so(silent: Engine) -> None:
    read = Read(silent, in_segments(LONG), question("Where do bats sleep in winter?"))
    assert "None of them says anything about the question." in read.result.readings[0].text
    assert not any(each.note for each in read.segments())


def test_a_document_without_a_question_is_read_too(talking: Engine) -> None:
    assert Read(talking, in_segments(LONG), question("")).result.readings[0].is_done


# Stops and failures.


def stopped_at(engine: Engine, number: int, keeper: PassingReadings) -> None:
    cancel = CancelToken()

    def stop(event: SegmentEvent) -> None:
        if isinstance(event, SegmentProgress) and event.number == number and event.done_tokens:
            cancel.cancel()

    with pytest.raises(Cancelled):
        Read(engine, in_segments(LONG), keeper=keeper, on_event=stop, cancel=cancel)


@pytest.mark.parametrize("number", [1, 3, 4])
def test_a_stop_at_any_segment_keeps_what_was_read_and_the_rest_is_read_later(
    talking: Engine, long_read: Read, number: int
) -> None:
    keeper = PassingReadings()
    stopped_at(talking, number, keeper)
    assert talking.held() is None
    stored = keeper.reopen_reading(1)
    assert (stored.num_read, stored.is_done) == (number - 1, False)
    rest = Read(talking, in_segments(LONG, stored=stored), keeper=keeper)
    assert [begun for begun, _, _ in rest.begun] == list(range(number, len(long_read.segments()) + 1))
    assert rest.segments() == long_read.segments()
    assert rest.result.readings[0].text == long_read.result.readings[0].text


def test_what_is_done_is_not_read_again(talking: Engine, long_read: Read) -> None:
    done = long_read.result.readings[0]
    again = Read(talking, in_segments(LONG, stored=done), keeper=long_read.keeper)
    assert again.result.readings == (done,)
    assert not again.events


def test_segments_of_a_document_that_is_done_count_when_the_next_one_is_read_on(
    talking: Engine, long_read: Read
) -> None:
    done, other = long_read.result.readings[0], paper("Other", 120)
    documents = (*in_segments(LONG, stored=done), *in_segments(other))
    rest = Read(talking, documents, question(room_tokens=400), long_read.keeper)
    first, total = done.num_segments + 1, done.num_segments + rest.result.readings[1].num_segments
    assert [number for number, _, _ in rest.begun] == list(range(first, total + 1))
    assert {each for _, each, _ in rest.begun} == {total}


def test_another_model_s_notes_are_not_gone_on_with(talking: Engine, long_read: Read) -> None:
    other = dataclasses.replace(long_read.result.readings[0], model="Another")
    assert Read(talking, in_segments(LONG, stored=other)).begun


def test_an_answer_from_what_was_read_leaves_the_rest_and_says_so(talking: Engine) -> None:
    keeper = PassingReadings()
    stopped_at(talking, 3, keeper)
    stored = keeper.reopen_reading(1)
    some = Read(talking, in_segments(LONG, stored=stored), question(reads_on=False), keeper)
    assert not some.begun
    unread = len(some.segments()) - 2
    assert f"2 of its {len(some.segments())} segments were read; {unread} were not read." in (
        some.result.readings[0].text
    )
    rest = Read(talking, in_segments(LONG, stored=some.result.readings[0]), keeper=keeper)
    assert len(rest.begun) == unread and rest.result.readings[0].is_done


def test_segments_of_which_none_was_read_are_cut_anew_for_a_context_that_became_shorter(
    talking: Engine,
) -> None:
    keeper = PassingReadings()
    stopped_at(talking, 1, keeper)
    shorter = question(max_context=LIMIT // 2)
    anew = Read(talking, in_segments(LONG, stored=keeper.reopen_reading(1)), shorter, keeper)
    assert len(anew.segments()) > len(keeper.reading_segments(1))
    assert {each.state for each in anew.segments()} == {SegmentState.READ}


class FailingEngine(Engine):
    """An engine that cannot read what has certain words in it, the first so many times."""

    def fail(self, words: str, times: int) -> None:
        self.words, self.times = words, times

    def generate(
        self,
        request: GenerationRequest,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[GenerationEvent]:
        if self.times and self.words in request.messages[-1].content:
            self.times -= 1
            raise ModelError("The model broke.")
        return super().generate(request, cancel, wanted_kv)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> FailingEngine:
    engine = FailingEngine(backend)
    folder = write_talking_model(tmp_path_factory.mktemp("failing"))
    engine.load(folder, KV, cancel=CancelToken(), on_progress=lambda progress: None)
    return engine


def test_a_segment_that_fails_once_is_read_all_the_same(failing: FailingEngine, long_read: Read) -> None:
    failing.fail("Sentence 60 ", 1)
    assert Read(failing, in_segments(LONG)).segments() == long_read.segments()


def test_a_segment_that_fails_again_is_reported_and_the_others_are_read(failing: FailingEngine) -> None:
    failing.fail("Sentence 60 ", 2)
    read = Read(failing, in_segments(LONG))
    (failed,) = [each for each in read.segments() if each.state is SegmentState.FAILED]
    assert "Sentence 60 " in LONG.text[failed.start : failed.stop]
    assert (failed.error, failed.note) == ("The model broke.", "")
    assert "1 could not be read." in read.result.readings[0].text


def test_where_no_segment_can_be_read_that_is_the_error(failing: FailingEngine) -> None:
    failing.fail("Segment of", 1000)
    with pytest.raises(ModelError, match="The model broke"):
        Read(failing, in_segments(LONG))


def test_a_context_that_is_too_small_is_refused_before_anything_is_read(talking: Engine) -> None:
    reader = DocumentReader(talking, PassingReadings())
    reader.admit(question(), in_segments(LONG))
    reader.admit(question(room_tokens=0), [])
    with pytest.raises(AdmissionError, match="too little room") as caught:
        reader.admit(question(max_context=150), in_segments(LONG))
    assert isinstance(caught.value.choices[0], LongerContext)
    reader.admit(question(max_context=caught.value.choices[0].max_context), in_segments(LONG))
    with pytest.raises(AdmissionError, match="too little room"):
        reader.admit(question(room_tokens=80), looked_up(LONG))


def test_a_context_that_is_offered_has_room_for_all_documents(talking: Engine) -> None:
    reader = DocumentReader(talking, PassingReadings())
    with pytest.raises(AdmissionError, match="8 documents") as caught:
        reader.admit(question(max_context=1000, room_tokens=250), in_segments(*[LONG] * 8))
    assert "longer context, or remove some of them" in str(caught.value)
    (longer,) = caught.value.choices
    assert isinstance(longer, LongerContext)
    room = reading_room_tokens(longer.max_context)
    reader.admit(question(max_context=longer.max_context, room_tokens=room), in_segments(*[LONG] * 8))


def test_no_longer_context_is_offered_where_none_has_room_for_so_many_documents(talking: Engine) -> None:
    with pytest.raises(AdmissionError, match=r"conversation\. Remove some of them, or leave") as caught:
        DocumentReader(talking, PassingReadings()).admit(question(), in_segments(*[LONG] * 200))
    assert caught.value.choices == ()


def test_documents_that_are_looked_up_need_room_for_all_of_them_together_and_not_for_each(
    talking: Engine,
) -> None:
    reader = DocumentReader(talking, PassingReadings())
    reader.admit(question(room_tokens=100), looked_up(*[LONG] * 200))
    with pytest.raises(AdmissionError, match="too little room"):
        reader.admit(question(room_tokens=80), looked_up(*[LONG] * 200))


def test_what_is_to_be_read_again_is_refused_too_where_the_context_is_too_small(
    talking: Engine, long_read: Read
) -> None:
    done = long_read.result.readings[0]
    small = question(max_context=150)
    DocumentReader(talking, PassingReadings()).admit(small, in_segments(LONG, stored=done))
    for changes in ({"model": "Another"}, {"num_read": 2}):
        again = dataclasses.replace(done, **changes)
        with pytest.raises(AdmissionError, match="too little room"):
            Read(talking, in_segments(LONG, stored=again), small)


# Looking up.


def test_passages_that_fit_are_looked_up_with_numbers_within_the_room(talking: Engine) -> None:
    read = Read(talking, looked_up(LONG), question(first_number=3))
    text = read.result.readings[0].text
    assert not read.begun
    assert "[3] " in text and "The barn owl will hunt voles in fields." in text
    assert len(text.split()) <= 200
    passages = [LONG.text[each.start : each.stop] for each in read.segments()]
    assert passages and all("barn owl" in passage for passage in passages)
    assert {each.state for each in read.segments()} == {SegmentState.READ}


def test_where_nothing_fits_the_model_reads_that_and_no_passage(talking: Engine) -> None:
    read = Read(talking, looked_up(LONG), question("Who invented the telescope?"))
    assert read.segments() == ()
    assert "no passage has them" in read.result.readings[0].text


# Memory.


def peak_kv_nbytes(engine: Engine, num_sentences: int) -> int:
    read = Read(engine, in_segments(paper("Book", num_sentences)))
    assert len(read.segments()) >= num_sentences // 100
    return max(each.usage.nbytes for each in read.held)


def test_a_text_ten_times_as_long_peaks_at_the_same_bytes(talking: Engine) -> None:
    assert peak_kv_nbytes(talking, 1500) <= 1.1 * peak_kv_nbytes(talking, 150)


def test_the_conversation_s_own_cache_stays_held(talking: Engine) -> None:
    def ask(*messages: ChatMessage) -> list[GenerationEvent]:
        sampling = SamplingParams(temperature=0, max_tokens=20, repetition_penalty=1)
        return list(talking.generate(GenerationRequest(messages, sampling, KV, LIMIT, 5), CancelToken()))

    first = ChatMessage("user", "What hunts? " * 60)
    ask(first)
    Read(talking, in_segments(LONG))
    finished = ask(first)[-1]
    assert isinstance(finished, Finished) and finished.stats.reused_tokens > 100


def test_another_question_about_the_same_segments_reads_little_of_them(
    tmp_path: Path, backend: Backend
) -> None:
    """Tokens are bytes here, and pages have 64."""
    engine = small_engine(write_small_model(tmp_path), backend, prefixes=MemoryStore())
    document = paper("Book", 60)
    asked = question(max_context=1600, room_tokens=700, kv=FOUR)

    def unread(read: Read) -> list[int]:
        """Return how many tokens of each segment's prompt were read, of the first one for it."""
        told = [each for each in read.events if isinstance(each, SegmentProgress) and each.total_tokens]
        firsts = (next(each for each in told if each.number == number) for number, _, _ in read.begun)
        return [each.total_tokens - each.done_tokens for each in firsts]

    first = Read(engine, in_segments(document), asked)
    again = Read(engine, in_segments(document), dataclasses.replace(asked, words="Where are the voles?"))
    sizes = [each.stop - each.start for each in again.segments()]
    assert len(sizes) >= 3
    for size, before, now in zip(sizes, unread(first), unread(again), strict=True):
        assert before >= size > 6 * 64 and now <= before - size + 2 * 64
