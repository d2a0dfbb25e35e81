"""Reasoning that a chat template begins itself."""

from __future__ import annotations

from collections.abc import Sequence

from mlx_lm.tokenizer_utils import TokenizerWrapper

THINK_START_TOKENS = 4
"""Reasoning that a chat template begins stands this close to the prompt's end, a line end behind it."""


def opens_reasoning(tokenizer: TokenizerWrapper, prompt: Sequence[int]) -> bool:
    """Return whether the chat template itself began the reasoning, which the reply's text then lacks."""
    if not tokenizer.has_thinking:
        return False
    opened, closed = tokenizer.rfind_think_start(prompt), tokenizer.rfind_think_end(prompt)
    return bool(opened > closed and opened >= len(prompt) - THINK_START_TOKENS)
