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


class MemorySize(IntParamType):
    """Bytes, as `parse_nbytes` reads them."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes that a text means; what is no size ends the command with a sentence."""
        if isinstance(value, int):
            return value
        try:
            return parse_nbytes(str(value))
        except OctavoError as error:
            self.fail(str(error), param, ctx)
