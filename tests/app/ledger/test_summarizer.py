"""Summaries by tiny models that babble, fall silent or have no room, by a script, and by the starter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from app.document_prompt import chat_message, document_passage, summary_passage
from app.documents.document import Document
from app.ledger.progress import SummaryProgress
from app.ledger.records import Summary, SummarySource, SummaryState
from app.ledger.sentences import sentences
from app.ledger.summarizer import OnStop, Summarizer, SummaryEvent
from app.ledger.summary_prompts import summary_instruction
from app.ledger.summary_request import SummaryRequest, most_summary_tokens
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.errors import Cancelled, ModelError
from engine.events import Finished, GenerationEvent, GenerationStats, PrefillProgress, StopReason, Token
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from tests.engine.small_engine import FOUR, SHORT, small_engine, write_small_model

CONVERSATION = 3
QUESTION = "When does the night train to Lisbon leave, and what does a bed in it cost for the two of us?"
ANSWER = (
    "The night train leaves Madrid at 21:43 and is in Lisbon at 7:20. A bed costs 96 euros for each of you. "
    "You have to book it before 12 May. Shall I look for a cheaper seat as well?"
)
TURN = (
    ChatMessage("user", QUESTION, key="m1"),
    ChatMessage("assistant", ANSWER, key="m2"),
)
GOOD = "The night train to Lisbon leaves Madrid at 21:43. A bed costs 96 euros."


def asked(messages: Sequence[ChatMessage] = TURN, **changes: object) -> SummaryRequest:
    source_tokens = sum(len(message.content) for message in messages)
    request = SummaryRequest(tuple(messages), 0, ("m1", "m2"), 1, source_tokens, FOUR, CONVERSATION)
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]


def written(
    engine: Engine,
    request: SummaryRequest,
    cancel: CancelToken | None = None,
    on_stop: OnStop = OnStop.EXTRACT,
    on_event: Callable[[SummaryEvent], None] = lambda event: None,
) -> tuple[Summary, list[SummaryEvent]]:
    """Write a summary; return it with all that was told meanwhile."""
    writing, events = (
        Summarizer(engine).write(request, cancel or CancelToken(), on_stop),
        list[SummaryEvent](),
    )
    while True:
        try:
            events.append(next(writing))
        except StopIteration as end:
            return end.value, events
        on_event(events[-1])


@pytest.fixture(scope="module")
def babbling(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    """A model of random weights that never ends its turn; its tokens are bytes."""
    return small_engine(write_small_model(tmp_path_factory.mktemp("babbling")), backend)


class ScriptedEngine(Engine):
    """The tokenizer and the limits of a tiny model with the words of a script."""

    def __init__(
        self, other: Engine, backend: Backend, *words: str, reason: StopReason = StopReason.END
    ) -> None:
        super().__init__(backend)
        self.loaded = other.loaded
        self.requests: list[GenerationRequest] = []
        self._words, self._reason = words, reason

    def generate(
        self,
        request: GenerationRequest,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[GenerationEvent]:
        self.requests.append(request)
        yield PrefillProgress(40, 100, 40)
        yield PrefillProgress(100, 100, 40)
        reason = self._reason
        for word in self._words:
            if cancel.cancelled:
                reason = StopReason.STOPPED
                break
            yield Token(word, 1)
        yield Finished(GenerationStats.of_nothing(request.kv, reason))


def test_what_the_model_writes_is_the_summary_with_its_name(babbling: Engine, backend: Backend) -> None:
    engine = ScriptedEngine(babbling, backend, "<think>Let me see.</think>", "\n\n", GOOD)
    summary, _ = written(engine, asked(source_tokens=600))
    assert babbling.loaded is not None
    assert summary == Summary(
        0, GOOD, ("m1", "m2"), SummarySource.MODEL, "", babbling.loaded.info.name, 600, len(GOOD),
        SummaryState.PREPARED,
    )  # fmt: skip


def test_the_model_is_asked_beside_the_conversation_for_its_likeliest_words(
    babbling: Engine, backend: Backend
) -> None:
    engine = ScriptedEngine(babbling, backend, GOOD)
    written(engine, asked(source_tokens=600, repetition_penalty=1.1, anyway=True))
    (request,) = engine.requests
    assert request.is_aside and request.anyway and request.conversation_id == CONVERSATION
    assert request.messages[:2] == TURN and request.messages[2].role == "user"
    assert (request.sampling.temperature, request.sampling.repetition_penalty) == (0, 1.1)
    assert request.sampling.max_tokens > 90
    assert (request.kv, request.max_context) == (FOUR, None)


def test_progress_grows_from_nothing_over_reading_to_writing(babbling: Engine, backend: Backend) -> None:
    _, events = written(ScriptedEngine(babbling, backend, *GOOD), asked(source_tokens=600, num_turns=2))
    shares = [event.share for event in events if isinstance(event, SummaryProgress)]
    assert shares[0] == 0.0 and shares == sorted(shares)
    assert 60 / 150 in shares and shares[-1] == (60 + len(GOOD)) / 150
    assert {event.words for event in events if isinstance(event, SummaryProgress)} == {"Summarizing 2 turns"}


def test_half_a_character_in_a_summary_is_replaced_as_nothing_can_write_it(
    babbling: Engine, backend: Backend
) -> None:
    engine = ScriptedEngine(babbling, backend, GOOD, " It is \ud83d there.")
    summary, _ = written(engine, asked(source_tokens=800))
    assert summary.text == f"{GOOD} It is \ufffd there."


def test_a_summary_has_no_more_tokens_than_the_context_leaves_for_it(
    babbling: Engine, backend: Backend
) -> None:
    request = asked(source_tokens=20_000, room_tokens=60)
    summary, _ = written(ScriptedEngine(babbling, backend, f"{GOOD} {GOOD}"), request)
    assert summary.num_tokens <= 60
    assert Summarizer(babbling).extract(request, "").num_tokens <= 60


def test_a_model_that_goes_on_is_stopped_and_its_words_end_with_a_sentence(
    babbling: Engine, backend: Backend
) -> None:
    endless = [*GOOD, *" You have to book the bed before 12 May and then the"]
    engine = ScriptedEngine(babbling, backend, *endless, *("x" for _ in range(9999)))
    summary, events = written(engine, asked(source_tokens=600))
    assert (summary.text, summary.source) == (GOOD, SummarySource.MODEL)
    assert len(events) < 200


def test_a_model_that_goes_round_in_circles_is_not_listened_to_for_long(
    babbling: Engine, backend: Backend
) -> None:
    engine = ScriptedEngine(babbling, backend, *("It is a train. " for _ in range(9999)))
    summary, events = written(engine, asked(source_tokens=20_000))
    assert summary.note.startswith("The model's summary repeated itself") and len(events) < 50


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "The model wrote no summary"),
        (("<think>The train ",), "The model wrote no summary"),
        (tuple(" ".join(str(number) for number in range(99))), "The model did not finish a sentence"),
        (tuple("It is a train. " * 99), "The model's summary repeated itself"),
        (("Der Zug kommt abends aus Spanien an.",), "The model's summary was not about this text"),
    ],
)
def test_an_extract_stands_in_for_what_is_no_summary_and_says_why(
    babbling: Engine, backend: Backend, words: tuple[str, ...], reason: str
) -> None:
    summary, _ = written(ScriptedEngine(babbling, backend, *words), asked(source_tokens=800))
    assert (summary.source, summary.model) == (SummarySource.EXTRACT, "")
    assert summary.note == f"{reason}, so these are sentences of the text itself."
    assert is_of_the_text(summary.text, QUESTION, ANSWER) and 0 < summary.num_tokens <= 120


BIKE = (
    ChatMessage("user", "My dog Bramble was born on 14 May 2019. My sister Anna lives in Lisbon.", key="m1"),
    ChatMessage("assistant", "Your tale of the bicycle has fascinating details.", key="m2"),
)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "Your tale has fascinating details: the sister lives, and the bicycle was born.",
            "The model's summary left out most names, numbers and dates",
        ),
        ("Here is the tale of the bicycle and the sister:", "The model did not finish a sentence"),
    ],
)
def test_an_extract_stands_in_for_a_summary_that_keeps_no_fact_of_the_text(
    babbling: Engine, backend: Backend, words: str, reason: str
) -> None:
    summary, _ = written(ScriptedEngine(babbling, backend, *words), asked(BIKE, source_tokens=600))
    assert summary.note == f"{reason}, so these are sentences of the text itself."
    assert "Bramble was born on 14 May 2019." in summary.text


def test_a_short_summary_of_a_long_text_is_compared_with_an_extract_of_its_length(
    babbling: Engine, backend: Backend
) -> None:
    """One of all the budget would keep every name of the text."""
    words = "Karin Aho of Oslo saw Rex in 1931."
    names = " ".join(
        f"Then there was {chr(65 + n)}{chr(97 + n)}mo of {chr(75 - n)}uro in {1900 + n}." for n in range(9)
    )
    text = ChatMessage("user", f"In Oslo lives Karin Aho, who saw Rex in 1931. {names}", key="m1")
    summary, _ = written(ScriptedEngine(babbling, backend, words), asked([text], source_tokens=9_000))
    assert (summary.text, summary.source) == (words, SummarySource.MODEL)


def test_a_summary_of_a_summary_that_forgets_the_earlier_one_is_an_extract_of_both(
    babbling: Engine, backend: Backend
) -> None:
    earlier = summary_passage(
        "Summary", "the earlier conversation", "User: My budget is 730 euros in Lisbon.", "s1"
    )
    messages = (
        chat_message("user", "I leave for Rome with Paul on 3 June 2021.", [earlier], "m3"),
        ChatMessage("assistant", "Good.", key="m4"),
    )
    newest = "The user leaves for Rome with Paul on 3 June 2021."
    request = asked(messages, source_tokens=700, num_turns=5)
    summary, _ = written(ScriptedEngine(babbling, backend, newest), request)
    assert summary.note.startswith("The model's summary left out what was summarized before, so")
    assert "730 euros in Lisbon" in summary.text and "3 June 2021" in summary.text


def is_of_the_text(extract: str, *texts: str) -> bool:
    said = {sentence for text in texts for sentence in sentences(text)}
    lines = (line.partition(": ")[2] for line in extract.splitlines())
    return all(sentence in {*said, "…"} for line in lines for sentence in sentences(line))


def test_a_model_that_babbles_is_replaced_by_an_extract_within_its_budget(babbling: Engine) -> None:
    summary, events = written(babbling, asked(source_tokens=800))
    assert summary.source is SummarySource.EXTRACT and summary.note.startswith("The model")
    assert is_of_the_text(summary.text, QUESTION, ANSWER) and 0 < summary.num_tokens <= 120
    assert sum(isinstance(event, SummaryProgress) for event in events) > 2


def test_a_conversation_that_has_no_room_for_the_instruction_gets_an_extract(babbling: Engine) -> None:
    assert babbling.loaded is not None
    full = ChatMessage("user", "word " * (babbling.loaded.info.context_tokens // 5))
    summary, _ = written(babbling, asked([full, *TURN[1:]], source_tokens=800))
    assert summary.source is SummarySource.EXTRACT
    assert summary.note.startswith("There was no room to have the model write a summary, so")


def test_a_summary_that_the_user_stops_is_an_extract(babbling: Engine) -> None:
    cancel = CancelToken()
    summary, _ = written(babbling, asked(), cancel, on_event=lambda event: cancel.cancel())
    assert summary.source is SummarySource.EXTRACT and summary.text
    assert summary.note == "The summary was stopped, so these are sentences of the text itself."


@pytest.mark.parametrize("num_events", [1, 4])
def test_a_summary_that_has_to_wait_leaves_nothing(babbling: Engine, num_events: int) -> None:
    """Before the engine was asked, and while it writes."""
    cancel, seen = CancelToken(), list[SummaryEvent]()

    def stop(event: SummaryEvent) -> None:
        seen.append(event)
        if len(seen) == num_events:
            cancel.cancel()

    with pytest.raises(Cancelled):
        written(babbling, asked(), cancel, OnStop.RAISE, stop)


def test_only_the_instruction_is_read_and_the_conversation_goes_on_as_if_it_had_not_been(
    babbling: Engine,
) -> None:
    conversation = (*TURN, ChatMessage("user", "And from Porto?", key="m3"))
    request = GenerationRequest(conversation, SHORT, FOUR, None, 8, answer_key="m4")
    before = stats_of(babbling.generate(request, CancelToken()))
    _, events = written(babbling, asked(source_tokens=800, conversation_id=8))
    (work_tokens,) = {event.most_tokens for event in events[1:] if isinstance(event, SummaryProgress)}
    instruction = summary_instruction(asked(), 120)
    assert len(instruction) <= work_tokens - 120 <= len(f"\n\nUser: {instruction}\n\nAssistant:")
    after = stats_of(babbling.generate(dataclasses.replace(request, is_aside=True), CancelToken()))
    assert after.reused_tokens == before.prompt_tokens - 1


def stats_of(events: Iterable[GenerationEvent]) -> GenerationStats:
    (stats,) = [event.stats for event in events if isinstance(event, Finished)]
    return stats


def test_an_extract_can_be_had_without_asking(babbling: Engine) -> None:
    summary = Summarizer(babbling).extract(asked(source_tokens=800), "Memory was short.")
    assert (summary.source, summary.note, summary.state) == (
        SummarySource.EXTRACT,
        "Memory was short.",
        SummaryState.PREPARED,
    )
    assert is_of_the_text(summary.text, QUESTION, ANSWER) and summary.covers == ("m1", "m2")


def test_without_a_model_there_is_no_summary(backend: Backend) -> None:
    with pytest.raises(ModelError, match="No model is loaded"):
        written(Engine(backend), asked())


# The starter.


@pytest.fixture(scope="module")
def starter(starter_gguf: Path, backend: Backend) -> Engine:
    engine = Engine(backend)
    kv = KVSpec.parse("8")
    engine.load(starter_gguf, kv, cancel=CancelToken(), on_progress=lambda progress: None)
    return engine


@pytest.mark.slow
def test_the_starter_summarizes_a_turn_and_a_document_within_15_percent(starter: Engine) -> None:
    assert starter.loaded is not None
    count = starter.loaded.counter.count
    text = (Path(__file__).parents[3] / "LICENSE").read_text("utf-8")[1000:5000]
    licence = Document(title="LICENSE", source="/tmp/LICENSE", kind="text", text=text)
    message = chat_message("user", "", [document_passage(licence, "a1")], "m1")
    requests = (
        asked(source_tokens=count(QUESTION) + count(ANSWER), kv=KVSpec.parse("8")),
        SummaryRequest((message,), 0, ("a1",), 0, count(text), KVSpec.parse("8"), CONVERSATION),
    )
    for request in requests:
        summary, _ = written(starter, request)
        assert summary.text and summary.num_tokens == count(summary.text)
        assert summary.num_tokens <= most_summary_tokens(request.source_tokens)
        assert bool(summary.model) == (summary.source is SummarySource.MODEL) == (not summary.note)
        assert "<think>" not in summary.text
