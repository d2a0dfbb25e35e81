"""What happens between the Context panel, the ledger of the open conversation and the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.ledger.actions import brought_along, drop, pin, restore, together
from app.ledger.context import ConversationContext
from app.ledger.entries import LedgerReport
from app.ledger.planning import ContextRoom
from app.ledger.progress import SummaryProgress
from app.ledger.records import ContextChange, LedgerRows
from app.ledger.report import ledger_report
from app.ledger.run import in_a_row
from engine.context_usage import ContextUsage
from engine.requests import PromptSize
from ui.chat_controller import ChatController
from ui.engine_state import EngineState
from ui.engine_thread import EngineThread
from ui.inspector.context.actions import Hindrances, LedgerAction
from ui.inspector.context.panel import ContextPanel
from ui.inspector.context.restoring import again_sentence, along_sentence, cost_sentence
from ui.ledger_counts import LedgerCounts
from ui.live_precision import LivePrecision, Reread
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings

_WRITING = "Wait until the reply is written."
_SUMMARIZING = "Wait until the summary is written."
_REBUILDING = "Wait until the conversation is read again."
_NOTHING_TO_UNDO = "There is no change of yours that can be taken back here."
_NO_MODEL = {EngineState.EMPTY: "Load a model first.", EngineState.LOADING: "Wait until the model is loaded."}
_CHANGES: Mapping[LedgerAction, Callable[[ConversationContext, str], ContextChange]] = {
    LedgerAction.PIN: partial(pin, pinned=True),
    LedgerAction.UNPIN: partial(pin, pinned=False),
    LedgerAction.DROP: drop,
    LedgerAction.RESTORE: restore,
}


class LedgerController(QObject):
    """Shows what the model reads of the open conversation while it is looked at, and does what is asked."""

    def __init__(
        self,
        panel: ContextPanel,
        chat: ChatController,
        engine: EngineThread,
        precision: LivePrecision,
        profile: CurrentProfile,
        settings: StoredSettings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._chat = chat
        self._session = chat.session
        self._engine = engine
        self._precision = precision
        self._profile = profile
        self._settings = settings
        self._counts = LedgerCounts(chat.counts)
        self._progress: tuple[int, SummaryProgress | None] = (0, None)
        self._summarized: tuple[int, LedgerRows] | None = None
        self._priced: tuple[tuple[str, ...], ContextChange] | None = None
        self._connect_panel()
        self._connect_engine()
        self._session.opened.connect(self._on_opened)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self.refresh)
        self._session.context_changed.connect(self.refresh)
        for changed in (chat.counts.counted, profile.changed, settings.changed):
            changed.connect(self._soon.start)  # several come at once, as when a conversation is opened
        chat.stream.busy_changed.connect(self._show_hindrances)
        self._show_hindrances()

    def _connect_panel(self) -> None:
        self._panel.shown.connect(self.refresh)
        self._panel.requested.connect(self._on_requested)
        self._panel.undo_requested.connect(self._session.undo_context)
        self._panel.cost_wanted.connect(self._on_cost_wanted)
        self._panel.summary_stopped.connect(self._engine.stop)
        self._precision.changed.connect(self._show_reread)

    def _connect_engine(self) -> None:
        self._chat.usage.changed.connect(self.refresh)
        self._engine.state_changed.connect(self._on_state)
        self._engine.model_loaded.connect(self._on_model)
        self._engine.model_unloaded.connect(self._on_model)
        self._engine.summary_progress.connect(self._on_progress)
        self._engine.ledger_changed.connect(self._on_ledger)
        self._engine.reading_cost_told.connect(self._on_cost)

    def refresh(self) -> None:
        """Show the context of the open conversation, if somebody looks."""
        if not self._panel.isVisible():
            return
        held = self._chat.usage
        report = self._report(self._session.context, held.value)
        self._panel.show_report(report, is_other_held=held.is_other)
        self._show_hindrances()
        self._show_reread()

    def _report(self, context: ConversationContext, usage: ContextUsage | None) -> LedgerReport:
        system_prompt, loaded = self._settings.value.system_prompt, self._engine.loaded
        self._counts.follow(context, system_prompt)
        size = self._chat.budget.size(context, system_prompt, loaded, usage)
        return ledger_report(
            context,
            system_prompt,
            usage,
            self._counts.known,
            tokens=size.tokens,
            is_about=size.is_about,
            limit_tokens=self._limit_tokens(),
        )

    def _limit_tokens(self) -> int | None:
        loaded, profile = self._engine.loaded, self._profile.value
        if loaded is None:
            return None
        fitting = loaded.plan_at(profile.kv).fitting_tokens
        return fitting if profile.max_context is None else min(fitting, profile.max_context)

    def _show_hindrances(self) -> None:
        state = self._engine.state
        change = ""
        if self._session.is_streaming:
            change = _WRITING
        elif state is EngineState.REBUILDING:
            change = _REBUILDING
        elif state is EngineState.SUMMARIZING:
            change = _SUMMARIZING
        undo = change or ("" if self._session.can_undo_context else _NOTHING_TO_UNDO)
        self._panel.show_hindrances(Hindrances(change, _NO_MODEL.get(state, ""), undo))

    def _show_reread(self) -> None:
        held = self._precision.held
        is_open = held is not None and held.conversation_id == self._session.conversation_id
        self._panel.set_reread(self._precision.reread if is_open else Reread())

    def _show_progress(self) -> None:
        whose, progress = self._progress
        self._panel.show_progress(progress if whose == self._session.conversation_id else None)

    # What the panel asks for.

    def _on_requested(self, action: LedgerAction, keys: tuple[str, ...]) -> None:
        whose, leaf_id = self._session.conversation_id, self._session.leaf_id
        if whose is None or leaf_id is None:
            return
        context = self._session.context
        if action is not LedgerAction.SUMMARIZE:
            self._session.change_context(together(context, keys, _CHANGES[action]))
            return
        self._summarized = whose, context.rows
        for row in in_a_row(context, keys):
            self._engine.summarize(whose, leaf_id, row, self._chat.reply_settings())

    def _on_cost_wanted(self, keys: tuple[str, ...]) -> None:
        """Ask what restoring rows costs; without a model only that they will be read can be told."""
        whose, leaf_id = self._session.conversation_id, self._session.leaf_id
        if self._engine.loaded is None or whose is None or leaf_id is None:
            along = along_sentence(brought_along(self._session.context, keys))
            self._panel.show_cost(keys, f"{cost_sentence(None, None)} {along}".rstrip())
            return
        change = together(self._session.context, keys, restore)
        self._priced = keys, change
        self._engine.ask_reading_cost(whose, leaf_id, self._chat.reply_settings(), change)

    # What there is to show.

    def _on_opened(self) -> None:
        self._show_progress()
        self._soon.start()

    def _on_model(self) -> None:
        """Show no tokens of a model that is gone."""
        self._counts.forget()
        self.refresh()

    def _on_state(self, state: EngineState) -> None:
        if state is EngineState.GENERATING:
            self._summarized = None  # what changes the ledger from now on was not asked for here
        self._show_hindrances()

    def _on_progress(self, conversation_id: int, progress: SummaryProgress | None) -> None:
        self._progress = conversation_id, progress
        self._show_progress()

    def _on_ledger(self, conversation_id: int) -> None:
        """Let the summary that was asked for here be undone like any other change."""
        if self._summarized is not None and conversation_id == self._summarized[0]:
            now = self._session.remember_since(*self._summarized)
            self._summarized = conversation_id, now
            self._show_hindrances()

    def _on_cost(self, _conversation_id: int, change: ContextChange, tokens: int) -> None:
        if self._priced is not None and change == self._priced[1]:
            keys, context = self._priced[0], self._session.context
            words = (
                cost_sentence(tokens, self._precision.reread.prefill_tps),
                along_sentence(brought_along(context, keys)),
                self._again(self._report(context.changed(change), self._chat.usage.value)),
            )
            self._panel.show_cost(keys, " ".join(filter(None, words)))

    def _again(self, after: LedgerReport) -> str:
        """Return what becomes with the next message of a context as it would be, where it is too full."""
        loaded = self._engine.loaded
        if loaded is None or after.tokens is None:
            return ""
        settings = self._chat.reply_settings()
        fitting = loaded.plan_at(settings.kv).fitting_tokens
        size = PromptSize(after.tokens, after.limit_tokens or fitting, fitting)
        room = ContextRoom.of(size, loaded.info.context_tokens, settings)
        return again_sentence(room, settings.overflow)
