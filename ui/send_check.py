"""Whether what is written may be sent now, why not, and what would fit instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from app.profiles import DocumentMode, Overflow, Profile
from app.store.records import Message
from engine.admission import (
    AdmissionError,
    Choice,
    DropTurns,
    InSegments,
    longer_context,
    num_segments,
)
from engine.budget import kv_nbytes
from engine.engine import LoadedModel
from engine.headroom import more_memory
from engine.planned_room import limit_of_plan, more_room, room_words
from engine.remedies import as_sentence, remedies
from engine.reply_admission import MIN_ANSWER_TOKENS
from ui.attachments import DraftAttachments
from ui.context_budget import ContextBudget, ContextUse
from ui.conversation_session import ConversationSession
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState
from ui.profiles.current import CurrentProfile
from ui.reply_stream import ReplyStream
from ui.stored_settings import StoredSettings
from ui.surplus import surplus_sentence


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
        """Return why `text` cannot be sent now, its length aside; empty when it can."""
        if not text and not self._attachments.attachments:
            return "Write something first."
        if self._attachments.is_reading:
            return "A document is still being read."
        if failed := self._attachments.failed_title:
            return f"{failed} could not be attached. Remove it first."
        return self.engine_refusal()

    def use(self, text: str) -> ContextUse:
        """Return what `text` would take of the context, with its documents and the conversation before it."""
        return self._use(text, self._profile.value)

    def surplus(self, text: str, use: ContextUse) -> str:
        """Return by how much `text` is too long and what helps; empty when it fits.

        While a reply is being written and nothing else is, its growing is no matter of the next message.
        """
        admission = self.admission(text) if use.surplus_tokens else None
        is_next = bool(text or self._attachments.attachments)
        return str(admission) if admission is not None and (is_next or not self._session.is_streaming) else ""

    def admission(self, text: str) -> AdmissionError | None:
        """Return what would be refused for its length, with what would fit; None where it fits."""
        use, loaded = self.use(text), self._engine.loaded
        if loaded is None or not use.surplus_tokens or use.used_tokens is None or use.limit_tokens is None:
            return None
        profile, needed = self._profile.value, (use.read_tokens or 0) + MIN_ANSWER_TOKENS
        plan = loaded.plan_at(profile.kv)
        fits = needed <= plan.fitting_tokens  # a longer context is all that it takes
        is_memory = not fits and needed <= min(loaded.info.context_tokens, profile.max_context or needed)
        limit = limit_of_plan(loaded, profile.kv) if is_memory else None
        choices = tuple(self._choices(text, use, needed, loaded))
        return AdmissionError(
            surplus_sentence(
                use,
                bool(self._attachments.attachments),
                choices,
                room_words(loaded, profile.kv, needed) if is_memory else "",
                more_memory(limit) if is_memory else "",
            ),
            needed_nbytes=kv_nbytes(loaded.info, loaded.backend, profile.kv, needed),
            available_nbytes=plan.kv_budget_nbytes,
            choices=choices,
            can_override=not fits and needed <= loaded.info.context_tokens,
            limit_nbytes=limit,
        )

    def whole_refusal(self) -> str:
        """Return why the model cannot read all of the conversation again; empty when it can."""
        path, profile = self._session.messages, self._profile.value
        use = self._use("", profile, path)
        whole = self._use("", dataclasses.replace(profile, overflow=Overflow.ASK), path)
        if whole.used_tokens is None or whole.limit_tokens is None:
            return "" if self._engine.loaded is not None else "Choose a model first."
        if not use.left_out_turns and not use.surplus_tokens:
            return ""
        loaded = self._engine.loaded
        assert loaded is not None
        ways = remedies(self._more_room(whole.used_tokens + MIN_ANSWER_TOKENS, loaded))
        remedy = f" {as_sentence(ways)}" if ways else ""
        return (
            f"All of it has {whole.used_tokens:,} tokens, and the context holds {whole.limit_tokens:,} with "
            f"the answer.{remedy}"
        )

    def _choices(
        self, text: str, use: ContextUse, needed_tokens: int, loaded: LoadedModel
    ) -> Iterator[Choice]:
        """Yield what would fit, the mildest first."""
        profile, limit = self._profile.value, use.limit_tokens or 0
        yield from self._more_room(needed_tokens, loaded)
        own = (use.text_tokens or 0) + (use.template_tokens or 0)
        segments = num_segments(use.attachment_tokens or 0, own, limit)
        in_parts = self._use(text, dataclasses.replace(profile, document_mode=DocumentMode.SEGMENTS))
        if segments and not in_parts.surplus_tokens:
            yield InSegments(segments, use.attachment_tokens or 0)
        dropped = self._use(text, dataclasses.replace(profile, overflow=Overflow.DROP))
        if dropped.left_out_turns and not dropped.surplus_tokens:
            yield DropTurns(dropped.left_out_turns)

    def _more_room(self, needed_tokens: int, loaded: LoadedModel) -> list[Choice]:
        """Return how the context holds so many tokens: with a longer limit, else with more room in memory."""
        profile = self._profile.value
        longer = longer_context(needed_tokens, loaded.plan_at(profile.kv).fitting_tokens)
        if longer is not None:
            return [longer]
        if needed_tokens > (profile.max_context or needed_tokens):
            return []
        return list(more_room(loaded, profile.kv, needed_tokens))

    def _use(self, text: str, profile: Profile, path: Sequence[Message] | None = None) -> ContextUse:
        """Return the use of a text at a profile; of a `path` given instead of the open one, without it."""
        settings = self._settings.value
        return self._budget.use(
            self._path() if path is None else path,
            settings.system_prompt,
            text,
            self._attachments.attachments if path is None else (),
            self._engine.loaded,
            profile,
            settings.sampling.max_tokens,
        )

    def _path(self) -> list[Message]:
        """Return what is read of the open path, with what is written of a reply so far."""
        path, writing = self._session.read_messages, self._stream.message
        if writing is not None and path and path[-1].id == writing.id:
            return [*path[:-1], dataclasses.replace(writing, text=self._stream.text)]
        return path
