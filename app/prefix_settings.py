"""What may be kept on disk, in the form in which a person reads and edits it: sizes in GB."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from app.store.prefixes.records import GB, PrefixSettings
from engine.errors import OctavoError
from engine.prefixes.records import SaveMode

log = logging.getLogger(__name__)
LEAST_NBYTES = GB // 10
"""The least that all of it, and what is written in a day, may be limited to; for less there is `NEVER`."""
LARGEST_NBYTES = 100_000 * GB
"""The most that they may be limited to."""
_SIZES = {"most_gb": "most_nbytes", "most_written_gb": "most_written_nbytes"}


def prefix_table(settings: PrefixSettings) -> dict[str, Any]:
    """Return the settings as they are stored in TOML; no `most_gb` stands for the default."""
    sizes = {key: getattr(settings, field) for key, field in _SIZES.items()}
    return {
        "mode": settings.mode.value,
        **{key: nbytes / GB for key, nbytes in sizes.items() if nbytes is not None},
    }


def read_prefix_settings(table: dict[str, Any], problems: list[str]) -> PrefixSettings:
    """Return the settings of a stored table; what cannot be is the default, and is told in `problems`."""
    settings = PrefixSettings()
    for key, value in table.items():
        try:
            if key == "mode":
                settings = dataclasses.replace(settings, mode=_mode(value))
            elif key in _SIZES:
                changed: dict[str, Any] = {_SIZES[key]: _nbytes(key, value)}
                settings = dataclasses.replace(settings, **changed)
            else:
                log.warning("the setting prefixes.%s is unknown", key)
        except OctavoError as error:
            problems.append(f"prefixes.{str(error).rstrip('.')}")
    return settings


def _mode(value: object) -> SaveMode:
    try:
        return SaveMode(value)
    except ValueError:
        known = " or ".join(mode.value for mode in SaveMode)
        raise OctavoError(f"mode is {value!r}; it is {known}.") from None


def _nbytes(key: str, value: Any) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    nbytes: float = value * GB if is_number else 0
    if LEAST_NBYTES <= nbytes <= LARGEST_NBYTES:
        return round(nbytes)
    least, most = LEAST_NBYTES / GB, LARGEST_NBYTES // GB
    raise OctavoError(f"{key} is {value!r}; it is a number of gigabytes from {least:g} to {most:,}.")
