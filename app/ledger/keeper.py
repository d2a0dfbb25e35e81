"""Carrying a trim out: its summaries are written, and what it changes is stored in one piece."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Generator, Sequence

from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner
from app.ledger.progress import ContextChanged, SummaryProgress
from app.ledger.records import NO_CHANGE, ContextChange, Summary, SummaryState
from app.ledger.run import run_text, text_of
from app.ledger.summarizer import OnStop, Summarizer
from app.ledger.summary_request import SummaryRequest, summaries_room_tokens
from app.ledger.trimming import TrimPlan, dropped, summarized
from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from engine.cancel import CancelToken
from engine.errors import OctavoError
from engine.guard import GuardAction

log = logging.getLogger(__name__)

SHORT_OF_MEMORY = "Memory was short, so these are sentences of the text itself."

_LEAST_SAVING = 2
"""A summary that is asked for by hand is to be so many times shorter than what it replaces."""

Kept = Generator[SummaryProgress | GuardAction | ContextChanged, None, ConversationContext]
"""Tells how far it is and returns the context as it is afterwards."""


class ContextKeeper:
    """Changes what is stored of the contexts of conversations; belongs to the engine's thread."""

    def __init__(self, store: ConversationStore, summarizer: Summarizer) -> None:
        self._store = store
        self._summarizer = summarizer
        self._unsaved = itertools.count(1)

    def trim(
        self,
        context: ConversationContext,
        plan: TrimPlan,
        planner: TrimPlanner,
        cancel: CancelToken,
    ) -> Kept:
        """Write the summaries of a trim, or have extracts stand in where that is stopped, and store all."""
        written = yield from self._summaries(context, plan, planner, cancel, OnStop.EXTRACT)
        return (yield from self._kept(context, written, plan.change, planner.conversation_id))

    def trim_ahead(
        self,
        context: ConversationContext,
        plan: TrimPlan,
        planner: TrimPlanner,
        cancel: CancelToken,
    ) -> Generator[SummaryProgress | GuardAction | ContextChanged, None, None]:
        """Carry a trim out before the question that makes it due is asked.

        Raises:
            Cancelled: something else comes first, and nothing has changed.
            StoreError: it could not be saved, and nothing has changed.
        """
        written = yield from self._summaries(context, plan, planner, cancel, OnStop.RAISE)
        self._store.add_summaries(planner.conversation_id, written, plan.change)
        yield ContextChanged(planner.conversation_id)

    def shorten(
        self,
        context: ConversationContext,
        plan: TrimPlan,
        planner: TrimPlanner,
    ) -> Kept:
        """Store what left the context in the middle of a reply.

        What is prepared stands for it, else an extract: the model has something else to do, and no memory.
        """
        if not planner.summarizes:
            change = dropped(context, plan.released)
            return (yield from self._kept(context, (), change, planner.conversation_id))
        runs, change = summarized(context, plan.released, planner.room(context).limit_tokens)
        requests = [
            planner.summary_request(run_text(context, run), run.room_tokens)
            for run in runs
            if run.prepared is None
        ]
        extracts = [self._summarizer.extract(request, SHORT_OF_MEMORY) for request in requests]
        used = [dataclasses.replace(each, state=SummaryState.USED) for each in extracts]
        return (yield from self._kept(context, used, change, planner.conversation_id))

    def summarize(
        self,
        context: ConversationContext,
        keys: Sequence[str],
        planner: TrimPlanner,
        cancel: CancelToken,
    ) -> Generator[SummaryProgress | GuardAction | ContextChanged, None, None]:
        """Put a summary in the place of turns and summaries that follow each other, or of a document.

        Raises:
            Cancelled: it was stopped, and nothing has changed.
            OctavoError: the model does not read it, it waits for its answer, or a summary saves nothing.
        """
        text = text_of(context, keys)
        room_tokens = summaries_room_tokens(planner.room(context).limit_tokens)
        request = planner.summary_request(text, room_tokens)
        source_tokens = request.source_tokens
        if source_tokens < _LEAST_SAVING * request.most_tokens:
            raise OctavoError(
                f"This has only {source_tokens:,} tokens: a summary would save next to nothing. Summarize it "
                "together with the turns beside it, or leave it out."
            )
        summary = yield from self.written(request, cancel, OnStop.RAISE)
        self._store.add_summary(
            planner.conversation_id, dataclasses.replace(summary, state=SummaryState.USED)
        )
        yield ContextChanged(planner.conversation_id)

    def prepare(
        self,
        context: ConversationContext,
        plan: TrimPlan,
        planner: TrimPlanner,
        cancel: CancelToken,
    ) -> Generator[SummaryProgress | GuardAction | ContextChanged, None, None]:
        """Write the summaries that a trim lacks, before it is due; those that it has no use for are retired.

        Raises:
            Cancelled: something else comes first; the one that was being written is not kept.
        """
        ready = {run.prepared.id for run in plan.runs if run.prepared is not None}
        stale = tuple(
            (each.id, SummaryState.RETIRED)
            for each in context.rows.summaries
            if each.state is SummaryState.PREPARED
            and each.id not in ready
            and context.items.covered(each) is not None
        )
        for number, run in enumerate(plan.unwritten):
            request = planner.summary_request(run_text(context, run), run.room_tokens)
            summary = yield from self.written(request, cancel, OnStop.RAISE)
            change = NO_CHANGE if number else ContextChange(summaries=stale)
            self._store.add_summary(planner.conversation_id, summary, change)
            yield ContextChanged(planner.conversation_id)

    def written(
        self, request: SummaryRequest, cancel: CancelToken, on_stop: OnStop
    ) -> Generator[SummaryProgress | GuardAction, None, Summary]:
        """Return a summary; of what the engine tells meanwhile only the guard's steps matter."""
        with contextlib.closing(self._summarizer.write(request, cancel, on_stop)) as writing:
            while True:
                try:
                    event = next(writing)
                except StopIteration as ended:
                    summary: Summary = ended.value
                    return summary
                if isinstance(event, SummaryProgress | GuardAction):
                    yield event

    def _summaries(
        self,
        context: ConversationContext,
        plan: TrimPlan,
        planner: TrimPlanner,
        cancel: CancelToken,
        on_stop: OnStop,
    ) -> Generator[SummaryProgress | GuardAction, None, list[Summary]]:
        """Write the summaries that a trim lacks, which are used at once."""
        written = []
        for run in plan.unwritten:
            request = planner.summary_request(run_text(context, run), run.room_tokens)
            summary = yield from self.written(request, cancel, on_stop)
            written.append(dataclasses.replace(summary, state=SummaryState.USED))
        return written

    def _kept(
        self,
        context: ConversationContext,
        summaries: Sequence[Summary],
        change: ContextChange,
        conversation_id: int,
    ) -> Kept:
        """Store a change with its summaries, or use it once where that fails: the next reply tries again."""
        try:
            self._store.add_summaries(conversation_id, summaries, change)
            rows = self._store.ledger(conversation_id)
        except StoreError as error:
            log.warning("The change of the context could not be saved: %s", error)
            unsaved = (dataclasses.replace(each, id=-next(self._unsaved)) for each in summaries)
            return context.changed(change, *unsaved)
        yield ContextChanged(conversation_id)
        return context.with_rows(rows)
