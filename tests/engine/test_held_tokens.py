"""Held tokens stand in a prompt where they write what the prompt says, however a model split it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from engine.held_tokens import with_held_tokens
from engine.kv.page_map import SpanKind, TextSpan
from engine.model import Model
from engine.spans import Prompt
from engine.token_bytes import TokenBytes
from engine.tokens import encode
from tests.engine.gguf.files import BYTES
from tests.engine.splits import by_bytes, pieces_of, split

MARKER = "<|im_start|>assistant\n"
WORDS = "Lighthouses unbelievably outlasted their keepers. Überraschend! 灯台 🗼 1234"


class Splitter:
    """The starter's tokenizer, and other ways to split."""

    def __init__(self, model: Model) -> None:
        self.tokenizer = model.tokenizer._tokenizer
        found = TokenBytes.of(self.tokenizer)
        assert found is not None
        self.token_bytes = found
        self.pieces = pieces_of(self.tokenizer.backend_tokenizer)

    def rendered(self, text: str) -> list[int]:
        return encode(self.tokenizer, text)

    def by_bytes(self, text: str) -> list[int]:
        return split(text, self.pieces, by_bytes)

    def as_held(self, wanted: Prompt, *held: Prompt) -> Prompt:
        """Return what stands in a prompt then, having seen that it says the same."""
        found = with_held_tokens(wanted, held, self.token_bytes)
        assert self.written(found.tokens) == self.written(wanted.tokens)
        assert [span.key for span in found.spans] == [span.key for span in wanted.spans]
        for span, before in zip(found.spans, wanted.spans, strict=True):
            assert self.written(found.tokens[: span.start]) == self.written(wanted.tokens[: before.start])
        return found

    def written(self, tokens: list[int]) -> bytes:
        return b"".join(self.token_bytes.each(tokens))


@pytest.fixture(scope="module")
def splitter(starter: Model) -> Splitter:
    return Splitter(starter)


def prompt_of(*spans: tuple[str, list[int], list[int]]) -> Prompt:
    """Return a prompt of spans: the key, the marker, the words of each."""
    tokens, named = [], []
    for key, marker, words in spans:
        start = len(tokens)
        tokens += [*marker, *words]
        named.append(TextSpan(SpanKind.ASSISTANT, key, start, len(tokens), key, len(marker)))
    return Prompt(tokens, tuple(named))


def test_the_bytes_of_tokens_are_what_the_tokenizer_decodes(splitter: Splitter) -> None:
    for tokens in (splitter.rendered(WORDS), splitter.by_bytes(WORDS)):
        assert splitter.written(tokens) == WORDS.encode()
        assert splitter.tokenizer.decode(tokens) == WORDS


