"""A configuration of model and KV cache, kept as a TOML file that a person writes and shares."""

from __future__ import annotations

import dataclasses
import reprlib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import OctavoError
from engine.kv.precision import GROUP_SIZES, MOST, PAGE_TOKENS, PRESETS, KVSpec

LEAST_CONTEXT = 512
"""Tokens of the smallest context that may be asked for."""
MOST_CONTEXT = 1_000_000_000
"""Tokens of the largest one."""

_KV_KEYS = (
    "layers",
    "page_tokens",
    "group_size",
    "hot_pages",
    "warm_pages",
    "attention_pages",
    "attention_grows",
    "max_context",
)


@dataclass(frozen=True)
class KVConfig:
    """What a configuration file asks for.

    Attributes:
        model: a model's id, name or path; None leaves the choice to whoever reads the file.
        kv: precision of the KV cache.
        max_context: tokens that the context may have at most; None leaves it to the model and the memory.
    """

    model: str | None
    kv: KVSpec
    max_context: int | None


def load_kv_config(path: Path) -> KVConfig:
    """Read a configuration file; without `layers` the cache stays at 16 bits.

    A file that cannot be read, an unknown key or an impossible value is an `OctavoError` that names the file,
    the key and what is possible.
    """
    document = _read(path)
    try:
        _require_known(document, ("model", "kv_cache"), "")
        model = document.get("model")
        if model is not None and (not isinstance(model, str) or not model.strip()):
            raise OctavoError(f"model is {_shown(model)}; it is text: a model's id, name or path.")
        table = document.get("kv_cache", {})
        if not isinstance(table, dict):
            raise OctavoError(f"kv_cache is {_shown(table)}; it is a table, [kv_cache].")
        _require_known(table, _KV_KEYS, "kv_cache.")
        return KVConfig(model, _spec(table), _count(table, "max_context", LEAST_CONTEXT, MOST_CONTEXT))
    except OctavoError as error:
        raise OctavoError(f"In {path}, {error}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise OctavoError(f"There is no configuration file {path}.") from None
    except OSError as error:
        raise OctavoError(f"The configuration file {path} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise OctavoError(f"The configuration file {path} is no valid TOML ({reason}).") from error


def _spec(table: Mapping[str, Any]) -> KVSpec:
    """Return the precision that the table `kv_cache` asks for; its keys win over what a preset says."""
    spec = _layers(table.get("layers", "16"))
    page_tokens = _choice(table, "page_tokens", PAGE_TOKENS, spec.page_tokens)
    group_size = _choice(table, "group_size", GROUP_SIZES, spec.group_size)
    if group_size > page_tokens:
        fitting = ", ".join(str(size) for size in GROUP_SIZES if size <= page_tokens)
        raise OctavoError(
            f"kv_cache.group_size is {group_size}; with pages of {page_tokens} tokens it is one of {fitting}."
        )
    counts: dict[str, Any] = {
        "hot_pages": _count(table, "hot_pages", 0),
        "warm_pages": _count(table, "warm_pages", 0),
        "attention_pages": _count(table, "attention_pages", 1),
    }
    grows = _flag(table, "attention_grows")
    if grows and counts["attention_pages"] is None and spec.attention_pages is None:
        raise OctavoError("kv_cache.attention_grows is true; that takes kv_cache.attention_pages too.")
    return dataclasses.replace(
        spec,
        page_tokens=page_tokens,
        group_size=group_size,
        attention_grows=grows,
        **{key: count for key, count in counts.items() if count is not None},
    )


def _layers(text: object) -> KVSpec:
    if not isinstance(text, str):
        raise OctavoError(
            f"kv_cache.layers is {_shown(text)}; it is text such as 4, 0-7:8, 8-:4 or {', '.join(PRESETS)}."
        )
    if ";" in text:
        raise OctavoError(
            f"kv_cache.layers is {_shown(text)}; it has no part after a ;, for that there are the keys "
            f"{', '.join(_KV_KEYS[1:-1])}."
        )
    try:
        return KVSpec.parse(text)
    except OctavoError as error:
        raise OctavoError(f"kv_cache.layers is not usable: {error}") from error


def _choice(table: Mapping[str, Any], key: str, allowed: Collection[int], default: int) -> int:
    value = table.get(key, default)
    if type(value) is not int or value not in allowed:
        raise OctavoError(
            f"kv_cache.{key} is {_shown(value)}; it is one of {', '.join(str(size) for size in allowed)}."
        )
    return value


def _count(table: Mapping[str, Any], key: str, least: int, most: int = MOST) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        raise OctavoError(f"kv_cache.{key} is {_shown(value)}; it is a whole number from {least} to {most}.")
    return value


def _flag(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise OctavoError(f"kv_cache.{key} is {_shown(value)}; it is true or false.")
    return value


def _require_known(table: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            raise OctavoError(f"{prefix}{key[:40]} is unknown; choose {', '.join(known)}.")


def _shown(value: object) -> str:
    """Return a value as it is shown in a message: shortened, and of a deep table only its first levels."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return "a number too large to write"
