"""Conversations about documents that are not read whole, with tiny models and a real store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.chat import ChatService, ReplyEnded, ReplyEvent, ReplySettings
from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.ledger.actions import read_by
from app.ledger.context import ConversationContext, SpanState
from app.ledger.planning import TrimPlanner
from app.ledger.records import attachment_key
from app.profiles import DocumentMode, Overflow
from app.reading.records import Reading, SourceKind
from app.segments.progress import SegmentProgress, SegmentStage
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.admission import AdmissionError, InSegments, LookUp, ReadWhole
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import CacheChanged, GenerationStats, PrefillProgress, Token
from engine.sampling import SamplingParams
from tests.app.test_document_reader import LONG, QUESTION, paper
from tests.app.word_models import KV, loaded, write_silent_model, write_talking_model

LIMIT = 900
SHORT = paper("Short", 5)
SETTINGS = ReplySettings(
    SamplingParams(temperature=0, max_tokens=20, repetition_penalty=1),
    KV,
    "",
    LIMIT,
    overflow=Overflow.DROP,
    document_mode=DocumentMode.SEGMENTS,
)
LOOKED_UP = dataclasses.replace(SETTINGS, document_mode=DocumentMode.LOOK_UP)


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return loaded(write_talking_model(tmp_path_factory.mktemp("talking")), backend)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return loaded(write_silent_model(tmp_path_factory.mktemp("silent")), backend)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


class Talk:
    """A conversation about documents."""

    def __init__(self, store: ConversationStore, engine: Engine) -> None:
        self.store = store
        self.engine = engine
        engine.forget(1)
        self.service = ChatService(store, engine)
        self.id = store.create_conversation().id
        self.leaf: Message | None = None
        self.events: list[ReplyEvent] = []

    def say(self, text: str, *documents: Document) -> Message:
        attached = [self.store.add_attachment(self.id, each).id for each in documents]
        self.leaf = self.store.add_user_message(self.id, self.leaf.id if self.leaf else None, text, attached)
        return self.leaf

    def answer(
        self,
        question: Message,
        settings: ReplySettings = SETTINGS,
        on_event: Callable[[ReplyEvent], None] = lambda event: None,
        cancel: CancelToken | None = None,
    ) -> Message:
        self.events = []
        for event in self.service.reply(self.id, question.id, settings, cancel or CancelToken()):
            self.events.append(event)
            on_event(event)
        assert isinstance(event, ReplyEnded)
        self.leaf = event.message
        return event.message

    def ask(self, text: str, *documents: Document, settings: ReplySettings = SETTINGS) -> Message:
        return self.answer(self.say(text, *documents), settings)

    @property
    def context(self) -> ConversationContext:
        assert self.leaf is not None
        return ConversationContext.of(self.store.path(self.leaf.id), self.store.ledger(self.id))

    @property
    def readings(self) -> tuple[Reading, ...]:
        return self.store.ledger(self.id).readings

    @property
    def begun(self) -> list[int]:
        """The segments that were read for the last answer."""
        told = (event for event in self.events if isinstance(event, SegmentProgress) and event.total_tokens)
        return list(dict.fromkeys(event.number for event in told))


def stats_of(message: Message) -> GenerationStats:
    assert message.stats is not None
    return message.stats


@pytest.fixture
def store(file: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(file)
    yield store
    store.close()


@pytest.fixture
def talk(store: ConversationStore, talking: Engine) -> Talk:
    return Talk(store, talking)


def test_a_document_that_fits_is_read_whole(talk: Talk) -> None:
    answer = talk.ask(QUESTION, SHORT)
    assert not talk.readings and not answer.sources and stats_of(answer).segments == 0
    assert any(SHORT.text in message.content for message in talk.context.messages)


def test_one_that_does_not_is_read_in_segments_and_answered_with_sources(talk: Talk) -> None:
    answer = talk.ask(QUESTION, LONG)
    assert answer.state is MessageState.COMPLETE
    (reading,) = talk.readings
    assert reading.is_done and reading.way is DocumentWay.SEGMENTS
    assert stats_of(answer).segments == reading.num_segments >= 3
    assert any(reading.text in message.content for message in talk.context.messages)
    assert not any(LONG.text[:200] in message.content for message in talk.context.messages)
    notes = [each for each in talk.store.reading_segments(reading.id) if each.note]
    assert [source.number for source in answer.sources] == list(range(1, len(notes) + 1))
    assert len(notes) >= 2
    assert {source.kind for source in answer.sources} == {SourceKind.NOTED}
    passages = {LONG.text[source.start : source.stop].strip() for source in answer.sources}
    assert passages == {"The barn owl will hunt voles in fields."}
    assert talk.store.message(answer.id).sources == answer.sources


def test_the_way_is_stored_and_the_next_question_looks_passages_up(talk: Talk) -> None:
    first = talk.ask(QUESTION, LONG)
    (document,) = talk.context.path[0].attachments
    assert talk.context.way(attachment_key(document.id), talk.context.path[0].id) is DocumentWay.SEGMENTS
    second = talk.ask("Which voles are in the fields?")
    assert not talk.begun
    assert [reading.way for reading in talk.readings] == [DocumentWay.SEGMENTS, DocumentWay.LOOK_UP]
    numbers = [source.number for source in second.sources if source.kind is SourceKind.LOOKED_AT]
    assert numbers and min(numbers) == len(first.sources) + 1


def test_segments_can_be_chosen_again(talk: Talk) -> None:
    talk.ask(QUESTION, LONG)
    (document,) = talk.context.path[0].attachments
    key = attachment_key(document.id)
    talk.store.change_context(talk.id, read_by(talk.context, key, DocumentWay.SEGMENTS))
    talk.ask("Which voles are in the fields?")
    assert len(talk.begun) >= 3


def test_an_answer_that_is_written_again_reads_nothing_again(talk: Talk) -> None:
    question = talk.say(QUESTION, LONG)
    first, again = talk.answer(question), talk.answer(question)
    assert not talk.begun and stats_of(again).segments == stats_of(first).segments
    assert again.sources == first.sources and again.text == first.text
    assert len(talk.readings) == 1


def stop_at(talk: Talk, question: Message, number: int) -> Message:
    cancel = CancelToken()

    def stop(event: ReplyEvent) -> None:
        if isinstance(event, SegmentProgress) and event.number == number and event.total_tokens:
            cancel.cancel()

    return talk.answer(question, on_event=stop, cancel=cancel)


def test_a_stopped_reading_goes_on_where_it_was_after_a_restart(talk: Talk, file: Path) -> None:
    question = talk.say(QUESTION, LONG)
    stopped = stop_at(talk, question, 3)
    assert (stopped.state, stopped.text, stats_of(stopped).segments) == (MessageState.STOPPED, "", 2)
    talk.store.close()
    talk.store = ConversationStore.open(file)
    talk.service = ChatService(talk.store, talk.engine)
    answer = talk.answer(question)
    assert talk.begun[0] == 3 and answer.state is MessageState.COMPLETE
    assert stats_of(answer).segments == talk.readings[0].num_segments
    talk.store.close()


def test_an_answer_from_what_was_read_can_be_gone_on_with(talk: Talk) -> None:
    question = talk.say(QUESTION, LONG)
    stop_at(talk, question, 3)
    some = talk.answer(question, dataclasses.replace(SETTINGS, reads_on=False))
    assert not talk.begun and stats_of(some).segments == 2
    assert talk.readings[0].is_done and talk.readings[0].num_read == 2
    rest = talk.answer(question)
    assert talk.begun[0] == 3 and stats_of(rest).segments == talk.readings[0].num_segments
    assert [each.number for each in rest.sources] == list(range(1, len(rest.sources) + 1))


@pytest.mark.parametrize(("number", "reads_on"), [(2, True), (4, False)])
def test_a_reading_that_was_stopped_and_gone_on_with_is_answered_as_one_that_never_was(
    talk: Talk, number: int, reads_on: bool
) -> None:
    documents = [paper("First", 100), paper("Second", 100)]
    whole = talk.ask(QUESTION, *documents)
    unbroken = talk.readings
    talk.leaf = None
    question = talk.say(QUESTION, *documents)
    stop_at(talk, question, number)
    if not reads_on:
        talk.answer(question, dataclasses.replace(SETTINGS, reads_on=False))
    answer = talk.answer(question)
    assert [each.text for each in talk.readings[2:]] == [each.text for each in unbroken]
    assert answer.text == whole.text


def test_a_document_that_is_left_to_read_has_the_room_that_it_had_at_first(talk: Talk) -> None:
    question = talk.say(QUESTION, paper("First", 100), paper("Second", 100))

    def room() -> int:
        context = ConversationContext.of(talk.store.path(question.id), talk.store.ledger(talk.id))
        return TrimPlanner(talk.engine, talk.id, SETTINGS).reading_room(context)

    stop_at(talk, question, 1)
    at_first = room()
    stop_at(talk, question, 3)
    first, second = talk.readings
    assert (first.is_done, second.is_done) == (True, False)
    assert room() == at_first - len(first.text.split())


def test_a_reply_that_is_dropped_while_segments_are_read_is_a_stopped_one(talk: Talk) -> None:
    question = talk.say(QUESTION, LONG)
    reply = talk.service.reply(talk.id, question.id, SETTINGS, CancelToken())
    for event in reply:
        if isinstance(event, SegmentProgress) and event.number == 2:
            break
    reply.close()  # type: ignore[attr-defined]
    leaf = talk.store.conversation(talk.id).leaf_id
    assert leaf is not None and talk.store.message(leaf).state is MessageState.STOPPED
    assert talk.readings[0].num_read == 1


def test_passages_are_looked_up_and_are_the_sources(talk: Talk) -> None:
    answer = talk.ask(QUESTION, LONG, settings=LOOKED_UP)
    assert not talk.begun and stats_of(answer).segments == 0
    assert {source.kind for source in answer.sources} == {SourceKind.LOOKED_AT}
    assert all("barn owl" in LONG.text[source.start : source.stop] for source in answer.sources)


def test_nothing_relevant_is_said_and_the_model_writes_nothing(talk: Talk) -> None:
    answer = talk.ask("Who invented the telescope?", LONG, settings=LOOKED_UP)
    assert answer.text.startswith("Nothing was found. No passage of “Long” has the words of the question.")
    assert stats_of(answer).completion_tokens == 0 and not answer.sources
    assert not [event for event in talk.events if isinstance(event, PrefillProgress)]


def test_where_no_segment_says_anything_that_is_the_answer(store: ConversationStore, silent: Engine) -> None:
    talk = Talk(store, silent)
    answer = talk.ask("Who invented the telescope?", LONG)
    count = talk.readings[0].num_segments
    assert answer.text.startswith(f"Nothing was found. “Long” was read in segments, {count} in all, and none")


def test_where_something_else_may_answer_the_model_is_asked(store: ConversationStore, silent: Engine) -> None:
    talk = Talk(store, silent)
    answer = talk.ask(QUESTION, LONG, SHORT)
    assert talk.readings[0].is_done and "Nothing was found" not in answer.text


@pytest.mark.parametrize("words", ["Summarize this document.", ""])
def test_a_question_about_all_of_it_is_not_looked_up_but_offered_the_other_ways(
    talk: Talk, words: str
) -> None:
    for _ in range(3):
        talk.ask("Hello owl " * 20)  # what summarizing would help against
    question = talk.say(words, LONG)
    with pytest.raises(AdmissionError, match="Looking up finds passages") as caught:
        talk.answer(question, LOOKED_UP)
    segments, look_up = caught.value.choices
    (document,) = question.attachments
    keys = (attachment_key(document.id),)
    assert isinstance(segments, InSegments) and segments.keys == keys and segments.num_segments >= 3
    assert look_up == LookUp(keys)
    assert talk.store.conversation(talk.id).leaf_id == question.id
    answer = talk.answer(question, dataclasses.replace(LOOKED_UP, looks_up_anyway=True))
    assert answer.state is MessageState.COMPLETE


def test_a_document_that_fits_is_offered_whole_where_it_was_to_be_looked_up(talk: Talk) -> None:
    question = talk.say("Summarize this document.", SHORT)
    (document,) = question.attachments
    talk.leaf = question
    change = read_by(talk.context, attachment_key(document.id), DocumentWay.LOOK_UP)
    talk.store.change_context(talk.id, change)
    with pytest.raises(AdmissionError) as caught:
        talk.answer(question)
    assert isinstance(caught.value.choices[0], ReadWhole)


def test_notes_for_a_question_about_all_of_it_may_answer_a_later_one_about_all_of_it(talk: Talk) -> None:
    talk.ask("Summarize this document.", LONG)
    assert talk.ask("Comment on this document.").state is MessageState.COMPLETE


def test_notes_for_another_question_do_not_answer_one_about_all_of_it(talk: Talk) -> None:
    talk.ask(QUESTION, LONG)
    with pytest.raises(AdmissionError) as caught:
        talk.ask("Summarize this document.")
    assert {type(each) for each in caught.value.choices} == {InSegments, LookUp}
    assert talk.ask("And?").state is MessageState.COMPLETE


def test_a_document_is_asked_about_after_its_turn_has_left_the_context(talk: Talk) -> None:
    talk.ask(QUESTION, LONG)
    while not talk.context.left_out_turns:
        talk.ask("weather harvest " * 30)
    assert talk.context.turns[0].state is SpanState.DROPPED
    answer = talk.ask("Which voles does the barn owl hunt?")
    assert any("barn owl" in LONG.text[source.start : source.stop] for source in answer.sources)


def test_what_it_waited_for_counts_to_the_first_token(talk: Talk) -> None:
    answer = talk.ask(QUESTION, LONG)
    stages = {event.stage for event in talk.events if isinstance(event, SegmentProgress)}
    assert stages >= {SegmentStage.SPLITTING, SegmentStage.READING}
    last = max(at for at, event in enumerate(talk.events) if isinstance(event, SegmentProgress))
    assert last < min(at for at, event in enumerate(talk.events) if isinstance(event, Token))
    assert stats_of(answer).ttft_s > stats_of(talk.ask("And?")).ttft_s


def test_what_is_held_of_segments_is_not_told_as_what_the_conversation_holds(talk: Talk) -> None:
    talk.ask(QUESTION, LONG)
    last = max(n for n, event in enumerate(talk.events) if isinstance(event, SegmentProgress))
    told = [n for n, event in enumerate(talk.events) if isinstance(event, CacheChanged)]
    assert told and min(told) > last


def test_each_file_of_a_folder_has_a_reading_and_only_those_with_passages_are_read(talk: Talk) -> None:
    words = "The lighthouse keeper counts ships at night."
    folder = [
        Document(f"src/{number}.py", "", "code", f"Line {number} tells of rain.") for number in range(60)
    ]
    folder[33] = dataclasses.replace(folder[33], text=words)
    settings = dataclasses.replace(LOOKED_UP, max_context=2000)
    question = talk.say("Who counts ships at night?", *folder)
    for attachment in question.attachments:
        talk.store.change_context(
            talk.id, read_by(talk.context, attachment_key(attachment.id), DocumentWay.LOOK_UP)
        )
    answer = talk.answer(question, settings)
    assert len(talk.readings) == 60 and all(each.is_done for each in talk.readings)
    (source,) = answer.sources
    assert (source.number, source.attachment_id) == (1, question.attachments[33].id)
    asked = talk.context.messages[0]
    assert sum(document.key.startswith("r") for document in asked.documents) == 1
    assert f"[1] {words}" in asked.content
    again = talk.ask("And who counts the ships of the lighthouse?", settings=settings)
    assert [each.number for each in again.sources if each.kind is SourceKind.LOOKED_AT] == [2]
