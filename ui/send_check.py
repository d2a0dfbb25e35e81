"""Whether what is written may be sent now, and why not."""

from __future__ import annotations

import dataclasses

from app.store.records import Message
from engine.kv.precision import KV_BITS, KVSpec
from ui.attachments import DraftAttachments
from ui.context_budget import ContextBudget, ContextUse, surplus_sentence
from ui.conversation_session import ConversationSession
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState
from ui.profiles.current import CurrentProfile
from ui.reply_stream import ReplyStream
from ui.stored_settings import StoredSettings

_LOWEST_KV = KVSpec.parse(f"{min(KV_BITS)}; hot=0, warm=0")


class SendCheck:
    """Looks at the engine, the open conversation and the context; says in a sentence what is in the way."""

    def __init__(
        self,
        engine: EngineThread,
        settings: StoredSettings,
        profile: CurrentProfile,
        session: ConversationSession,
        stream: ReplyStream,
        attachments: DraftAttachments,
        budget: ContextBudget,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._profile = profile
        self._session = session
        self._stream = stream
        self._attachments = attachments
        self._budget = budget

    def engine_refusal(self) -> str:
        """Return why nothing can be answered now; empty when it can."""
        if self._stream.conversation_id is not None:
            return "A reply is being written. Stop it, or wait until it is finished."
        if self._engine.state is EngineState.LOADING:
            return "The model is still loading."
        if self._engine.loaded is None:
            return "Choose a model first."
        return ""

    def refusal(self, text: str) -> str:
        """Return why `text` cannot be sent now; empty when it can."""
        if not text and not self._attachments.attachments:
            return "Write something first."
        if self._attachments.is_reading:
            return "A document is still being read."
        return self.engine_refusal() or self.surplus(self.use(text))

    def use(self, text: str) -> ContextUse:
        """Return what `text` would take of the context, with its documents and the conversation before it."""
        return self._budget.use(
            self._path(),
            self._settings.value.system_prompt,
            text,
            self._attachments.attachments,
            self._engine.loaded,
            self._profile.value.kv,
        )

    def surplus(self, use: ContextUse) -> str:
        """Return by how much that is too long and what helps; empty when it fits."""
        loaded = self._engine.loaded
        most_tokens = loaded.plan_at(_LOWEST_KV).fitting_tokens if loaded is not None else 0
        return surplus_sentence(use, bool(self._attachments.attachments), most_tokens)

    def _path(self) -> list[Message]:
        """Return the open path with what is written of a reply so far."""
        path, writing = self._session.messages, self._stream.message
        if writing is not None and path and path[-1].id == writing.id:
            return [*path[:-1], dataclasses.replace(writing, text=self._stream.text)]
        return path
