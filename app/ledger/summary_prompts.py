"""What a model is asked when it is to write a summary; the words lie in `resources/prompts/summaries.toml`.

Small models answer in the language that they are asked in, so they are asked in that of the text.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import re
import string
import tomllib
from dataclasses import dataclass

from app.ledger.sentences import words_of
from app.ledger.summary_request import PartKind, SummaryRequest
from engine.model import ChatMessage

_LEAST_OWN_WORDS = 8
"""With fewer words beside the documents, these tell the language."""
_SAMPLE_CHARACTERS = 20_000
_LEAST_LETTER_SHARE = 0.1
_LEAST_WORD_SHARE = 0.1
"""Shares of a text that are in a language; 30 function words make a quarter to a half of most texts."""
_QUOTED_WORDS = 8
_QUOTED_CHARACTERS = 60
_SENTENCE_TOKENS = 30


@dataclass(frozen=True)
class Language:
    """How a summary is asked for in a language.

    Attributes:
        name: of the language.
        letters: a class of letters that only this language has, empty where others have them too.
        words: its function words, where letters do not tell.
        conversation: asks for a summary of all that was said, of at most `$count` sentences.
        rest: the same from some `$words` on.
        document: asks for a summary of the document `$title`.
    """

    name: str
    conversation: str
    rest: str
    document: str
    letters: str = ""
    words: frozenset[str] = frozenset()


@functools.cache
def languages() -> tuple[Language, ...]:
    """Return the languages that a summary can be asked for in."""
    file = importlib.resources.files("resources").joinpath("prompts/summaries.toml")
    rows = tomllib.loads(file.read_text("utf-8"))["language"]
    return tuple(Language(**row | {"words": frozenset(row.get("words", "").split())}) for row in rows)


def language_of(text: str) -> Language:
    """Return the language of a text by its letters and function words; the last where these do not tell."""
    sample = text[:_SAMPLE_CHARACTERS]
    num_letters = sum(character.isalpha() for character in sample)
    for language in languages():
        if language.letters:
            found = re.findall(f"[{language.letters}]", sample)
            if len(found) > _LEAST_LETTER_SHARE * num_letters:
                return language
    words = words_of(sample)
    hits = [sum(word in language.words for word in words) for language in languages()]
    return languages()[hits.index(max(hits)) if max(hits) > _LEAST_WORD_SHARE * len(words) else -1]


def summary_instruction(request: SummaryRequest, most_tokens: int) -> str:
    """Return what a model is asked: in the language of what was said, or else of the documents."""
    language = language_of(_told_by(request))
    if request.is_document:
        form, names = language.document, {"title": request.messages[-1].documents[-1].title}
    elif any(message.role != "system" for message in request.messages[: request.first]):
        form, names = language.rest, {"words": _first_words(request.source)}
    else:
        form, names = language.conversation, {}
    return string.Template(form).substitute(names, count=max(2, most_tokens // _SENTENCE_TOKENS))


def _told_by(request: SummaryRequest) -> str:
    own = "\n".join(part.text for part in request.parts if part.kind is not PartKind.DOCUMENT)
    return own if len(words_of(own)) >= _LEAST_OWN_WORDS else request.source


def _first_words(text: str) -> str:
    words = " ".join(text[: 4 * _QUOTED_CHARACTERS].split()[:_QUOTED_WORDS])
    return words[:_QUOTED_CHARACTERS].rstrip()


def asking_messages(request: SummaryRequest, instruction: str) -> tuple[ChatMessage, ...]:
    """Return the conversation with the instruction as its last words.

    Behind a user's message it goes into that, since templates insist on turns: what is read already stays the
    beginning of it. Then the message loses its key, which promises the words.
    """
    *before, last = request.messages
    if last.role != "user":
        return (*request.messages, ChatMessage("user", instruction))
    asking = dataclasses.replace(last, content=f"{last.content}\n\n{instruction}", key="")
    return (*before, asking)
