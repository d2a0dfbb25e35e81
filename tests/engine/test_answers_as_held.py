"""An answer that a model split otherwise than its tokenizer does is not read again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import ContextShortened
from engine.guard import Guard, GuardStep
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import ChatMessage, DocumentRange, Model
from engine.requests import GenerationRequest
from engine.sampling import SamplingParams
from engine.spans import SpanKind
from tests.engine.folders import write_folder
from tests.engine.small_engine import answer, asked, in_hand, rendered, small_engine
from tests.engine.splits import by_bytes, pieces_of, split

EXACT = KVSpec.parse("16; page=64, group=32")
ONE = SamplingParams(temperature=0, max_tokens=1)
WORDS = "Lighthouses unbelievably outlasted their keepers, and lamps their wicks. Überraschend! 灯台"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, starter: Model) -> Path:
    """A tiny model with the starter's tokenizer and template."""
    folder = write_folder(
        tmp_path_factory.mktemp("model") / "tiny",
        bits=None,
        vocab_size=starter.info.vocab_size,
        max_position_embeddings=4096,
        eos_token_id=2,
    )
    starter.tokenizer._tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def guard() -> Guard:
    return Guard()


@pytest.fixture(scope="module")
def engine(path: Path, backend: Backend, guard: Guard, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return small_engine(path, backend, guard, tmp_path_factory.mktemp("spill"))


class Talk:
    """A conversation whose answers a test writes into the cache, in tokens of its choice."""

    def __init__(self, engine: Engine, number: int = 1) -> None:
        self.engine = engine
        self.number = number
        self.messages: tuple[ChatMessage, ...] = ()
        self.num_messages = 0
        engine.forget(number)

    @property
    def pieces(self) -> dict[str, int]:
        return pieces_of(model_of(self.engine).tokenizer._tokenizer.backend_tokenizer)

    def marker(self, text: str) -> int:
        """Return of how many tokens the template's markers around a question are, with the question."""
        tokenizer = model_of(self.engine).tokenizer._tokenizer
        around = f"<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        return len(tokenizer.encode(around))

    def ask(self, question: str, words: str | list[int], answer_text: str | None = None) -> tuple[int, int]:
        """Ask, and have an answer decoded; return how many tokens of the prompt were read, and all of them.

        Args:
            question: what is asked.
            words: the answer, byte by byte, or the tokens that it is.
            answer_text: what the conversation has of it, if that is something else.
        """
        tokens = split(words, self.pieces, by_bytes) if isinstance(words, str) else words
        self.messages += (self.message("user", question),)
        request = self.request(answer_key=f"m{self.num_messages}")
        unread = self.engine.measure(request).unread_tokens
        _, stats = answer(self.engine, request)
        num_read = stats.prompt_tokens - stats.reused_tokens
        # One token is read in any case.
        assert num_read == max(1, unread)
        self.decode(stats.prompt_tokens, tokens)
        text = model_of(self.engine).tokenizer.decode(tokens) if answer_text is None else answer_text
        self.messages += (self.message("assistant", text),)
        return num_read, stats.prompt_tokens

    def decode(self, prompt_tokens: int, tokens: list[int]) -> None:
        """Have these tokens be the answer to a prompt of so many."""
        assert self.engine._session is not None and self.engine._session.context is not None
        self.engine._session.context.truncate(prompt_tokens)
        in_hand(self.engine).read(tokens)

    def message(self, role: str, text: str) -> ChatMessage:
        self.num_messages += 1
        return ChatMessage(role, text, key=f"m{self.num_messages - 1}")  # type: ignore[arg-type]

    def request(self, *more: ChatMessage, **fields: object) -> GenerationRequest:
        return asked((*self.messages, *more), EXACT, ONE, conversation_id=self.number, **fields)


def model_of(engine: Engine) -> Model:
    assert engine._session is not None
    return engine._session.model


def logits_agree(engine: Engine) -> bool:
    """Return whether the next token's logits are those of a fresh reading of the same tokens."""
    held = in_hand(engine)
    fresh = SequenceCache(model_of(engine).module, EXACT)
    fresh.read(held.tokens)
    one, other = (np.array(each.fork().read([65])[0, -1]) for each in (held, fresh))
    fresh.close()
    return bool(np.allclose(one, other, atol=1e-4 * float(np.abs(other).max())))


def test_an_answer_in_other_tokens_is_not_read_again(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS)
    for question in ("And then?", "What else? Tell more.", "Why?"):
        num_read, num_tokens = talk.ask(question, WORDS)
        assert num_read == talk.marker(question)
        held = in_hand(engine).tokens
        assert len(held) == num_tokens + len(split(WORDS, talk.pieces, by_bytes))
        assert len(held) > len(rendered(engine, talk.messages))
    assert logits_agree(engine)


def test_white_space_that_the_template_strips_is_all_that_is_read_again(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS + "\n\n", WORDS)
    assert talk.ask("And then?", WORDS)[0] == talk.marker("And then?")
    assert logits_agree(engine)


def test_text_that_changed_is_read_again_from_there_on(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS + " Not these.", WORDS + " Or those?")
    changed = len(model_of(engine).tokenizer._tokenizer.encode(" Or those?"))
    assert talk.ask("And then?", WORDS)[0] == talk.marker("And then?") + changed
    assert logits_agree(engine)


def test_a_character_that_was_cut_off_is_all_that_is_read_again(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", split(WORDS, talk.pieces, by_bytes)[:-1])
    replacement = len(split("\ufffd", talk.pieces, by_bytes))
    assert talk.ask("And then?", WORDS)[0] <= talk.marker("And then?") + replacement + 2
    assert logits_agree(engine)


def test_turns_that_leave_and_come_back_leave_answers_in_other_tokens_unread(engine: Engine) -> None:
    talk = Talk(engine)
    for question in ("Which ones?", "And then?", "Why?"):
        talk.ask(question, WORDS)
    messages = talk.messages
    talk.messages = messages[2:]
    # Read are the question and what joins the rest to the system prompt.
    assert talk.ask("What else?", WORDS)[0] <= talk.marker("What else?") + 2
    assert in_hand(engine).next_position > in_hand(engine).num_tokens
    talk.messages = (*messages[:2], *talk.messages)
    assert talk.ask("Where?", WORDS)[0] <= talk.marker("Where?") + 4


def test_answers_in_other_tokens_stay_unread_behind_a_summary_of_what_precedes_them(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS)
    talk.ask("And then?", WORDS)
    summary, question = "Ships passed. " * 3, talk.messages[2]
    talk.messages = (
        dataclasses.replace(
            question,
            content=summary + question.content,
            documents=(DocumentRange("Summary", 0, len(summary), "s1", SpanKind.SUMMARY),),
        ),
        *talk.messages[3:],
    )
    spliced = len(model_of(engine).tokenizer._tokenizer.encode(f"<|im_end|>\n<|im_start|>user\n{summary}"))
    assert talk.ask("Why?", WORDS)[0] <= talk.marker("Why?") + spliced


def test_another_branch_and_the_way_back_leave_answers_in_other_tokens_unread(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS)
    talk.ask("And then?", WORDS)
    first = talk.messages
    talk.messages = (*first[:2], ChatMessage("user", "Where?", key="m20"))
    _, stats = answer(engine, talk.request(answer_key="m21"))
    assert stats.prompt_tokens - stats.reused_tokens <= talk.marker("Where?")
    talk.decode(stats.prompt_tokens, split(WORDS + "!", talk.pieces, by_bytes))
    talk.messages += (ChatMessage("assistant", WORDS + "!", key="m21"),)
    other = talk.messages
    for branch, question in ((first, "Why?"), (other, "Since when?"), (first, "Until when?")):
        talk.messages = branch
        assert talk.ask(question, WORDS)[0] <= talk.marker(question)


def test_what_leaves_between_replies_leaves_answers_in_other_tokens_as_they_are(engine: Engine) -> None:
    talk = Talk(engine)
    for question in ("Which ones?", "And then?", "Why?"):
        talk.ask(question, WORDS)
    whole = in_hand(engine).num_tokens
    talk.messages = (*talk.messages[:2], *talk.messages[4:])
    assert engine.settle(talk.request()) is not None
    decoded = len(split(WORDS, talk.pieces, by_bytes))
    assert whole - in_hand(engine).num_tokens == talk.marker("And then?") + decoded
    assert talk.ask("Where?", WORDS)[0] <= talk.marker("Where?") + 2


def test_what_leaves_while_memory_is_short_leaves_answers_in_other_tokens_as_they_are(
    engine: Engine, guard: Guard
) -> None:
    talk = Talk(engine)
    for question in ("Which ones?", "And then?", "Why?"):
        talk.ask(question, WORDS)
    talk.messages += (talk.message("user", "Where?"),)
    request = dataclasses.replace(talk.request(answer_key="m7"), shorter=talk.messages[2:])
    guard.height = GuardStep.TRIM
    events = list(engine.generate(request, CancelToken()))
    guard.height = GuardStep.NONE
    (shortened,) = [event for event in events if isinstance(event, ContextShortened)]
    decoded = len(split(WORDS, talk.pieces, by_bytes))
    assert shortened.num_tokens == talk.marker("Which ones?") + decoded


def test_an_aside_reads_only_its_instruction(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS)
    _, stats = answer(engine, talk.request(ChatMessage("user", "Sum up."), is_aside=True))
    assert stats.prompt_tokens - stats.reused_tokens == talk.marker("Sum up.")


def test_an_answer_in_other_tokens_comes_back_from_disk_unread(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS)
    assert engine._session is not None
    answer(engine, asked((ChatMessage("user", "Hello"),), EXACT, ONE, conversation_id=2))
    assert engine._session._held.spill_idle() > 0
    _, stats = answer(engine, talk.request(talk.message("user", "And then?"), answer_key="m3"))
    assert stats.prompt_tokens - stats.reused_tokens == talk.marker("And then?")
    assert logits_agree(engine)


def test_where_nothing_is_held_the_prompt_is_as_it_is_rendered(engine: Engine) -> None:
    talk = Talk(engine)
    talk.ask("Which ones?", WORDS)
    talk.ask("And then?", WORDS)
    engine.forget(talk.number)
    _, num_tokens = talk.ask("Why?", WORDS)
    assert in_hand(engine).tokens[:num_tokens] == rendered(engine, talk.messages[:-1])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text("ab cdeé灯.,'\n", min_size=1, max_size=60).filter(lambda text: text == text.strip()),
        min_size=1,
        max_size=3,
    ),
    randomly=st.randoms(use_true_random=False),
)
def test_answers_of_any_words_in_any_tokens_are_not_read_again(
    engine: Engine, texts: list[str], randomly: object
) -> None:
    choose = randomly.randrange  # type: ignore[attr-defined]
    talk = Talk(engine)
    for number, text in enumerate(texts):
        num_read, _ = talk.ask("And then?", split(text, talk.pieces, choose), text)
        assert number == 0 or num_read == talk.marker("And then?")
    assert talk.ask("Why?", "So.")[0] == talk.marker("Why?")
    assert logits_agree(engine)
