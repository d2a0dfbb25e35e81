"""The user's settings, kept as TOML that a person can read and edit."""

from __future__ import annotations

import dataclasses
import logging
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import tomli_w

from app.durable_files import set_aside, write_whole
from engine.errors import OctavoError
from engine.kv.precision import PRESETS, KVSpec
from engine.sampling import SamplingParams

log = logging.getLogger(__name__)

Theme = Literal["system", "light", "dark"]
DEFAULT_KV = PRESETS["precise"]
"""The precision of the KV cache until another is chosen, in the window and in the terminal."""


@dataclass(frozen=True)
class Settings:
    """What the user has chosen.

    Attributes:
        model: the path of the last model; None before the first, empty after it was ejected.
        kv: precision of the KV cache, kept as the text that `KVSpec.parse` reads.
        sampling: how the next token is chosen.
        system_prompt: instructions to the model; empty leaves the model's own.
        theme: colours of the window; `system` follows the desktop.
    """

    model: str | None = None
    kv: KVSpec = DEFAULT_KV
    sampling: SamplingParams = field(default_factory=SamplingParams)
    system_prompt: str = ""
    theme: Theme = "system"


class SettingsError(OctavoError):
    """Settings that could not be saved."""


def load_settings(path: Path) -> tuple[Settings, str | None]:
    """Return the settings and, when not all of them could be used, a sentence that says which and why.

    A value that cannot be used is replaced by its default, a key that is unknown is left out, and a file that
    is no TOML is moved aside.
    """
    try:
        document = tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        return Settings(), None
    except (ValueError, IsADirectoryError) as error:
        return Settings(), _set_aside_message(path, error)
    except OSError as error:
        log.warning("%s cannot be read: %s", path, error)
        return Settings(), f"The settings in {path} cannot be read, so the defaults are used."
    problems: list[str] = []
    settings = _settings(_carried_over(document), problems)
    if not problems:
        return settings, None
    return settings, f"In {path.name}, {'; '.join(problems)}. The default is used instead."


def save_settings(path: Path, settings: Settings) -> None:
    """Replace the file as a whole; raise a `SettingsError` when that is not possible."""
    document = dataclasses.asdict(settings)
    document["kv"] = str(settings.kv)
    try:
        write_whole(path, tomli_w.dumps(_without_none(document)).encode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(f"The settings could not be saved in {path} ({error.strerror}).") from error


def _set_aside_message(path: Path, error: Exception) -> str:
    log.warning("%s is damaged: %s", path, error)
    try:
        aside = set_aside(path)
    except OSError as failure:
        log.warning("%s cannot be moved aside: %s", path, failure)
        return f"The settings in {path} are damaged, so the defaults are used."
    return f"The settings were damaged and are the defaults again. The damaged file is kept as {aside}."


def _carried_over(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document in today's keys: the precision was once a whole number, `kv_bits`."""
    rest = {key: value for key, value in document.items() if key != "kv_bits"}
    return {"kv": str(document["kv_bits"])} | rest if "kv_bits" in document else rest


def _settings(document: dict[str, Any], problems: list[str]) -> Settings:
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key == "sampling" and isinstance(value, dict):
            values[key] = _sampling(value, problems)
        elif key not in _READERS:
            log.warning("the setting %s is unknown", key)
        else:
            try:
                values[key] = _READERS[key](value)
            except OctavoError as error:
                problems.append(f"{key} is not usable: {str(error).rstrip('.')}")
    return Settings(**values)


def _sampling(table: dict[str, Any], problems: list[str]) -> SamplingParams:
    params = SamplingParams()
    known = {entry.name for entry in dataclasses.fields(SamplingParams)}
    for key, value in table.items():
        if key not in known:
            log.warning("the setting sampling.%s is unknown", key)
            continue
        try:
            params = _with(params, key, _number(key, value))
        except OctavoError as error:
            problems.append(f"sampling.{str(error).rstrip('.')}")
    return params


def _with(params: SamplingParams, key: str, value: float) -> SamplingParams:
    return SamplingParams(**{**dataclasses.asdict(params), key: value})


def _number(key: str, value: object) -> float:
    whole = key in {"top_k", "max_tokens", "seed"}
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and not whole:
        return value
    raise OctavoError(f"{key} is {value!r}; it must be a {'whole ' if whole else ''}number.")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise OctavoError(f"{value!r} is no text.")
    return value


def _kv(value: object) -> KVSpec:
    return KVSpec.parse(_text(value))


def _theme(value: object) -> str:
    if value not in get_args(Theme):
        raise OctavoError(f"{value!r} is none of {', '.join(get_args(Theme))}.")
    return str(value)


def _sampling_table(value: object) -> SamplingParams:
    raise OctavoError(f"{value!r} is no table.")


_READERS = {
    "model": _text,
    "kv": _kv,
    "sampling": _sampling_table,
    "system_prompt": _text,
    "theme": _theme,
}


def _without_none(document: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in document.items()
        if value is not None
    }
