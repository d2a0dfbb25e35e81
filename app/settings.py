"""The user's settings, kept as TOML that a person can read and edit."""

from __future__ import annotations

import dataclasses
import logging
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import tomli_w

from app.durable_files import dated_name, set_aside, write_whole
from app.prefix_settings import prefix_table, read_prefix_settings
from app.profiles import (
    CUSTOM,
    DEFAULT,
    DocumentMode,
    Overflow,
    Profile,
    profile_table,
    read_profile,
    usable_name,
)
from app.store.prefixes.records import PrefixSettings
from engine.errors import OctavoError
from engine.kv.precision import PRESETS, KVSpec
from engine.memory_limits import MemoryLimits
from engine.sampling import SamplingParams

log = logging.getLogger(__name__)

Theme = Literal["system", "light", "dark"]
DEFAULT_KV = PRESETS["precise"]
"""The precision of the KV cache until another is chosen, in the window and in the terminal."""
DEFAULT_CUSTOM = Profile(CUSTOM, DEFAULT_KV, None, Overflow.ASK, DocumentMode.WHOLE)


@dataclass(frozen=True)
class Settings:
    """What the user has chosen.

    Attributes:
        model: the path of the last model; None before the first, empty after it was ejected.
        sampling: how the next token is chosen.
        system_prompt: instructions to the model; empty leaves the model's own.
        theme: colours of the window; `system` follows the desktop.
        memory: how much of the memory may be used.
        prefixes: what may be kept on disk of what was read.
        profile: the name of the profile that new conversations take.
        profiles: the user's own profiles, in the order in which they were made.
        custom: the settings without a name that were used last.
    """

    model: str | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    system_prompt: str = ""
    theme: Theme = "system"
    memory: MemoryLimits = field(default_factory=MemoryLimits)
    prefixes: PrefixSettings = field(default_factory=PrefixSettings)
    profile: str = DEFAULT.name
    profiles: tuple[Profile, ...] = ()
    custom: Profile = DEFAULT_CUSTOM


class SettingsError(OctavoError):
    """Settings that could not be saved."""


def load_settings(path: Path) -> tuple[Settings, str | None]:
    """Return the settings and, when not all of them could be used, a sentence that says which and why.

    A value that cannot be used is replaced by its default, a key that is unknown is left out, and a file that
    is no TOML is moved aside. Of a file with values that cannot be used a copy is kept, as they are gone with
    the next save.
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
    left_out: list[str] = []
    settings = _settings(document, problems, left_out)
    sentences = [f"In {path.name}, {'; '.join(problems)}. The default is used instead."] if problems else []
    if left_out:
        sentences.append(f"In {path.name}, {'; '.join(left_out)}. The rest is used without it.")
    if sentences:
        sentences.append(_copy_message(path))
    return settings, " ".join(sentences) or None


def load_memory_limits(path: Path) -> MemoryLimits:
    """Return how much of the memory may be used, for what only looks on.

    Defaults stand for what cannot be used; the file stays where it is, and nothing is told.
    """
    return _memory(_table_alone(path, "memory"), [])


def load_prefix_settings(path: Path) -> PrefixSettings:
    """Return what may be kept on disk, for the terminal; as with `load_memory_limits`, nothing is told."""
    return read_prefix_settings(_table_alone(path, "prefixes"), [])


def save_settings(path: Path, settings: Settings) -> None:
    """Replace the file as a whole; raise a `SettingsError` when that is not possible."""
    document = dataclasses.asdict(settings)
    document["prefixes"] = prefix_table(settings.prefixes)
    document["profiles"] = [profile_table(profile) for profile in settings.profiles]
    document["custom"] = profile_table(settings.custom)
    try:
        write_whole(path, tomli_w.dumps(_without_none(document)).encode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(f"The settings could not be saved in {path} ({error.strerror}).") from error


def _table_alone(path: Path, name: str) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_bytes().decode()).get(name)
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}


def _copy_message(path: Path) -> str:
    log.warning("not all of %s could be used", path)
    copy = dated_name(path, "before")
    try:
        shutil.copyfile(path, copy)
    except OSError as failure:
        log.warning("%s cannot be copied: %s", path, failure)
        return "It is written anew when a setting changes."
    return f"The file as it was is kept as {copy}."


def _set_aside_message(path: Path, error: Exception) -> str:
    log.warning("%s is damaged: %s", path, error)
    try:
        aside = set_aside(path)
    except OSError as failure:
        log.warning("%s cannot be moved aside: %s", path, failure)
        return f"The settings in {path} are damaged, so the defaults are used."
    return f"The settings were damaged and are the defaults again. The damaged file is kept as {aside}."


def _settings(document: dict[str, Any], problems: list[str], left_out: list[str]) -> Settings:
    values = _carried_over(document, problems)
    for key, value in document.items():
        if key in _TABLES and isinstance(value, dict):
            values[key] = _TABLES[key](value, problems)
        elif key == "profiles" and isinstance(value, list):
            values[key] = _profiles(value, left_out)
        elif key in _READERS:
            try:
                values[key] = _READERS[key](value)
            except OctavoError as error:
                problems.append(f"{key} is not usable: {str(error).rstrip('.')}")
        elif key not in _FORMER:
            log.warning("the setting %s is unknown", key)
    return Settings(**values)


def _carried_over(document: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return what an older file says in keys that are no more.

    The precision was a setting of its own, before that a whole number. It is now part of a profile, so that
    such a file chooses the settings without a name.
    """
    found = [(key, document[key]) for key in _FORMER if key in document]
    if not found or "profile" in document:
        return {}
    key, value = found[0]
    try:
        kv = KVSpec.parse(_text(str(value) if key == "kv_bits" else value))
    except OctavoError as error:
        problems.append(f"kv is not usable: {str(error).rstrip('.')}")
        return {}
    if kv == DEFAULT_KV:
        return {}
    return {"profile": CUSTOM, "custom": dataclasses.replace(DEFAULT_CUSTOM, kv=kv)}


