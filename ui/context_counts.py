"""The tokens of what contexts make a model read, counted once for a conversation while one writes in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.document_prompt import placeholder_passage
from app.document_size import COUNTED_CHARS, SAMPLE_CHARS
from app.ledger.context import ConversationContext
from app.ledger.records import ContextChange, ItemMark, attachment_key, message_key
from app.ledger.trimming import TrimPlan
from app.reply_settings import system_message
from app.store.records import Attachment, Message, MessageState, Role
from engine.context_usage import ContextUsage
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage
from engine.requests import LoadedModel
from ui.document_counts import DocumentCounts

_QUESTION_ID = 0
"""The id of what is being written; the store's are positive."""
_NEVER = datetime.fromtimestamp(0, UTC)
_CHARACTERS_PER_TOKEN = 5
"""A guess for texts that are being counted."""
_MOST_KNOWN = 32
"""A trim is planned with a dozen contexts, each as long as the conversation."""
_MOST_PLANS = 4


@dataclass(frozen=True)
class Asked:
    """What is to be answered next.

    Attributes:
        context: what the model reads of the conversation so far.
        text: the text being written.
        attachments: its documents.
    """

    context: ConversationContext
    text: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def has_question(self) -> bool:
        """Whether anything is being written."""
        return bool(self.text or self.attachments)

    def is_like(self, other: Asked) -> bool:
        """Whether the two differ at most in the words that are being written."""
        is_same = self.context is other.context and self.attachments == other.attachments
        return is_same and bool(self.text) == bool(other.text)

    @property
    def with_question(self) -> ConversationContext:
        """The context with a question as its last turn, in stand-in words: its own change all the time."""
        if not self.has_question:
            return self.context
        path = self.context.path
        question = Message(
            id=_QUESTION_ID,
            conversation_id=0,
            parent_id=path[-1].id if path else None,
            role=Role.USER,
            text="?" if self.text else "",
            created_at=_NEVER,
            state=MessageState.COMPLETE,
            attachments=self.attachments,
            siblings=(_QUESTION_ID,),
            stats=None,
            model=None,
            error=None,
        )
        return ConversationContext((*path, question), self.context.rows)


@dataclass(frozen=True)
class Counted:
    """Tokens of a context's messages, without the words of the question.

    Attributes:
        tokens: of all texts; what is not counted yet is guessed.
        is_exact: whether all was counted.
    """

    tokens: int
    is_exact: bool


@dataclass(frozen=True)
class ContextSize:
    """What a context takes.

    Attributes:
        tokens: of all of it; None while not all is counted.
        is_about: whether some of it was counted by its words and not by the engine.
    """

    tokens: int | None
    is_about: bool


