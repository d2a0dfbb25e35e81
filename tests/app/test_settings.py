from __future__ import annotations

import dataclasses
import sys
import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from app.profiles import BUILT_IN, CUSTOM, DEFAULT, DocumentMode, Overflow, Profile
from app.settings import (
    DEFAULT_CUSTOM,
    DEFAULT_KV,
    Settings,
    SettingsError,
    load_memory_limits,
    load_prefix_settings,
    load_settings,
    save_settings,
)
from app.store.prefixes.records import PrefixSettings
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.prefixes.records import SaveMode
from engine.sampling import SamplingParams
from tests.engine.kv.kv_specs import kv_specs

CHOSEN = Settings(
    model="/models/Zażółć \\ model",
    sampling=SamplingParams(0.0, 0.5, 40, 0.05, 1.2, 4096, 7),
    system_prompt='Three "quotes" """\nand lines\t',
    theme="dark",
    memory=MemoryLimits(8 << 30, 1 << 29, 0.75),
    prefixes=PrefixSettings(SaveMode.DOCUMENTS, 2_300_000_001, 700_000_000),
    profile="Żółć's papers",
    profiles=(
        Profile(
            "Żółć's papers",
            KVSpec.parse("0-7:8, 8-:k6v4, 12.h3:8; page=128, group=32, hot=2, warm=0, attend=8"),
            32_768,
            Overflow.DROP,
            DocumentMode.SEGMENTS,
            0.8,
            0.35,
        ),
        dataclasses.replace(BUILT_IN[2], name="Mine", overflow=Overflow.OFF),
        dataclasses.replace(BUILT_IN[0], name="Other", overflow=Overflow.SUMMARIZE),
    ),
    custom=dataclasses.replace(BUILT_IN[1], name=CUSTOM),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "octavo" / "settings.toml"


def write(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)


def test_without_a_file_the_defaults_are_used(path: Path) -> None:
    assert load_settings(path) == (Settings(), None)
    assert (Settings().profile, DEFAULT.kv) == ("Chat", DEFAULT_KV)
    assert not path.parent.exists()


def test_settings_come_back_as_they_were_saved(path: Path) -> None:
    save_settings(path, CHOSEN)
    assert load_settings(path) == (CHOSEN, None)
    save_settings(path, Settings())
    assert load_settings(path) == (Settings(), None)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_file_is_plain_toml_without_what_is_unset(path: Path) -> None:
    save_settings(path, dataclasses.replace(Settings(), theme="light"))
    table = tomllib.loads(path.read_text())
    assert (table["theme"], table["profile"], table["custom"]["kv"]) == ("light", "Chat", str(DEFAULT_KV))
    assert "kv" not in table
    assert table["sampling"]["temperature"] == Settings().sampling.temperature
    assert "model" not in table
    assert "seed" not in table["sampling"]


@given(
    st.text(),
    st.sampled_from(["system", "light", "dark"]),
    kv_specs(),
    st.integers(0, 2**63 - 1),
)
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, prompt: str, theme: str, kv: KVSpec, seed: int
) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    custom = dataclasses.replace(DEFAULT_CUSTOM, kv=kv)
    settings = Settings(None, SamplingParams(seed=seed), prompt, theme, custom=custom)
    save_settings(path, settings)
    assert load_settings(path) == (settings, None)


