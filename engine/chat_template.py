"""Writing a conversation in the words of a model's chat template."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import TemplateError
from mlx_lm.tokenizer_utils import TokenizerWrapper

from engine.errors import ModelError

Turn = dict[str, str]

_PLAIN_ROLES = {"system": "System", "user": "User", "assistant": "Assistant"}


def render(tokenizer: TokenizerWrapper, turns: list[Turn], *, add_generation_prompt: bool) -> str:
    """Return a conversation as text, in the form that the template takes.

    The turns are offered as they are. A template that raises, or that leaves the system text out, is offered
    them with the system text at the head of the first user turn, and then with turns of one role in a row
    merged as well. A model without a template gets `System: ...`, `User: ...` and `Assistant: ...`, with
    blank lines between.

    Raises:
        ModelError: the template refuses all of these.
    """
    if not tokenizer.has_chat_template:
        return _plain(tokenizer, turns, add_generation_prompt)
    refusal: Exception | None = None
    for offered in _forms(turns):
        try:
            text: str = tokenizer.apply_chat_template(
                offered, tokenize=False, add_generation_prompt=add_generation_prompt
            )
        except (TemplateError, TypeError, ValueError) as error:
            refusal = refusal or error
            continue
        if _keeps_system(offered, text):
            return text
    raise ModelError(f"The chat template of this model refuses the conversation: {refusal}") from refusal


def _forms(turns: list[Turn]) -> Iterator[list[Turn]]:
    yield turns
    folded = _fold_system(turns)
    if folded != turns:
        yield folded
    merged = _merge_neighbours(folded)
    if merged != folded:
        yield merged


def _keeps_system(turns: list[Turn], text: str) -> bool:
    return all(turn["content"].strip() in text for turn in turns if turn["role"] == "system")


def _fold_system(turns: list[Turn]) -> list[Turn]:
    """Put system texts at the head of the user turn that follows, or of one made for them."""
    folded: list[Turn] = []
    waiting: list[str] = []
    for turn in turns:
        if turn["role"] == "system":
            waiting.append(turn["content"])
        elif turn["role"] == "user":
            folded.append({"role": "user", "content": "\n\n".join([*waiting, turn["content"]])})
            waiting = []
        else:
            folded.append(turn)
    if waiting:
        folded.append({"role": "user", "content": "\n\n".join(waiting)})
    return folded


def _merge_neighbours(turns: list[Turn]) -> list[Turn]:
    """Join turns of one role in a row by blank lines."""
    merged: list[Turn] = []
    for turn in turns:
        if merged and merged[-1]["role"] == turn["role"]:
            content = f"{merged[-1]['content']}\n\n{turn['content']}"
            merged[-1] = {"role": turn["role"], "content": content}
        else:
            merged.append(turn)
    return merged


def _plain(tokenizer: TokenizerWrapper, turns: list[Turn], add_generation_prompt: bool) -> str:
    lines = [f"{_PLAIN_ROLES[turn['role']]}: {turn['content']}" for turn in turns]
    if add_generation_prompt:
        lines.append("Assistant:")
    bos = tokenizer.bos_token if _adds_bos(tokenizer) else None
    return (bos or "") + "\n\n".join(lines)


def _adds_bos(tokenizer: TokenizerWrapper) -> bool:
    return tokenizer.bos_token_id in tokenizer.encode("a")[:1]
