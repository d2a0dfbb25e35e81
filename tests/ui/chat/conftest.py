"""Messages as the store would give them, and a view on the screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pytestqt.qtbot import QtBot

from app.store.records import Attachment, Message, MessageState, Role
from engine.events import GenerationStats, StopReason
from ui.chat.composer import Composer
from ui.chat.view import ChatView
from ui.theme import Theme

STATS = GenerationStats(1203, 1024, 214, 0.84, 150.0, 12.34, 4, 1_000, 2_000, StopReason.END)
ANSWER = """# Title

A paragraph with **bold**, `code` and [a link](https://example.org/page), long enough to be wrapped in a
narrow window and perhaps even in a wide one, if the font is large.

1. First:
   ```bash
   ls -l
   ```
2. Second

| a | b |
|---|---|
| 1 | 2 |

```python
def f(x):
    return "a line that is much too long for the column, so that it has to be scrolled sideways" * x
```

> A quote. 中文 🎉

عربي
"""


def user(message_id: int, text: str, *attachments: Attachment) -> Message:
    """A message of the user."""
    return Message(
        message_id,
        1,
        message_id - 1 or None,
        Role.USER,
        text,
        datetime(2025, 1, 1, tzinfo=UTC),
        MessageState.COMPLETE,
        attachments,
        (message_id,),
        None,
        None,
        None,
    )


def reply(message_id: int, text: str, state: MessageState = MessageState.COMPLETE) -> Message:
    """A reply, with figures when it is complete."""
    stats = STATS if state is MessageState.COMPLETE else None
    return dataclasses.replace(
        user(message_id, text), role=Role.ASSISTANT, state=state, stats=stats, model="a-model"
    )


def conversation(length: int, answer: str = "An answer.") -> list[Message]:
    """Questions and answers in turn, numbered from 1."""
    return [user(n, f"Question {n}") if n % 2 else reply(n, answer) for n in range(1, length + 1)]


@pytest.fixture(params=["light", "dark"])
def either_theme(request: pytest.FixtureRequest, qtbot: QtBot) -> Iterator[str]:
    theme = Theme.current()
    before = theme.choice
    theme.set_choice(request.param)
    yield request.param
    theme.set_choice(before)


@pytest.fixture
def view(qtbot: QtBot) -> ChatView:
    made = ChatView()
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    made = Composer()
    qtbot.addWidget(made)
    made.resize(700, 200)
    made.show()
    made.activateWindow()
    made.setFocus()
    qtbot.waitExposed(made)
    return made
