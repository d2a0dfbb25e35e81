from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.store.records import MessageState
from tests.ui.chat.conftest import reply
from ui.chat.reasoning import ReasoningFold, ReasoningSplitter
from ui.chat.text_view import TextView
from ui.chat.view import ChatView


def split(pieces: list[str]) -> tuple[str, str]:
    splitter = ReasoningSplitter()
    parts = [splitter.feed(piece) for piece in pieces]
    parts.append(splitter.finish())
    return "".join(reasoning for reasoning, _ in parts), "".join(answer for _, answer in parts)


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>\nTwo and two.\n</think>\n\nFour.", "\nTwo and two.\n", "Four."),
        ("\n<think>a</think>b", "a", "b"),
        ("<think>never closed", "never closed", ""),
        ("No thoughts <think>here</think>", "", "No thoughts <think>here</think>"),
        ("<thin", "", "<thin"),
        ("<think>a < b </thin", "a < b </thin", ""),
        ("<think>a</think>b</think>c", "a", "b</think>c"),
        ("  plain", "", "  plain"),
        ("", "", ""),
    ],
)
def test_reasoning_is_what_stands_between_the_markers_at_the_beginning(
    text: str, reasoning: str, answer: str
) -> None:
    assert split([text]) == (reasoning, answer)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "ink>", "\n", "word", "/"]), max_size=12),
    st.data(),
)
def test_however_the_text_arrives_it_is_split_the_same(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert split(pieces) == split([text])


def test_thoughts_are_folded_away_and_open_on_a_click(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages([reply(1, "<think>Let me see.</think>\n\nFour.")], has_earlier=False)
    toggle = fold_lines(view)[0]
    assert toggle.text() == "Thoughts before the answer"
    assert texts(view) == ["Four."]
    toggle.click()
    assert texts(view) == ["Let me see.", "Four."]
    toggle.click()
    assert texts(view) == ["Four."]


def test_thoughts_are_announced_while_they_are_written_and_not_copied(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages([reply(1, "", MessageState.STREAMING)], has_earlier=False)
    view.begin_stream(1)
    view.append_text("<thi")
    assert not fold_lines(view)
    view.append_text("nk>Let me see.")
    assert fold_lines(view)[0].text() == "Thinking…"
    view.append_text("</think>\n\nFour.")
    view.finish_stream(reply(1, "<think>Let me see.</think>\n\nFour."))
    assert fold_lines(view)[0].text() == "Thoughts before the answer"
    copy = next(
        button for button in view.findChildren(QToolButton) if button.accessibleName() == "Copy message"
    )
    copy.click()
    assert QGuiApplication.clipboard().text() == "Four."


def test_an_empty_thought_leaves_no_line(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages([reply(1, "<think>\n\n</think>\n\nFour.")], has_earlier=False)
    assert not fold_lines(view)
    assert texts(view) == ["Four."]


def fold_lines(view: ChatView) -> list[QToolButton]:
    """Return the lines that open to thoughts."""
    return [button for fold in view.findChildren(ReasoningFold) for button in fold.findChildren(QToolButton)]


def texts(view: ChatView) -> list[str]:
    """Return the texts of replies that can be seen."""
    return [part.toPlainText().strip() for part in view.findChildren(TextView) if part.isVisibleTo(view)]
