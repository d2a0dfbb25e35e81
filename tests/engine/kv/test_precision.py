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
    PRESETS,
    BitsPair,
    KVSpec,
    LayerShape,
    PrecisionError,
    PrecisionRule,
    Tier,
    padded_dim,
    value_group,
)
from tests.engine.kv.kv_specs import bits_pairs, kv_specs, numbers, rules

STARTER = [LayerShape(num_kv_heads=3, key_dim=64, value_dim=64)] * 30
ALPHABET = "0123456789-kvh.:,;= pagerouptnbldcimsKVH\t…²٣"


def everywhere(bits: int, values: int | None = None) -> PrecisionRule:
    return PrecisionRule(0, None, None, BitsPair(bits, bits if values is None else values))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("8", KVSpec((everywhere(8),))),
        ("k8v4", KVSpec((everywhere(8, 4),))),
        (
            "0-7:8, 8-:4",
            KVSpec((PrecisionRule(0, 7, None, BitsPair(8, 8)), PrecisionRule(8, None, None, BitsPair(4, 4)))),
        ),
        (
            "0-7:k8v8, 8-:k6v4, 12.h3:k8v8",
            KVSpec(
                (
                    PrecisionRule(0, 7, None, BitsPair(8, 8)),
                    PrecisionRule(8, None, None, BitsPair(6, 4)),
                    PrecisionRule(12, 12, 3, BitsPair(8, 8)),
                )
            ),
        ),
        ("3:2", KVSpec((PrecisionRule(3, 3, None, BitsPair(2, 2)),))),
        ("0-3.h1:16", KVSpec((PrecisionRule(0, 3, 1, BitsPair(16, 16)),))),
        ("5-.h0:k3v2", KVSpec((PrecisionRule(5, None, 0, BitsPair(3, 2)),))),
        ("balanced", PRESETS["balanced"]),
        ("4; page=128, group=32, hot=2, warm=0, attend=8", KVSpec((everywhere(4),), 128, 32, 2, 0, 8)),
        (" K8 V4 ;PAGE = 512,\nAttend=1", KVSpec((everywhere(8, 4),), page_tokens=512, attention_pages=1)),
        ("4; group=64, page=64", KVSpec((everywhere(4),), page_tokens=64)),
        (
            "Compact, 0:8; warm=9",
            KVSpec((everywhere(4, 3), PrecisionRule(0, 0, None, BitsPair(8, 8))), hot_pages=1, warm_pages=9),
        ),
    ],
)
def test_text_means_what_it_says(text: str, spec: KVSpec) -> None:
    assert KVSpec.parse(text) == spec


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("K8V8", "8"),
        ("0-:8", "8"),
        ("007-7:4", "7:4"),
        ("0-7 : 8,8- :k6v4", "0-7:8, 8-:k6v4"),
        ("0-.h2:k4v4", "0-.h2:4"),
        ("4; hot=1, warm=4, page=256, group=64", "4"),
        ("4; attend=8, group=32", "4; group=32, attend=8"),
        ("precise", "8"),
        ("balanced", "4"),
        ("compact", "k4v3; warm=2"),
    ],
)
def test_a_precision_has_one_way_of_being_printed(text: str, printed: str) -> None:
    assert str(KVSpec.parse(text)) == printed


@given(kv_specs())
def test_what_is_printed_is_read_back(spec: KVSpec) -> None:
    assert KVSpec.parse(str(spec)) == spec
    assert KVSpec.parse(str(spec).upper().replace(",", " ,\t").replace("=", " = ")) == spec


@given(kv_specs(), st.data())
def test_damaged_text_is_another_precision_or_an_error_for_people(spec: KVSpec, data: st.DataObject) -> None:
    text = str(spec)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + data.draw(st.text(ALPHABET, max_size=3)) + text[stop:]
    require_spec_or_sentence(text)


@given(st.one_of(st.text(), st.text(ALPHABET), st.sampled_from(["9" * 5000, "9" * 5000 + ":8", "a" * 9999])))
def test_any_text_is_a_precision_or_an_error_for_people(text: str) -> None:
    require_spec_or_sentence(text)


