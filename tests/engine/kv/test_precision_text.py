"""The text form of a KV precision, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import OctavoError
from engine.kv.precision import PRESETS, BitsPair, KVSpec, PrecisionRule
from tests.engine.kv.kv_specs import everywhere, kv_specs, rules

ALPHABET = "0123456789-kvh.:,;= pagerouptnbldcimsKVH\t…²٣"


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


@given(rules())
def test_a_rule_prints_as_a_precision_of_one_rule(rule: PrecisionRule) -> None:
    assert str(rule) == str(KVSpec((rule,)))
