"""The caches that are compared, and what each keeps at 16 bits."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bench.measure import Side
from engine.kv.precision import PRESETS, KVSpec

GROUP_SIZE = 64
"""mlx-lm's default; also ours."""


@dataclass(frozen=True)
class MlxLmKind:
    """mlx-lm's cache: `KVCache` at 16 bits, else `QuantizedKVCache` from the first token on.

    Attributes:
        bits: of keys and values.
        page_tokens: None as mlx-lm does it; else the newest tokens stay at 16 bits as they do in a page of
            this size that is not full. mlx-lm cannot do that: it is for comparing like with like.
    """

    bits: int
    page_tokens: int | None = None

    side = Side.MLX_LM

    @property
    def precision(self) -> str:
        """The bits, in words."""
        return f"{self.bits}"

    @property
    def window(self) -> str:
        """What is kept at more bits, in words; empty for nothing."""
        return "open page, lent by Octavo" if self.page_tokens else ""


@dataclass(frozen=True)
class OctavoKind:
    """Our cache at a precision."""

    spec: KVSpec

    side = Side.OCTAVO

    @property
    def precision(self) -> str:
        """The bits of the cold tier, in words, with the preset's name if it is one."""
        preset = next((f" {name}" for name, spec in PRESETS.items() if spec == self.spec), "")
        attend = f", best {self.spec.attention_pages} pages" if self.spec.attention_pages else ""
        return ", ".join(str(rule) for rule in self.spec.rules) + preset + attend

    @property
    def window(self) -> str:
        """What is kept at more bits, in words; empty for nothing."""
        if self.spec.rules == KVSpec.parse("16").rules:
            return ""
        tiers = []
        if self.spec.hot_pages:
            tiers.append(f"newest {self.spec.hot_pages} at 16")
        if self.spec.warm_pages:
            tiers.append(f"first and {self.spec.warm_pages} at 8")
        return ", ".join(["open page", *tiers])


CacheKind = MlxLmKind | OctavoKind


def _cold(text: str) -> OctavoKind:
    return OctavoKind(KVSpec.parse(f"{text}; hot=0, warm=0"))


MLX_LM_16, MLX_LM_4, MLX_LM_3 = MlxLmKind(16), MlxLmKind(4), MlxLmKind(3)
OCTAVO_16, COLD_4, COLD_3 = _cold("16"), _cold("4"), _cold("3")
DEFAULT_4 = OctavoKind(KVSpec.parse("4"))
FEW_PAGES = OctavoKind(KVSpec.parse("4; hot=0, warm=0, attend=8"))

QUALITY_KINDS: tuple[CacheKind, ...] = tuple(
    dict.fromkeys(
        [
            MLX_LM_16,
            MlxLmKind(8),
            MLX_LM_4,
            MLX_LM_3,
            *(MlxLmKind(bits, COLD_4.spec.page_tokens) for bits in (4, 3)),
            *map(_cold, ("16", "8", "6", "k8v4", "4", "k4v3", "3", "2")),
            DEFAULT_4,
            *map(OctavoKind, PRESETS.values()),
        ]
    )
)
"""What is compared with 16 bits, mlx-lm's first: that is the reference."""
SPEED_KINDS: tuple[CacheKind, ...] = (MLX_LM_16, MLX_LM_4, OCTAVO_16, COLD_4, DEFAULT_4)
"""What reads the whole text at once and writes after it."""
