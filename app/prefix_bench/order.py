"""What one process of the bench is asked to do, and what it answers, as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import OctavoError


class Phase(enum.Enum):
    """What a process does; each is started afresh."""

    COLD = "cold"
    """Reads the document with nothing kept, and keeps nothing."""
    AHEAD = "ahead"
    """Reads it before the question, and keeps nothing."""
    KEEP = "keep"
    """Reads it, answers, and keeps all of it."""
    CONVERSATION = "conversation"
    """Goes on in the conversation that is kept."""
    LOADED = "loaded"
    """The same, and loads it before the question."""
    DOCUMENT = "document"
    """Begins a new conversation about the document."""
    DECODE = "decode"
    """Answers in the conversation that is kept, by turns while pages are written and without."""
    SAVE_PROMPT_CACHES = "save-prompt-caches"
    """Reads the same tokens with mlx-lm and saves its cache."""
    LOAD_PROMPT_CACHE = "load-prompt-cache"
    """Loads that."""


@dataclass(frozen=True)
class Order:
    """What a process is asked to do.

    Attributes:
        phase: what.
        model: a model's folder or file.
        folder: where all processes of the bench keep their files.
        num_tokens: of the document.
        conversation_id: the conversation that is kept, 0 before there is one.
        leaf_id: its last message.
        bits: of mlx-lm's cache.
        answer_tokens: of an answer whose speed is measured, at least 2.
        runs: such answers of each kind.
    """

    phase: Phase
    model: Path
    folder: Path
    num_tokens: int
    conversation_id: int = 0
    leaf_id: int = 0
    bits: int = 0
    answer_tokens: int = 2
    runs: int = 1

    @property
    def text_file(self) -> Path:
        """The text from whose beginning the document is taken."""
        return self.folder / "text.txt"

    @property
    def prefixes_db(self) -> Path:
        """The file of the prefix cache."""
        return self.folder / "prefixes.db"

    def prompt_cache_file(self, bits: int) -> Path:
        """Return mlx-lm's file with a cache at some bits."""
        return self.folder / f"prompt-cache-{bits}.safetensors"

    def to_json(self) -> str:
        """Return it as an argument of a command line."""
        fields = {"phase": self.phase.value, "model": str(self.model), "folder": str(self.folder)}
        return json.dumps(dataclasses.asdict(self) | fields)

    @classmethod
    def from_json(cls, text: str) -> Order:
        """Return what `to_json` wrote; an `OctavoError` says that it is something else."""
        try:
            fields = json.loads(text)
            paths = {name: Path(fields[name]) for name in ("model", "folder")}
            return cls(**{**fields, **paths, "phase": Phase(fields["phase"])})
        except (ValueError, TypeError, KeyError) as error:
            raise OctavoError("This is no order of a bench.") from error


@dataclass(frozen=True)
class Outcome:
    """What a process answers.

    Attributes:
        figures: the fields of what it measured, by name.
        setup: what it ran on, in words.
    """

    figures: dict[str, Any]
    setup: str

    def to_json(self) -> str:
        """Return it as a line of output."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Outcome:
        """Return what `to_json` wrote."""
        return cls(**json.loads(line))
