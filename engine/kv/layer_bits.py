"""A KV precision as bits by layer, and bits by layer as the fewest rules that say the same."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import replace

from engine.kv.precision import BitsPair, KVSpec, LayerShape, PrecisionRule

_UNNAMED = BitsPair(16, 16)
"""What a layer has that no rule names."""


def layer_bits(spec: KVSpec, num_layers: int) -> tuple[BitsPair, ...]:
    """Return the bits of each layer in the cold tier; rules for single heads are left out."""
    bits = [_UNNAMED] * num_layers
    for rule in spec.rules:
        if rule.head is None:
            for layer in _layers_of(rule, num_layers):
                bits[layer] = rule.bits
    return tuple(bits)


def head_bits(spec: KVSpec, num_layers: int) -> tuple[dict[int, BitsPair], ...]:
    """Return for each layer the KV heads that have a rule of their own, with their bits."""
    heads: list[dict[int, BitsPair]] = [{} for _ in range(num_layers)]
    for rule in spec.rules:
        for layer in _layers_of(rule, num_layers):
            if rule.head is None:
                heads[layer].clear()
            else:
                heads[layer][rule.head] = rule.bits
    return tuple(heads)


def with_layer_bits(spec: KVSpec, bits: Sequence[BitsPair]) -> KVSpec:
    """Return `spec` with these bits for its layers; heads with rules of their own keep them."""
    kept = _head_rules(head_bits(spec, len(bits)))
    return replace(spec, rules=compact(tuple(bits)) + kept)


def with_all_bits(spec: KVSpec, *, keys: int | None = None, values: int | None = None) -> KVSpec:
    """Return `spec` with these bits of keys or values in all layers and heads; None leaves them as they are.

    Rules that say nothing of their own any more are left out, as far as that is known without a model.
    """

    def changed(bits: BitsPair) -> BitsPair:
        return BitsPair(bits.keys if keys is None else keys, bits.values if values is None else values)

    everywhere = PrecisionRule(0, None, None, changed(_UNNAMED))
    rules = [replace(rule, bits=changed(rule.bits)) for rule in spec.rules]
    covering = [place for place, rule in enumerate(rules) if _is_everywhere(rule)]
    rules = rules[covering[-1] :] if covering else [everywhere, *rules]
    if all(rule.bits == rules[0].bits for rule in rules):
        rules = rules[:1]
    return replace(spec, rules=tuple(rules))


def mean_bits(spec: KVSpec, shapes: Sequence[LayerShape]) -> tuple[float, float] | None:
    """Return the mean bits of keys and of values over all heads in the cold tier; None without any."""
    pairs = [
        heads.get(head, bits)
        for bits, heads, shape in zip(
            layer_bits(spec, len(shapes)), head_bits(spec, len(shapes)), shapes, strict=True
        )
        for head in range(shape.num_kv_heads)
    ]
    if not pairs:
        return None
    return sum(pair.keys for pair in pairs) / len(pairs), sum(pair.values for pair in pairs) / len(pairs)


@functools.lru_cache(maxsize=64)
def compact(bits: tuple[BitsPair, ...]) -> tuple[PrecisionRule, ...]:
    """Return the fewest rules that give the layers these bits; at least one.

    A later rule wins, so rules may be written over others: `4, 12:8` instead of `0-11:4, 12:8, 13-:4`. Where
    as few would do side by side, in the order of the layers, they are: `0-7:8, 8-:4`.

    Finding them is printing a line with a stamp that prints one letter as often as it is wide: a dynamic
    programme over the runs of equal bits. Layers at 16 bits need no rule, as if 16 were printed before.
    """
    runs = _runs(bits)
    side_by_side = [run for run in runs if run[2] != _UNNAMED] or runs[:1]
    framed = [(0, 0, _UNNAMED), *runs, (0, 0, _UNNAMED)]
    stamps = _stamps(tuple(run[2] for run in framed))[1:]
    if 0 < len(stamps) < len(side_by_side):
        side_by_side = [(framed[first][0], framed[last][1], framed[first][2]) for first, last in stamps]
    return tuple(_rule(first, last, pair, len(bits)) for first, last, pair in side_by_side)


def _runs(bits: Sequence[BitsPair]) -> list[tuple[int, int, BitsPair]]:
    """Return the first layer, the last layer and the bits of each run of layers that are alike."""
    runs = []
    for pair, layers in itertools.groupby(range(len(bits)), key=lambda layer: bits[layer]):
        first, *others = layers
        runs.append((first, others[-1] if others else first, pair))
    return runs


def _stamps(letters: tuple[BitsPair, ...]) -> list[tuple[int, int]]:
    """Return the fewest stamps that print the letters, outer ones first, as their first and last place.

    Each prints the letter of its first place, which is that of its last place too.
    """
    size = len(letters)
    fewest = [[0] * (size + 1) for _ in range(size + 2)]
    # The next place that the same stamp prints, or the place itself.
    joined = [[0] * size for _ in range(size)]
    for first in range(size - 1, -1, -1):
        alike = [place for place in range(first + 1, size) if letters[place] == letters[first]]
        for last in range(first, size):
            best, reach = fewest[first + 1][last] + 1 if last > first else 1, first
            for place in alike:
                if place > last:
                    break
                between = fewest[first + 1][place - 1] if place > first + 1 else 0
                if between + fewest[place][last] < best:
                    best, reach = between + fewest[place][last], place
            fewest[first][last], joined[first][last] = best, reach
    return _laid_out(joined, size)


def _laid_out(joined: Sequence[Sequence[int]], size: int) -> list[tuple[int, int]]:
    """Follow the choices of `_stamps` from the whole line inwards."""
    stamps = []
    waiting = [(0, size - 1)]
    while waiting:
        first, last = waiting.pop(0)
        reach = first
        while (further := joined[reach][last]) != reach:
            if further > reach + 1:
                waiting.append((reach + 1, further - 1))
            reach = further
        stamps.append((first, reach))
        if reach < last:
            waiting.append((reach + 1, last))
    return stamps


def _rule(first: int, last: int, bits: BitsPair, num_layers: int) -> PrecisionRule:
    """Return a rule that is open at its end where it reaches the last layer and names more than that."""
    is_open = last == num_layers - 1 and (last > first or num_layers == 1)
    return PrecisionRule(first, None if is_open else last, None, bits)


def _head_rules(heads: Sequence[dict[int, BitsPair]]) -> tuple[PrecisionRule, ...]:
    """Return rules for single heads, each for as many layers in a row as it can."""
    rules = []
    for head in sorted({head for layer in heads for head in layer}):
        own = [layer.get(head) for layer in heads]
        for pair, group in itertools.groupby(range(len(heads)), key=own.__getitem__):
            layers = list(group)
            if pair is not None:
                rules.append(replace(_rule(layers[0], layers[-1], pair, len(heads)), head=head))
    return tuple(rules)


def _layers_of(rule: PrecisionRule, num_layers: int) -> range:
    last = num_layers - 1 if rule.last is None else min(rule.last, num_layers - 1)
    return range(rule.first, last + 1)


def _is_everywhere(rule: PrecisionRule) -> bool:
    return (rule.first, rule.last, rule.head) == (0, None, None)
