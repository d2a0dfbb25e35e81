"""Sizes of memory as options: `16G`, `1.5GB`, `800M`, `16GiB`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.errors import OctavoError
from engine.wording import parse_nbytes

if TYPE_CHECKING:
    IntParamType = click.ParamType[int]
else:
    IntParamType = click.ParamType  # generic in newer versions of click only


_LEAST_WITHOUT_UNIT = 1_000_000
"""A smaller bare number is meant in another unit, most often in GB."""


class MemorySize(IntParamType):
    """Bytes, as `parse_nbytes` reads them; with `may_be_none` also 0."""

    name = "size"

    def __init__(self, may_be_none: bool = False) -> None:
        self._may_be_none = may_be_none

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes that a text means; what is no size ends the command with a sentence."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if self._may_be_none and text == "0":
            return 0
        try:
            nbytes = parse_nbytes(text)
        except OctavoError as error:
            self.fail(str(error), param, ctx)
        if text.isdecimal() and nbytes < _LEAST_WITHOUT_UNIT:
            self.fail(f"“{text}” would be bytes; write it with a unit, such as {text}G.", param, ctx)
        return nbytes
