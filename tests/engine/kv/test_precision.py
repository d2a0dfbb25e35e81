from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import OctavoError
from engine.kv.precision import (
    GROUP_SIZES,
    KV_BITS,
    MOST,
    PAGE_TOKENS,
    BitsPair,
    KVSpec,
    LayerShape,
    PrecisionError,
    PrecisionRule,
    Tier,
    padded_dim,
    value_group,
)
from tests.engine.kv.kv_specs import bits_pairs, everywhere, kv_specs, numbers

STARTER = [LayerShape(num_kv_heads=3, key_dim=64, value_dim=64)] * 30


def test_an_impossible_value_cannot_be_built_either() -> None:
    for build in (
        lambda: BitsPair(7, 8),
        lambda: BitsPair(8, 1),
        lambda: BitsPair(True, 8),
        lambda: PrecisionRule(5, 4, None, BitsPair(8, 8)),
        lambda: PrecisionRule(-1, None, None, BitsPair(8, 8)),
        lambda: PrecisionRule(0, None, -1, BitsPair(8, 8)),
        lambda: KVSpec(()),
        lambda: KVSpec((everywhere(8),), page_tokens=32),
        lambda: KVSpec((everywhere(8),), page_tokens=64, group_size=128),
        lambda: KVSpec((everywhere(8),), hot_pages=True),
        lambda: KVSpec((everywhere(8),), attention_pages=0),
    ):
        with pytest.raises(OctavoError):
            build()


def test_a_later_rule_wins_and_the_rest_stays_at_16_bits() -> None:
    spec = KVSpec.parse("2-5:8, 4-:k6v4, 4.h1:2, 9.h1:3, 9:5")
    by_head = {(layer, head): str(spec.bits(layer, head)) for layer in range(11) for head in range(2)}
    assert [by_head[layer, 0] for layer in range(11)] == [
        *("16", "16", "8", "8", "k6v4", "k6v4", "k6v4", "k6v4", "k6v4", "5", "k6v4")
    ]
    different = {place: bits for place, bits in by_head.items() if bits != by_head[place[0], 0]}
    assert different == {(4, 1): "2"}


@given(kv_specs(), numbers, numbers)
def test_bits_are_those_of_the_last_rule_that_covers_a_head(spec: KVSpec, layer: int, head: int) -> None:
    expected = BitsPair(16, 16)
    for rule in spec.rules:
        layers = range(rule.first, MOST + 1 if rule.last is None else rule.last + 1)
        if layer in layers and (rule.head is None or rule.head == head):
            expected = rule.bits
    assert spec.bits(layer, head) == expected


@given(bits_pairs)
def test_hot_is_16_bits_and_warm_8_at_least(bits: BitsPair) -> None:
    spec = KVSpec((PrecisionRule(0, None, None, bits),))
    assert spec.tier_bits(Tier.HOT, 0, 0) == BitsPair(16, 16)
    assert spec.tier_bits(Tier.COLD, 0, 0) == bits
    warm = spec.tier_bits(Tier.WARM, 0, 0)
    assert warm.keys == (16 if bits.keys == 16 else 8)
    assert warm.values == (16 if bits.values == 16 else 8)


@pytest.mark.parametrize("text", ["4", "29:8", "0-29:8", "29-:8", "0.h2:4", "0-:8, 5-29.h0:k8v4"])
def test_what_the_model_has_fits(text: str) -> None:
    KVSpec.parse(text).require_fit(num_layers=30, num_kv_heads=3)


@pytest.mark.parametrize("rule", ["30:8", "0-30:8", "30-:8", "0.h3:8", "12-99.h0:k8v4"])
def test_a_layer_or_head_that_the_model_lacks_is_named_beside_the_last_ones(rule: str) -> None:
    with pytest.raises(PrecisionError, match=r"layers 0-29, heads 0-2\. Change .* --kv\.$") as raised:
        KVSpec.parse(f"4, {rule}").require_fit(num_layers=30, num_kv_heads=3)
    assert f"'{rule}'" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "activation_nbytes", "nbytes"),
    [
        ("4", 4, 7_200),  # 90 heads of 64 + 64 numbers: half a byte each, a scale and a bias for each 64
        ("4", 2, 6_480),
        ("16", 4, 46_080),
        ("16", 2, 23_040),
        ("8", 2, 12_240),
        ("4; group=32", 4, 8_640),
        ("k4v3", 4, 6_480),
        ("k16v2", 2, 90 * (128 + 16 + 4)),
        ("0-7:8, 8-:4", 4, 8 * 3 * (128 + 16) + 22 * 3 * (64 + 16)),
        ("4, 12.h2:8", 4, 7_200 + 64),
    ],
)
def test_bytes_of_a_token_in_the_starter_model(text: str, activation_nbytes: int, nbytes: float) -> None:
    spec = KVSpec.parse(text)
    assert spec.kv_nbytes_per_token(STARTER, activation_nbytes) == nbytes
    assert spec.effective_bits(STARTER, activation_nbytes) == pytest.approx(nbytes * 8 / (90 * 128))


