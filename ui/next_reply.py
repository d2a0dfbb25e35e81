"""How the next reply is to be written, with the settings and the profile as they are now."""

from __future__ import annotations

from dataclasses import dataclass

from app.profiles import Overflow, Profile
from app.reply_settings import ReplySettings
from app.settings import Settings


@dataclass(frozen=True)
class Once:
    """What is chosen for one message only, after it was refused.

    Attributes:
        anyway: whether it may pass though it does not fit.
        overflow: what is done where the conversation is too long, None for what the profile says.
        looks_up_anyway: whether documents are looked up though the question is about all of them.
        reads_on: whether segments of documents that were not read for the question are read first.
    """

    anyway: bool = False
    overflow: Overflow | None = None
    looks_up_anyway: bool = False
    reads_on: bool = True


AS_SET = Once()
"""Nothing was chosen: all is as the profile says."""


def reply_settings(settings: Settings, profile: Profile, once: Once = AS_SET) -> ReplySettings:
    """Return how a reply is written."""
    return ReplySettings(
        settings.sampling,
        profile.kv,
        settings.system_prompt,
        profile.max_context,
        once.overflow or profile.overflow,
        profile.document_mode,
        profile.trim_at,
        profile.keep_ratio,
        once.anyway,
        once.looks_up_anyway,
        once.reads_on,
        is_once=once != AS_SET,
    )
