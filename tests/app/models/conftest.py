from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from tests.app.models.fake_hub import FakeHub, serving

TINY_CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 128,
}


@pytest.fixture
def tiny_files() -> dict[str, bytes]:
    """The files of a repository with a model that passes inspection, and some that belong to no model."""
    weights = np.random.default_rng(0).standard_normal((512, 512), dtype=np.float32)
    return {
        "README.md": b"# Tiny",
        "config.json": json.dumps(TINY_CONFIG).encode(),
        "tokenizer.json": b"{}",
        "chat_template.jinja": b"{{ messages }}",
        "model.safetensors": save({"model.embed_tokens.weight": weights}),
        "original/consolidated.safetensors": b"no",
        "model.py": b"no",
    }


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """An empty folder of models."""
    return tmp_path / "models"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_files: dict[str, bytes]) -> Iterator[FakeHub]:
    """A server that holds `org/tiny`, known to this process and its children as the hub."""
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session

    from app.models import hub

    with serving(FakeHub(files=tiny_files)) as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(hub, "RETRY_DELAYS_S", (0.0, 0.0, 0.0))
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        yield server
        close_session()
