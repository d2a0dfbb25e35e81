"""The bits of arrays as unsigned integers, so that every one survives on the way to bytes and back."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

WordArray = npt.NDArray[np.unsignedinteger[Any]]

_WORDS: dict[int, type[np.uint16 | np.uint32]] = {2: np.uint16, 4: np.uint32}
"""Integers with as many bytes as a number."""


def word_type(dtype: mx.Dtype) -> type[np.uint16 | np.uint32]:
    """Return the integers that have as many bytes as a number of this type."""
    return _WORDS[dtype.size]


def as_words(array: mx.array) -> WordArray:
    """Return the bits of an array where they lie, without a copy; not to be kept, nor written to."""
    if array.dtype == mx.bfloat16:  # numpy has no such numbers
        array = array.view(mx.uint16)
    return np.asarray(array).view(word_type(array.dtype))


def from_words(words: WordArray, dtype: mx.Dtype) -> mx.array:
    """Return an array that has these bits."""
    return mx.array(words).view(dtype)
