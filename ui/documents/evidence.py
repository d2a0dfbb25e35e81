"""What stands under the answers of the open conversation: sources, and what was read for them."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject

from app.documents.places import Places
from app.reading.records import Reading, Source
from app.reading.shown import DocumentText, Evidence, evidence_of
from app.segments.progress import ReadingProgress, SegmentProgress
from app.store.conversations import ConversationStore
from app.store.records import Attachment, Message, MessageState, Role
from ui.chat.view import ChatView
from ui.chat_controller import ChatController


@dataclass(frozen=True)
class _Basis:
    """What evidence is made of; while it stays the same, so does the evidence."""

    sources: tuple[Source, ...]
    readings: tuple[Reading, ...]
    is_running: bool
    num_known: int | None
    names_documents: bool
    is_by_model: bool


class AnswerEvidence(QObject):
    """Shows stored rows under the answers, so that it is the same after a restart; reads on from there.

    While segments are being read, it follows from one to the next.
    """

    def __init__(self, store: ConversationStore, chat: ChatController, view: ChatView) -> None:
        super().__init__(chat)
        self._store = store
        self._session = chat.session
        self._view = view
        self._made: dict[int, tuple[_Basis, Evidence]] = {}
        self._documents: dict[int, DocumentText] = {}
        self._number = 0
        chat.session.context_changed.connect(self._show)
        chat.session.path_changed.connect(self._show)
        chat.stream.prefill_changed.connect(self._on_progress)
        view.continue_requested.connect(chat.replies.continue_reading)
        view.answer_now_requested.connect(chat.replies.answer_from_what_was_read)

    def _on_progress(self, progress: ReadingProgress) -> None:
        """Show a segment that has been read, once another is begun."""
        number = progress.number if isinstance(progress, SegmentProgress) else 0
        if number != self._number and self._session.is_streaming:
            self._number = number
            self._show()

    def _show(self) -> None:
        """Make what is new, and have it shown."""
        messages = self._session.messages
        attachments = {each.id: each for message in messages for each in message.attachments}
        made: dict[int, tuple[_Basis, Evidence]] = {}
        for message, basis in self._bases(messages):
            former = self._made.get(message.id)
            if former is None or former[0] != basis:
                former = basis, self._evidence(basis, attachments)
            made[message.id] = former
        self._made = made
        self._documents = {key: each for key, each in self._documents.items() if key in attachments}
        self._view.show_evidence({message_id: evidence for message_id, (_, evidence) in made.items()})

    def _bases(self, messages: list[Message]) -> list[tuple[Message, _Basis]]:
        """Return the answers that rest on documents. Readings are as they are stored, not as they were."""
        conversation_id = self._session.conversation_id
        readings = () if conversation_id is None else self._store.ledger(conversation_id).readings
        found = []
        num_documents = 0
        for message in messages:
            num_documents += len(message.attachments)
            of_question = tuple(each for each in readings if each.message_id == message.parent_id)
            if message.role is Role.ASSISTANT and (message.sources or of_question):
                is_running = message.state is MessageState.STREAMING
                num_known = message.stats.segments if message.stats is not None else None
                names = num_documents > 1
                is_by_model = message.stats is None or message.stats.was_asked
                basis = _Basis(message.sources, of_question, is_running, num_known, names, is_by_model)
                found.append((message, basis))
        return found

    def _evidence(self, basis: _Basis, attachments: dict[int, Attachment]) -> Evidence:
        named = {each.attachment_id for each in basis.sources}
        named |= {each.attachment_id for each in basis.readings}
        documents = {key: self._document(attachments[key]) for key in named if key in attachments}
        segments = [(each, self._store.reading_segments(each.id)) for each in basis.readings]
        return evidence_of(
            basis.sources,
            segments,
            documents,
            is_running=basis.is_running,
            num_known=basis.num_known,
            names_documents=basis.names_documents,
            is_by_model=basis.is_by_model,
        )

    def _document(self, attachment: Attachment) -> DocumentText:
        """Return a document with its places, which are found once."""
        known = self._documents.get(attachment.id)
        if known is None:
            places = Places.of(attachment.text, attachment.kind, attachment.page_starts)
            known = DocumentText(attachment.title, attachment.text, places)
            self._documents[attachment.id] = known
        return known
