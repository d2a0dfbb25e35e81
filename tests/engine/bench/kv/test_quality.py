from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np
import pytest

from engine.bench.kv.figures import Quality
from engine.bench.kv.kinds import MLX_LM_4, MLX_LM_16, CacheKind, MlxLmKind, OctavoKind
from engine.bench.kv.quality import CHUNK_TOKENS, make_reader, measure_quality
from engine.bench.prose import TEXT, require_tokens
from engine.kv.precision import KVSpec
from engine.model import Model

pytestmark = pytest.mark.slow

NUM_TOKENS = 140


def cold(bits: str) -> OctavoKind:
    """A kind whose pages fill up within a short text."""
    return OctavoKind(KVSpec.parse(f"{bits}; page=64, hot=0, warm=0"))


KINDS: tuple[CacheKind, ...] = (MLX_LM_16, MlxLmKind(8), MLX_LM_4, *map(cold, ("16", "8", "3")))


@pytest.fixture(scope="module")
def qualities(starter: Model) -> dict[CacheKind, Quality]:
    return measure_quality(
        make_reader(starter.module, MLX_LM_16),
        {kind: make_reader(starter.module, kind) for kind in KINDS},
        require_tokens(starter.tokenizer, TEXT, NUM_TOKENS),
        lambda done: None,
    )


def test_16_bits_lose_nothing(qualities: dict[CacheKind, Quality]) -> None:
    for kind in (MLX_LM_16, cold("16")):
        assert 0 <= qualities[kind].kl < 1e-6
        assert qualities[kind].top1 == 1
        assert qualities[kind].perplexity == pytest.approx(qualities[MLX_LM_16].perplexity, rel=1e-4)


@pytest.mark.parametrize("kinds", [[MlxLmKind(8), MLX_LM_4], [cold("8"), cold("3")]])
def test_fewer_bits_lose_more_and_take_fewer_bytes(
    qualities: dict[CacheKind, Quality], kinds: list[CacheKind]
) -> None:
    found = [qualities[kind] for kind in kinds]
    assert [one.kl for one in found] == sorted(one.kl for one in found)
    assert found[0].kl > 1e-6
    sizes = [one.nbytes_per_token for one in found]
    assert sizes == sorted(sizes, reverse=True)


class Told:
    """A cache that gives logits which were decided beforehand."""

    nbytes = 1000

    def __init__(self, logits: np.ndarray) -> None:
        self._logits = logits
        self.chunks: list[list[int]] = []

    def read(self, tokens: Sequence[int]) -> mx.array:
        start = sum(map(len, self.chunks))
        self.chunks.append(list(tokens))
        return mx.array(self._logits[None, start : start + len(tokens)])


def test_the_figures_are_those_of_the_formulas() -> None:
    rng = np.random.default_rng(3)
    num_tokens, vocabulary = CHUNK_TOKENS + 11, 50
    exact, rough = rng.normal(0, 2, (2, num_tokens, vocabulary)).astype(np.float32)
    tokens = rng.integers(0, vocabulary, num_tokens).tolist()
    reader = Told(rough)
    progress: list[int] = []
    found = measure_quality(Told(exact), {MLX_LM_4: reader}, tokens, progress.append)[MLX_LM_4]

    def probabilities(logits: np.ndarray) -> np.ndarray:
        powers = np.exp(logits.astype(np.float64))
        return powers / powers.sum(axis=-1, keepdims=True)

    p, q = probabilities(exact)[:-1], probabilities(rough)[:-1]
    assert found.kl == pytest.approx((p * np.log(p / q)).sum(axis=-1).mean(), rel=1e-4)
    surprise = [-np.log(q[index, token]) for index, token in enumerate(tokens[1:])]
    assert found.perplexity == pytest.approx(np.exp(np.mean(surprise)), rel=1e-4)
    assert found.top1 == (exact[:-1].argmax(axis=-1) == rough[:-1].argmax(axis=-1)).mean()
    assert found.nbytes_per_token == 1000 / (num_tokens - 1)
    assert [len(chunk) for chunk in reader.chunks] == [CHUNK_TOKENS, 10]
    assert progress == [CHUNK_TOKENS, num_tokens - 1]
