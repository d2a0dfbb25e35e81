from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.store.records import Conversation
from ui.conversations.list_model import (
    CONVERSATION_ROLE,
    ConversationListModel,
    age_text,
    group_title,
    rows_of,
)

NOW = datetime(2026, 3, 29, 0, 30).astimezone()


def conversation(
    id: int, updated_at: datetime, *, pinned: bool = False, title: str = "Title"
) -> Conversation:
    return Conversation(id, title, updated_at, updated_at, pinned, None, "", None)


@pytest.mark.parametrize(
    ("age", "title"),
    [
        (timedelta(0), "Today"),
        (timedelta(minutes=29), "Today"),
        (timedelta(minutes=31), "Yesterday"),
        (timedelta(hours=24), "Yesterday"),
        (timedelta(hours=25), "Previous 7 days"),
        (timedelta(days=7), "Previous 7 days"),
        (timedelta(days=8), "Older"),
        (timedelta(days=-1), "Today"),
    ],
)
def test_groups_follow_calendar_days(age: timedelta, title: str) -> None:
    naive = NOW.replace(tzinfo=None)
    assert group_title((naive - age).astimezone(), NOW) == title


def test_groups_follow_the_local_day_whatever_zone_the_time_is_in() -> None:
    assert group_title(NOW.astimezone(timezone(timedelta(hours=9))), NOW) == "Today"
    assert group_title(NOW.astimezone(UTC), NOW) == "Today"


def test_age_in_words() -> None:
    naive = NOW.replace(tzinfo=None)
    assert age_text(NOW, NOW) == "today at 00:30"
    assert age_text((naive - timedelta(hours=1)).astimezone(), NOW) == "yesterday at 23:30"
    assert age_text(datetime(2025, 10, 3, 12).astimezone(), NOW) == "3 October 2025"


def test_each_group_has_one_heading_and_keeps_the_order() -> None:
    old, older = NOW - timedelta(days=30), NOW - timedelta(days=60)
    items = [
        conversation(1, older, pinned=True),
        conversation(2, NOW),
        conversation(3, NOW),
        conversation(4, old),
        conversation(5, older),
    ]
    rows = rows_of(items, NOW)
    assert [row if isinstance(row, str) else row.id for row in rows] == [
        "Pinned",
        1,
        "Today",
        2,
        3,
        "Older",
        4,
        5,
    ]


def test_no_conversations_no_headings() -> None:
    assert rows_of([], NOW) == []


def test_headings_cannot_be_selected_or_renamed(qapp: QApplication) -> None:
    model = ConversationListModel()
    model.set_conversations([conversation(7, NOW)])
    heading, row = model.index(0), model.index(1)
    assert model.flags(heading) == Qt.ItemFlag.NoItemFlags
    assert heading.data(CONVERSATION_ROLE) is None
    assert model.flags(row) & Qt.ItemFlag.ItemIsEditable
    assert not model.setData(heading, "x")


def test_a_new_title_is_asked_for_without_its_surplus_spaces(qapp: QApplication) -> None:
    model, asked = ConversationListModel(), []
    model.renamed.connect(lambda id, title: asked.append((id, title)))
    model.set_conversations([conversation(7, NOW, title="Old")])
    assert model.setData(model.index(1), "  A  new\ntitle ")
    for unchanged in ("", "   ", "Old"):
        assert not model.setData(model.index(1), unchanged)
    assert asked == [(7, "A new title")]


def test_a_conversation_is_found_by_its_id(qapp: QApplication) -> None:
    model = ConversationListModel()
    model.set_conversations([conversation(7, NOW), conversation(9, NOW)])
    assert model.index_of(9).data(CONVERSATION_ROLE).id == 9
    assert not model.index_of(8).isValid()
    assert not model.index_of(None).isValid()
