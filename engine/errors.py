"""Errors whose message is written for the person at the keyboard."""

from __future__ import annotations


class OctavoError(Exception):
    """An expected failure: its message is one or two plain sentences, what is wrong and what to do."""


class ModelError(OctavoError):
    """A model that cannot be read or run."""


class UnsupportedModelError(ModelError):
    """A model whose architecture or quantization is not supported; the message names it."""


class Cancelled(Exception):
    """The user stopped the work; raised by `CancelToken.check`."""


def sentence_of(error: BaseException) -> str:
    """Return an expected error's own sentence, else one that names what went wrong."""
    if isinstance(error, OctavoError):
        return str(error)
    return f"Something unexpected happened ({type(error).__name__}: {error})."
