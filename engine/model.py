"""A loaded model: weights, tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mlx.nn as nn
from mlx_lm.tokenizer_utils import TokenizerWrapper

from engine import chat_template
from engine.backend import Backend
from engine.model_info import ModelInfo
from engine.parameters import named_parameters
from engine.tokens import TokenCounter, encode

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class ChatMessage:
    """One turn as the model reads it."""

    role: Role
    content: str


class Model:
    """A model in memory; all but `info`, `backend` and a `TokenCounter` belongs to the engine's thread.

    Attributes:
        module: mlx-lm's model.
        tokenizer: mlx-lm's wrapper around the tokenizer, with its streaming detokenizer and end tokens.
        info: the shape and size of the model.
        backend: what it computes on.
    """

    def __init__(
        self, module: nn.Module, tokenizer: TokenizerWrapper, info: ModelInfo, backend: Backend
    ) -> None:
        self.module = module
        self.tokenizer = tokenizer
        self.info = info
        self.backend = backend

    @property
    def weights_nbytes(self) -> int:
        """Bytes of the weights in memory."""
        return sum(value.nbytes for _, value in named_parameters(self.module))

    def render(self, messages: Sequence[ChatMessage], *, add_generation_prompt: bool = True) -> list[int]:
        """Return the tokens of a conversation in the model's own chat template.

        `engine.chat_template.render` says what happens when it refuses the roles or there is none.

        Raises:
            ModelError: the template refuses the conversation in every form.
        """
        turns = [{"role": message.role, "content": message.content} for message in messages]
        text = chat_template.render(self.tokenizer, turns, add_generation_prompt=add_generation_prompt)
        return encode(self.tokenizer._tokenizer, text)

    def token_counter(self) -> TokenCounter:
        """Return a counter with a tokenizer of its own, for use on another thread."""
        return TokenCounter(self.tokenizer._tokenizer)
