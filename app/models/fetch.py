"""Getting a model in this process, from wherever it comes."""

from __future__ import annotations

from pathlib import Path

from app.models.progress import ProgressCallback
from app.models.source import STARTER_ID, HubSource
from engine.cancel import CancelToken


def fetch_model(source: str, models: Path, *, on_progress: ProgressCallback) -> Path:
    """Bring a model into a folder of models and return its folder or file.

    Blocks in the network, so it can only be stopped by ending the process: `get_model` runs it in one of
    its own. Raises a `ModelError` for whatever goes wrong.
    """
    if source == STARTER_ID:
        from app.models.starter import install_starter

        return install_starter(models, cancel=CancelToken(), on_progress=on_progress)
    from app.models.hub import install_from_hub

    return install_from_hub(models, HubSource.parse(source), on_progress=on_progress)
