"""Which model is loaded, for what is stored of it."""

from __future__ import annotations

from pathlib import Path

import mlx_lm

from engine.errors import ModelError
from engine.prefixes.digest import fingerprint
from engine.prefixes.records import PrefixStore


class ModelIdentity:
    """Knows the digest of a model that is loaded once it has been found out.

    It is that of the model's content with the version of mlx-lm, whose code computes with it: another version
    may compute other numbers.

    To be made before the model is read: where its files are others afterwards, what is in memory has no
    digest, and nothing is stored or found for it.

    Args:
        store: finds the digest out, on another thread.
        path: where the model lies.
    """

    def __init__(self, store: PrefixStore, path: Path) -> None:
        self._store = store
        self._path = path
        self._digest: str | None = None
        self._fingerprint = _fingerprint(path)

    @property
    def digest(self) -> str | None:
        """The model's digest, None while it is not known; asking begins to find it out."""
        if self._digest is None and self._fingerprint is not None:
            content = self._store.model_digest(self._path)
            if content is not None and self._fingerprint == _fingerprint(self._path):
                self._digest = f"{content} mlx-lm {mlx_lm.__version__}"
        return self._digest


def _fingerprint(path: Path) -> str | None:
    try:
        return fingerprint(path)
    except ModelError:
        return None
