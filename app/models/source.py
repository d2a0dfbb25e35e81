"""Names of models that can be downloaded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import ModelError

STARTER_ID = "starter"
"""The name of the model that comes from the package index."""

GGUF_SUFFIX = ".gguf"
CONFIG = "config.json"
"""The file that makes a folder a model in MLX form."""

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_PATTERN = re.compile(
    rf"(?P<repo>{_NAME}/{_NAME})(?:@(?P<revision>{_NAME}))?(?:/(?P<file>(?:{_NAME}/)*{_NAME}\.gguf))?"
)


@dataclass(frozen=True)
class HubSource:
    """A model repository on Hugging Face, or one GGUF file of it.

    Attributes:
        repo: `org/name`.
        revision: a branch, tag or commit, None for the default branch.
        file: the path of a GGUF file in the repository, None for a model in MLX form.
    """

    repo: str
    revision: str | None = None
    file: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubSource:
        """Read `org/name[@revision][/file.gguf]`; anything else raises a `ModelError` that says the form."""
        match = _PATTERN.fullmatch(text.strip())
        if match is None or "--" in match["repo"] or ".." in text:
            raise ModelError(
                f"“{text}” is no model name. Use “{STARTER_ID}”, or the name on huggingface.co such as "
                "mlx-community/Qwen3-4B-4bit, with @revision or a GGUF file after it where needed."
            )
        return cls(match["repo"], match["revision"], match["file"])

    @classmethod
    def from_folder_name(cls, name: str) -> HubSource | None:
        """Return the repository that a folder made by `folder_name` holds, None for other folders."""
        if "--" not in name:
            return None
        try:
            return cls.parse(name.replace("--", "/"))
        except ModelError:
            return None

    @property
    def id(self) -> str:
        """The name that `parse` reads."""
        return self.repository_id + (f"/{self.file}" if self.file else "")

    @property
    def repository_id(self) -> str:
        """The name without the file."""
        return self.repo + (f"@{self.revision}" if self.revision else "")

    @property
    def folder_name(self) -> str:
        """The folder of the repository: `org--name[@revision]`."""
        return self.repository_id.replace("/", "--")
