"""Generation against mlx-lm's own loop and against reading everything anew."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.tokenizer_utils import TokenizerWrapper

from engine.alignment import common_prefix
from engine.budget import kv_nbytes_per_token
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.events import (
    CacheChanged,
    Finished,
    PrefillProgress,
    StopReason,
    Token,
)
from engine.generate import LAST_PASS_TOKENS, Generation
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import Model
from engine.sampling import SamplingParams
from tests.engine.replies import GREEDY, generate, layers_hold, new_cache, outcome, prompt_of


def test_greedy_tokens_are_those_of_mlx_lms_own_loop(starter: Model) -> None:
    prompt = prompt_of(starter)
    expected = [token for token, _ in generate_step(mx.array(prompt), starter.module, max_tokens=12)]
    tokens, text, stats = outcome(generate(starter, prompt))
    assert tokens[:12] == expected
    assert text.strip() == starter.tokenizer.decode(expected).strip()
    assert stats.stop_reason is StopReason.LENGTH
    assert stats.prompt_tokens == len(prompt)
    assert stats.completion_tokens == 12


def test_the_end_of_a_prompt_is_read_in_the_pass_of_the_first_token(
    starter: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, prompt = new_cache(starter), prompt_of(starter)
    assert len(prompt) > LAST_PASS_TOKENS
    expected, _, _ = outcome(generate(starter, prompt))
    reads: list[int] = []
    read = SequenceCache.read

    def noted(self: SequenceCache, tokens: Sequence[int]) -> mx.array:
        reads.append(len(tokens))
        return read(self, tokens)

    monkeypatch.setattr(SequenceCache, "read", noted)
    cache.read(prompt[:-LAST_PASS_TOKENS])
    tokens, _, stats = outcome(generate(starter, prompt, cache=cache))
    assert reads == [len(prompt) - LAST_PASS_TOKENS]  # the one above alone
    assert tokens == expected and cache.tokens[: len(prompt)] == prompt
    assert stats.reused_tokens == len(prompt) - LAST_PASS_TOKENS


def test_the_text_of_a_reply_is_whole_even_when_characters_span_tokens(starter: Model) -> None:
    prompt = prompt_of(starter, "Repeat exactly: 😀🎉")
    tokens, text, _ = outcome(generate(starter, prompt))
    assert text.strip() == starter.tokenizer.decode(tokens).strip()


def test_the_model_ends_its_own_turn(starter: Model) -> None:
    sampling = SamplingParams(temperature=0, repetition_penalty=1, max_tokens=300)
    cache = new_cache(starter)
    _, text, stats = outcome(
        generate(starter, prompt_of(starter, "Say hello."), cache=cache, sampling=sampling)
    )
    assert stats.stop_reason is StopReason.END
    assert "<|im_end|>" not in text
    assert cache.tokens[-1] in starter.tokenizer.eos_token_ids
    assert layers_hold(cache) == {len(cache.tokens)}


def test_a_second_turn_reads_only_what_is_new_and_answers_the_same(starter: Model) -> None:
    cache = new_cache(starter)
    first = prompt_of(starter)
    outcome(generate(starter, first, cache=cache))
    longer = [*first[:-3], *prompt_of(starter, "And then?")]
    assert cache.truncate(common_prefix(cache.tokens, longer))
    held = len(cache.tokens)
    tokens, _, stats = outcome(generate(starter, longer, cache=cache))
    assert stats.reused_tokens == held >= len(first) - 3
    expected, _, whole = outcome(generate(starter, longer))
    assert tokens == expected
    assert whole.reused_tokens == 0


def test_a_full_context_ends_the_reply(starter: Model) -> None:
    prompt = prompt_of(starter, "Hello")
    _, _, stats = outcome(generate(starter, prompt, limit_tokens=len(prompt) + 3))
    assert stats.stop_reason is StopReason.CONTEXT
    assert stats.completion_tokens == 3


@pytest.mark.slow
def test_a_seed_repeats_an_answer_and_another_one_changes_it(starter: Model) -> None:
    prompt = prompt_of(starter, "Tell me a story.")

    def answer(seed: int | None) -> list[int]:
        sampling = SamplingParams(temperature=1.2, top_k=50, max_tokens=12, seed=seed)
        return outcome(generate(starter, prompt, sampling=sampling))[0]

    assert answer(7) == answer(7) != answer(8)
    assert answer(None) != answer(None)


@pytest.mark.parametrize("rule", [{"top_p": 0.0}, {"top_k": 1}, {"min_p": 1.0}])
def test_the_narrowest_sampling_takes_the_likeliest_token(starter: Model, rule: dict[str, float]) -> None:
    prompt = prompt_of(starter, "Tell me a story.")
    sampling = SamplingParams(
        **{"temperature": 1.5, "repetition_penalty": 1, "max_tokens": 12, **rule}  # type: ignore[arg-type]
    )
    assert outcome(generate(starter, prompt, sampling=sampling))[0] == outcome(generate(starter, prompt))[0]


def test_a_top_k_beyond_the_vocabulary_is_off(starter: Model) -> None:
    sampling = SamplingParams(temperature=1, top_k=1000, max_tokens=2)
    assert len(outcome(generate(starter, prompt_of(starter, "Hi"), sampling=sampling))[0]) >= 1


def test_the_repetition_penalty_counts_tokens_just_written(starter: Model) -> None:
    prompt = prompt_of(starter, "Write the word no again and again: no no no no no no")
    strong = SamplingParams(temperature=0, repetition_penalty=2, max_tokens=12)
    tokens, _, _ = outcome(generate(starter, prompt, sampling=strong))
    assert len(set(tokens)) == len(tokens)


@pytest.mark.slow
@pytest.mark.parametrize("bits", ["8", "k8v4", "4", "3"])
def test_cold_pages_take_the_bytes_of_the_formula(starter: Model, bits: str) -> None:
    kv = KVSpec.parse(f"{bits}; page=64, hot=0, warm=0")
    *_, stats = outcome(generate(starter, prompt_of(starter), cache=new_cache(starter, kv)))
    usage = stats.kv_usage
    assert usage is not None and usage.cold_pages >= 2
    per_token = kv_nbytes_per_token(starter.info, starter.backend, kv)
    assert usage.sealed_nbytes == pytest.approx((usage.num_tokens - usage.open_tokens) * per_token, rel=0.02)


@pytest.mark.parametrize("change_at", [PrefillProgress, Token])
def test_a_lower_precision_reaches_a_running_reply(starter: Model, change_at: type) -> None:
    wanted = KVSpec.parse("8; page=64, hot=0, warm=0")
    lower = KVSpec.parse("4; page=128, hot=0, warm=0")
    cache = new_cache(starter, wanted)
    prompt = prompt_of(starter)
    cache.read(prompt[:128])
    generation = Generation(
        starter,
        cache,
        prompt,
        GREEDY,
        limit_tokens=8192,
        cancel=CancelToken(),
        wanted_kv=lambda: wanted,
    )
    changes = []
    for event in generation.events():
        if isinstance(event, change_at):
            wanted = lower
        if isinstance(event, CacheChanged):
            changes.append(event.usage.effective)
    # Pages of another size wait for the next reply; the bits do not.
    assert list(dict.fromkeys(changes)) == [(8, 8), (4, 4)]
    assert cache.spec == KVSpec.parse("4; page=64, hot=0, warm=0")
    assert isinstance(event, Finished) and event.stats.completion_tokens == GREEDY.max_tokens


@pytest.mark.parametrize(
    ("tail", "first_text"),
    [
        ("<filename>\n", "<filename>"),
        ("<filename>\n\n<file_sep>\n\n", None),
        ("", None),
        ("<filename> long ago, and since then much was said", None),
    ],
)
def test_reasoning_that_the_template_begins_is_marked_in_the_reply(
    starter: Model, tail: str, first_text: str | None
) -> None:
    # Two special tokens of the starter stand in for <think> and </think>, which it does not have.
    tokenizer = TokenizerWrapper(starter.tokenizer._tokenizer)
    encode = starter.tokenizer._tokenizer.convert_tokens_to_ids
    tokenizer._think_start, tokenizer._think_start_tokens = "<filename>", (encode("<filename>"),)
    tokenizer._think_end, tokenizer._think_end_tokens = "<file_sep>", (encode("<file_sep>"),)
    model = Model(starter.module, tokenizer, starter.info, starter.backend)
    prompt = prompt_of(starter, "Hi") + tokenizer.encode(tail, add_special_tokens=False)
    _, text, _ = outcome(generate(model, prompt))
    assert text.startswith(first_text) if first_text else "<filename>" not in text


def test_damaged_weights_are_named_and_leave_nothing_in_the_cache(starter: Model) -> None:
    norm = starter.module.model.norm
    sound, norm.weight = norm.weight, norm.weight * float("nan")
    cache = new_cache(starter)
    try:
        with pytest.raises(ModelError, match="its weights are damaged"):
            list(generate(starter, prompt_of(starter, "Hi"), cache=cache))
    finally:
        norm.weight = sound
    assert cache.tokens == [] and layers_hold(cache) == {0}
    assert outcome(generate(starter, prompt_of(starter, "Hi"), cache=cache))[1]
