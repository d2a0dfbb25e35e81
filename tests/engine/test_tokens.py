from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.gguf.header import read_header
from engine.gguf.tokenizer import build_tokenizer
from engine.tokens import PIECE_CHARACTERS, TokenCounter, encode, encode_with_offsets
from tests.engine.folders import byte_tokenizer


@pytest.fixture(scope="module")
def starter_tokenizer(starter_gguf: Path) -> PreTrainedTokenizerFast:
    return build_tokenizer(read_header(starter_gguf), CancelToken())._tokenizer


@given(text=st.text())
def test_a_count_is_the_number_of_tokens(text: str) -> None:
    # One token a byte, so the length in UTF-8 is the oracle.
    counter = _BYTE_COUNTER

    assert counter.count(text) == len(text.encode())


_BYTE_COUNTER = TokenCounter(byte_tokenizer())


def test_special_tokens_count_once_and_none_are_added() -> None:
    assert _BYTE_COUNTER.count("") == 0
    assert _BYTE_COUNTER.count("ab<end>") == 3
    assert encode(byte_tokenizer(), "ab<end>") == [97, 98, 256]


@pytest.mark.parametrize("line", ["x" * 79 + "\n", "x"])
def test_long_texts_are_counted_to_the_end(line: str) -> None:
    text = line * ((3 * PIECE_CHARACTERS + 1234) // len(line))

    assert _BYTE_COUNTER.count(text) == len(text)


def test_a_long_count_stops_between_two_pieces() -> None:
    class CancelAtSecondCheck(CancelToken):
        num_checks = 0

        def check(self) -> None:
            self.num_checks += 1
            if self.num_checks == 2:
                self.cancel()
            super().check()

    cancel = CancelAtSecondCheck()
    with pytest.raises(Cancelled):
        _BYTE_COUNTER.count("x" * (3 * PIECE_CHARACTERS), cancel)
    assert cancel.num_checks == 2


def test_counting_in_pieces_is_almost_exact(starter_tokenizer: PreTrainedTokenizerFast) -> None:
    paragraph = "It was late, and the 12 of them were tired.\n\n    def f(x):\n\treturn x\n\n\n你好，世界！\n"
    text = paragraph * (2 * PIECE_CHARACTERS // len(paragraph))

    counted = TokenCounter(starter_tokenizer).count(text)

    assert abs(counted - len(encode(starter_tokenizer, text))) <= 4


def test_truncation_that_a_tokenizer_file_asks_for_does_not_shorten_counts() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.enable_truncation(3)
    tokenizer.backend_tokenizer.enable_padding(length=20)

    assert TokenCounter(tokenizer).count("abcdef") == 6
    assert encode(tokenizer, "abcdef") == [97, 98, 99, 100, 101, 102]


def test_another_thread_counts_while_the_tokenizer_is_used(
    starter_tokenizer: PreTrainedTokenizerFast,
) -> None:
    counter = TokenCounter(starter_tokenizer)
    text = "some words and 42 numbers\n" * 200
    expected = len(encode(starter_tokenizer, text))
    counts: list[int] = []
    thread = threading.Thread(target=lambda: counts.extend(counter.count(text) for _ in range(50)))

    thread.start()
    while thread.is_alive():
        starter_tokenizer.encode(text, truncation=True, max_length=5)
    thread.join()

    assert counts == [expected] * 50


def test_other_threads_run_while_a_long_text_is_counted(starter_tokenizer: PreTrainedTokenizerFast) -> None:
    counter = TokenCounter(starter_tokenizer)
    text = ("some words and 42 numbers, " * PIECE_CHARACTERS)[:PIECE_CHARACTERS]
    thread = threading.Thread(target=counter.count, args=(text,))
    turns = 0

    thread.start()
    while thread.is_alive():
        thread.join(0.001)
        turns += 1

    # A call that held the interpreter would let this loop turn once or twice.
    assert turns >= 10


@given(text=st.text())
def test_tokens_decode_to_their_text_and_say_where_they_stand_in_it(text: str) -> None:
    tokens, offsets = encode_with_offsets(byte_tokenizer(), text)

    assert tokens == encode(byte_tokenizer(), text)
    assert _BYTE_COUNTER.decode(tokens) == text
    # One token a byte, so a character is as many tokens as its UTF-8 has bytes.
    assert offsets == [(at, at + 1) for at, letter in enumerate(text) for _ in letter.encode()]


def test_special_tokens_are_decoded_too() -> None:
    assert _BYTE_COUNTER.decode([97, 256]) == "a<end>"


def test_a_slow_tokenizer_counts_as_well() -> None:
    class Words(PreTrainedTokenizerFast):
        def encode(self, text: str, **options: object) -> list[int]:
            return [len(word) for word in text.split()]

    tokenizer = Words(tokenizer_object=byte_tokenizer().backend_tokenizer)

    assert TokenCounter(tokenizer).count("three small words") == 3
    assert encode(tokenizer, "three small words") == [5, 5, 5]
    assert encode_with_offsets(tokenizer, "three small words") == ([5, 5, 5], None)
    assert TokenCounter(tokenizer).decode([97, 98]) == "ab"
