"""The figures of a KV cache in words, the same in the window and in the terminal."""

from __future__ import annotations

from engine.kv.usage import KVUsage


def bits_text(bits: tuple[float, float]) -> str:
    """Return the bits of keys and values as a precision is written: `8`, `k6v4`, or means as `k5.5v4`."""
    keys, values = (f"{round(number, 1):g}" for number in bits)
    return keys if keys == values else f"k{keys}v{values}"


def bits_words(bits: tuple[float, float]) -> str:
    """Return the bits of keys and values as words: `8 bits`, `2 bits for keys, 2.9 for values on average`."""
    keys, values = (f"{round(number, 1):g}" for number in bits)
    words = f"{keys} bits" if keys == values else f"{keys} bits for keys, {values} for values"
    is_mean = "." in keys or "." in values
    return f"{words} on average" if is_mean else words


def pages_text(usage: KVUsage) -> str:
    """Return the pages by tier: `1 hot, 4 warm, 12 cold`."""
    return f"{usage.hot_pages:,} hot, {usage.warm_pages:,} warm, {usage.cold_pages:,} cold"


def budget_text(usage: KVUsage) -> str:
    """Return what the attention budget catches, never rounded up to all of it; empty without a budget."""
    if usage.attention_pages is None:
        return ""
    pages = f"{usage.attention_pages:,} page{'' if usage.attention_pages == 1 else 's'}"
    if usage.caught is None:
        return f"{pages} of each precision"
    return f"{min(usage.caught, 0.999 if usage.caught < 1 else 1):.1%} caught by {pages}"