class ContextCounts:
    """Counts the contexts that a conversation may have; what is known is not counted again.

    Documents that are read whole are counted for themselves, and of long ones the contexts have a beginning
    only: a text may have 50 MB, and is neither copied nor looked at again with every letter that is written.
    Those of the question are left out, since their tokens decide whether they are read whole.

    Attributes:
        asked: what it was made for, whatever is written.
        context: what the model reads, the question included, without those documents.
        open_documents: these.
    """

    def __init__(self, counts: DocumentCounts, asked: Asked) -> None:
        self.asked = asked
        whole = asked.with_question
        self.open_documents = _open_documents(whole)
        self.context = _without(_with_beginnings(whole), self.open_documents)
        earlier = [each for each in self.open_documents if each not in asked.attachments]
        self._history = _without(_with_beginnings(asked.context), earlier)
        self._counts = counts
        self._documents = whole.items.documents
        self._size: tuple[tuple[LoadedModel, str, ContextUsage | None], ContextSize] | None = None
        self._plans: dict[Hashable, TrimPlan | None] = {}
        self._known: dict[int, tuple[ConversationContext, Counted]] = {}

    def of(self, context: ConversationContext) -> Counted:
        """Return the tokens of a context."""
        known = self._known.get(id(context))
        if known is not None and known[0] is context:
            return known[1]
        counted = self.of_messages(context.messages)
        if counted.is_exact:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[id(context)] = context, counted  # which keeps another from having its id
        return counted

    def of_messages(self, messages: tuple[ChatMessage, ...]) -> Counted:
        """Return the tokens of some messages."""
        tokens = 0
        is_exact = True
        for piece in (piece for message in messages for piece in _pieces(message)):
            counted = self._piece_tokens(piece)
            is_exact &= counted is not None
            tokens += len(piece.text) // _CHARACTERS_PER_TOKEN if counted is None else counted
        return Counted(tokens, is_exact)

    def size(self, loaded: LoadedModel, system_prompt: str, usage: ContextUsage | None) -> ContextSize:
        """Return what the conversation so far takes: what is held as it is held, the rest counted.

        Args:
            loaded: the model that reads it.
            system_prompt: what comes before it.
            usage: what is held of it, None for nothing.
        """
        key = loaded, system_prompt, usage
        if self._size is None or any(one is not other for one, other in zip(self._size[0], key, strict=True)):
            size = self._sized(loaded, system_prompt, usage)
            self._size = None if size.tokens is None else (key, size)
            return size
        return self._size[1]

    def _sized(self, loaded: LoadedModel, system_prompt: str, usage: ContextUsage | None) -> ContextSize:
        messages = self._history.messages
        if usage is None:
            counted = self.of_messages((*system_message(system_prompt), *messages))
            around = loaded.template.around(len(messages), bool(system_prompt.strip()))
            return ContextSize(counted.tokens + around if counted.is_exact else None, True)
        wanted = {piece.key for message in messages for piece in _pieces(message)}
        held = {span.key for span in usage.spans}
        gone = sum(span.num_tokens for span in usage.spans if span.key and span.key not in wanted)
        missing = [self._missing(message, loaded, held, usage) for message in messages]
        tokens = [each.tokens for each in missing]
        if None in tokens:
            return ContextSize(None, True)
        whole = usage.num_tokens - gone + sum(each or 0 for each in tokens)
        return ContextSize(whole, any(each.is_about for each in missing))

    def _missing(
        self, message: ChatMessage, loaded: LoadedModel, held: Collection[str], usage: ContextUsage
    ) -> ContextSize:
        """Return what is not held of a message; what left and is on disk comes back as it was."""
        back = {span.key: span.num_tokens for span in usage.released}
        pieces = [piece for piece in _pieces(message) if piece.key not in held and piece.text]
        counts = [back[piece.key] if piece.key in back else self._piece_tokens(piece) for piece in pieces]
        if None in counts:
            return ContextSize(None, True)
        is_about = not back.keys() >= {piece.key for piece in pieces}
        around = loaded.template.pair // 2 if is_about and message.key not in held else 0
        return ContextSize(sum(count or 0 for count in counts) + around, is_about)

    def _piece_tokens(self, piece: _Piece) -> int | None:
        if piece.is_document and piece.key in self._documents:
            return self._counts.document(self._documents[piece.key])
        return self._counts.text(piece.text)

    def plan(self, key: Hashable, make: Callable[[], TrimPlan | None]) -> TrimPlan | None:
        """Return the trim of the context that depends on `key`; made once, when all of it is counted."""
        if key in self._plans:
            return self._plans[key]
        plan = make()
        if plan is None or self.of(plan.context).is_exact:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def about(self, text: str) -> int:
        """Return the tokens of a text, a guess until they are counted."""
        counted = self._counts.text(text)
        return len(text) // _CHARACTERS_PER_TOKEN if counted is None else counted

    def question_tokens(self, text: str) -> int | None:
        """Return the tokens of the words of a question, None while they are not counted."""
        return self._counts.text(text)

    def document_tokens(self, document: Attachment) -> int | None:
        """Return the tokens of a document that is read whole, None while they are not counted."""
        return self._counts.document(document)

    def placeholder_tokens(self, document: Attachment) -> int | None:
        """Return the tokens of the line that stands for a document which is not read whole, None as above."""
        return self._counts.text(placeholder_passage(document.title, document.num_pages, "").text)


@dataclass(frozen=True)
class _Piece:
    """The words of a message, or a document or summary in it."""

    key: str
    text: str
    is_document: bool = False


def _open_documents(context: ConversationContext) -> tuple[Attachment, ...]:
    """Return the documents that are decided on with the question that waits, or that come with it, whole."""
    if context.ways.question_id is None:
        return ()
    own = (
        each
        for each in context.path[-1].attachments
        if context.ways.is_whole(key := attachment_key(each.id)) and context.ways.is_available(key)
    )
    return tuple({each.id: each for each in (*context.ways.undecided(), *own)}.values())


def _with_beginnings(context: ConversationContext) -> ConversationContext:
    """Return a context with the beginnings of its long documents."""
    path = tuple(
        replace(message, attachments=tuple(map(_beginning, message.attachments)))
        if any(len(each.text) > COUNTED_CHARS for each in message.attachments)
        else message
        for message in context.path
    )
    return context if path == context.path else ConversationContext(path, context.rows)


def _beginning(document: Attachment) -> Attachment:
    if len(document.text) <= COUNTED_CHARS:
        return document
    return replace(document, text=document.text[:SAMPLE_CHARS])


def _without(context: ConversationContext, documents: Sequence[Attachment]) -> ConversationContext:
    """Return a context as if these documents were left out."""
    if not documents:
        return context
    keys = [attachment_key(each.id) for each in documents]
    marks = [context.rows.marks.get(key, ItemMark(key)) for key in keys]
    return context.changed(ContextChange(tuple(replace(mark, is_dropped=True) for mark in marks)))


def _pieces(message: ChatMessage) -> Iterator[_Piece]:
    """Yield the parts of a message, but for the words of a question.

    Each is counted by itself: a document is long, and always the same.
    """
    end = 0
    for each in message.documents:
        if each.start > end:
            yield _Piece(each.key, message.content[end : each.start])
        is_document = each.kind is SpanKind.DOCUMENT
        yield _Piece(each.key, message.content[each.start : each.stop], is_document)
        end = each.stop
    if message.key != message_key(_QUESTION_ID):
        yield _Piece(message.key, message.content[end:])
