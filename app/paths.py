"""Where Octavo keeps its files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True)
class AppPaths:
    """The user's data folder and what lies in it; `OCTAVO_HOME` in the environment moves all of it."""

    home: Path

    @classmethod
    def from_environment(cls) -> AppPaths:
        """Return the folder named by `OCTAVO_HOME`, else the platform's folder for user data."""
        override = os.environ.get("OCTAVO_HOME")
        return cls(Path(override).expanduser() if override else platformdirs.user_data_path("Octavo", False))

    @property
    def conversations_db(self) -> Path:
        """The database of conversations."""
        return self.home / "conversations.db"

    @property
    def prefixes_db(self) -> Path:
        """The database of pages that were read once; deleting it loses time, never words."""
        return self.home / "prefixes.db"

    @property
    def settings_file(self) -> Path:
        """The settings, as TOML."""
        return self.home / "settings.toml"

    @property
    def window_lock(self) -> Path:
        """The file that names the process whose window is open."""
        return self.home / "octavo.lock"

    @property
    def models(self) -> Path:
        """The folder of downloaded and imported models."""
        return self.home / "models"

    @property
    def logs(self) -> Path:
        """The folder of log files."""
        return self.home / "logs"

    @property
    def spill(self) -> Path:
        """The folder of keys and values that are out of memory for a while; nothing there is kept."""
        return self.home / "spill"
