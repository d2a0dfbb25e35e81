"""The texts that benches read: ordinary English, as people drop it on a chat.

`TEXT` was written for this purpose: narrative, explanation, dialogue, a letter, lists, a program and a table,
about 7,300 tokens, nothing of it twice. `resources/bench/ORIGIN.txt` says where the others come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from engine.errors import OctavoError

_FOLDER = files("resources").joinpath("bench")

TEXT = _FOLDER.joinpath("prose.txt").read_text("utf-8")
OTHER_TITLES = ("atomic-commit", "constitution", "testing")


def all_texts() -> dict[str, str]:
    """Return all texts by their titles, each of more than 7,000 tokens."""
    others = {title: _FOLDER.joinpath(f"{title}.txt").read_text("utf-8") for title in OTHER_TITLES}
    return {"prose": TEXT, **others}


def require_tokens(tokenizer: Any, text: str, num_tokens: int) -> Sequence[int]:
    """Return the first `num_tokens` tokens of a text; an `OctavoError` says when it has fewer."""
    tokens: list[int] = tokenizer.encode(text, add_special_tokens=False)
    if len(tokens) < num_tokens:
        raise OctavoError(
            f"The text has {len(tokens):,} tokens and {num_tokens:,} are to be read; take a longer text or "
            "fewer tokens."
        )
    return tokens[:num_tokens]