def test_a_key_that_is_unknown_is_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(path, 'theme = "dark"\nunknown = 1\n[sampling]\ntop_k = 5\nodd = 2\n[table]\nx = 1\n')
    settings, message = load_settings(path)
    assert settings == Settings(theme="dark", sampling=SamplingParams(top_k=5))
    assert message is None
    assert caplog.messages == [
        "the setting unknown is unknown",
        "the setting sampling.odd is unknown",
        "the setting table is unknown",
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('kv = "7"', "kv"),
        ('kv = ""', "kv"),
        ("kv = 8", "kv"),
        ("kv_bits = 8.5", "kv"),
        ("kv_bits = true", "kv"),
        ("model = 3", "model"),
        ("profile = 3", "profile"),
        ("profiles = 3", "profiles"),
        ("custom = 3", "custom"),
        ('[custom]\nname = "Custom"\nkv = "7"', "custom"),
        ("memory = 3", "memory"),
        ("[memory]\nmost_nbytes = 0", "memory.most_nbytes"),
        ("[memory]\nmost_nbytes = 1.5", "memory.most_nbytes"),
        ("[memory]\nreserve_nbytes = -1", "memory.reserve_nbytes"),
        ("[memory]\nreserve_nbytes = true", "memory.reserve_nbytes"),
        ("[memory]\nsafe_share = 0", "memory.safe_share"),
        ("[memory]\nsafe_share = 1.5", "memory.safe_share"),
        ("[memory]\nsafe_share = nan", "memory.safe_share"),
        ('[memory]\nsafe_share = "most"', "memory.safe_share"),
        ("prefixes = 3", "prefixes"),
        ('[prefixes]\nmode = "some"', "prefixes.mode"),
        ("[prefixes]\nmode = []", "prefixes.mode"),
        ("[prefixes]\nmost_gb = 0", "prefixes.most_gb"),
        ("[prefixes]\nmost_gb = true", "prefixes.most_gb"),
        ('[prefixes]\nmost_gb = "10 GB"', "prefixes.most_gb"),
        ("[prefixes]\nmost_written_gb = nan", "prefixes.most_written_gb"),
        ("[prefixes]\nmost_written_gb = inf", "prefixes.most_written_gb"),
        ("system_prompt = ['a']", "system_prompt"),
        ('theme = "pink"', "theme"),
        ("theme = {}", "theme"),
        ("theme = []", "theme"),
        ("sampling = 3", "sampling"),
        ("[sampling]\ntemperature = 9", "sampling.temperature"),
        ("[sampling]\ntemperature = nan", "sampling.temperature"),
        ('[sampling]\ntemperature = "hot"', "sampling.temperature"),
        ("[sampling]\ntop_k = 2.5", "sampling.top_k"),
        ("[sampling]\ntop_k = true", "sampling.top_k"),
        ("[sampling]\nmax_tokens = 0", "sampling.max_tokens"),
        ("[sampling]\nseed = 1.5", "sampling.seed"),
    ],
)
def test_a_value_that_cannot_be_used_costs_only_itself(path: Path, text: str, named: str) -> None:
    good = 'system_prompt = "Be brief."\n' if named != "system_prompt" else ""
    write(path, f"{good}{text}\n" + ("min_p = 0.25\n" if "[sampling]" in text else ""))
    settings, message = load_settings(path)
    assert message is not None
    assert message.startswith(f"In settings.toml, {named} is ")
    assert ". The default is used instead. The file as it was is kept as " in message
    expected = Settings(
        system_prompt="Be brief." if good else "",
        sampling=SamplingParams(min_p=0.25) if "[sampling]" in text else SamplingParams(),
    )
    assert settings == expected


