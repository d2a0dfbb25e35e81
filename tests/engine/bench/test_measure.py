from __future__ import annotations

from engine.bench.measure import _prompt
from engine.bench.prose import TEXT


class Letters:
    """A tokenizer with a token for each letter."""

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [ord(letter) for letter in text]


def test_the_prompt_is_the_text_repeated_to_the_length() -> None:
    letters = "".join(map(chr, _prompt(Letters(), len(TEXT) + 100)))
    assert letters == TEXT + TEXT[:100]
    assert len(_prompt(Letters(), 512)) == 512
