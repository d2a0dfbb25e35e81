"""What a model is told of documents that it does not read whole; the words lie in `resources/prompts`."""

from __future__ import annotations

import functools
import importlib.resources
import re
import string
from collections.abc import Sequence

from app.document_prompt import Passage

_REASONING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_EMPTY = "NOTHING"


@functools.cache
def _template(name: str) -> string.Template:
    file = importlib.resources.files("resources").joinpath(f"prompts/{name}.txt")
    return string.Template(file.read_text("utf-8").strip())


def segment_passage(title: str, place: str, text: str) -> Passage:
    """Return a segment as the model reads it, the same for every question.

    Args:
        title: of the document.
        place: where it begins, such as `p. 12, 3.2 Methods`; empty where nothing is known of that.
        text: its words.
    """
    where = f" ({place})" if place else ""
    return Passage(
        title, f"Segment of the document “{title}”{where}:\n\n{text.strip()}\n\n(End of the segment.)"
    )


def segment_prompt(question: str) -> str:
    """Ask for notes on the segment before."""
    return _template("segment").substitute(question=question)


def note_again_prompt(question: str) -> str:
    """Ask for sentences of the segment before, where the notes on it were not supported by it."""
    return _template("note_again").substitute(question=question)


def join_prompt(title: str, notes: str, question: str) -> str:
    """Ask for shorter notes instead of some that are too long together."""
    return _template("join").substitute(title=title, notes=notes, question=question)


def notes_text(title: str, coverage: str, notes: str, example: int = 1, fitting: str = "") -> str:
    """Return what the model reads of a document that was read in segments.

    Args:
        title: of the document.
        coverage: a sentence that says how many segments were read.
        notes: with numbers, empty where there are none.
        example: a number that is in use.
        fitting: the sentence of them that fits the question best, empty where none does.
    """
    if not notes:
        return _template("nothing_noted").substitute(title=title, coverage=coverage)
    text = _template("notes").substitute(title=title, coverage=coverage, notes=notes, example=example)
    return _with_fitting(text, fitting)


def passages_text(
    title: str, passages: str, example: int = 1, fitting: str = "", fitting_title: str = ""
) -> str:
    """Return what the model reads of a document that was looked up.

    Args:
        title: of the document.
        passages: with numbers, empty where there are none.
        example: a number that is in use.
        fitting: the sentence that fits the question best, empty where none does.
        fitting_title: of the document that says it, empty where it is this one.
    """
    if not passages:
        return _template("nothing_looked_up").substitute(title=title)
    text = _template("passages").substitute(title=title, passages=passages, example=example)
    return _with_fitting(text, fitting, fitting_title)


def _with_fitting(text: str, fitting: str, title: str = "") -> str:
    """Return what was read with the sentence that fits best behind it, next to the question.

    Small models answer from what stands there. `title` is of the document, where it is another one.
    """
    return f"{text}\n\n{fitting_text(fitting, title)}" if fitting else text


def fitting_text(sentence: str, title: str = "") -> str:
    """Return the words around the sentence that fits a question best; `title` as in `passages_text`."""
    return _template("fitting_of" if title else "fitting").substitute(sentence=sentence, title=title)


def question_or_default(question: str) -> str:
    """Return the question; for a document without one, what it is about."""
    return question or _template("no_question").template


def nothing_found_sentence(reasons: Sequence[str]) -> str:
    """Return the answer where nothing that was read says anything about the question."""
    return _template("nothing_found").substitute(reasons=" ".join(reasons))


def without_reasoning(written: str) -> str:
    """Return what a model wrote, or has written so far, beside its reasoning."""
    return _REASONING.sub("", written).strip()


def note_of(written: str) -> str:
    """Return the note in what a model wrote; empty where it found nothing to note."""
    note = without_reasoning(written)
    words = re.findall(r"\w+", note)
    if not words or words[0] == _EMPTY or [word.upper() for word in words] == [_EMPTY]:
        return ""
    return note
