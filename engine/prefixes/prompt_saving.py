"""What is saved of a prompt while it is read, as its reader sees it."""

from __future__ import annotations


class PromptSaving:
    """Saves nothing, as for what is thrown away."""

    def after_chunk(self) -> None:
        """Take note that a chunk was read."""

    def disown(self) -> None:
        """Take note that what was read is of no use, before it is forgotten."""


NOT_SAVED = PromptSaving()
