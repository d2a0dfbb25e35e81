"""What tokens have taken, as the engine tells it."""

from __future__ import annotations

from pathlib import Path

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.model import ChatMessage
from engine.token_times import TokenTimes
from tests.engine.small_engine import answer, asked, rendered, small_engine, write_small_model


def test_what_was_read_and_written_is_told_once_by_its_place(tmp_path: Path, backend: Backend) -> None:
    engine = small_engine(write_small_model(tmp_path / "small"), backend)
    messages = (ChatMessage("user", "word " * 200),)

    answer(engine, asked(messages, conversation_id=1))
    stretches = engine.take_times()

    prompt_tokens = len(rendered(engine, messages))
    read = [each for each in stretches if not each.is_written]
    (written,) = (each for each in stretches if each.is_written)
    assert [each.start for each in read] == [0, *(each.stop for each in read[:-1])]
    assert prompt_tokens - 32 <= read[-1].stop <= prompt_tokens  # the last few come with the first word
    assert (written.start, written.stop) == (prompt_tokens, prompt_tokens + 7)  # the first ends the reading
    assert all(each.seconds > 0 for each in stretches)
    assert engine.take_times() == ()


def test_what_is_held_is_not_told_as_read(tmp_path: Path, backend: Backend) -> None:
    engine = small_engine(write_small_model(tmp_path / "small"), backend)
    first = ChatMessage("user", "word " * 200)
    answer(engine, asked((first,), conversation_id=1))
    engine.take_times()
    messages = (first, ChatMessage("assistant", "yes"), ChatMessage("user", "more " * 20))

    list(engine.generate(asked(messages, conversation_id=1), CancelToken()))

    assert min(each.start for each in engine.take_times()) >= 1000


def test_a_stretch_of_nothing_is_none() -> None:
    times = TokenTimes()

    times.read(5, 5, 1.0)
    times.written(5, 0, 10.0)
    times.written(5, 9, 0.0)

    assert times.take() == ()