@pytest.mark.parametrize(
    ("text", "kv"),
    [
        ("kv_bits = 16", "16"),
        ("kv_bits = 4", "4"),
        ('kv = "k8v4; warm=2"', "k8v4; warm=2"),
        ('kv_bits = 16\nkv = "k8v4"', "k8v4"),
    ],
)
def test_the_precision_of_a_former_version_becomes_the_settings_without_a_name(
    path: Path, text: str, kv: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(path, f'{text}\ntheme = "dark"\n')
    settings, message = load_settings(path)
    custom = Profile(CUSTOM, KVSpec.parse(kv), None, Overflow.ASK, DocumentMode.WHOLE)
    assert settings == Settings(theme="dark", profile=CUSTOM, custom=custom)
    assert message is None
    assert caplog.messages == []
    save_settings(path, settings)
    assert not {"kv", "kv_bits"} & set(tomllib.loads(path.read_text()))
    assert load_settings(path) == (settings, None)


@pytest.mark.parametrize("text", ["kv_bits = 8", 'kv = "8"', 'kv = "4"\nprofile = "Chat"'])
def test_the_former_default_and_a_chosen_profile_stay_what_they_are(path: Path, text: str) -> None:
    write(path, f"{text}\n")
    assert load_settings(path) == (Settings(), None)


def test_a_limit_in_the_file_is_taken_over(path: Path) -> None:
    write(path, "[memory]\nmost_nbytes = 3000000000\nodd = 1\n")
    assert load_settings(path) == (Settings(memory=MemoryLimits(most_nbytes=3_000_000_000)), None)


def test_what_may_be_kept_on_disk_is_read_in_gigabytes_and_costs_only_what_cannot_be(path: Path) -> None:
    write(path, '[prefixes]\nmode = "never"\nmost_gb = 2.5\nmost_written_gb = -1\nodd = 1\n')
    settings, message = load_settings(path)
    assert settings == Settings(prefixes=PrefixSettings(SaveMode.NEVER, 2_500_000_000))
    assert message is not None
    assert "prefixes.most_written_gb is -1; it is a number of gigabytes from 0.1 to 100,000." in message
    assert load_prefix_settings(path) == settings.prefixes
    save_settings(path, settings)
    written = tomllib.loads(path.read_text())["prefixes"]
    assert written == {"mode": "never", "most_gb": 2.5, "most_written_gb": 20}


@pytest.mark.parametrize(
    "damage",
    [
        'kv = "7"',
        "max_context = 3",
        'overflow = "burn"',
        "document_mode = 1",
        "trim_at = true",
        'trim_at = "late"',
        "trim_at = nan",
        "trim_at = 0.3",
        "trim_at = 1.01",
        "keep_ratio = inf",
        "keep_ratio = 0",
        "keep_ratio = 0.95",
        "keep_ratio = 0.6\ntrim_at = 0.6",
        "name = 3",
        f'name = "{"x" * 60}"',
        *(f'name = "{name}"' for name in ("", "Chat", "custom", "MINE")),
    ],
)
def test_a_damaged_profile_is_left_out_and_the_others_stay(path: Path, damage: str) -> None:
    good = '[[profiles]]\nname = "{}"\nkv = "4"\noverflow = "drop"\ndocument_mode = "segments"\n'
    bad = tomllib.loads(good.format("Bad"))["profiles"][0] | tomllib.loads(damage)
    path.parent.mkdir()
    entries = [tomllib.loads(good.format(name))["profiles"][0] for name in ("Mine", "Other")]
    path.write_text(tomli_w.dumps({"theme": "dark", "profiles": [entries[0], bad, entries[1]]}))
    settings, message = load_settings(path)
    assert [profile.name for profile in settings.profiles] == ["Mine", "Other"]
    assert settings.profiles[0] == Profile(
        "Mine", KVSpec.parse("4"), None, Overflow.DROP, DocumentMode.SEGMENTS
    )
    assert settings.theme == "dark"
    assert message is not None
    assert message.startswith("In settings.toml, profile 2 cannot be used: ")
    assert ". The rest is used without it. The file as it was is kept as " in message
    before = path.read_bytes()
    save_settings(path, settings)
    (copy,) = (each for each in path.parent.iterdir() if each != path)
    assert copy.read_bytes() == before and f"{copy}." in message
    assert load_settings(path) == (settings, None)


def test_a_share_of_the_context_that_cannot_be_is_named_with_what_can(path: Path) -> None:
    written = '[[profiles]]\nname = "Mine"\nkv = "4"\noverflow = "off"\ndocument_mode = "whole"\n'
    write(path, f"{written}trim_at = 0.5\n")
    message = load_settings(path)[1]
    assert message is not None
    assert "The share to keep, 0.6, must be less than the threshold, 0.5." in message
    path.write_text(f"{written}trim_at = 2\n")
    message = load_settings(path)[1]
    assert message is not None
    assert "2.0 is no threshold; it is a number from 0.4 to 1." in message


def test_several_values_are_all_named(path: Path) -> None:
    write(path, "kv_bits = 7\n[sampling]\ntop_p = 2\nmin_p = -1\n")
    message = load_settings(path)[1]
    assert message is not None
    for key in ("kv", "sampling.top_p", "sampling.min_p"):
        assert key in message


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe\x00", b"\x00" * 100, b"a = 1\na = 2\n"])
def test_a_damaged_file_is_moved_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    settings, message = load_settings(path)
    assert settings == Settings()
    (aside,) = path.parent.iterdir()
    assert aside.name.startswith("settings.toml.damaged-20")
    assert aside.read_bytes() == content
    assert message is not None
    assert str(aside) in message
    save_settings(path, CHOSEN)
    assert load_settings(path) == (CHOSEN, None)


def test_a_folder_in_the_place_of_the_file_is_moved_aside(path: Path) -> None:
    path.mkdir(parents=True)
    settings, message = load_settings(path)
    assert settings == Settings()
    assert message is not None
    save_settings(path, CHOSEN)
    assert load_settings(path) == (CHOSEN, None)


def test_saving_where_it_is_impossible_says_so_and_keeps_the_old_file(path: Path) -> None:
    save_settings(path, CHOSEN)
    with pytest.raises(SettingsError, match="could not be saved"):
        save_settings(path / "inside a file" / "settings.toml", Settings())
    assert load_settings(path) == (CHOSEN, None)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_linked_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "octavo.toml"
    real.parent.mkdir()
    path.parent.mkdir()
    path.symlink_to(real)
    save_settings(path, CHOSEN)
    assert path.is_symlink()
    assert load_settings(real) == (CHOSEN, None)


def test_the_limits_of_memory_are_read_alone(path: Path) -> None:
    assert load_memory_limits(path) == MemoryLimits()
    save_settings(path, CHOSEN)
    assert load_memory_limits(path) == CHOSEN.memory


def test_what_may_be_kept_on_disk_is_read_alone(path: Path) -> None:
    assert load_prefix_settings(path) == PrefixSettings()
    save_settings(path, CHOSEN)
    assert load_prefix_settings(path) == CHOSEN.prefixes


@pytest.mark.parametrize(
    ("text", "reserve_nbytes"),
    [
        ("[memory", MemoryLimits().reserve_nbytes),
        ("memory = 3", MemoryLimits().reserve_nbytes),
        ("[memory]\nmost_nbytes = 'all'\nreserve_nbytes = 7", 7),
    ],
)
def test_limits_that_cannot_be_used_are_the_defaults_and_the_file_stays(
    path: Path, text: str, reserve_nbytes: int
) -> None:
    write(path, text)
    assert load_memory_limits(path) == MemoryLimits(reserve_nbytes=reserve_nbytes)
    assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]
