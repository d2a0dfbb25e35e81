"""What the next reply reads where text left the context between replies, beside where it leaves with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.alignment import align
from engine.extending import settle
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage
from engine.spans import DocumentRange, Prompt
from tests.engine.test_alignment import LLAMA2, applied, read
from tests.engine.test_chat_template import CHATML, LLAMA3, MISTRAL
from tests.engine.test_extending import Conversation
from tests.engine.test_spans import prompt_of

PLAIN = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
TEMPLATES = [CHATML, LLAMA2, LLAMA3, MISTRAL, PLAIN]
SYSTEM = ChatMessage("system", "Be brief.", key="system")
MARKER_TOKENS = 70
"""No template has more bytes between two messages."""
SUMMARY = "They spoke of lamps."


@dataclass(frozen=True)
class Turn:
    """A question, the documents that came with it, and its answer."""

    number: int
    question: str
    answer: str
    documents: tuple[str, ...] = ()

    def document_keys(self) -> list[str]:
        return [f"a{self.number}.{index}" for index in range(len(self.documents))]


@dataclass(frozen=True)
class Context:
    """What left the context: turns by number, documents by key; and before which turns a summary stands."""

    turns: frozenset[int] = frozenset()
    documents: frozenset[str] = frozenset()
    summaries: Mapping[int, str] = field(default_factory=dict)


WHOLE = Context()
NEXT = Turn(99, "And?", "")


def question(turn: Turn, context: Context) -> ChatMessage:
    """Return a question as the model reads it, what came with it at its head."""
    passages = [
        (key, words, SpanKind.DOCUMENT)
        for key, words in zip(turn.document_keys(), turn.documents, strict=True)
        if key not in context.documents
    ]
    if turn.number in context.summaries:
        passages.insert(0, (context.summaries[turn.number], SUMMARY, SpanKind.SUMMARY))
    content, ranges = "", []
    for key, words, kind in passages:
        ranges.append(DocumentRange(key, len(content), len(content) + len(words), key, kind))
        content += f"{words}\n\n"
    content = content + turn.question if turn.question else content.removesuffix("\n\n")
    return ChatMessage("user", content or "(Left out.)", tuple(ranges), f"m{turn.number}")


def written(template: str, turns: Sequence[Turn], context: Context = WHOLE) -> Prompt:
    """Return what the model reads of turns; one without an answer waits for it."""
    messages = [SYSTEM]
    for turn in turns:
        if turn.number not in context.turns:
            messages.append(question(turn, context))
            messages.append(ChatMessage("assistant", turn.answer, key=f"n{turn.number}"))
    return prompt_of(messages if messages[-1].content else messages[:-1], template)[0]


def read_by_next_reply(
    template: str, turns: Sequence[Turn], contexts: Sequence[Context], folder: Path, *, settles: bool
) -> int:
    """Return how much of a conversation the next reply reads after its context became one after another.

    It answers a next question, or the last one, where that waits.
    """
    conversation = Conversation(folder)
    conversation.reply(written(template, turns).said)
    for context in contexts if settles else ():
        wanted = written(template, turns, context)
        settle(conversation.context, wanted, released=conversation.released, check=conversation.check)
    wanted = written(template, [*turns, NEXT] if turns[-1].answer else turns, contexts[-1])
    before = conversation.num_read
    conversation.bring(wanted)
    conversation.reply(wanted)
    return conversation.num_read - before


WORDS = st.sampled_from(
    ["The lamp burns.", "The keeper sleeps. " * 4, "Document: B", "What?", "user: x", "a" * 90]
)
"""Some are said more than once, some begin as others end, and all are longer than what merges at borders."""


@st.composite
def talks(draw: st.DrawFn) -> tuple[list[Turn], list[Context]]:
    """Draw a conversation, and what its context is one after another; what was said last stays in it."""
    turns = []
    for number in range(draw(st.integers(1, 3))):
        documents = tuple(draw(st.lists(WORDS, max_size=3)))
        words = draw(WORDS | st.just("")) if documents else draw(WORDS)
        turns.append(Turn(number, words, draw(WORDS), documents))
    if draw(st.booleans()):
        turns[-1] = replace(turns[-1], question=draw(WORDS), answer="")
    keys = [key for turn in turns for key in turn.document_keys()]
    contexts = []
    for _ in range(draw(st.integers(1, 3))):
        gone = draw(st.frozensets(st.integers(0, len(turns) - 2))) if len(turns) > 1 else frozenset()
        documents = draw(st.frozensets(st.sampled_from(keys))) if keys else frozenset()
        last = [number + 1 for number in gone if number + 1 not in gone]
        summaries = {number: f"s{number}" for number in last if draw(st.booleans())}
        contexts.append(Context(gone, documents, summaries))
    return turns, contexts


TWO = Turn(0, "What?", "It is lit.", ("The lamp burns. " * 5, "The keeper sleeps. " * 40))
WITHOUT_FIRST = Context(documents=frozenset({"a0.0"}))


@pytest.mark.parametrize("template", TEMPLATES)
@given(drawn=talks())
@example(drawn=([TWO], [WITHOUT_FIRST]))
@example(drawn=([replace(TWO, answer="")], [WITHOUT_FIRST]))
@example(drawn=([Turn(0, "Is it lit? " * 40, "", ("The lamp burns. " * 5,))], [WITHOUT_FIRST]))
@example(drawn=([TWO], [WITHOUT_FIRST, WHOLE, WITHOUT_FIRST]))
@settings(max_examples=12)
def test_what_is_settled_costs_the_next_reply_no_more_than_what_is_not(
    tmp_path_factory: pytest.TempPathFactory, template: str, drawn: tuple[list[Turn], list[Context]]
) -> None:
    turns, contexts = drawn
    settled, unsettled = (
        read_by_next_reply(template, turns, contexts, tmp_path_factory.mktemp("spill"), settles=settles)
        for settles in (True, False)
    )
    assert settled <= unsettled + 2 * MARKER_TOKENS


def said_at(prompt: Prompt) -> dict[int, str]:
    """Return the key of each token that is of words."""
    return {
        index: span.key
        for span in prompt.spans
        for index in range(span.start + span.marker_tokens, span.stop)
        if span.key
    }


@pytest.mark.parametrize("template", TEMPLATES)
@given(drawn=talks())
@settings(max_examples=40)
def test_what_stays_is_of_the_same_message_or_document_however_alike_others_are(
    template: str, drawn: tuple[list[Turn], list[Context]]
) -> None:
    turns, contexts = drawn
    held = written(template, turns, contexts[0]).said
    wanted = written(template, [*turns, NEXT], contexts[-1])

    found = align(held.tokens, held.spans, wanted)

    result = applied(read(held.tokens), wanted, found)
    assert [one.token for one in result] == wanted.tokens[: found.kept_tokens]
    before, now = said_at(held), said_at(wanted)
    common = set(before.values()) & set(now.values())
    last = max((index for index, key in now.items() if key in common), default=0)
    for index, one in enumerate(result[: last + 1]):
        keys = {before.get(one.reading), now.get(index)}  # what was read anew has other numbers
        assert len(keys - {None}) <= 1


def test_the_same_words_of_another_turn_keep_their_own_name(tmp_path: Path) -> None:
    turns = [Turn(number, "What?", "The lamp burns.") for number in range(3)]
    conversation = Conversation(tmp_path)
    conversation.reply(written(CHATML, turns).said)
    for context in (Context(frozenset({0, 1})), WHOLE):
        wanted = written(CHATML, turns, context)
        settle(conversation.context, wanted, released=conversation.released, check=conversation.check)
    assert {"m2", "n2"} <= set(said_at(conversation.context.held).values()) <= {"system", "m2", "n2"}

    brought = conversation.bring(written(CHATML, [*turns, NEXT]))

    assert brought.spliced_tokens == 0


def test_a_document_leaves_at_once_before_a_last_answer_that_is_rewritten(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    turn = replace(TWO, question="")
    conversation.reply(written(CHATML, [turn]).said)
    rewritten = replace(turn, answer="Nothing of what it was.")
    wanted = written(CHATML, [rewritten], Context(documents=frozenset({"a0.1"})))

    settle(conversation.context, wanted, released=conversation.released, check=conversation.check)

    assert "a0.1" not in said_at(conversation.context.held).values()
    assert "a0.0" in said_at(conversation.context.held).values()
