"""Loading, unloading and answering with the real starter model."""

from __future__ import annotations

import gc
from pathlib import Path

import mlx.core as mx
import pytest

from engine.admission import ContextOverflowError
from engine.backend import Backend
from engine.budget import kv_nbytes
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.errors import Cancelled, ModelError, OctavoError
from engine.events import CacheChanged, Finished, GenerationStats, LoadProgress
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams

EXACT = KVSpec.parse("16")


def load(engine: Engine, path: Path, cancel: CancelToken | None = None) -> list[LoadProgress]:
    progress: list[LoadProgress] = []
    engine.load(path, EXACT, cancel=cancel or CancelToken(), on_progress=progress.append)
    return progress


def request(text: str, kv: KVSpec = EXACT) -> GenerationRequest:
    return GenerationRequest((ChatMessage("user", text),), SamplingParams(temperature=0, max_tokens=2), kv)


def answer(engine: Engine, text: str, kv: KVSpec = EXACT) -> GenerationStats:
    *_, finished = engine.generate(request(text, kv), CancelToken())
    assert isinstance(finished, Finished)
    return finished.stats


@pytest.fixture(scope="module")
def engine(starter_gguf: Path, backend: Backend) -> Engine:
    engine = Engine(backend)
    load(engine, starter_gguf)
    return engine


def test_loading_tells_how_far_it_is_up_to_the_last_byte(engine: Engine, starter_gguf: Path) -> None:
    *_, last = load(engine, starter_gguf)
    assert last.done == last.total > 90_000_000
    assert engine.loaded is not None
    assert engine.loaded.info.path == starter_gguf


def test_the_same_question_again_reads_one_token(engine: Engine) -> None:
    stats = answer(engine, "Why is the sky blue?")
    again = answer(engine, "Why is the sky blue?")
    assert again.reused_tokens == again.prompt_tokens - 1
    assert again.prompt_tokens == stats.prompt_tokens


def test_another_precision_keeps_what_was_read(engine: Engine) -> None:
    answer(engine, "Why is the sky blue?")
    stats = answer(engine, "Why is the sky blue?", KVSpec.parse("4"))
    assert stats.reused_tokens == stats.prompt_tokens - 1
    assert stats.kv == "4"


def test_pages_of_another_size_read_everything_anew(engine: Engine) -> None:
    answer(engine, "Why is the sky blue?")
    stats = answer(engine, "Why is the sky blue?", KVSpec.parse("16; page=64"))
    assert stats.reused_tokens == 0


def test_a_layer_that_the_model_lacks_is_refused(engine: Engine) -> None:
    with pytest.raises(OctavoError, match="layers 0-29, heads 0-2"):
        answer(engine, "Why is the sky blue?", KVSpec.parse("16, 30:8"))


def test_a_change_that_the_reply_would_not_fit_at_waits_for_the_next(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    eight, four, exact = (KVSpec.parse(f"{bits}; page=64, hot=0, warm=0") for bits in (8, 4, 16))
    assert engine.loaded is not None
    engine.forget(0)
    # The cache has to grow to what it takes, with as much again kept free.
    enough = 2 * kv_nbytes(engine.loaded.info, engine.loaded.backend, eight, 340)
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: enough)
    wanted = iter([four, exact])
    events = list(engine.generate(request("ship " * 300, eight), CancelToken(), lambda: next(wanted, exact)))
    changes = [event.usage.requested for event in events if isinstance(event, CacheChanged)]
    assert set(changes[changes.index((4, 4)) :]) == {(4, 4)}
    assert isinstance(events[-1], Finished) and events[-1].stats.kv == str(four)


def apply(engine: Engine, kv: str) -> CacheChanged | None:
    return engine.apply_kv(KVSpec.parse(kv), CancelToken())


