"""When the engine's thread reads documents ahead, and which; the engine only takes note."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtTest import QSignalSpy

from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.reply_settings import ReplySettings
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.events import GenerationEvent, PrefillProgress
from engine.requests import GenerationRequest
from engine.sampling import SamplingParams
from ui.document_work import DocumentsAhead, DocumentWork, ReadAheadProgress
from ui.engine_signals import EngineSignals
from ui.held_telling import HeldTelling

SETTINGS = ReplySettings(SamplingParams(), DEFAULT_KV, "Be brief.")


class NotingEngine:
    """Takes note of what is to be read ahead, and tells that half of it has been read."""

    def __init__(self) -> None:
        self.loaded: object | None = object()
        self.requests: list[GenerationRequest] = []
        self.error: Exception | None = None

    def read_ahead(self, request: GenerationRequest, cancel: CancelToken) -> Iterator[GenerationEvent]:
        self.requests.append(request)
        yield PrefillProgress(50, 100, 0)
        if self.error is not None:
            raise self.error

    def held(self) -> None:
        """Hold nothing."""


class Bench:
    """The work on such an engine and a real store, with a conversation of one turn and two drafts."""

    def __init__(self, path: Path) -> None:
        self.store = ConversationStore.open(path)
        self.engine = NotingEngine()
        self.told = EngineSignals()
        self.spy = QSignalSpy(self.told.document_progress)
        held = HeldTelling(self.told)
        held.engine = cast(Engine, self.engine)
        self.work = DocumentWork(self.store, cast(Engine, self.engine), self.told, held)
        self.conversation_id = self.store.create_conversation().id
        self.store.add_user_message(self.conversation_id, None, "Hello", [])
        self.first = self._draft("one.txt", "The first text.")
        self.second = self._draft("two.txt", "The second text.")

    def _draft(self, title: str, text: str) -> int:
        return self.store.add_attachment(self.conversation_id, Document(title, "", "text", text)).id

    def ahead(self, *ways: tuple[int, DocumentWay]) -> DocumentsAhead:
        return DocumentsAhead(self.conversation_id, ways, SETTINGS)

    def progress(self) -> list[ReadAheadProgress]:
        return [self.spy.at(number)[1] for number in range(self.spy.count())]

    def read(self) -> str:
        """Read what is wanted; return what the engine was asked to read."""
        self.work.read(CancelToken())
        return "\n".join(message.content for message in self.engine.requests[-1].messages)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "conversations.db")
    yield bench
    bench.store.close()


def test_documents_are_read_behind_the_conversation_in_the_order_of_the_message(bench: Bench) -> None:
    bench.work.want(bench.ahead((bench.second, DocumentWay.WHOLE), (bench.first, DocumentWay.WHOLE)))
    text = bench.read()
    places = [text.index(words) for words in ("Be brief.", "Hello", "The second text.", "The first text.")]
    assert places == sorted(places)
    assert bench.engine.requests[0].conversation_id == bench.conversation_id


def test_a_document_that_is_not_read_whole_is_only_named(bench: Bench) -> None:
    bench.work.want(bench.ahead((bench.first, DocumentWay.SEGMENTS), (bench.second, DocumentWay.WHOLE)))
    text = bench.read()
    assert "one.txt" in text and "The first text." not in text and "The second text." in text


def test_how_far_it_is_and_its_end_are_told(bench: Bench) -> None:
    bench.work.want(bench.ahead((bench.first, DocumentWay.WHOLE)))
    bench.read()
    assert bench.progress() == [
        ReadAheadProgress(50, 100),
        ReadAheadProgress(100, 100, 0.0, is_done=True),
    ]
    assert not bench.work.is_due


def test_what_was_interrupted_is_due_still(bench: Bench) -> None:
    bench.engine.error = Cancelled()
    bench.work.want(bench.ahead((bench.first, DocumentWay.WHOLE)))
    with pytest.raises(Cancelled):
        bench.read()
    assert bench.work.is_due
    bench.engine.error = None
    bench.read()
    assert bench.progress()[-1].is_done


def test_what_does_not_fit_is_told_and_not_tried_again(bench: Bench) -> None:
    bench.engine.error = OctavoError("There is no memory for it now.")
    bench.work.want(bench.ahead((bench.first, DocumentWay.WHOLE)))
    bench.read()
    assert bench.progress()[-1] == ReadAheadProgress(0, 0, error="There is no memory for it now.")
    assert not bench.work.is_due


def test_what_fails_unexpectedly_is_told_and_not_tried_again(bench: Bench) -> None:
    bench.engine.error = RuntimeError("a fault")
    bench.work.want(bench.ahead((bench.first, DocumentWay.WHOLE)))
    with pytest.raises(RuntimeError):
        bench.read()
    assert bench.progress()[-1].error
    assert not bench.work.is_due


def test_nothing_is_read_of_a_document_that_was_taken_away_or_of_a_conversation_that_is_gone(
    bench: Bench,
) -> None:
    bench.work.want(bench.ahead((bench.first, DocumentWay.WHOLE), (bench.second, DocumentWay.WHOLE)))
    bench.store.remove_attachment(bench.second)
    bench.work.read(CancelToken())
    bench.work.want(DocumentsAhead(999, ((bench.first, DocumentWay.WHOLE),), SETTINGS))
    bench.work.read(CancelToken())
    assert bench.engine.requests == []


def test_nothing_is_due_without_a_model_or_a_wish(bench: Bench) -> None:
    assert not bench.work.is_due
    bench.work.want(bench.ahead((bench.first, DocumentWay.WHOLE)))
    bench.engine.loaded = None
    assert not bench.work.is_due
    bench.engine.loaded = object()
    assert bench.work.is_due
    bench.work.want(None)
    assert not bench.work.is_due
