"""What is measured of each cache, and the bars that the figures are held against."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bench.kv.kinds import (
    COLD_3,
    COLD_4,
    DEFAULT_4,
    FEW_PAGES,
    MLX_LM_3,
    MLX_LM_4,
    MLX_LM_16,
    CacheKind,
)


@dataclass(frozen=True)
class Quality:
    """How far the next-token distributions are from those with mlx-lm's cache at 16 bits.

    Attributes:
        kl: Kullback-Leibler divergence from them, the mean over the text, in nats.
        perplexity: of the text.
        top1: share of positions whose likeliest token is the same.
        nbytes_per_token: of keys and values at the end of the text, windows and unused room included.
    """

    kl: float
    perplexity: float
    top1: float
    nbytes_per_token: float


@dataclass(frozen=True)
class Prefill:
    """Reading the text in one go.

    Attributes:
        tps: tokens per second until the first token of the answer.
        peak_nbytes: the most that MLX held meanwhile beyond the weights.
        sealed_nbytes_per_token: of tokens that lie in sealed pages; None where no page is full. mlx-lm's
            cache has no pages, so there it is that of every token.
        nbytes: of all keys and values after it, windows and unused room included.
    """

    tps: float
    peak_nbytes: int
    sealed_nbytes_per_token: float | None
    nbytes: int


@dataclass(frozen=True)
class Step:
    """One step of decode behind the text, medians in seconds.

    Attributes:
        total_s: a token, everything included.
        attention_s: attention over the cache alone, all layers.
        model_s: a forward pass behind a single token: the weights.
        sampling_s: choosing the token from the logits.
        building_s: Python and MLX queuing a step's operations, while the step before is computed.
        caught: share of the attention mass within the attention budget; None where all pages are read or
            no sample was taken.
    """

    total_s: float
    attention_s: float
    model_s: float
    sampling_s: float
    building_s: float
    caught: float | None

    @property
    def tps(self) -> float:
        """Tokens per second."""
        return 1 / self.total_s

    @property
    def rest_s(self) -> float:
        """What is left: taking in new keys and values, waiting for Python, heat, noise."""
        return self.total_s - self.attention_s - self.model_s - self.sampling_s


@dataclass(frozen=True)
class Row:
    """What was measured of one cache; None for what was not."""

    kind: CacheKind
    quality: Quality | None
    prefill: Prefill | None
    step: Step | None


@dataclass(frozen=True)
class Bar:
    """A figure and the limit that it is held against.

    Attributes:
        title: what is compared, in words.
        limit: the most or the least that it may be.
        is_least: whether `limit` is the least.
        figure: None where it was not measured.
        unit: of both.
    """

    title: str
    limit: float
    is_least: bool
    figure: float | None
    unit: str = "x"

    @property
    def met(self) -> bool | None:
        """Whether the figure keeps to the limit."""
        if self.figure is None:
            return None
        return self.figure >= self.limit if self.is_least else self.figure <= self.limit


@dataclass(frozen=True)
class KVBench:
    """All figures.

    Attributes:
        num_tokens: length of the text.
        setup: device, BLAS and weights, in words; the same for both sides.
        versions: of the packages that computed, in words.
        rows: by cache.
    """

    num_tokens: int
    setup: str
    versions: str
    rows: tuple[Row, ...]

    def row(self, kind: CacheKind) -> Row:
        """Return what was measured of a cache, nothing where it was not."""
        return next((row for row in self.rows if row.kind == kind), Row(kind, None, None, None))

    def bars(self) -> tuple[Bar, ...]:
        """Return the bars with their figures."""
        return (
            Bar("KL, 4/4 all cold, of mlx-lm 4's", 0.33, False, self._kl(COLD_4, MLX_LM_4)),
            Bar("KL, 4/4 with default tiers, of mlx-lm 4's", 0.05, False, self._kl(DEFAULT_4, MLX_LM_4)),
            Bar("KL, 3/3 all cold, of mlx-lm 3's", 0.25, False, self._kl(COLD_3, MLX_LM_3)),
            Bar("bytes a token in sealed pages, of mlx-lm 4's", 1.02, False, self._sealed_nbytes()),
            Bar("bytes of the whole cache, of mlx-lm 4's", 1.15, False, self._prefill("nbytes", MLX_LM_4)),
            Bar("prefill speed, of mlx-lm 4's", 3.0, True, self._prefill("tps", MLX_LM_4)),
            Bar("prefill speed, of mlx-lm 16's", 1.0, True, self._prefill("tps", MLX_LM_16)),
            Bar("decode speed, of mlx-lm 4's", 1.15, True, self._decode()),
            Bar("peak beyond weights, of mlx-lm 4's", 1.15, False, self._prefill("peak_nbytes", MLX_LM_4)),
            Bar("attention, all pages against the best 8", 2.0, True, self._attention()),
        )

    def _kl(self, ours: CacheKind, theirs: CacheKind) -> float | None:
        one, other = self.row(ours).quality, self.row(theirs).quality
        return one.kl / other.kl if one and other else None

    def _sealed_nbytes(self) -> float | None:
        one, other = self.row(COLD_4).prefill, self.row(MLX_LM_4).prefill
        if one is None or other is None:
            return None
        ours, theirs = one.sealed_nbytes_per_token, other.sealed_nbytes_per_token
        return ours / theirs if ours and theirs else None

    def _prefill(self, field: str, theirs: CacheKind) -> float | None:
        one, other = self.row(COLD_4).prefill, self.row(theirs).prefill
        return getattr(one, field) / getattr(other, field) if one and other else None

    def _decode(self) -> float | None:
        one, other = self.row(COLD_4).step, self.row(MLX_LM_4).step
        return one.tps / other.tps if one and other else None

    def _attention(self) -> float | None:
        one, other = self.row(COLD_4).step, self.row(FEW_PAGES).step
        return one.attention_s / other.attention_s if one and other else None
