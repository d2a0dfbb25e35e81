from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from app.kv_config import LEAST_CONTEXT, MOST_CONTEXT, KVConfig, load_kv_config
from engine.errors import OctavoError
from engine.kv.precision import KVSpec
from tests.engine.kv.kv_specs import kv_specs

FULL = """
model = "starter"

[kv_cache]
layers = "0-7:8, 8-:4"
page_tokens = 128
group_size = 32
hot_pages = 2
warm_pages = 0
attention_pages = 8
max_context = 4096
"""

configs = st.builds(
    KVConfig,
    st.one_of(st.none(), st.text(min_size=1).filter(str.strip)),
    kv_specs(),
    st.one_of(st.none(), st.integers(LEAST_CONTEXT, MOST_CONTEXT)),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "long documents.toml"


def test_everything_in_a_file_is_read(path: Path) -> None:
    path.write_text(FULL)
    spec = KVSpec.parse("0-7:8, 8-:4; page=128, group=32, hot=2, warm=0, attend=8")
    assert load_kv_config(path) == KVConfig("starter", spec, 4096)


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", KVConfig(None, KVSpec.parse("16"), None)),
        ("[kv_cache]", KVConfig(None, KVSpec.parse("16"), None)),
        ("[kv_cache]\nmax_context = 512", KVConfig(None, KVSpec.parse("16"), 512)),
        ('model = "a b"', KVConfig("a b", KVSpec.parse("16"), None)),
        ('kv_cache.layers = "Compact"', KVConfig(None, KVSpec.parse("compact"), None)),
        (
            '[kv_cache]\nlayers = "compact, 0:8"\nwarm_pages = 9\npage_tokens = 64',
            KVConfig(None, KVSpec.parse("compact, 0:8; warm=9, page=64"), None),
        ),
        ("[kv_cache]\nhot_pages = 0", KVConfig(None, KVSpec.parse("16; hot=0"), None)),
        (
            '\ufeffmodel = "x" # with the mark that Windows editors write',
            KVConfig("x", KVSpec.parse("16"), None),
        ),
    ],
)
def test_what_a_file_leaves_out_is_the_default_or_the_presets(
    path: Path, text: str, config: KVConfig
) -> None:
    path.write_text(text, encoding="utf-8")
    assert load_kv_config(path) == config


@given(configs)
def test_every_configuration_can_be_written_in_a_file(
    tmp_path_factory: pytest.TempPathFactory, config: KVConfig
) -> None:
    path = tmp_path_factory.mktemp("configuration") / "kv.toml"
    spec = config.kv
    table = {
        "layers": ", ".join(str(rule) for rule in spec.rules),
        "page_tokens": spec.page_tokens,
        "group_size": spec.group_size,
        "hot_pages": spec.hot_pages,
        "warm_pages": spec.warm_pages,
        "attention_pages": spec.attention_pages,
        "attention_grows": spec.attention_grows,
        "max_context": config.max_context,
    }
    document = {
        "model": config.model,
        "kv_cache": {key: table[key] for key in table if table[key] is not None},
    }
    path.write_text(
        tomli_w.dumps({key: value for key, value in document.items() if value is not None}), encoding="utf-8"
    )
    assert load_kv_config(path) == config