@pytest.mark.parametrize(
    ("dim", "group_size", "group", "padded"),
    [
        *((64, 32, 32, 64), (64, 64, 64, 64), (64, 128, 64, 64)),
        *((72, 32, 32, 96), (72, 64, 32, 96), (72, 128, 32, 96)),
        *((80, 32, 32, 96), (80, 64, 32, 96), (80, 128, 32, 96)),
        *((96, 32, 32, 96), (96, 64, 32, 96), (96, 128, 32, 96)),
        *((112, 32, 32, 128), (112, 64, 32, 128), (112, 128, 32, 128)),
        *((128, 32, 32, 128), (128, 64, 64, 128), (128, 128, 128, 128)),
        *((256, 32, 32, 256), (256, 64, 64, 256), (256, 128, 128, 256)),
    ],
)
def test_values_are_grouped_by_the_largest_size_that_divides_a_head_else_padded(
    dim: int, group_size: int, group: int, padded: int
) -> None:
    assert (value_group(dim, group_size), padded_dim(dim, group_size)) == (group, padded)


@pytest.mark.parametrize("page_tokens", PAGE_TOKENS)
@pytest.mark.parametrize("dim", [64, 72, 80, 96, 112, 128, 256])
def test_the_formula_is_what_mlx_takes_for_a_page(dim: int, page_tokens: int) -> None:
    for bits in KV_BITS:
        for group_size in (size for size in GROUP_SIZES if size <= page_tokens):
            spec = KVSpec((everywhere(bits),), page_tokens, group_size)
            nbytes = spec.kv_nbytes_per_token([LayerShape(1, dim, dim)], 4) * page_tokens
            assert nbytes == quantized_page_nbytes(dim, page_tokens, bits, group_size)


def quantized_page_nbytes(dim: int, page_tokens: int, bits: int, group_size: int) -> int:
    """Quantize a page of one head as pools do, keys per channel and values per token, and count."""
    if bits == 16:
        return 2 * mx.zeros((page_tokens, dim)).nbytes
    keys = mx.quantize(mx.zeros((dim, page_tokens)), group_size, bits)
    padded = mx.zeros((page_tokens, padded_dim(dim, group_size)))
    values = mx.quantize(padded, value_group(dim, group_size), bits)
    return sum(array.nbytes for array in (*keys, *values))


def test_keys_and_values_of_different_sizes_and_layers_without_pages_are_counted() -> None:
    shapes = [LayerShape(2, 128, 72), LayerShape(0, 128, 72), LayerShape(1, 64, 64)]
    spec = KVSpec.parse("0-1:k8v4, 2:16")
    nbytes = 2 * (128 + 128 / 64 * 4 + 96 / 2 + 96 / 32 * 4) + 128 * 2
    assert spec.kv_nbytes_per_token(shapes, 2) == nbytes
    assert spec.effective_bits(shapes, 2) == pytest.approx(nbytes * 8 / (2 * 200 + 128))
    assert spec.effective_bits([], 2) == 0


@given(kv_specs(), st.sampled_from([2, 4]))
def test_fewer_bits_never_take_more_bytes(spec: KVSpec, activation_nbytes: int) -> None:
    exact = KVSpec((everywhere(16),))
    least = KVSpec((everywhere(2),), spec.page_tokens, spec.group_size)
    shapes = [LayerShape(4, 128, 128)] * 3
    nbytes = spec.kv_nbytes_per_token(shapes, activation_nbytes)
    assert least.kv_nbytes_per_token(shapes, activation_nbytes) <= nbytes
    assert nbytes <= exact.kv_nbytes_per_token(shapes, activation_nbytes)
