"""A message that is refused, as it does not fit: the panel above the composer, and what its buttons do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.document_cost import in_segments_s
from app.documents.ways import DocumentWay
from app.duration_words import duration_words
from app.ledger.records import attachment_id
from app.profiles import Overflow
from app.reading_speed import ReadingSpeed
from app.whole_question import WholeQuestionError
from engine.admission import (
    AdmissionError,
    Choice,
    DropTurns,
    InSegments,
    LongerContext,
    LookUp,
    LowerPrecision,
    PackedWeights,
    ReadWhole,
    ShorterContext,
    SmallerModel,
    SummarizeTurns,
)
from ui.admission import RefusalPanel, confirm_anyway, risk_words
from ui.conversation_session import ConversationSession
from ui.engine_state import EngineState
from ui.next_reply import AS_SET, Once
from ui.profiles.current import CurrentProfile

_TITLE = "The message does not fit"
_WHOLE_TITLE = "Looking up does not answer this"
_EDITABLE = "It can be edited in the chat."


@dataclass(frozen=True)
class _Refused:
    """What was refused: the message `leaf_id` of the conversation, or with None the text being written."""

    leaf_id: int | None
    error: AdmissionError

    def says_of_unsent(self, error: AdmissionError) -> bool:
        """Whether this says just that of the text being written."""
        is_same = (str(self.error), self.error.choices) == (str(error), error.choices)
        return self.leaf_id is None and is_same


class RefusedMessage(QObject):
    """Remembers for each conversation what was refused in it, shows it while it is open, and tries again.

    The text stays where it is, in the composer or in the conversation, until it is answered.

    Signals:
        smaller_model_wanted: models are to be shown whose weights take at most so many bytes.
        packed_weights_wanted: the model is to be loaded again, so that a context of so many tokens fits.
    """

    smaller_model_wanted = Signal(object)
    packed_weights_wanted = Signal(int)

    def __init__(
        self,
        panel: RefusalPanel,
        session: ConversationSession,
        profile: CurrentProfile,
        is_free: Callable[[], bool],
        send: Callable[[Once], None],
        answer: Callable[[int, Once], None],
        choose_way: Callable[[int, DocumentWay], None],
        parent: QObject | None = None,
    ) -> None:
        """Make one that sends what is written with `send`, and answers a message by `answer`.

        `choose_way` has an attachment, by its id, read by a way.
        `is_free` tells whether the engine can do either now, and says so where it cannot.
        """
        super().__init__(parent)
        self._panel = panel
        self._session = session
        self._profile = profile
        self._is_free = is_free
        self._send = send
        self._answer = answer
        self._choose_way = choose_way
        self._refused: dict[int, _Refused] = {}
        self._on_panel: _Refused | None = None
        self._waits_for_load: tuple[int, _Refused] | None = None
        self._is_loading = False
        self._speed = ReadingSpeed()
        panel.chosen.connect(self._on_choice)
        panel.again.connect(self._on_again)
        panel.anyway.connect(self._on_anyway)
        panel.closed.connect(self.forget)

    @property
    def is_shown(self) -> bool:
        """Whether anything is said about the open conversation."""
        return self._shown is not None

    @property
    def is_unsent(self) -> bool:
        """Whether what is shown is about the text being written."""
        refused = self._shown
        return refused is not None and refused.leaf_id is None

    def show_unsent(self, error: AdmissionError) -> None:
        """Say that the text being written does not fit."""
        shown = self._shown
        if shown is None or not shown.says_of_unsent(error):
            self._remember(self._session.conversation_id, _Refused(None, error))

    def show_unanswered(self, conversation_id: int, leaf_id: int, error: AdmissionError) -> None:
        """Say that a message that was sent does not fit; when its conversation is open."""
        self._remember(conversation_id, _Refused(leaf_id, error))

    def forget(self) -> None:
        """Say no more about the open conversation."""
        self._refused.pop(self._session.conversation_id or 0, None)
        self.refresh()

    def refresh(self) -> None:
        """Show what was refused in the open conversation, as long as its last message is the one."""
        refused = self._shown
        if refused is None:
            self._panel.dismiss()
        elif refused is not self._on_panel or self._panel.isHidden():
            # Only then: new buttons would take the focus from those that are there.
            is_whole = isinstance(refused.error, WholeQuestionError)
            title = _WHOLE_TITLE if is_whole else _TITLE
            can_try_again = refused.leaf_id is not None and not is_whole
            self._panel.show_refusal(title, self._for_panel(refused), can_try_again=can_try_again)
        self._on_panel = refused

    @property
    def _shown(self) -> _Refused | None:
        refused = self._refused.get(self._session.conversation_id or 0)
        if refused is None or refused.leaf_id in (None, self._session.leaf_id):
            return refused
        return None

    def _remember(self, conversation_id: int | None, refused: _Refused) -> None:
        self._refused[conversation_id or 0] = refused
        if conversation_id == self._session.conversation_id:
            self.refresh()

    def take_speed(self, speed: ReadingSpeed) -> None:
        """Remember how fast the model is, for what reading in segments will take."""
        self._speed = speed

    def _for_panel(self, refused: _Refused) -> AdmissionError:
        """Say how long reading in segments takes; of a message that was sent, that it can be edited."""
        error = refused.error
        segments = [choice for choice in error.choices if isinstance(choice, InSegments)]
        seconds = None
        if segments:
            seconds = in_segments_s(segments[0].num_segments, segments[0].document_tokens, self._speed)
        sentences = (
            str(error),
            "" if seconds is None else f"To read it in segments takes {duration_words(seconds)}.",
            "" if refused.leaf_id is None else _EDITABLE,
        )
        return AdmissionError(
            " ".join(filter(None, sentences)),
            needed_nbytes=error.needed_nbytes,
            available_nbytes=error.available_nbytes,
            choices=error.choices,
            can_override=error.can_override,
            limit_nbytes=error.limit_nbytes,
        )

    def _on_choice(self, choice: Choice) -> None:
        if isinstance(choice, SmallerModel):
            self.smaller_model_wanted.emit(choice.weights_nbytes)
            return
        refused = self._shown
        if refused is None or not self._is_free():
            return
        if isinstance(choice, PackedWeights):
            self.forget()
            self._waits_for_load = self._session.conversation_id or 0, refused
            self.packed_weights_wanted.emit(choice.fitting_tokens)
            return
        self._try_again(refused, self._apply(choice))

    def follow_load(self, state: EngineState) -> None:
        """Try again what waits for the model, once it is loaded again; say it again where it is not."""
        was_loading, self._is_loading = self._is_loading, state is EngineState.LOADING
        waiting = self._waits_for_load
        if waiting is None or not was_loading or self._is_loading:
            return
        self._waits_for_load = None
        conversation_id, refused = waiting
        if state is EngineState.READY and conversation_id == (self._session.conversation_id or 0):
            self._try_again(refused, AS_SET)
        elif refused.leaf_id is not None:
            self._remember(conversation_id, refused)

    def _apply(self, choice: Choice) -> Once:
        """Set what was chosen, or return it where it is for this message only."""
        match choice:
            case SummarizeTurns():
                return Once(overflow=Overflow.SUMMARIZE)
            case DropTurns():
                return Once(overflow=Overflow.DROP)
            case LowerPrecision(kv):
                self._profile.update(kv=kv)
            case LongerContext(most) | ShorterContext(most):
                self._profile.update(max_context=most)
            case InSegments(keys=keys):
                self._read_by(keys, DocumentWay.SEGMENTS)
            case ReadWhole(keys=keys):
                self._read_by(keys, DocumentWay.WHOLE)
            case LookUp(keys):
                self._read_by(keys, DocumentWay.LOOK_UP)
                return Once(looks_up_anyway=True)
        return AS_SET

    def _read_by(self, keys: Sequence[str], way: DocumentWay) -> None:
        for key in keys:
            self._choose_way(attachment_id(key), way)

    def _on_again(self) -> None:
        refused = self._shown
        if refused is not None and self._is_free():
            self._try_again(refused, AS_SET)

    def _on_anyway(self) -> None:
        refused = self._shown
        if refused is None or not self._is_free():
            return
        risk = risk_words("The message", refused.error)
        if confirm_anyway(self._panel.window(), "Send anyway", risk, "Send anyway"):
            self._try_again(refused, Once(anyway=True))

    def _try_again(self, refused: _Refused, once: Once) -> None:
        self.forget()
        if refused.leaf_id is None:
            self._send(once)
        else:
            self._answer(refused.leaf_id, once)
