"""Panels of the KV precision on the screen."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from engine.backend import start_backend
from engine.budget import plan_load
from engine.engine import LoadedModel
from engine.kv.precision import KVSpec, LayerShape
from engine.model_info import CachedLayers, ModelFormat, ModelInfo
from engine.template_cost import TemplateTokens
from engine.tokens import TokenCounter
from ui.inspector.precision import PrecisionPanel

CUSTOM = KVSpec.parse("0-7:8, 8-:k6v4; page=128, group=32, hot=2, warm=0, attend=10, grow=1")


def loaded_model(num_layers: int, num_kv_heads: int, paged_every: int = 1) -> LoadedModel:
    """A small model that is described and has no weights; one in `paged_every` of its layers has pages."""
    shapes = [LayerShape(0 if layer % paged_every else num_kv_heads, 64, 64) for layer in range(num_layers)]
    info = ModelInfo(
        path=Path("gone"),
        format=ModelFormat.MLX,
        name="Small",
        architecture="llama",
        quantization="4-bit",
        num_layers=num_layers,
        num_heads=num_kv_heads,
        num_kv_heads=num_kv_heads,
        head_dim=64,
        context_tokens=8_192,
        vocab_size=100,
        num_parameters=1_000_000,
        weights_nbytes=500_000,
        packed_nbytes=500_000,
        num_plain_values=1_000,
        layers=CachedLayers(paged=tuple(shapes)),
    )
    backend = start_backend()
    plan = plan_load(info, backend, KVSpec.parse("16"), available_nbytes=8 << 30)
    counter = TokenCounter(PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel())))
    return LoadedModel(info, backend, plan, counter, TemplateTokens(0, 0, 0))


def shown(qtbot: QtBot, spec: KVSpec) -> PrecisionPanel:
    panel = PrecisionPanel(spec)
    qtbot.addWidget(panel)
    panel.resize(240, 700)
    panel.show()
    qtbot.waitExposed(panel)
    return panel
