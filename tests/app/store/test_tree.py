"""The tree of messages against a model of it in plain Python."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState


class TreeMachine(RuleBasedStateMachine):
    """Random messages, edits, replies, switches and deletions beside a dict of (conversation, parent)."""

    conversations = Bundle("conversations")
    messages = Bundle("messages")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = ConversationStore.open(Path(self.folder.name) / "conversations.db")
        self.nodes: dict[int, tuple[int, int | None]] = {}
        self.leaves: dict[int, int | None] = {}
        self.deleted: set[int] = set()
        self.last_touched: list[int] = []

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def touch(self, conversation_id: int) -> None:
        self.last_touched = [other for other in self.last_touched if other != conversation_id]
        self.last_touched.append(conversation_id)

    def lineage(self, message_id: int | None) -> list[int]:
        line = []
        while message_id is not None:
            line.append(message_id)
            message_id = self.nodes[message_id][1]
        return line[::-1]

    def add(self, message: Message, conversation_id: int, parent_id: int | None) -> int:
        self.nodes[message.id] = (conversation_id, parent_id)
        self.leaves[conversation_id] = message.id
        self.touch(conversation_id)
        return message.id

    @rule(target=conversations)
    def create(self) -> int:
        conversation_id = self.store.create_conversation().id
        self.leaves[conversation_id] = None
        self.touch(conversation_id)
        return conversation_id

    @rule(target=messages, conversation_id=conversations)
    def send_at_the_leaf(self, conversation_id: int) -> object:
        if conversation_id not in self.leaves or conversation_id in self.deleted:
            return multiple()
        leaf_id = self.leaves[conversation_id]
        message = self.store.add_user_message(conversation_id, leaf_id, "sent")
        return self.add(message, conversation_id, leaf_id)

    @rule(target=messages, message_id=messages)
    def edit(self, message_id: int) -> object:
        if message_id not in self.nodes or self.nodes[message_id][0] in self.deleted:
            return multiple()
        conversation_id, parent_id = self.nodes[message_id]
        message = self.store.add_user_message(conversation_id, parent_id, "edited")
        return self.add(message, conversation_id, parent_id)

    @rule(target=messages, message_id=messages)
    def reply(self, message_id: int) -> object:
        if message_id not in self.nodes or self.nodes[message_id][0] in self.deleted:
            return multiple()
        conversation_id, _ = self.nodes[message_id]
        message = self.store.begin_reply(conversation_id, message_id, "model")
        self.store.finish_reply(message.id, "answer", MessageState.COMPLETE)
        return self.add(message, conversation_id, message_id)

    @rule(message_id=messages)
    def switch(self, message_id: int) -> None:
        if message_id not in self.nodes or self.nodes[message_id][0] in self.deleted:
            return
        conversation_id, _ = self.nodes[message_id]
        leaf_id = self.store.deepest_leaf(message_id)
        assert leaf_id == max(other for other in self.nodes if message_id in self.lineage(other))
        self.store.set_leaf(conversation_id, leaf_id)
        self.leaves[conversation_id] = leaf_id

    @rule(conversation_id=conversations)
    def delete_or_undo(self, conversation_id: int) -> None:
        if conversation_id not in self.leaves:
            return
        if conversation_id in self.deleted:
            self.store.undo_delete(conversation_id)
        else:
            self.store.delete(conversation_id)
        self.deleted ^= {conversation_id}

    @rule()
    def purge(self) -> None:
        assert self.store.purge_deleted() == len(self.deleted)
        self.leaves = {key: leaf for key, leaf in self.leaves.items() if key not in self.deleted}
        self.nodes = {key: node for key, node in self.nodes.items() if node[0] not in self.deleted}
        self.last_touched = [key for key in self.last_touched if key not in self.deleted]
        self.deleted = set()

    @rule(message_id=messages, limit=st.integers(1, 5), back=st.integers(0, 5))
    def read_a_window(self, message_id: int, limit: int, back: int) -> None:
        if message_id not in self.nodes:
            return
        line = self.lineage(message_id)
        before = line[-1 - back] if back < len(line) else None
        above = line if before is None else line[: line.index(before)]
        found = self.store.path(message_id, limit=limit, before=before)
        assert [message.id for message in found] == above[-limit:]

    @invariant()
    def every_conversation_agrees(self) -> None:
        living = [key for key in reversed(self.last_touched) if key not in self.deleted]
        assert [conversation.id for conversation in self.store.conversations()] == living
        for conversation_id in living:
            leaf_id = self.leaves[conversation_id]
            assert self.store.conversation(conversation_id).leaf_id == leaf_id
            if leaf_id is not None:
                self.check_path(leaf_id)

    def check_path(self, leaf_id: int) -> None:
        path = self.store.path(leaf_id)
        assert [message.id for message in path] == self.lineage(leaf_id)
        for message in path:
            node = self.nodes[message.id]
            assert (message.conversation_id, message.parent_id) == node
            assert message.siblings == tuple(
                sorted(other for other in self.nodes if self.nodes[other] == node)
            )


TestTree = TreeMachine.TestCase
TestTree.settings = settings(max_examples=15, stateful_step_count=30)
