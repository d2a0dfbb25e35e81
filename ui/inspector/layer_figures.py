"""The layers of the loaded model at a KV precision, and what they cost in words."""

from __future__ import annotations

from collections.abc import Collection

from engine.budget import activation_nbytes, kv_nbytes_per_token, layer_shapes
from engine.engine import LoadedModel
from engine.kv.layer_bits import head_bits, layer_bits
from engine.kv.precision import KVSpec
from engine.wording import format_nbytes
from ui.inspector.equalizer import Layer


def layers_of(spec: KVSpec, loaded: LoadedModel | None) -> tuple[Layer, ...]:
    """Return the layers of a model as a precision sets them; none without a model."""
    if loaded is None:
        return ()
    shapes = layer_shapes(loaded.info)
    bits, heads = layer_bits(spec, len(shapes)), head_bits(spec, len(shapes))
    return tuple(
        Layer(
            bits=bits[layer],
            has_heads=any(head < shape.num_kv_heads for head in heads[layer]),
            is_paged=shape.num_kv_heads > 0,
        )
        for layer, shape in enumerate(shapes)
    )


def describe_layers(spec: KVSpec, loaded: LoadedModel, first: int, last: int) -> str:
    """Return what layers have and cost: `Layer 12: keys 8, values 4 bits, 3.1 KB of 46 KB a token`."""
    shapes = layer_shapes(loaded.info)
    name = f"Layer {first}" if first == last else f"Layers {first}–{last}"
    layers = [layer for layer in range(first, last + 1) if shapes[layer].num_kv_heads]
    if not layers:
        return f"{name}: not paged. The model's own cache keeps 16 bits."
    all_bits = layer_bits(spec, len(shapes))
    bits = [all_bits[layer] for layer in layers]
    keys, values = _span({pair.keys for pair in bits}), _span({pair.values for pair in bits})
    each = spec.layer_nbytes(tuple(shapes), activation_nbytes(loaded.info, loaded.backend))
    nbytes = sum(each[layer] for layer in layers)
    total = kv_nbytes_per_token(loaded.info, loaded.backend, spec)
    cost = f"{format_nbytes(round(nbytes))} of {format_nbytes(total)} a token"
    return f"{name}: keys {keys}, values {values} bits, {cost}{_heads(spec, layers, len(shapes))}"


def _span(bits: Collection[int]) -> str:
    return f"{min(bits)}" if len(bits) == 1 else f"{min(bits)}–{max(bits)}"


def _heads(spec: KVSpec, layers: list[int], num_layers: int) -> str:
    """Return which heads have bits of their own: `; head 3 has k8v4`."""
    heads = head_bits(spec, num_layers)
    own = [(head, pair) for layer in layers for head, pair in sorted(heads[layer].items())]
    if not own:
        return ""
    if len(own) > 1:
        return f"; {len(own)} heads differ"
    return f"; head {own[0][0]} has {own[0][1]}"
