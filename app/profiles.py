"""Profiles: how the cache, the context and documents are treated together, under a name."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from app.kv_config import LEAST_CONTEXT, MOST_CONTEXT
from app.valid_unicode import valid_unicode
from engine.errors import OctavoError
from engine.kv.precision import PRESETS, KVSpec

MAX_NAME_CHARS = 40
LEAST_TRIM_AT = 0.4
"""The least share of the context at which old turns may be due."""
LEAST_KEPT, MOST_KEPT = 0.1, 0.9
"""The bounds of the share of the context that stays then."""
DEFAULT_TRIM_AT = 1.0
DEFAULT_KEEP_RATIO = 0.6
_Choice = TypeVar("_Choice", bound=enum.Enum)


class Overflow(enum.Enum):
    """What happens when a conversation outgrows its context."""

    SUMMARIZE = "summarize"
    """Old turns are replaced by a summary in what the model reads. The conversation keeps them."""
    DROP = "drop"
    """Old turns are left out of what the model reads. The conversation keeps them, and says so."""
    ASK = "ask"
    """The message is not sent; the user chooses what to do."""
    OFF = "off"
    """Nothing is done before the context is full; then a message is refused."""


class DocumentMode(enum.Enum):
    """How documents are read that do not fit whole, unless another way is chosen for one.

    One that fits is read whole.
    """

    AUTO = "auto"
    """In segments where that is done in a few minutes, else looked up."""
    WHOLE = "whole"
    """Whole all the same: the message is refused, with what would fit."""
    SEGMENTS = "segments"
    """Segment by segment; the answer is written from the notes taken on each."""
    LOOK_UP = "look_up"
    """Only the passages that fit the words of the question."""


@dataclass(frozen=True)
class Profile:
    """Settings that belong together.

    Attributes:
        name: unique among the profiles.
        kv: precision of the KV cache, its attention budget included.
        max_context: tokens of prompt and answer together at most; None for what the model and memory give.
        overflow: what happens to a conversation beyond that.
        document_mode: how documents are read.
        trim_at: the share of the context beyond which `overflow` is due.
        keep_ratio: the share of the context that stays then, less than `trim_at`.
    """

    name: str
    kv: KVSpec
    max_context: int | None
    overflow: Overflow
    document_mode: DocumentMode
    trim_at: float = DEFAULT_TRIM_AT
    keep_ratio: float = DEFAULT_KEEP_RATIO


CUSTOM = "Custom"
"""The profile of a conversation whose settings are its own."""

BUILT_IN = (
    Profile("Chat", PRESETS["precise"], 12_288, Overflow.SUMMARIZE, DocumentMode.AUTO),
    Profile(
        "Long document",
        KVSpec.parse("4; attend=16, grow=1"),
        None,
        Overflow.ASK,
        DocumentMode.AUTO,
    ),
    Profile("Code", PRESETS["precise"], None, Overflow.ASK, DocumentMode.AUTO),
)
"""The profiles that come with the program; a copy of one can be edited."""
DEFAULT = BUILT_IN[0]
"""The profile of conversations until another is chosen."""


def is_built_in(name: str) -> bool:
    """Return whether a name is one that the user's own profiles cannot have."""
    taken = [profile.name for profile in BUILT_IN]
    return name.casefold() in (other.casefold() for other in [*taken, CUSTOM])


def usable_name(text: str, others: Iterable[str] = ()) -> str:
    """Return a name for an own profile as it is kept, on one line.

    Raises:
        OctavoError: it is empty, too long, or one of `others` or of the built-in ones.
    """
    name = " ".join(valid_unicode(text).split())
    if not name:
        raise OctavoError("A profile needs a name.")
    if len(name) > MAX_NAME_CHARS:
        raise OctavoError(f"The name of a profile has at most {MAX_NAME_CHARS} characters.")
    if is_built_in(name):
        raise OctavoError(f"{name} is a profile that comes with Octavo. Choose another name.")
    if name.casefold() in (other.casefold() for other in others):
        raise OctavoError(f"There is a profile {name} already. Choose another name.")
    return name


def require_context(max_context: int | None) -> None:
    """Raise an `OctavoError` for a context limit that cannot be."""
    if max_context is not None and not LEAST_CONTEXT <= max_context <= MOST_CONTEXT:
        raise OctavoError(
            f"{max_context:,} is no context limit; it is a whole number from {LEAST_CONTEXT:,} to "
            f"{MOST_CONTEXT:,}."
        )


def require_trim(trim_at: float, keep_ratio: float) -> None:
    """Raise an `OctavoError` for shares of the context at which no trim can be."""
    if not LEAST_TRIM_AT <= trim_at <= 1:
        raise OctavoError(f"{trim_at!r} is no threshold; it is a number from {LEAST_TRIM_AT} to 1.")
    if not LEAST_KEPT <= keep_ratio <= MOST_KEPT:
        raise OctavoError(
            f"{keep_ratio!r} is no share to keep; it is a number from {LEAST_KEPT} to {MOST_KEPT}."
        )
    if keep_ratio >= trim_at:
        raise OctavoError(f"The share to keep, {keep_ratio!r}, must be less than the threshold, {trim_at!r}.")


def profile_table(profile: Profile) -> dict[str, Any]:
    """Return a profile as it is stored, in TOML and in JSON; no `max_context` stands for what fits."""
    limit = {} if profile.max_context is None else {"max_context": profile.max_context}
    return {
        "name": profile.name,
        "kv": str(profile.kv),
        **limit,
        "overflow": profile.overflow.value,
        "document_mode": profile.document_mode.value,
        "trim_at": profile.trim_at,
        "keep_ratio": profile.keep_ratio,
    }


def read_profile(table: object) -> Profile:
    """Return the profile of a stored table; what one of a former version lacks has its default.

    Raises:
        OctavoError: it is none; the sentence says which part cannot be.
    """
    if not isinstance(table, Mapping):
        raise OctavoError(f"{table!r} is no table.")
    name, kv = table.get("name"), table.get("kv")
    if not isinstance(name, str) or not name.strip():
        raise OctavoError("its name is missing.")
    if not isinstance(kv, str):
        raise OctavoError(f"its kv is {kv!r}; it is text such as 8 or k8v4.")
    max_context = table.get("max_context")
    if max_context is not None and type(max_context) is not int:
        raise OctavoError(f"its max_context is {max_context!r}; it is a whole number.")
    require_context(max_context)
    trim_at = _share("trim_at", table, DEFAULT_TRIM_AT)
    keep_ratio = _share("keep_ratio", table, DEFAULT_KEEP_RATIO)
    require_trim(trim_at, keep_ratio)
    return Profile(
        name,
        KVSpec.parse(kv),
        max_context,
        _choice(Overflow, "overflow", table),
        _choice(DocumentMode, "document_mode", table),
        trim_at,
        keep_ratio,
    )


def _share(key: str, table: Mapping[str, Any], default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OctavoError(f"its {key} is {value!r}; it is a number such as {default}.")
    return float(value)


def _choice(kind: type[_Choice], key: str, table: Mapping[str, Any]) -> _Choice:
    try:
        return kind(table.get(key))
    except ValueError:
        known = " or ".join(str(entry.value) for entry in kind)
        raise OctavoError(f"its {key} is {table.get(key)!r}; it is {known}.") from None