def test_between_replies_a_lower_precision_applies_at_once_and_a_higher_one_waits(engine: Engine) -> None:
    answer(engine, "ship " * 300, KVSpec.parse("8; page=64, hot=0, warm=0"))
    lowered = apply(engine, "4; page=64, hot=0, warm=0")
    assert lowered is not None and lowered.usage.requested == lowered.usage.effective == (4, 4)
    raised = apply(engine, "8; page=64, hot=0, warm=0")
    assert raised is not None and (raised.usage.requested, raised.usage.effective) == ((8, 8), (4, 4))
    assert raised.usage.num_below == raised.usage.cold_pages > 0
    assert apply(engine, "8; page=64, hot=0, warm=0") is None


def test_between_replies_pages_of_another_size_wait_and_their_bits_do_not(engine: Engine) -> None:
    answer(engine, "ship " * 300, KVSpec.parse("8; page=64, hot=0, warm=0"))
    changed = apply(engine, "4; page=128, hot=0, warm=0")
    assert changed is not None and changed.usage.effective == (4, 4)
    assert changed.kv == KVSpec.parse("4; page=64, hot=0, warm=0")


def test_a_stopped_change_of_precision_goes_on_with_the_next_reply(engine: Engine) -> None:
    question, first = "ship " * 300, KVSpec.parse("8; page=64, hot=0, warm=0")
    answer(engine, question, first)
    cancel = CancelToken()
    cancel.cancel()
    lower = KVSpec.parse("4; page=64, hot=0, warm=0")
    with pytest.raises(Cancelled):
        engine.apply_kv(lower, cancel)
    stats = answer(engine, question, lower)
    assert stats.reused_tokens == stats.prompt_tokens - 1
    assert stats.kv_usage is not None and stats.kv_usage.effective == (4, 4)


def test_between_replies_a_layer_that_the_model_lacks_is_refused(engine: Engine) -> None:
    answer(engine, "Why is the sky blue?")
    with pytest.raises(OctavoError, match="layers 0-29"):
        apply(engine, "16, 30:8")


def test_an_error_in_the_middle_of_a_change_drops_the_cache(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(engine, "Why is the sky blue?")

    def fail(*arguments: object) -> None:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(SequenceCache, "apply", fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            apply(engine, "4")
    assert answer(engine, "Why is the sky blue?").reused_tokens == 0


def test_a_conversation_that_does_not_fit_is_refused_with_the_numbers(engine: Engine) -> None:
    with pytest.raises(ContextOverflowError) as caught:
        answer(engine, "word " * 9_000)
    assert caught.value.needed_tokens > 9_000 > caught.value.limit_tokens
    assert f"{caught.value.needed_tokens - caught.value.limit_tokens:,} tokens too many" in str(caught.value)


def test_a_file_that_is_no_model_leaves_the_present_one(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "poem.gguf").write_text("no model")
    with pytest.raises(ModelError, match=r"poem\.gguf is not a GGUF file"):
        load(engine, tmp_path / "poem.gguf")
    assert answer(engine, "Hello").completion_tokens > 0


def test_a_load_that_is_stopped_at_once_leaves_the_present_model(engine: Engine, starter_gguf: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        load(engine, starter_gguf, cancel)
    assert answer(engine, "Hello").completion_tokens > 0


@pytest.mark.slow
def test_a_load_that_is_stopped_leaves_nothing_and_the_next_one_works(
    starter_gguf: Path, backend: Backend
) -> None:
    engine, cancel = Engine(backend), CancelToken()

    def stop_half_way(progress: LoadProgress) -> None:
        if progress.done > progress.total / 2:
            cancel.cancel()

    with pytest.raises(Cancelled):
        engine.load(starter_gguf, EXACT, cancel=cancel, on_progress=stop_half_way)
    assert engine.loaded is None
    with pytest.raises(ModelError, match="No model is loaded"):
        answer(engine, "Hello")
    load(engine, starter_gguf)
    assert answer(engine, "Hello").completion_tokens > 0
    gc.disable()
    try:
        held = mx.get_active_memory()
        engine.unload()
        assert held - mx.get_active_memory() > 90_000_000
    finally:
        gc.enable()
    assert engine.loaded is None
