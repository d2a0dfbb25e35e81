"""What was refused because it does not fit into memory, and what would fit, one click each."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMessageBox,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

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
from engine.wording import format_nbytes
from ui.chat.flow_layout import FlowLayout
from ui.chat.focus_order import chain_before
from ui.plain_text import plain_label
from ui.profiles.words import precision_words
from ui.theme import Theme


def risk_words(what: str, error: AdmissionError | None) -> str:
    """Return what may happen when `what` was refused and is let pass all the same."""
    limit = None if error is None else error.limit_nbytes
    if limit is not None:
        return (
            f"{what} does not fit into the {format_nbytes(limit)} that Octavo may take. The computer has "
            "more: this goes beyond your own limit only. Near that limit a reply may become coarser and "
            "slower, or wait for memory."
        )
    return (
        f"{what} does not fit into the memory that is free. The computer may swap and hang, and other "
        "programs may be ended. Save your work in them first."
    )


def choice_words(choice: Choice) -> tuple[str, str]:
    """Return what a choice is called on a button, and what it does in a sentence."""
    match choice:
        case LongerContext(most):
            return (
                f"Allow a context of {most:,}",
                f"The context limit of this conversation becomes {most:,} tokens, which fit.",
            )
        case PackedWeights(fitting):
            return (
                "Load again with packed weights",
                f"{fitting:,} tokens fit beside the weights as they are stored. Replies get slower.",
            )
        case LowerPrecision(kv, fitting):
            words = precision_words(kv)
            return f"Use {words} KV cache", f"{fitting:,} tokens fit with {words} keys and values ({kv})."
        case ShorterContext(most):
            return (
                f"Shorten the context to {most:,}",
                "Prompt and answer together have at most that many tokens.",
            )
        case InSegments(count):
            return (
                "Read in 1 segment" if count == 1 else f"Read in about {count:,} segments",
                "Each segment is read alone with the question; the answer comes from the notes on them.",
            )
        case LookUp():
            return "Look up", "Only the passages that fit the words of the question are read."
        case ReadWhole(tokens):
            return "Read whole", f"All {tokens:,} tokens of the documents are read, in the context."
        case SummarizeTurns(count):
            return (
                f"Summarize {_old_turns(count)}",
                "The model reads a summary in their place; the conversation keeps them.",
            )
        case DropTurns(count):
            return (
                f"Leave out {_old_turns(count)}",
                "The model no longer reads them; the conversation keeps them.",
            )
        case SmallerModel(nbytes):
            size = format_nbytes(nbytes)
            return "Choose a smaller model…", f"One whose weights take at most {size} of memory fits."


def _old_turns(count: int) -> str:
    return "1 old turn" if count == 1 else f"{count:,} old turns"


def confirm_anyway(parent: QWidget | None, title: str, risk: str, button: str) -> bool:
    """Ask once whether to go on all the same, with what may happen; Cancel is the default."""
    box = QMessageBox(QMessageBox.Icon.NoIcon, title, risk, parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    go_on = box.addButton(button, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
    box.exec()
    return box.clickedButton() is go_on


class ChoiceButtons(QWidget):
    """A button for each choice, and a quiet one to go on all the same.

    Signals:
        chosen: the `Choice` that was pressed.
        again: the same is to be tried again.
        anyway: the user wants to go on all the same; nothing was asked yet.
    """

    chosen = Signal(object)
    again = Signal()
    anyway = Signal()

    def __init__(self, anyway_text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._anyway_text = anyway_text
        self._buttons: list[QPushButton] = []
        self._flow = FlowLayout(self, spacing=6)

    @property
    def focus_stops(self) -> Sequence[QWidget]:
        """The buttons; being new, they are where Tab comes last of all in the window, until put elsewhere."""
        return self._buttons

    def show_choices(
        self, choices: Sequence[Choice], can_override: bool, *, can_try_again: bool = False
    ) -> None:
        """Replace the buttons."""
        for button in self._buttons:
            self._flow.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = []
        for choice in choices:
            text, tip = choice_words(choice)
            self._add(text, tip, lambda _=False, choice=choice: self.chosen.emit(choice))
        if can_try_again:
            self._add("Try again", "As before, with the memory that is free by now.", self.again)
        if can_override:
            self._add(self._anyway_text, "Asks once more and tells what may happen.", self.anyway, "flat")
        self.updateGeometry()

    def _add(self, text: str, tip: str, pressed: object, kind: str = "") -> None:
        button = QPushButton(text)
        button.setProperty("kind", kind)
        button.setAutoDefault(False)
        button.setAccessibleName(text.rstrip("…"))
        button.setAccessibleDescription(tip)
        button.setToolTip(tip)
        button.clicked.connect(pressed)
        self._flow.addWidget(button)
        self._buttons.append(button)
        button.show()


class RefusalPanel(QFrame):
    """Says what was refused, with the numbers and with what would fit, until one is chosen.

    Signals:
        chosen: the `Choice` that was pressed.
        again: the same is to be tried again.
        anyway: the user wants to go on all the same; nothing was asked yet.
        closed: the user closed the panel.
        gone: the panel was hidden, whoever wanted that.
    """

    chosen = Signal(object)
    again = Signal()
    anyway = Signal()
    closed = Signal()
    gone = Signal()

    def __init__(self, anyway_text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("notice", "warning")
        self._icon = QLabel()
        self._title = plain_label(wraps=True)
        self._title.setProperty("kind", "heading")
        self._message = plain_label(wraps=True)
        self._buttons = ChoiceButtons(anyway_text)
        self._buttons.chosen.connect(self.chosen)
        self._buttons.again.connect(self.again)
        self._buttons.anyway.connect(self.anyway)
        self._close = QToolButton()
        self._close.setAccessibleName("Close")
        self._close.setToolTip("Close")
        self._close.clicked.connect(self._on_close)
        self._lay_out()
        self._restyle()
        Theme.current().changed.connect(self._restyle)
        self.hide()

    def show_refusal(self, title: str, error: AdmissionError, *, can_try_again: bool = False) -> None:
        """Show what was refused and why."""
        self._title.setText(title)
        self._message.setText(str(error))
        self._buttons.show_choices(error.choices, error.can_override, can_try_again=can_try_again)
        chain_before(self._close, self._buttons.focus_stops)
        self._close.setAccessibleName(f"Close: {title}")
        self.setAccessibleName(title)
        self.show()
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, f"{title}. {error}"))

    def dismiss(self) -> None:
        """Hide the panel; nothing is done."""
        if not self.isHidden():
            self.hide()
            self.gone.emit()

    def _on_close(self) -> None:
        self.dismiss()
        self.closed.emit()

    def _lay_out(self) -> None:
        texts = QVBoxLayout()
        texts.setSpacing(4)
        texts.addWidget(self._title)
        texts.addWidget(self._message)
        texts.addSpacing(4)
        texts.addWidget(self._buttons)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 10, 8, 12)
        row.setSpacing(10)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)

    def _restyle(self) -> None:
        self._icon.setPixmap(Theme.current().pixmap("warning", 20, "warning"))
        self._close.setIcon(Theme.current().icon("close"))
        self._close.setIconSize(QSize(16, 16))
