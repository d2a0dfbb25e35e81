"""What the engine's thread works with: all of it is made on that thread, and stays there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.chat import ChatService
from app.model_speeds import ModelSpeeds
from app.store.conversations import ConversationStore
from app.store.prefixes.service import PrefixService
from engine.engine import Engine
from engine.kv.precision import KVSpec
from ui.context_work import ContextWork
from ui.document_work import DocumentWork
from ui.engine_signals import EngineSignals
from ui.held_telling import HeldTelling
from ui.model_work import ModelWork
from ui.prefix_work import PrefixWork
from ui.quiet_work import QuietWork
from ui.reply_work import GatheredText, ReplyWork
from ui.request_queue import RequestQueue
from ui.speed_work import SpeedWork


@dataclass(frozen=True)
class ThreadLinks:
    """What joins the works to the window's thread.

    Attributes:
        told: what is told.
        text: where the text of a reply is gathered.
        requests: what is asked for.
        wanted_kv: tells the precision that the user wants now.
        open_id: tells which conversation is open, None before one is.
    """

    told: EngineSignals
    text: GatheredText
    requests: RequestQueue
    wanted_kv: Callable[[], KVSpec]
    open_id: Callable[[], int | None]


class EngineWorks:
    """The engine, a connection to the store, and all that is done with both, by subject."""

    def __init__(
        self,
        engine: Engine,
        store: ConversationStore,
        stored: PrefixService | None,
        held: HeldTelling,
        links: ThreadLinks,
    ) -> None:
        told = links.told
        held.engine = engine
        speeds = ModelSpeeds(engine, store)
        chat = ChatService(store, engine, speeds)
        self.engine = engine
        self.store = store
        self.replies = ReplyWork(chat, told, held, links.text, links.wanted_kv)
        self.context = ContextWork(chat, store, engine, told, held)
        self.models = ModelWork(engine, stored, told)
        self.prefixes = PrefixWork(engine, held, links.open_id)
        self.documents = DocumentWork(store, engine, told, held)
        self.speeds = SpeedWork(speeds, engine, told, links.wanted_kv)
        self.quiet = QuietWork(links.requests, self.prefixes, self.speeds, self.documents, self.context)
