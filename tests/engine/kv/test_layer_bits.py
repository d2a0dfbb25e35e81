"""Bits by layer and the rules that say them."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kv.layer_bits import (
    compact,
    head_bits,
    layer_bits,
    mean_bits,
    with_all_bits,
    with_layer_bits,
)
from engine.kv.precision import BitsPair, KVSpec, LayerShape
from tests.engine.kv.kv_specs import bits_pairs, kv_specs

few_pairs = st.sampled_from([BitsPair(16, 16), BitsPair(8, 8), BitsPair(8, 4), BitsPair(2, 2)])
layers = st.lists(st.one_of(few_pairs, bits_pairs), min_size=1, max_size=40).map(tuple)


def pairs(text: str) -> tuple[BitsPair, ...]:
    """Return a layer's bits for each digit, which stands for keys and values; `x` is 16."""
    return tuple(
        BitsPair(16 if digit == "x" else int(digit), 16 if digit == "x" else int(digit)) for digit in text
    )


@cache
def fewest_rules(num_layers: int, letters: str) -> dict[str, int]:
    """Return how few rules give each line of letters, found by writing rules over all lines there are."""
    found = {"x" * num_layers: 0}
    edge = list(found)
    while edge:
        reached = []
        for line in edge:
            for first, last in itertools.combinations(range(num_layers + 1), 2):
                for letter in letters:
                    written = line[:first] + letter * (last - first) + line[last:]
                    if written not in found:
                        found[written] = found[line] + 1
                        reached.append(written)
        edge = reached
    return found


@pytest.mark.parametrize("num_layers", [1, 2, 5, 6])
def test_there_are_as_few_rules_as_there_can_be(num_layers: int) -> None:
    for line, fewest in fewest_rules(num_layers, "x842").items():
        assert len(compact(pairs(line))) == max(1, fewest), line


@given(layers)
def test_the_text_of_bits_by_layer_gives_the_same_bits(bits: tuple[BitsPair, ...]) -> None:
    spec = KVSpec(compact(bits))
    again = KVSpec.parse(str(spec))
    assert tuple(again.bits(layer, 0) for layer in range(len(bits))) == bits
    spec.require_fit(len(bits), 1)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("8888", "8"),
        ("xxxx", "16"),
        ("8844", "0-1:8, 2-:4"),
        ("88xx", "0-1:8"),
        ("4448444", "4, 3:8"),
        ("4448", "0-2:4, 3:8"),
        ("2884482", "2, 1-5:8, 3-4:4"),
        ("8", "8"),
        ("xx8", "2:8"),
    ],
)
def test_the_text_reads_in_the_order_of_the_layers_unless_fewer_rules_do(line: str, text: str) -> None:
    assert str(KVSpec(compact(pairs(line)))) == text


@given(kv_specs(), st.integers(1, 45))
def test_bits_of_layers_and_heads_are_what_the_precision_gives(spec: KVSpec, num_layers: int) -> None:
    bits, heads = layer_bits(spec, num_layers), head_bits(spec, num_layers)
    for layer, head in itertools.product(range(num_layers), range(4)):
        assert heads[layer].get(head, bits[layer]) == spec.bits(layer, head)


@given(kv_specs(), layers)
def test_other_bits_for_layers_leave_heads_with_rules_of_their_own_and_all_else(
    spec: KVSpec, bits: tuple[BitsPair, ...]
) -> None:
    changed = with_layer_bits(spec, bits)
    assert layer_bits(changed, len(bits)) == bits
    assert head_bits(changed, len(bits)) == head_bits(spec, len(bits))
    assert str(changed).partition(";")[2] == str(spec).partition(";")[2]


@pytest.mark.parametrize(
    ("text", "keys", "values", "changed"),
    [
        ("8", 4, None, "k4v8"),
        ("0-7:8, 8-:k6v4; warm=2", None, 3, "k16v3, 0-7:k8v3, 8-:k6v3; warm=2"),
        ("0-7:8", 4, None, "k4v16, 0-7:k4v8"),
        ("2, 0-7:8, 4, 1:8", None, 2, "k4v2, 1:k8v2"),
        ("k8v4, 3.h1:k8v2", None, 6, "k8v6"),
    ],
)
def test_a_slider_sets_keys_or_values_of_all_layers_and_heads(
    text: str, keys: int | None, values: int | None, changed: str
) -> None:
    assert str(with_all_bits(KVSpec.parse(text), keys=keys, values=values)) == changed


@given(kv_specs(), st.sampled_from([2, 8, 16]))
def test_all_keys_get_the_bits_and_values_keep_theirs(spec: KVSpec, bits: int) -> None:
    changed = with_all_bits(spec, keys=bits)
    for layer, head in itertools.product((0, 1, 7, 40), range(3)):
        assert changed.bits(layer, head) == BitsPair(bits, spec.bits(layer, head).values)


def test_the_bytes_of_layers_sum_up_to_those_of_the_model() -> None:
    spec = KVSpec.parse("0-1:8, 2-:k6v4, 3.h1:16; group=32")
    shapes = [LayerShape(2, 128, 72), LayerShape(0, 0, 0), LayerShape(1, 64, 64), LayerShape(2, 64, 64)]
    each = spec.layer_nbytes(tuple(shapes), 2)
    assert sum(each) == spec.kv_nbytes_per_token(shapes, 2)
    assert each[1] == 0
    assert each[2] == spec.kv_nbytes_per_token([LayerShape(0, 0, 0)] * 2 + shapes[2:3], 2)


def test_the_mean_counts_heads_and_leaves_layers_without_pages_out() -> None:
    shapes = [LayerShape(2, 64, 64), LayerShape(0, 64, 64), LayerShape(2, 64, 64)]
    assert mean_bits(KVSpec.parse("8, 1:2, 2-:4, 2.h1:k16v2"), shapes) == (
        (8 + 8 + 4 + 16) / 4,
        (8 + 8 + 4 + 2) / 4,
    )
    assert mean_bits(KVSpec.parse("8"), [LayerShape(0, 64, 64)]) is None
