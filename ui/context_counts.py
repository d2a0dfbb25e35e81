"""The tokens of what contexts make a model read, counted once for a conversation while one writes in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from app.document_prompt import document_text
from app.ledger.context import ConversationContext
from app.ledger.records import message_key
from app.ledger.trimming import TrimPlan
from app.store.records import Attachment, Message, MessageState, Role
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage
from ui.token_counts import TokenCounts

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
        document_tokens: those of the documents among them.
        is_exact: whether all was counted.
    """

    tokens: int
    document_tokens: int
    is_exact: bool


class ContextCounts:
    """Counts the contexts that a conversation may have; what is known is not counted again.

    Attributes:
        asked: what it was made for, whatever is written.
        context: what the model reads, the question included.
    """

    def __init__(self, counts: TokenCounts, asked: Asked) -> None:
        self.asked = asked
        self.context = asked.with_question
        self._counts = counts
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
        tokens = document_tokens = 0
        is_exact = True
        for text, is_document in (piece for message in messages for piece in _pieces(message)):
            counted = self._counts.count(text)
            is_exact &= counted is not None
            about = len(text) // _CHARACTERS_PER_TOKEN if counted is None else counted
            tokens += about
            document_tokens += about if is_document else 0
        return Counted(tokens, document_tokens, is_exact)

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
        counted = self._counts.count(text)
        return len(text) // _CHARACTERS_PER_TOKEN if counted is None else counted

    def question_tokens(self, text: str) -> int | None:
        """Return the tokens of the words of a question, None while they are not counted."""
        return self._counts.count(text)

    def attachment_tokens(self) -> int | None:
        """Return the tokens of the question's documents, None while they are not counted."""
        counts = [self._counts.count(document_text(each.title, each.text)) for each in self.asked.attachments]
        return None if None in counts else sum(count or 0 for count in counts)


def _pieces(message: ChatMessage) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a message, and whether each is a document, but for the words of a question.

    Each is counted by itself: a document is long, and always the same.
    """
    end = 0
    for each in message.documents:
        yield message.content[end : each.start], False
        yield message.content[each.start : each.stop], each.kind is SpanKind.DOCUMENT
        end = each.stop
    if message.key != message_key(_QUESTION_ID):
        yield message.content[end:], False
