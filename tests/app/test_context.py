"""What of a conversation the model reads, and that it is remembered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from app.chat import ChatService, ReplyEnded, ReplyEvent, ReplySettings, conversation_context
from app.profiles import Overflow
from app.store.conversations import ConversationStore
from app.store.records import Message
from engine.admission import AdmissionError, DropTurns, LongerContext
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import GenerationStats, Token, TurnsLeftOut
from engine.guard import Guard, GuardStep
from tests.engine.small_engine import FOUR, SHORT, guard_at, small_engine, write_small_model

DROP = ReplySettings(SHORT, FOUR, "Be brief.", max_context=600, overflow=Overflow.DROP)
ASK = dataclasses.replace(DROP, overflow=Overflow.ASK)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def guard() -> Guard:
    return guard_at(GuardStep.NONE)


@pytest.fixture
def engine(path: Path, backend: Backend, guard: Guard) -> Engine:
    return small_engine(path, backend, guard)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


class Talk:
    """A conversation that is held turn by turn."""

    def __init__(self, store: ConversationStore, engine: Engine) -> None:
        self._store = store
        self._service = ChatService(store, engine)
        self.id = store.create_conversation().id
        self.leaf: Message | None = None

    def ask(
        self,
        text: str,
        settings: ReplySettings,
        on_event: Callable[[ReplyEvent], None] = lambda event: None,
    ) -> GenerationStats:
        asked = self._store.add_user_message(self.id, self.leaf.id if self.leaf else None, text, [])
        self.leaf = asked
        for event in self._service.reply(self.id, asked.id, settings, CancelToken()):
            on_event(event)
        assert isinstance(event, ReplyEnded) and event.message.stats is not None
        self.leaf = event.message
        return event.message.stats

    @property
    def context_from(self) -> int | None:
        return self._store.conversation(self.id).context_from

    @property
    def path(self) -> list[Message]:
        assert self.leaf is not None
        return self._store.path(self.leaf.id)


def test_a_full_context_leaves_the_oldest_turns_out_once_and_reads_only_what_is_new(
    store: ConversationStore, engine: Engine
) -> None:
    talk = Talk(store, engine)
    left_out, reused, froms = [], [], []
    for turn in range(12):
        stats = talk.ask(chr(ord("a") + turn) * 80, DROP)
        assert stats.prompt_tokens + stats.completion_tokens <= 600
        left_out.append(stats.left_out_turns)
        reused.append(stats.prompt_tokens - stats.reused_tokens)
        froms.append(talk.context_from)
    assert left_out == sorted(left_out) and left_out[0] == 0 < left_out[-1]
    # Turns go several at a time, and the replies in between extend the same cache.
    assert all(later - earlier >= 2 for earlier, later in pairwise(sorted(set(left_out))))
    assert max(reused[1:]) < 80 + 60
    path = talk.path
    assert len(path) == 24 and [message.text for message in path][::2] == [c * 80 for c in "abcdefghijkl"]
    assert froms[-1] == path[2 * left_out[-1]].id
    assert None in froms


def test_where_the_user_is_asked_nothing_is_left_out_and_no_reply_begins(
    store: ConversationStore, engine: Engine
) -> None:
    talk = Talk(store, engine)
    with pytest.raises(AdmissionError) as caught:
        for turn in range(12):
            talk.ask(chr(ord("a") + turn) * 80, ASK)
    longer, drop = caught.value.choices
    assert isinstance(longer, LongerContext)
    assert isinstance(drop, DropTurns) and drop.num_turns > 0
    assert talk.context_from is None
    assert talk.leaf is not None and store.conversation(talk.id).leaf_id == talk.leaf.id
    assert talk.path[-1].text == talk.leaf.text
    service = ChatService(store, engine)
    *_, ended = service.reply(talk.id, talk.leaf.id, DROP, CancelToken())
    assert isinstance(ended, ReplyEnded) and ended.message.stats is not None
    assert ended.message.stats.left_out_turns >= drop.num_turns


@pytest.mark.parametrize("killed", [False, True])
def test_turns_that_the_guard_takes_are_remembered_and_no_word_is_lost(
    store: ConversationStore, engine: Engine, guard: Guard, killed: bool
) -> None:
    talk = Talk(store, engine)
    roomy = dataclasses.replace(DROP, max_context=None)
    for letter in "abcdef":
        talk.ask(letter * 80, roomy)
    before = [message.text for message in talk.path]
    gone: list[TurnsLeftOut] = []

    class Killed(BaseException):
        pass

    def press(event: ReplyEvent) -> None:
        if isinstance(event, TurnsLeftOut):
            gone.append(event)
            if killed:
                raise Killed
        if isinstance(event, Token):
            guard.height = GuardStep.TRIM

    if killed:
        with pytest.raises(Killed):
            talk.ask("g" * 80, roomy, press)
    else:
        talk.ask("g" * 80, roomy, press)
    path = talk.path
    assert [message.text for message in path][: len(before)] == before
    assert talk.context_from == path[2 * gone[0].num_turns].id
    guard.height = GuardStep.NONE
    if not killed:
        stats = talk.ask("h" * 80, roomy)
        assert stats.left_out_turns == gone[0].num_turns
        assert stats.prompt_tokens - stats.reused_tokens < 80 + 60


def test_another_branch_is_read_whole(store: ConversationStore, engine: Engine) -> None:
    talk = Talk(store, engine)
    for turn in range(12):
        talk.ask(chr(ord("a") + turn) * 80, DROP)
    assert talk.context_from is not None
    first = talk.path[1]
    branch = store.add_user_message(talk.id, first.id, "And now?", [])
    service = ChatService(store, engine)
    *_, ended = service.reply(talk.id, branch.id, DROP, CancelToken())
    assert isinstance(ended, ReplyEnded) and ended.message.stats is not None
    assert ended.message.stats.left_out_turns == 0


def test_messages_without_words_are_no_part_of_what_is_read(store: ConversationStore, engine: Engine) -> None:
    talk = Talk(store, engine)
    for letter in "abc":
        talk.ask(letter * 20, ASK)
    context = conversation_context(talk.path)
    assert context.first_id is None and context.left_out_turns == 0
    later = context.without(2)
    assert later.first_id == talk.path[4].id and later.left_out_turns == 2
    assert later.without(5).first_id == later.first_id
    assert context.read_from(later.first_id) == later
    assert context.read_from(999) == context
