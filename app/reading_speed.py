"""How fast a model reads and writes on this machine, as far as that was measured."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass

from engine.model_info import ModelInfo
from engine.requests import LoadedModel

_REMEMBERED_TOKENS = 8192
"""What was measured counts half as much when so many more tokens have been measured."""
_TRUSTED_TOKENS = 256
"""How a token's time grows with its position is believed of the model's shape as if so many tokens"""
_TRUSTED_SPREAD = 512
"""at positions so far from each other had shown it."""


@dataclass(frozen=True)
class TokenTime:
    """The time that a token takes, a straight line over its position: weights are tokens, newer ones more.

    Fitted by weighted least squares, with the growth that is expected as a weak prior.

    Attributes:
        growth: what a position more is expected to add, as a share of what the first token takes.
        tokens: the weight of all that was measured.
        position: their positions, summed.
        position_2: the squares of these, summed.
        time: their times in seconds, summed.
        time_position: products of time and position, summed.
    """

    growth: float = 0.0
    tokens: float = 0.0
    position: float = 0.0
    position_2: float = 0.0
    time: float = 0.0
    time_position: float = 0.0

    def with_measured(self, start: int, stop: int, seconds: float) -> TokenTime:
        """Return the same with the time that the tokens at positions `start` to `stop` have taken."""
        tokens, middle = stop - start, (start + stop) / 2
        if tokens <= 0 or seconds <= 0:
            return self
        kept = 0.5 ** (tokens / _REMEMBERED_TOKENS)
        return TokenTime(
            self.growth,
            kept * self.tokens + tokens,
            kept * self.position + tokens * middle,
            kept * self.position_2 + tokens * middle**2,
            kept * self.time + seconds,
            kept * self.time_position + seconds * middle,
        )

    def seconds(self, start: int, stop: int) -> float | None:
        """Return what the tokens at positions `start` to `stop` take; None before anything was measured."""
        if not self.tokens:
            return None
        first, each = self._line
        return (stop - start) * (first + each * (start + stop) / 2)

    @property
    def _line(self) -> tuple[float, float]:
        """The time of a token at position 0, and what each position adds: neither is below 0."""
        prior = _TRUSTED_TOKENS * _TRUSTED_SPREAD**2
        a, b, c = (
            self.tokens + prior * self.growth**2,
            self.position - prior * self.growth,
            self.position_2 + prior,
        )
        determinant = a * c - b * b
        first = (self.time * c - self.time_position * b) / determinant
        each = (self.time_position * a - self.time * b) / determinant
        if each < 0:
            return self.time / self.tokens, 0.0
        if first < 0:
            return 0.0, self.time_position / self.position_2
        return first, each


@dataclass(frozen=True)
class ReadingSpeed:
    """How fast a model reads and writes on this machine; nothing is known before it was measured.

    Attributes:
        read: the time of a token of a prompt.
        written: the time of a token of an answer.
    """

    read: TokenTime = TokenTime()
    written: TokenTime = TokenTime()

    @property
    def is_measured(self) -> bool:
        """Whether it is known how fast it reads and writes."""
        return self.read.tokens > 0 and self.written.tokens > 0

    def reading_s(self, num_tokens: int, behind_tokens: int = 0) -> float | None:
        """Return the seconds to read so many tokens behind others; None while that is not known."""
        return self.read.seconds(behind_tokens, behind_tokens + num_tokens)

    def writing_s(self, num_tokens: int, behind_tokens: int = 0) -> float | None:
        """Return the seconds to write so many tokens behind others; None while that is not known."""
        return self.written.seconds(behind_tokens, behind_tokens + num_tokens)

    def with_read(self, start: int, stop: int, seconds: float) -> ReadingSpeed:
        """Return the same with the time that a stretch of a prompt has taken."""
        return dataclasses.replace(self, read=self.read.with_measured(start, stop, seconds))

    def with_written(self, start: int, stop: int, seconds: float) -> ReadingSpeed:
        """Return the same with the time that a stretch of an answer has taken."""
        return dataclasses.replace(self, written=self.written.with_measured(start, stop, seconds))

    @property
    def as_text(self) -> str:
        """It as JSON, as it is stored."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def of_model(cls, info: ModelInfo, text: str | None = None) -> ReadingSpeed:
        """Return what was stored of a model; one of which nothing is known where that cannot be read."""
        unknown = cls(TokenTime(growth=_attention_growth(info)), TokenTime())
        try:
            stored = json.loads(text or "{}")
            return cls(*(_with_sums(getattr(unknown, name), stored[name]) for name in ("read", "written")))
        except (ValueError, KeyError, TypeError, RecursionError):
            return unknown


def speed_key(loaded: LoadedModel) -> str:
    """Return what the speed of a loaded model is stored by: its weights unpacked are another matter."""
    return f"{loaded.info.name}{'' if loaded.plan.dequantize else ', packed'}"


def _with_sums(empty: TokenTime, sums: dict[str, float]) -> TokenTime:
    names = [field.name for field in dataclasses.fields(TokenTime) if field.name != "growth"]
    values = {name: float(sums[name]) for name in names}
    if not all(0 <= value < math.inf for value in values.values()):
        raise ValueError(f"no sums of times: {values}")
    return dataclasses.replace(empty, **values)


def _attention_growth(info: ModelInfo) -> float:
    """Return what a position adds to reading a token: operations of attention by those of the weights."""
    attention = 2 * info.num_layers * info.num_heads * info.head_dim
    return attention / max(1, info.num_parameters)