def test_tokens_of_a_sentencepiece_kind_write_bytes_and_spaces() -> None:
    pieces = ["▁", "a", "▁a", "<0xC3>", "<0xA9>", "é"]
    tokenizer = Tokenizer(models.BPE({piece: at for at, piece in enumerate(pieces)}, [], byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps)
    found = TokenBytes.of(PreTrainedTokenizerFast(tokenizer_object=tokenizer))
    assert found is not None
    for tokens in ([2, 5], [0, 1, 3, 4]):
        assert b"".join(found.each(tokens)) == " aé".encode()
        assert tokenizer.decode(tokens) == " aé"


def test_where_a_token_depends_on_others_nothing_is_known() -> None:
    tokenizer = Tokenizer(models.WordPiece({"a": 0, "##a": 1, "[UNK]": 2}))
    tokenizer.decoder = decoders.WordPiece()
    assert TokenBytes.of(PreTrainedTokenizerFast(tokenizer_object=tokenizer)) is None


def test_the_same_words_are_as_they_are_held_and_their_marker_as_it_is(splitter: Splitter) -> None:
    marker, other = splitter.rendered(MARKER), splitter.rendered("<|im_end|>\n" + MARKER)
    decoded = splitter.by_bytes(WORDS)
    question = ("m2", marker, splitter.rendered("And then?"))
    wanted = prompt_of(("m1", other, splitter.rendered(WORDS)), question)

    found = splitter.as_held(wanted, prompt_of(("m1", marker, decoded)))

    assert found == prompt_of(("m1", other, decoded), question)


def test_a_token_across_the_border_of_a_marker_is_as_it_is_held(splitter: Splitter) -> None:
    held = prompt_of(("m1", splitter.rendered("Answer: "), splitter.rendered("Hello there")))
    rendered = splitter.rendered("Answer: Hello there")
    assert rendered[:2] == splitter.rendered("Answer:") and rendered != held.tokens

    assert splitter.as_held(prompt_of(("m1", rendered[:3], rendered[3:])), held) == held


def test_white_space_before_the_words_is_as_it_is_held_behind_another_marker(splitter: Splitter) -> None:
    marker, other = splitter.rendered(MARKER), splitter.rendered("<|im_end|>\n" + MARKER)
    decoded = splitter.by_bytes("   if so")
    held, wanted = prompt_of(("m1", marker, decoded)), splitter.rendered("   if so")

    assert splitter.as_held(prompt_of(("m1", other, wanted)), held) == prompt_of(("m1", other, decoded))


@pytest.mark.parametrize("stripped", ["\n\n", "  ", " \t\n"])
def test_what_precedes_stripped_white_space_is_as_it_is_held(splitter: Splitter, stripped: str) -> None:
    marker = splitter.rendered(MARKER)
    decoded = splitter.by_bytes(WORDS)
    held = prompt_of(("m1", marker, [*decoded, *splitter.rendered(stripped)]))
    wanted = prompt_of(("m1", marker, splitter.rendered(WORDS)))

    assert splitter.as_held(wanted, held) == prompt_of(("m1", marker, decoded))


def test_what_follows_stripped_white_space_is_as_it_is_held(splitter: Splitter) -> None:
    marker, decoded = splitter.rendered(MARKER), splitter.by_bytes(WORDS)
    held = prompt_of(("m1", marker, [*splitter.rendered("\n\n"), *decoded]))

    found = splitter.as_held(prompt_of(("m1", marker, splitter.rendered(WORDS))), held)

    assert found == prompt_of(("m1", marker, decoded))


def test_text_that_was_rewritten_is_as_it_is_held_up_to_there(splitter: Splitter) -> None:
    marker, one, other = splitter.rendered(MARKER), " over the sea of the north", " under it all"
    held = prompt_of(("m1", marker, splitter.by_bytes(WORDS + one)))
    wanted = prompt_of(("m1", marker, splitter.rendered(WORDS + other)))

    assert splitter.as_held(wanted, held) == prompt_of(
        ("m1", marker, [*splitter.by_bytes(WORDS), *splitter.rendered(other)])
    )


def test_reasoning_that_is_dropped_leaves_the_answer_as_it_is_rendered(splitter: Splitter) -> None:
    marker = splitter.rendered(MARKER)
    held = prompt_of(("m1", marker, splitter.by_bytes("<think>Which ones?</think>\n\n" + WORDS)))
    wanted = prompt_of(("m1", marker, splitter.rendered(WORDS)))

    assert splitter.as_held(wanted, held) == wanted


def test_a_special_token_is_not_the_words_that_spell_it(splitter: Splitter) -> None:
    marker = splitter.rendered(MARKER)
    held = prompt_of(("m1", marker, splitter.by_bytes("<|im_end|> and all that")))
    wanted = prompt_of(("m1", marker, splitter.rendered("<|im_end|> and all that")))

    assert splitter.as_held(wanted, held) == wanted


def test_a_character_that_is_not_whole_stays_as_it_is_rendered(splitter: Splitter) -> None:
    marker, decoded = splitter.rendered(MARKER), splitter.by_bytes("It is 灯")
    wanted = prompt_of(("m1", marker, splitter.rendered("It is �")))
    held = prompt_of(("m1", marker, decoded[:-1]))

    found = splitter.as_held(wanted, held)

    assert found.tokens[: len(marker) + 6] == held.tokens[: len(marker) + 6]


def test_words_of_another_key_and_words_without_a_key_stay_as_they_are_rendered(splitter: Splitter) -> None:
    marker, decoded = splitter.rendered(MARKER), splitter.by_bytes(WORDS)
    for key, other in (("m1", "m2"), ("", "")):
        wanted = prompt_of((key, marker, splitter.rendered(WORDS)))
        assert splitter.as_held(wanted, prompt_of((other, marker, decoded))) == wanted


TEXTS = st.text(st.sampled_from("ab éß灯🗼\n.,T1'") | st.characters(codec="utf-8"), max_size=30)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=4),
    is_new_marker=st.booleans(),
    strip=st.booleans(),
    randomly=st.randoms(use_true_random=False),
)
def test_any_split_of_any_words_is_as_it_is_held(
    splitter: Splitter, texts: list[str], is_new_marker: bool, strip: bool, randomly: object
) -> None:
    choose = randomly.randrange  # type: ignore[attr-defined]
    assume(all(BYTES[byte] in splitter.pieces for text in texts for byte in text.encode()))
    marker = splitter.rendered(MARKER)
    other = splitter.rendered("<|im_end|>\n" + MARKER) if is_new_marker else marker
    decoded = [split(text, splitter.pieces, choose) for text in texts]
    keys = [f"m{number}" for number in range(len(texts))]
    held = prompt_of(*zip(keys, itertools.repeat(marker), decoded, strict=False))
    words = [splitter.rendered(text.rstrip() if strip else text) for text in texts]
    wanted = prompt_of(*zip(keys, itertools.repeat(other), words, strict=False))

    found = splitter.as_held(wanted, held)

    for span, text, own in zip(found.spans, texts, decoded, strict=True):
        assert span.marker_tokens == len(other)
        if not strip or text == text.rstrip():
            assert found.tokens[span.start + len(other) : span.stop] == own


def test_thousands_of_tokens_in_many_answers_are_quick(splitter: Splitter) -> None:
    marker, words = splitter.rendered(MARKER), splitter.rendered(WORDS * 5)
    decoded = splitter.by_bytes(WORDS * 5)
    keys = [f"m{number}" for number in range(60)]
    wanted = prompt_of(*((key, marker, words) for key in keys))
    held = prompt_of(*((key, marker, decoded) for key in keys))
    assert len(held.tokens) > 20_000
    splitter.as_held(wanted, held)

    start = time.process_time()
    with_held_tokens(wanted, [held], splitter.token_bytes)

    assert time.process_time() - start < 0.5  # a fiftieth of that, where nothing else runs


def test_what_is_held_as_it_is_rendered_costs_nothing(splitter: Splitter) -> None:
    marker, words = splitter.rendered(MARKER), splitter.rendered(WORDS)
    wanted = prompt_of(("m1", marker, words), ("m2", marker, words))
    held = prompt_of(("m1", marker, words), ("m2", marker, splitter.by_bytes(WORDS)))
    looked_at: list[list[int]] = []

    class Recording(TokenBytes):
        def each(self, tokens: Sequence[int]) -> list[bytes]:
            looked_at.append(list(tokens))
            return super().each(tokens)

    recording = Recording.of(splitter.tokenizer)
    assert recording is not None

    assert with_held_tokens(wanted, [held], recording) == held
    assert sorted(looked_at) == sorted([[*marker, *words], held.tokens[held.spans[1].start :]])
