"""How the next token is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import OctavoError


@dataclass(frozen=True)
class SamplingParams:
    """Sampling settings with mlx-lm's meanings; a value that switches a rule off is named with it.

    Attributes:
        temperature: 0 to 2; 0 always takes the likeliest token.
        top_p: 0 to 1; 1 is off.
        top_k: 0 to 1,000; 0 is off.
        min_p: 0 to 1; 0 is off.
        repetition_penalty: 1 to 2 over the last 64 tokens; 1 is off.
        max_tokens: the longest answer, in tokens.
        seed: 0 to 2**63 - 1, makes an answer repeatable; None takes a new one each time.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.05
    max_tokens: int = 1024
    seed: int | None = None

    def __post_init__(self) -> None:
        ranges = {
            "temperature": (0, 2),
            "top_p": (0, 1),
            "top_k": (0, 1000),
            "min_p": (0, 1),
            "repetition_penalty": (1, 2),
            "max_tokens": (1, 1_000_000),
            "seed": (0, 2**63 - 1),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise OctavoError(f"{name} is {value}; it must be from {low} to {high}.")
