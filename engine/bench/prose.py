"""The text that benches read: ordinary English, as people drop it on a chat.

It was written for this purpose: narrative, explanation, dialogue, a letter, lists, a program and a table,
about 7,300 tokens, nothing of it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from engine.errors import OctavoError

TEXT = files("resources").joinpath("bench/prose.txt").read_text("utf-8")


def require_tokens(tokenizer: Any, text: str, num_tokens: int) -> Sequence[int]:
    """Return the first `num_tokens` tokens of a text; an `OctavoError` says when it has fewer."""
    tokens: list[int] = tokenizer.encode(text, add_special_tokens=False)
    if len(tokens) < num_tokens:
        raise OctavoError(
            f"The text has {len(tokens):,} tokens and {num_tokens:,} are to be read; take a longer text or "
            "fewer tokens."
        )
    return tokens[:num_tokens]
