"""Documents that are read in parts, with tiny models that write whatever they write."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from app.chat import ChatService, ReplyEnded, ReplySettings
from app.chat import ReplyEvent as ChatEvent
from app.document_prompt import chat_message, document_passage
from app.documents.document import Document
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import LedgerRows
from app.profiles import DocumentMode, Overflow
from app.segments.progress import SegmentEvent, SegmentProgress
from app.segments.prompts import notes_text
from app.segments.reader import SegmentReader
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.admission import AdmissionError
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.events import CacheChanged, Finished, GenerationStats, PrefillProgress, StopReason, Token
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams
from tests.engine.folders import write_folder

LIMIT = 600
"""Tokens of the context; a token is a word here."""
KV = KVSpec.parse("8; page=64")
SHAPE = {"max_position_embeddings": 4096, "num_hidden_layers": 1}
CONVERSATION = 5


def loaded(folder: Path, backend: Backend) -> Engine:
    engine = Engine(backend)
    engine.load(folder, KV, cancel=CancelToken(), on_progress=lambda progress: None)
    return engine


def write_word_folder(
    folder: Path, name: str, changed: Callable[[mx.array], mx.array], **config: Any
) -> Path:
    """Write a model of random weights, one of them changed, whose tokens are words; it knows none of ours."""
    write_folder(folder, bits=None, **SHAPE, **config)
    words = Tokenizer(WordLevel({"<unk>": 0, "<end>": 256} | {f"w{id}": id for id in range(1, 256)}, "<unk>"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>").save_pretrained(folder)
    file = folder / "model.safetensors"
    weights = dict(mx.load(str(file)))
    weights[name] = changed(weights[name])
    mx.save_safetensors(str(file), weights, {"format": "mlx"})
    return folder


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    """A model that never ends by itself: its end token is as likely as none."""
    folder = tmp_path_factory.mktemp("talking")
    not_the_end = mx.arange(257)[:, None] != 256
    return loaded(
        write_word_folder(folder, "model.embed_tokens.weight", lambda weight: weight * not_the_end), backend
    )


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    """A model that ends whatever it is to write: all tokens are equally likely, and the first is taken."""
    folder = tmp_path_factory.mktemp("silent")
    return loaded(write_word_folder(folder, "model.norm.weight", mx.zeros_like, eos_token_id=0), backend)


def paper(title: str, num_sentences: int) -> Document:
    text = " ".join(f"Sentence {number} of {title} tells about an owl." for number in range(num_sentences))
    return Document(title=title, source=f"/tmp/{title}", kind="text", text=text)


LONG, SHORT = paper("Long", 120), paper("Short", 5)


def user(text: str, *documents: Document) -> ChatMessage:
    return chat_message("user", text, [document_passage(document) for document in documents])


def request(*messages: ChatMessage, **changes: object) -> GenerationRequest:
    sampling = SamplingParams(temperature=0, max_tokens=20, repetition_penalty=1)
    asked = GenerationRequest(messages, sampling, KV, LIMIT, CONVERSATION)
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


def read(
    engine: Engine, asked: GenerationRequest, *, reader: SegmentReader | None = None
) -> list[SegmentEvent]:
    reader = reader or SegmentReader(engine)
    return list(reader.reply(asked, DocumentMode.SEGMENTS, CancelToken()))


def parts(events: Sequence[SegmentEvent]) -> list[tuple[int, int]]:
    """Return the parts that were begun, of how many."""
    begun = [(event.part, event.total) for event in events if isinstance(event, SegmentProgress)
             and event.part and not event.is_joining and not event.total_tokens]  # fmt: skip
    assert begun == [(number, begun[0][1]) for number in range(1, len(begun) + 1)] if begun else True
    return begun


def stats_of(events: Sequence[SegmentEvent]) -> GenerationStats:
    assert isinstance(events[-1], Finished)
    return events[-1].stats


def written(events: Sequence[SegmentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Token))


def test_a_document_that_fits_is_read_whole(talking: Engine) -> None:
    asked = request(user("What hunts?", SHORT))
    events = read(talking, asked)
    assert not any(isinstance(event, SegmentProgress) for event in events)
    assert stats_of(events).segments == 0
    assert stats_of(events).prompt_tokens == talking.measure(asked).num_tokens


def test_without_the_mode_a_document_that_does_not_fit_is_refused(talking: Engine) -> None:
    with pytest.raises(AdmissionError):
        SegmentReader(talking).reply(request(user("What?", LONG)), DocumentMode.WHOLE, CancelToken())


@pytest.fixture(scope="module")
def long_reply(talking: Engine) -> list[SegmentEvent]:
    """What happens when a model is asked about a document that does not fit whole."""
    return read(talking, request(user("What hunts?", LONG)))


def test_a_long_document_is_read_in_parts_and_then_answered(long_reply: list[SegmentEvent]) -> None:
    begun = parts(long_reply)
    assert len(begun) == begun[0][1] >= 3
    stats = stats_of(long_reply)
    assert stats.segments == len(begun)
    assert stats.completion_tokens == 20
    assert written(long_reply)
    assert stats.prompt_tokens + 20 <= LIMIT
    progress = [event for event in long_reply if isinstance(event, SegmentProgress)]
    assert progress[1].words == f"Reading part 1 of {len(begun)}"
    assert max(event.done_tokens for event in progress) <= LIMIT


def test_only_the_answer_s_words_are_told(long_reply: list[SegmentEvent]) -> None:
    last_progress = max(at for at, event in enumerate(long_reply) if isinstance(event, SegmentProgress))
    first_token = min(at for at, event in enumerate(long_reply) if isinstance(event, Token))
    assert first_token > last_progress
    assert [type(event) for event in long_reply].count(Finished) == 1


def test_keys_and_values_of_one_part_at_a_time_are_held(
    talking: Engine, long_reply: list[SegmentEvent]
) -> None:
    held = [event.usage.num_tokens for event in long_reply if isinstance(event, CacheChanged)]
    assert max(held) <= LIMIT < talking.measure(request(user("What hunts?", LONG))).num_tokens


def test_the_answer_is_written_from_the_notes(talking: Engine, long_reply: list[SegmentEvent]) -> None:
    """Its prompt is as long as one with a note on each part, of the length that notes have here."""
    note = "word " * (LIMIT // 10)
    notes = "\n\n".join(f"Part {number}: {note}" for number, _ in parts(long_reply))
    text = notes_text("Long", len(parts(long_reply)), notes)
    expected = talking.measure(request(ChatMessage("user", f"{text}\n\nWhat hunts?"))).num_tokens
    assert stats_of(long_reply).prompt_tokens == expected


def test_the_conversation_s_own_cache_stays_held(talking: Engine) -> None:
    first = request(user("What hunts? " * 60))
    answer = written(list(talking.generate(first, CancelToken())))
    read(talking, request(user("And what does this say?", LONG), conversation_id=6))
    follow_up = request(*first.messages, ChatMessage("assistant", answer), user("And what sleeps?"))
    stats = stats_of(list(talking.generate(follow_up, CancelToken())))
    assert stats.reused_tokens > 120


def test_the_same_question_again_does_not_read_the_parts_again(talking: Engine) -> None:
    reader, asked = SegmentReader(talking), request(user("What hunts?", LONG))
    first = read(talking, asked, reader=reader)
    again = read(talking, asked, reader=reader)
    assert parts(again) == parts(first)
    assert not [event for event in again if isinstance(event, SegmentProgress) and event.total_tokens]
    assert written(again) == written(first)
    other = read(talking, request(user("What sleeps?", LONG)), reader=reader)
    assert [event for event in other if isinstance(event, SegmentProgress) and event.total_tokens]


def test_notes_that_are_too_long_together_are_made_shorter(talking: Engine) -> None:
    events = read(talking, request(user("What hunts?", paper("Longer", 400))))
    assert isinstance(events[0], SegmentProgress) and events[0].is_splitting
    assert events[0].words.startswith("Cutting “") and events[0].share == 0
    joining = [event for event in events if isinstance(event, SegmentProgress) and event.is_joining]
    assert joining
    assert {event.words for event in joining} == {"Putting the notes together"}
    assert stats_of(events).prompt_tokens + 20 <= LIMIT
    assert stats_of(events).stop_reason is not StopReason.STOPPED


def test_a_short_document_beside_a_long_one_is_read_whole(talking: Engine) -> None:
    events = read(talking, request(user("What hunts?", SHORT, LONG)))
    assert {event.title for event in events if isinstance(event, SegmentProgress)} == {"Long"}


def test_documents_that_are_too_long_together_are_all_read_in_parts(talking: Engine) -> None:
    events = read(talking, request(user("What hunts?", LONG, paper("Other", 110))))
    assert {event.title for event in events if isinstance(event, SegmentProgress)} == {"Long", "Other"}
    assert stats_of(events).segments == parts(events)[-1][1]


def test_a_later_question_is_answered_with_an_earlier_message_s_document(talking: Engine) -> None:
    history = user("What hunts?", LONG), ChatMessage("assistant", "An owl.")
    events = read(talking, request(*history, user("And what sleeps?")))
    assert len(parts(events)) >= 3
    assert written(events)


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.75, 1])
def test_a_stop_ends_it_at_any_point(talking: Engine, long_reply: list[SegmentEvent], share: float) -> None:
    """At these shares of what happens up to the first word of the answer."""
    cancel, events = CancelToken(), []
    after = int(share * [isinstance(event, Token) for event in long_reply].index(True))
    reader = SegmentReader(talking)
    for event in reader.reply(request(user("What hunts?", LONG)), DocumentMode.SEGMENTS, cancel):
        if len(events) == after:
            cancel.cancel()
        events.append(event)
    assert stats_of(events).stop_reason is StopReason.STOPPED
    following = events[after + 1 :]
    assert not [event for event in following if isinstance(event, SegmentProgress | PrefillProgress)]
    assert stats_of(events).segments <= len(parts(events))
    assert written(events) == written(long_reply)[: len(written(events))]


def test_a_reading_that_is_dropped_half_way_holds_nothing(talking: Engine) -> None:
    events = SegmentReader(talking).reply(
        request(user("What hunts?", LONG)), DocumentMode.SEGMENTS, CancelToken()
    )
    for event in events:
        if isinstance(event, SegmentProgress) and event.part == 2:
            break
    assert talking.held() is not None
    events.close()  # type: ignore[attr-defined]
    assert talking.held() is None


def test_where_no_part_says_anything_the_answer_says_that_and_invents_nothing(silent: Engine) -> None:
    events = read(silent, request(user("What hunts?", LONG)))
    number = len(parts(events))
    assert written(events).startswith(f"Nothing was found: “Long” had to be read in parts, {number} in all,")
    assert stats_of(events).completion_tokens == 0
    assert stats_of(events).segments == number
    assert stats_of(events).stop_reason is StopReason.END


def test_where_no_part_says_anything_the_rest_may_still_answer(silent: Engine) -> None:
    for messages in (
        [user("What hunts?", SHORT, LONG)],
        [user("Hello"), ChatMessage("assistant", "I am here."), user("What hunts?", LONG)],
    ):
        events = read(silent, request(*messages))
        assert "Nothing was found" not in written(events)
        assert stats_of(events).segments >= 3


def test_a_context_without_room_for_parts_is_refused_as_before(talking: Engine) -> None:
    asked = request(user("What hunts?", LONG), max_context=200)
    with pytest.raises(AdmissionError) as caught:
        SegmentReader(talking).reply(asked, DocumentMode.SEGMENTS, CancelToken())
    assert "context is set to 200" in str(caught.value)


def test_a_conversation_that_is_too_long_without_documents_is_refused(talking: Engine) -> None:
    with pytest.raises(AdmissionError):
        SegmentReader(talking).reply(
            request(user("What hunts? " * 400)), DocumentMode.SEGMENTS, CancelToken()
        )


def test_a_document_without_a_question_is_read_too(talking: Engine) -> None:
    assert written(read(talking, request(user("", LONG))))


# In a conversation.


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


SETTINGS = ReplySettings(
    SamplingParams(temperature=0, max_tokens=20, repetition_penalty=1),
    KV,
    "",
    LIMIT,
    document_mode=DocumentMode.SEGMENTS,
)


def asked(store: ConversationStore, text: str, *documents: Document, after: Message | None = None) -> Message:
    conversation_id = after.conversation_id if after else store.create_conversation().id
    attached = [store.add_attachment(conversation_id, document).id for document in documents]
    return store.add_user_message(conversation_id, after.id if after else None, text, attached)


def answered(
    store: ConversationStore, engine: Engine, question: Message, settings: ReplySettings = SETTINGS
) -> tuple[Message, list[ChatEvent]]:
    events = list(
        ChatService(store, engine).reply(question.conversation_id, question.id, settings, CancelToken())
    )
    assert isinstance(events[-1], ReplyEnded)
    return store.path(events[-1].message.id)[-1], events


def test_a_reply_says_in_how_many_parts_its_document_was_read(
    store: ConversationStore, talking: Engine
) -> None:
    row, events = answered(store, talking, asked(store, "What hunts?", LONG))
    total = max(event.total for event in events if isinstance(event, SegmentProgress))
    assert row.state is MessageState.COMPLETE
    assert row.stats is not None and row.stats.segments == total >= 3
    assert row.text == "".join(event.text for event in events if isinstance(event, Token))


def test_a_later_reply_can_be_asked_about_the_same_document(
    store: ConversationStore, talking: Engine
) -> None:
    first, _ = answered(store, talking, asked(store, "What hunts?", LONG))
    row, _ = answered(store, talking, asked(store, "What sleeps?", after=first))
    assert row.stats is not None and row.stats.segments >= 3


def test_a_reply_that_is_stopped_while_parts_are_read_is_a_stopped_one(
    store: ConversationStore, talking: Engine
) -> None:
    cancel, question = CancelToken(), asked(store, "What hunts?", LONG)
    for event in ChatService(store, talking).reply(question.conversation_id, question.id, SETTINGS, cancel):
        if isinstance(event, SegmentProgress) and event.part == 2:
            cancel.cancel()
    assert isinstance(event, ReplyEnded)
    assert event.message.state is MessageState.STOPPED
    assert event.message.text == ""


def test_old_turns_are_not_left_out_for_a_document_that_is_read_in_parts(
    store: ConversationStore, talking: Engine
) -> None:
    settings = dataclasses.replace(SETTINGS, overflow=Overflow.DROP)
    first, _ = answered(store, talking, asked(store, "Hello?"), settings)
    row, _ = answered(store, talking, asked(store, "What hunts?", LONG, after=first), settings)
    assert row.stats is not None and (row.stats.left_out_turns, row.stats.segments > 0) == (0, True)
    assert store.ledger(first.conversation_id) == LedgerRows()


@pytest.mark.parametrize("overflow", [Overflow.DROP, Overflow.SUMMARIZE])
def test_a_document_that_is_read_in_parts_stays_while_turns_behind_it_go(
    store: ConversationStore, talking: Engine, overflow: Overflow
) -> None:
    settings = dataclasses.replace(SETTINGS, overflow=overflow)
    row, _ = answered(store, talking, asked(store, "owl " * 60, LONG), settings)
    context = ConversationContext.of(store.path(row.id), store.ledger(row.conversation_id))
    while not context.left_out_turns:
        row, _ = answered(store, talking, asked(store, "owl " * 60, after=row), settings)
        context = ConversationContext.of(store.path(row.id), store.ledger(row.conversation_id))
    assert row.stats is not None and row.stats.segments >= 3
    assert context.turns[0].state is SpanState.IN_CONTEXT is not context.turns[1].state
    assert all(LONG.text[:40] not in each.text for each in context.rows.summaries)
