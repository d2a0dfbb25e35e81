"""What a model is told when a document is read in parts; the words lie in `resources/prompts`."""

from __future__ import annotations

import functools
import importlib.resources
import re
import string
from collections.abc import Sequence

_REASONING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_EMPTY = "NOTHING"


@functools.cache
def _template(name: str) -> string.Template:
    file = importlib.resources.files("resources").joinpath(f"prompts/{name}.txt")
    return string.Template(file.read_text("utf-8").strip())


def segment_prompt(title: str, text: str, number: int, total: int, question: str) -> str:
    """Ask for notes on one part of a document."""
    return _template("segment").substitute(
        title=title, text=text, number=number, total=total, question=question
    )


def join_prompt(title: str, notes: str, question: str) -> str:
    """Ask for shorter notes instead of some that are too long together."""
    return _template("join").substitute(title=title, notes=notes, question=question)


def notes_text(title: str, total: int, notes: str) -> str:
    """Return what stands for a document in the conversation: the notes on its parts."""
    return _template("notes").substitute(
        title=title, total=total, notes=notes or _template("nothing_in_document").template
    )


def notes_below_text(title: str) -> str:
    """Return what stands for a document of an earlier message, whose notes are with the last question."""
    return _template("notes_below").substitute(title=title)


def question_or_default(question: str) -> str:
    """Return the question; for a document without one, what it is about."""
    return question or _template("no_question").template


def nothing_found_sentence(titles: Sequence[str], total: int) -> str:
    """Return the answer where no part of any document says anything about the question."""
    quoted = " and ".join(f"“{title}”" for title in titles)
    return _template("nothing_found").substitute(titles=quoted, total=total)


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