def _profiles(entries: list[Any], left_out: list[str]) -> tuple[Profile, ...]:
    """Return the profiles that can be used; of two with one name the first."""
    profiles: list[Profile] = []
    for number, entry in enumerate(entries, 1):
        try:
            profile = read_profile(entry)
            name = usable_name(profile.name, [other.name for other in profiles])
            profiles.append(dataclasses.replace(profile, name=name))
        except OctavoError as error:
            left_out.append(f"profile {number} cannot be used: {str(error).rstrip('.')}")
    return tuple(profiles)


def _sampling(table: dict[str, Any], problems: list[str]) -> SamplingParams:
    params = SamplingParams()
    for key, value in _known("sampling", SamplingParams, table):
        try:
            params = _with(params, key, _number(key, value))
        except OctavoError as error:
            problems.append(f"sampling.{str(error).rstrip('.')}")
    return params


def _memory(table: dict[str, Any], problems: list[str]) -> MemoryLimits:
    limits = MemoryLimits()
    for key, value in _known("memory", MemoryLimits, table):
        try:
            changed: dict[str, Any] = {key: _memory_number(key, value)}
            limits = dataclasses.replace(limits, **changed)
        except OctavoError as error:
            problems.append(f"memory.{str(error).rstrip('.')}")
    return limits


def _known(name: str, kind: type, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    known = {entry.name for entry in dataclasses.fields(kind)}
    for key, value in table.items():
        if key in known:
            yield key, value
        else:
            log.warning("the setting %s.%s is unknown", name, key)


def _with(params: SamplingParams, key: str, value: float) -> SamplingParams:
    return SamplingParams(**{**dataclasses.asdict(params), key: value})


def _number(key: str, value: object) -> float:
    whole = key in {"top_k", "max_tokens", "seed"}
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and not whole:
        return value
    raise OctavoError(f"{key} is {value!r}; it must be a {'whole ' if whole else ''}number.")


def _memory_number(key: str, value: object) -> float:
    if key == "safe_share":
        number = _number(key, value)
        if not 0 < number <= 1:
            raise OctavoError(f"{key} is {value!r}; it is a number above 0 and up to 1.")
        return number
    least = 0 if key == "reserve_nbytes" else 1
    if type(value) is not int or not least <= value <= _MOST_NBYTES:
        raise OctavoError(f"{key} is {value!r}; it is a whole number of bytes from {least}.")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise OctavoError(f"{value!r} is no text.")
    return value


def _theme(value: object) -> str:
    if value not in get_args(Theme):
        raise OctavoError(f"{value!r} is none of {', '.join(get_args(Theme))}.")
    return str(value)


def _custom(value: object) -> Profile:
    return dataclasses.replace(read_profile(value), name=CUSTOM)


def _table(value: object) -> NoReturn:
    raise OctavoError(f"{value!r} is no table.")


_FORMER = ("kv", "kv_bits")
_MOST_NBYTES = 1 << 60
_TABLES: dict[str, Callable[[dict[str, Any], list[str]], object]] = {
    "sampling": _sampling,
    "memory": _memory,
    "prefixes": read_prefix_settings,
}
_READERS: dict[str, Callable[[object], object]] = {
    "model": _text,
    "system_prompt": _text,
    "theme": _theme,
    "profile": _text,
    "custom": _custom,
    "sampling": _table,
    "memory": _table,
    "prefixes": _table,
    "profiles": _table,
}


def _without_none(document: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in document.items()
        if value is not None
    }
