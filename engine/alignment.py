"""Finding what to take out of text that was read, and what to put in, to make it the text that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.kv.page_map import TextSpan
from engine.spans import Prompt
from engine.turns import common_prefix


@dataclass(frozen=True)
class Edit:
    """A stretch to take out, and what goes there.

    Attributes:
        start: index of its first token among the tokens that are held, before any edit.
        stop: index behind its last token; `start` where nothing is taken out.
        insert_start: index of the first token that goes there, among the tokens that are wanted.
        insert_stop: index behind the last of these; `insert_start` where nothing goes there.
    """

    start: int
    stop: int
    insert_start: int
    insert_stop: int


@dataclass(frozen=True)
class Alignment:
    """How held text becomes the beginning of wanted text.

    Attributes:
        edits: what is taken out and put in, in the order of the text. Behind each of them something stays.
        kept_tokens: so many tokens of the wanted text are there after the edits, those that were put in
            included. What is held behind them is forgotten.
        note: a sentence that says why text is read again that was read before, empty where none is.
    """

    edits: tuple[Edit, ...]
    kept_tokens: int
    note: str = ""


def align(held_tokens: Sequence[int], held_spans: Sequence[TextSpan], wanted: Prompt) -> Alignment:
    """Find the edits that make held text the beginning of wanted text, with as much as may stay unread.

    Spans of the same key and the same words stay, though what precedes them differs: that is right only
    because the same key means the same place in the tree of messages, so that the difference is what was
    taken out of the context or summarized. Where anything else differs, all that follows is read again.

    It knows tokens only. Whether what is put in has positions there is for the caller to see.
    """
    return Alignment((), common_prefix(held_tokens, wanted.tokens))
