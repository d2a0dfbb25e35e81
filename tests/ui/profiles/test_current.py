from __future__ import annotations

import dataclasses

import pytest
from pytestqt.qtbot import QtBot

from app.profiles import BUILT_IN, CUSTOM, DocumentMode, Overflow, Profile
from app.store.conversations import ConversationStore
from app.store.records import Conversation
from engine.errors import OctavoError
from engine.kv.precision import KVSpec
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings

CHAT, LONG, CODE = BUILT_IN
FOUR_BIT = KVSpec.parse("4")


def open_one(store: ConversationStore, current: CurrentProfile) -> Conversation:
    conversation = store.create_conversation()
    current.save()
    current.open(conversation)
    return conversation


def reopen(store: ConversationStore, current: CurrentProfile, conversation_id: int) -> Profile:
    current.save()
    current.open(store.conversation(conversation_id))
    return current.value


def test_the_first_conversation_is_a_chat(current: CurrentProfile) -> None:
    assert current.value == CHAT
    assert [profile.name for profile in current.choices] == ["Chat", "Long document", "Code", CUSTOM]


def test_each_conversation_remembers_its_profile_and_new_ones_take_the_last_choice(
    store: ConversationStore, current: CurrentProfile, stored: StoredSettings
) -> None:
    first = open_one(store, current)
    current.choose("Code")
    second = open_one(store, current)
    assert current.value == CODE
    current.choose("Long document")
    assert reopen(store, current, first.id) == CODE
    assert reopen(store, current, second.id) == LONG
    assert stored.value.profile == "Long document"
    open_one(store, current)
    assert current.value == LONG


def test_a_profile_that_is_chosen_once_more_is_that_of_new_conversations(
    store: ConversationStore, current: CurrentProfile
) -> None:
    first = open_one(store, current)
    current.choose("Code")
    open_one(store, current)
    current.choose("Chat")
    reopen(store, current, first.id)
    current.choose("Code")
    open_one(store, current)
    assert current.value == CODE


def test_a_change_makes_the_settings_the_conversations_own_and_no_others(
    store: ConversationStore, current: CurrentProfile
) -> None:
    first = open_one(store, current)
    current.update(kv=FOUR_BIT, overflow=Overflow.ASK)
    own = Profile(CUSTOM, FOUR_BIT, 12_288, Overflow.ASK, DocumentMode.AUTO)
    assert (current.value, current.origin) == (own, "Chat")
    open_one(store, current)
    assert (current.value, current.origin) == (CHAT, None)
    assert reopen(store, current, first.id) == own


def test_the_settings_without_a_name_that_were_used_last_can_be_chosen(
    store: ConversationStore, current: CurrentProfile
) -> None:
    current.update(max_context=None)
    open_one(store, current)
    current.choose(CUSTOM)
    assert current.value == dataclasses.replace(CHAT, name=CUSTOM, max_context=None)
    open_one(store, current)
    assert current.value.name == CUSTOM


def test_what_is_changed_back_is_the_profile_again(current: CurrentProfile) -> None:
    current.update(kv=FOUR_BIT)
    current.update(kv=CHAT.kv)
    assert (current.value, current.origin) == (CHAT, None)


def test_a_context_limit_that_cannot_be_changes_nothing(current: CurrentProfile) -> None:
    with pytest.raises(OctavoError, match="3 is no context limit"):
        current.update(max_context=3)
    assert current.value == CHAT


def test_a_change_is_told_once_and_saved_by_itself(
    qtbot: QtBot, store: ConversationStore, current: CurrentProfile
) -> None:
    conversation = open_one(store, current)
    told: list[Profile] = []
    current.changed.connect(told.append)
    for bits in (6, 5, 4):
        current.update(kv=KVSpec.parse(str(bits)))
    current.update(kv=FOUR_BIT)
    assert [str(profile.kv) for profile in told] == ["6", "5", "4"]
    qtbot.waitUntil(lambda: store.conversation(conversation.id).profile == current.value)


def test_a_conversation_keeps_the_profile_it_was_begun_with_though_another_is_chosen_later(
    store: ConversationStore, current: CurrentProfile
) -> None:
    first, second = open_one(store, current), store.create_conversation()
    current.keep()
    current.save()
    current.open(second)
    current.choose("Code")
    assert reopen(store, current, first.id) == CHAT


def test_an_own_profile_is_followed_when_it_is_changed_renamed_and_deleted(
    store: ConversationStore, current: CurrentProfile, stored: StoredSettings
) -> None:
    first = open_one(store, current)
    current.update(kv=FOUR_BIT)
    current.save_as("  Papers ")
    assert (current.value.name, current.value.kv, stored.value.profile) == ("Papers", FOUR_BIT, "Papers")
    second = open_one(store, current)
    assert current.value.name == "Papers"
    current.update(max_context=4_096)
    current.save_changes()
    papers = Profile("Papers", FOUR_BIT, 4_096, Overflow.SUMMARIZE, DocumentMode.AUTO)
    assert (current.value, current.origin, stored.value.profiles) == (papers, None, (papers,))
    assert reopen(store, current, first.id) == papers
    current.rename("Papers", "Reading")
    assert (current.value.name, stored.value.profile) == ("Reading", "Reading")
    assert reopen(store, current, second.id) == dataclasses.replace(papers, name="Reading")
    current.delete("Reading")
    as_custom = dataclasses.replace(papers, name=CUSTOM)
    assert (current.value, current.own, stored.value.profile) == (as_custom, (), "Chat")
    assert reopen(store, current, first.id) == as_custom


def test_a_profile_that_is_gone_from_the_settings_leaves_its_values(
    store: ConversationStore, current: CurrentProfile
) -> None:
    conversation = open_one(store, current)
    store.set_profile(conversation.id, dataclasses.replace(LONG, name="Gone"))
    current.open(store.conversation(conversation.id))
    assert current.value == dataclasses.replace(LONG, name=CUSTOM)


def test_copies_have_names_of_their_own(current: CurrentProfile) -> None:
    current.choose("Code")
    current.copy()
    assert current.value == dataclasses.replace(CODE, name="Code copy")
    current.choose("Code")
    current.copy()
    assert [profile.name for profile in current.own] == ["Code copy", "Code copy 2"]
    assert [current.is_own(name) for name in ("Code", "Code copy")] == [False, True]
    current.rename("Code copy", "x" * 40)
    current.choose("x" * 40)
    current.copy()
    assert len(current.value.name) <= 40


@pytest.mark.parametrize("name", ["", "  ", "chat", "CUSTOM", "papers", "x" * 41])
def test_a_name_that_cannot_be_is_refused(current: CurrentProfile, name: str) -> None:
    current.save_as("Papers")
    with pytest.raises(OctavoError):
        current.save_as(name)
    assert [profile.name for profile in current.own] == ["Papers"]
    if name != "papers":
        with pytest.raises(OctavoError):
            current.rename("Papers", name)


def test_an_own_profile_can_be_renamed_in_its_case_alone(current: CurrentProfile) -> None:
    current.save_as("Papers")
    current.rename("Papers", "papers")
    assert current.value.name == "papers"
