"""How documents are read of which nobody has chosen that: what is sensible becomes their way."""

from __future__ import annotations

import dataclasses

from app.document_cost import ReadingModel, ReadingRoom, document_costs
from app.document_prompt import document_text
from app.document_size import DocumentSize, about_tokens
from app.documents.ways import DocumentWay
from app.ledger.actions import read_by, together
from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner, unread_documents
from app.ledger.records import NO_CHANGE, ContextChange, attachment_key
from app.model_speeds import ModelSpeeds
from app.profiles import DocumentMode
from app.store.records import Attachment
from engine.admission import reading_room_tokens
from engine.cancel import CancelToken


def decided_ways(
    context: ConversationContext, planner: TrimPlanner, speeds: ModelSpeeds, cancel: CancelToken
) -> ContextChange:
    """Return the change that gives a way to each document in a context that has none.

    Those that fit are read whole; for the others it is what the profile says. Where that asks for how fast
    the model is, and it is not known, a short text is read first.

    Raises:
        Cancelled: it was stopped meanwhile.
        AdmissionError: there is no memory to read even that.
    """
    undecided = context.ways.undecided()
    if not undecided:
        return NO_CHANGE
    settings = planner.settings
    room = _room(context, undecided, planner)
    sizes = [
        DocumentSize(each.num_pages, 0, about_tokens(document_text(each.title, each.text), planner.count))
        for each in undecided
    ]
    fit = sum(each.num_tokens for each in sizes) <= room.whole_tokens
    asks_speed = settings.document_mode is DocumentMode.AUTO and not fit
    speed = speeds.measure(settings.kv, cancel) if asks_speed else speeds.learn()
    model = ReadingModel(planner.loaded, settings.kv, speed)
    costs = document_costs(sizes, [None] * len(sizes), room, model, settings.document_mode)
    ways = {
        attachment_key(document.id): cost.sensible
        for document, cost in zip(undecided, costs, strict=True)
        if cost.fits or cost.sensible is not DocumentWay.WHOLE  # else it is refused, and to be chosen
    }
    return together(context, ways, lambda context, key: read_by(context, key, ways[key]))


def _room(
    context: ConversationContext, undecided: tuple[Attachment, ...], planner: TrimPlanner
) -> ReadingRoom:
    """Return the room for documents beside all that is read with them; old turns leave it for them."""
    keys = [attachment_key(document.id) for document in undecided]
    without = context.changed(together(context, keys, _looked_up))
    room = planner.room(without)
    others = room.num_tokens
    if planner.may_trim:
        emptied = dataclasses.replace(room, kept_tokens=0, due_tokens=0, prepare_tokens=0)
        plan = planner.plan(without, emptied, summarizes=planner.summarizes)
        others = others if plan is None else plan.num_tokens
    reading = reading_room_tokens(room.limit_tokens) if unread_documents(context) else 0
    return ReadingRoom(room.limit_tokens, others, planner.count(context.path[-1].text), reading)


def _looked_up(context: ConversationContext, key: str) -> ContextChange:
    return read_by(context, key, DocumentWay.LOOK_UP)
