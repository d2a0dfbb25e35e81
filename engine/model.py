"""A loaded model: weights, tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import mlx.nn as nn
from mlx_lm.tokenizer_utils import TokenizerWrapper

from engine import chat_template
from engine.backend import Backend
from engine.held_tokens import with_held_tokens
from engine.model_info import ModelInfo
from engine.parameters import named_parameters
from engine.spans import DocumentRange, Prompt, prompt_spans
from engine.token_bytes import TokenBytes
from engine.token_times import TokenTimes
from engine.tokens import TokenCounter, encode, encode_with_offsets

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class ChatMessage:
    """One turn as the model reads it.

    Attributes:
        role: whose it is.
        content: its words, those of its documents included.
        documents: where these stand in it, in order; summaries count as such.
        key: which message of the conversation it is, empty where that is not told.
    """

    role: Role
    content: str
    documents: tuple[DocumentRange, ...] = ()
    key: str = ""


class Model:
    """A model in memory; all but `info`, `backend` and a `TokenCounter` belongs to the engine's thread.

    Attributes:
        module: mlx-lm's model.
        tokenizer: mlx-lm's wrapper around the tokenizer, with its streaming detokenizer and end tokens.
        info: the shape and size of the model.
        backend: what it computes on.
        times: what its tokens have taken.
    """

    def __init__(
        self, module: nn.Module, tokenizer: TokenizerWrapper, info: ModelInfo, backend: Backend
    ) -> None:
        self.module = module
        self.tokenizer = tokenizer
        self.info = info
        self.backend = backend
        self.times = TokenTimes()
        self._token_bytes = TokenBytes.of(tokenizer._tokenizer)
        self._last: tuple[tuple[ChatMessage, ...], str, Prompt] | None = None

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

    def prompt(self, messages: Sequence[ChatMessage]) -> Prompt:
        """Return a conversation that waits for an answer: the tokens of `render`, and what they are.

        Where Python code has a part in encoding, nothing says which token is where, and there are no spans.
        Nothing is written where nothing is said, as when all turns have left the context and none has come.
        The last prompt is kept, as a reply asks for its own each time that it is measured or admitted.

        Raises:
            ModelError: the template refuses the conversation in every form.
        """
        if not messages:
            return Prompt([], ())
        text = self._write([{"role": message.role, "content": message.content} for message in messages])
        said = tuple(messages)
        if self._last is None or self._last[:2] != (said, text):  # a template may write the time
            self._last = said, text, self._encoded(said, text)
        return self._last[2]

    def _encoded(self, messages: Sequence[ChatMessage], text: str) -> Prompt:
        tokens, offsets = encode_with_offsets(self.tokenizer._tokenizer, text)
        spans = () if offsets is None else prompt_spans(messages, text, offsets, self._write)
        return Prompt(tokens, spans)

    def as_held(self, prompt: Prompt, held: Iterable[Prompt]) -> Prompt:
        """Return a prompt with the tokens that are held where they write the same; see `with_held_tokens`."""
        return prompt if self._token_bytes is None else with_held_tokens(prompt, held, self._token_bytes)

    def characters(self, tokens: Sequence[int]) -> list[int]:
        """Return how many characters each token writes; where several write one, the first of them does.

        Where that depends on other tokens, it is about so many.
        """
        if self._token_bytes is None:
            return [len(self.tokenizer.decode([token])) for token in tokens]
        return [sum(byte & 0xC0 != 0x80 for byte in written) for written in self._token_bytes.each(tokens)]

    def _write(self, turns: list[chat_template.Turn]) -> str:
        return chat_template.render(self.tokenizer, turns, add_generation_prompt=True)

    def token_counter(self) -> TokenCounter:
        """Return a counter with a tokenizer of its own, for use on another thread."""
        return TokenCounter(self.tokenizer._tokenizer)