@pytest.mark.parametrize(
    ("text", "named", "allowed"),
    [
        ("[kv_cache]\npage_tokens = 100", "kv_cache.page_tokens is 100", "64, 128, 256, 512"),
        ("[kv_cache]\npage_tokens = 64.0", "kv_cache.page_tokens is 64.0", "64, 128, 256, 512"),
        ('[kv_cache]\npage_tokens = "64"', "kv_cache.page_tokens is '64'", "64, 128, 256, 512"),
        ("[kv_cache]\npage_tokens = []", "kv_cache.page_tokens is []", "64, 128, 256, 512"),
        ("[kv_cache]\ngroup_size = 48", "kv_cache.group_size is 48", "32, 64, 128"),
        (
            "[kv_cache]\npage_tokens = 64\ngroup_size = 128",
            "kv_cache.group_size is 128",
            "with pages of 64 tokens it is one of 32, 64.",
        ),
        ("[kv_cache]\nhot_pages = -1", "kv_cache.hot_pages is -1", "a whole number from 0 to 999999"),
        ("[kv_cache]\nhot_pages = true", "kv_cache.hot_pages is True", "a whole number from 0 to 999999"),
        ("[kv_cache]\nwarm_pages = 1.5", "kv_cache.warm_pages is 1.5", "a whole number from 0 to 999999"),
        ("[kv_cache]\nwarm_pages = nan", "kv_cache.warm_pages is nan", "a whole number from 0 to 999999"),
        ("[kv_cache]\nattention_pages = 0", "kv_cache.attention_pages is 0", "from 1 to 999999"),
        ("[kv_cache]\nattention_grows = true", "kv_cache.attention_grows is true", "attention_pages too"),
        ("[kv_cache]\nattention_grows = 1", "kv_cache.attention_grows is 1", "true or false"),
        ("[kv_cache]\nmax_context = 511", "kv_cache.max_context is 511", "from 512 to 1000000000"),
        ('[kv_cache]\nmax_context = "8k"', "kv_cache.max_context is '8k'", "from 512 to 1000000000"),
        (f"[kv_cache]\nmax_context = 0x{'f' * 9999}", "kv_cache.max_context is", "from 512 to 1000000000"),
        ("[kv_cache]\nmax_context = 1979-05-27", "kv_cache.max_context is", "from 512 to 1000000000"),
        ("[kv_cache]\nlayers = 4", "kv_cache.layers is 4", "precise, balanced, compact"),
        ('[kv_cache]\nlayers = ["4"]', "kv_cache.layers is ['4']", "precise, balanced, compact"),
        ('[kv_cache]\nlayers = "7"', "kv_cache.layers is not usable: '7'", "16, 8, 6, 5, 4, 3 or 2"),
        ('[kv_cache]\nlayers = ""', "kv_cache.layers is not usable: ''", "16, 8, 6, 5, 4, 3 or 2"),
        ('[kv_cache]\nlayers = "4; page=64"', "kv_cache.layers is '4; page=64'", "page_tokens, group_size"),
        ("[kv_cache]\npages = 3", "kv_cache.pages is unknown", "layers, page_tokens, group_size"),
        ("max_context = 4096", "max_context is unknown", "model, kv_cache"),
        ("[kv]\nlayers = '4'", "kv is unknown", "model, kv_cache"),
        ("kv_cache = '4'", "kv_cache is '4'", "table"),
        ("[[kv_cache]]\nlayers = '4'", "kv_cache is [{'layers': '4'}]", "table"),
        ("model = 3", "model is 3", "id, name or path"),
        ("model = ' '", "model is ' '", "id, name or path"),
        (f"model.{'.'.join('a' * 3000)} = 1", "model is {'a': {", "id, name or path"),
    ],
)
def test_what_cannot_be_is_named_with_its_file_beside_what_can(
    path: Path, text: str, named: str, allowed: str
) -> None:
    path.write_text(text)
    with pytest.raises(OctavoError) as raised:
        load_kv_config(path)
    message = str(raised.value)
    assert message.startswith(f"In {path}, {named}")
    assert allowed in message.removeprefix(f"In {path}, {named}")
    assert message.endswith(".")
    assert len(message) < len(str(path)) + 300


@pytest.mark.parametrize(
    "content",
    [
        b"layers = ",
        b"\xff\xfe\x00",
        b"\x00" * 100,
        b"a = 1\na = 2\n",
        b"a = " + b"[" * 9999,
        b"a = " + b"9" * 5000,
    ],
)
def test_a_damaged_file_is_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(OctavoError) as raised:
        load_kv_config(path)
    assert str(path) in str(raised.value)
    assert "no valid TOML" in str(raised.value)


def test_a_file_that_is_missing_or_a_folder_is_named(path: Path) -> None:
    with pytest.raises(OctavoError, match=r"There is no configuration file .*long documents\.toml"):
        load_kv_config(path)
    path.mkdir()
    with pytest.raises(OctavoError, match=r"long documents\.toml cannot be read"):
        load_kv_config(path)


@given(st.binary(max_size=60), st.integers(0, len(FULL)), st.integers(0, 8))
def test_a_file_with_some_bytes_changed_is_read_or_an_error_for_people(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, removed: int
) -> None:
    path = tmp_path_factory.mktemp("configuration") / "kv.toml"
    text = FULL.encode()
    path.write_bytes(text[:at] + noise + text[at + removed :])
    try:
        assert isinstance(load_kv_config(path), KVConfig)
    except OctavoError as error:
        assert str(path) in str(error)
