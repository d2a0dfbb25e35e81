"""How Octavo starts itself again as a child process."""

from __future__ import annotations

import sys


def app_command() -> list[str]:
    """Return the start of a command line that runs `octavo`, from a bundle or an installed package.

    `-P` keeps a package called `app` in the current folder from being taken for this one.
    """
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", "-m", "app"]