def require_spec_or_sentence(text: str) -> None:
    try:
        spec = KVSpec.parse(text)
    except OctavoError as error:
        assert str(error).endswith(".")
        assert len(str(error)) < 300
    else:
        assert KVSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "quoted", "allowed"),
    [
        ("7", "'7'", "16, 8, 6, 5, 4, 3 or 2"),
        ("k8v1", "'1'", "16, 8, 6, 5, 4, 3 or 2"),
        ("0-3:12", "'12'", "16, 8, 6, 5, 4, 3 or 2"),
        ("0", "'0'", "16, 8, 6, 5, 4, 3 or 2"),
        ("4; group=48", "'group=48'", "32, 64 or 128"),
        ("4; page=100", "'page=100'", "64, 128, 256 or 512"),
        ("4; page=64, group=128", "'group=128'", "32 or 64"),
        ("4; hot=-1", "'hot=-1'", "from 0 to 999999"),
        ("4; warm=1000000", "'warm=1000000'", "from 0 to 999999"),
        ("4; attend=0", "'attend=0'", "from 1 to 999999"),
        ("4; attend=8, grow=2", "'grow=2'", "grow=0 or grow=1"),
        ("4; grow=1", "'grow=1'", "attend=8"),
        ("4; attend=all", "'attend=all'", "attend=NUMBER"),
        ("4; cold=1", "'cold=1'", "page=NUMBER, group=NUMBER, hot=NUMBER, warm=NUMBER, attend=NUMBER"),
        ("4; hot=1, warm=1, hot=1", "'hot=1'", "once"),
        ("4; hot=1; warm=1", "'hot=1;warm=1'", "warm=NUMBER"),
        ("4; hot=1.5", "'hot=1.5'", "hot=NUMBER"),
        ("9-3:8", "'9-3'", "3-9"),
        ("1000000:8", "'1000000'", "from 0 to 999999"),
        ("garbage", "'garbage'", "precise, balanced or compact"),
        ("h3:8", "'h3:8' names a head without its layer", "12.h3:8"),
        (".h3:8", "'.h3:8' names a head without its layer", "12.h3:8"),
        ("0-3.h:8", "'0-3.h:8'", "12.h3:8"),
        ("-3:8", "'-3:8'", "0-7:8"),
        ("0-1-2:8", "'0-1-2:8'", "0-7:8"),
        ("1:2:8", "'1:2:8'", "0-7:8"),
        ("8:", "'8:'", "as 8 or k8v4"),
        ("k8", "'k8'", "as 8 or k8v4"),
        ("v4k8", "'v4k8'", "as 8 or k8v4"),
        ("", "''", "as 8 or k8v4"),
        ("; page=128", "'; page=128'", "as 8 or k8v4"),
        ("0-7:8,, 8-:4", "'0-7:8,, 8-:4'", "as 8 or k8v4"),
        ("8,", "'8,'", "as 8 or k8v4"),
        ("8;", "'8;'", "as 8 or k8v4"),
        ("0-7:8 8-:4", "'8 8'", "comma"),
        ("1 6", "'1 6'", "comma"),
        ("3:balanced", "'3:balanced' has a preset", "first"),
        ("4, balanced", "'balanced' has a preset", "first"),
        ("4²", "'4²'", "as 8 or k8v4"),
        ("٤", "'٤'", "as 8 or k8v4"),
        ("x" * 1000, f"'{'x' * 40}…'", "as 8 or k8v4"),
    ],
)
def test_what_cannot_be_is_quoted_beside_what_can(text: str, quoted: str, allowed: str) -> None:
    with pytest.raises(OctavoError) as raised:
        KVSpec.parse(text)
    message = str(raised.value)
    assert quoted in message
    assert allowed in message.replace(quoted, "")
    assert message.endswith(".")


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


@given(rules())
def test_a_rule_prints_as_a_precision_of_one_rule(rule: PrecisionRule) -> None:
    assert str(rule) == str(KVSpec((rule,)))
