from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.plan import plan as command
from app.models.library import ModelLibrary
from app.paths import AppPaths
from engine.errors import ModelError, OctavoError
from tests.engine.folders import write_folder

CONFIGS = Path(__file__).parents[2] / "engine" / "configs"
LLAMA = str(CONFIGS / "Llama-2-7b.json")


def run(*arguments: str) -> str:
    """Run `octavo plan` in this process for a Mac's memory and return what it printed."""
    result = CliRunner().invoke(command, [*arguments, "--device", "metal"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(autouse=True)
def _home(octavo_home: Path) -> None:
    """Keep the data folder of this computer's user out of the tests."""


def rows(output: str) -> dict[str, list[str]]:
    """Return the lines of the table by the words they begin with."""
    return {line[:18].strip(): line[18:].split() for line in output.splitlines()}


def test_a_bare_config_is_planned_with_the_formula_the_budget_and_the_table() -> None:
    output = run(LLAMA, "--memory", "16G", "--reserve", "1G", "--kv", "16")
    assert output.startswith(
        "Llama-2-7b: llama, 6.7 B parameters, float16, 32 layers, context 4,096 tokens, "
    )
    assert "2 x 32 layers x 32 KV heads x 128 = 262,144 numbers, in 16 bits 524,288 bytes." in output
    assert "KV cache: 16.0 GB - 13.5 GB weights - 1.0 GB reserve = 1.5 GB." in output
    table = rows(output)
    # 8.5, 4.5 and (4.5 + 3.5) / 2 bits with scales.
    assert table["bytes a token"] == ["524,288", "278,528", "147,456", "131,072"]
    # Three pages of 134,217,728 bytes at 16 bits (open, hot, passing through), and six at 8.5 bits.
    assert table["2,048 tokens"][:4] == ["1.1", "GB", "830", "MB"]
    assert table["4,096 tokens"][:3] == ["2.1", "GB", "✗"]
    assert "✗ does not fit" in output
    # 60 % of what 16 GB leave, 1,523,168,768 bytes, are 6.8 pages.
    assert table["safe context"][0] == "1,536"
    assert table["tokens in theory"][0] == "2,905"
    assert output.splitlines()[-1].startswith(
        "4,096 tokens at 16 bits do not fit: they take 2.1 GB and 1.5 GB"
    )


def test_windows_states_and_latents_are_told_apart_from_pages() -> None:
    gemma = run(str(CONFIGS / "gemma-3-4b-it-4bit.json"), "--memory", "16G")
    assert "A token keeps 2 x 5 layers x 4 KV heads x 256 = 10,240 numbers" in gemma
    # 29 layers x 2,048 numbers x 2 bytes x (1,024 tokens and a chunk of 512).
    assert "29 layers see 1,024 tokens: 182 MB in all at most" in gemma
    hybrid = run(str(CONFIGS / "Qwen3-Next-tiny.json"), "--memory", "16G")
    assert "2 x 2 layers x 2 KV heads x 256" in hybrid
    assert "6 layers keep a state: " in hybrid
    latent = run(str(CONFIGS / "DeepSeek-V3-tiny.json"), "--memory", "16G")
    assert "4 caches x 576 (not in pages) = 2,304 numbers, in 16 bits 4,608 bytes." in latent
    assert rows(latent)["bytes a token"] == ["4,608"] * 4


def test_a_model_on_disk_is_planned_by_its_path_and_by_its_name(tmp_path: Path, octavo_home: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    by_path = run(str(folder), "--memory", "4G")
    assert "4-bit, group 32, 2 layers, context 512 tokens, MLX folder" in by_path
    ModelLibrary(AppPaths(octavo_home)).import_path(folder)
    assert run("tiny", "--memory", "4G") == by_path


def test_a_gguf_file_is_planned(starter_gguf: Path) -> None:
    output = run(str(starter_gguf), "--memory", "4G", "--context", "3000")
    assert "2 x 30 layers x 3 KV heads x 64 = 11,520 numbers, in 16 bits 23,040 bytes." in output
    assert "3,000 tokens" in rows(output)
    assert "3,000 tokens at precise fit" in output


def test_a_precision_of_ones_own_has_its_column() -> None:
    output = run(LLAMA, "--memory", "32G", "--kv", "0-7:8, 8-:k6v4")
    assert rows(output)["KV cache"] == ["16", "bits", "precise", "--kv", "balanced", "compact"]
    assert "\n--kv: 0-7:8, 8-:k6v4\n" in output


def test_json_and_csv_say_the_same_in_numbers(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    output = run(
        LLAMA, "--memory", "16G", "--context", "3000", "--kv", "balanced", "--json", "--csv", str(file)
    )
    said = json.loads(output)
    assert (said["weights_nbytes"], said["memory_nbytes"]) == (13_476_831_232, 16_000_000_000)
    assert said["asked"] == {"kv": "4", "context_tokens": 3000}
    assert said["fits"] is True
    lines = list(csv.DictReader(file.read_text().splitlines()))
    expected = [
        (one["name"], str(context["tokens"]), str(context["kv_nbytes"]), str(context["fits"]))
        for one in said["precisions"]
        for context in one["contexts"]
    ]
    assert [(row["name"], row["tokens"], row["kv_nbytes"], row["fits"]) for row in lines] == expected
    assert len(lines) == 4 * len([512, 1024, 2048, 3000, 4096])


@pytest.fixture
def packed(tmp_path: Path) -> str:
    """A model of 4 bits that reads 8,192 tokens."""
    return str(write_folder(tmp_path / "packed", max_position_embeddings=8192))


def on_cpu(model: str, memory: int, *arguments: str) -> str:
    arguments = (model, "--memory", str(memory), "--reserve", "0", "--device", "cpu", *arguments)
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_more_memory_never_makes_less_fit_than_with_weights_as_they_are_stored(packed: str) -> None:
    fits = []
    for memory in range(1_000_000, 6_000_000, 250_000):
        said = json.loads(on_cpu(packed, memory, "--kv", "16", "--json"))
        fits.append((said["fits"], said["precisions"][0]["fitting_tokens"]))
    assert fits == sorted(fits)
    assert fits[0][0] is False and fits[-1] == (True, 8192)


def test_weights_that_stay_as_they_are_stored_are_said_so_with_what_float32_would_leave(packed: str) -> None:
    exact = json.loads(on_cpu(packed, 10**9, "--kv", "16", "--json"))
    assert exact["weights_dequantized"] is True
    context = exact["precisions"][0]["contexts"][-1]
    room = exact["weights_nbytes"] + context["kv_nbytes"] - 1
    output = on_cpu(packed, room, "--kv", "16")
    assert "as they are stored" in output
    found = re.search(r"take (\d+ KB) and leave room for ([\d,]+) tokens: with --context (\d+) they", output)
    assert found is not None
    tokens = found[3]
    assert int(found[2].replace(",", "")) == int(tokens) < 8192
    shorter = on_cpu(packed, room, "--kv", "16", "--context", tokens)
    assert f"{found[1]} in memory, in float32" in shorter
    # What is longer fits all the same, as it would be loaded: with the weights as they are stored.
    assert rows(shorter)["8,192 tokens"][2] == "*"
    assert rows(shorter)["fitting as stored"][0] == "8,192"
    assert rows(shorter)["fitting context"][0] == f"{int(tokens):,}"
    longer = str(int(tokens) + 1)
    assert "as they are stored" in on_cpu(packed, room, "--kv", "16", "--context", longer)


def test_a_context_that_is_only_assumed_is_said_so_and_gives_way_to_the_one_that_is_asked_for(
    tmp_path: Path,
) -> None:
    config = {"model_type": "mamba", "vocab_size": 500, "hidden_size": 64, "intermediate_size": 128}
    config |= {"state_size": 8, "num_hidden_layers": 2, "conv_kernel": 4, "use_bias": False}
    config |= {"time_step_rank": 4, "use_conv_bias": True}
    (tmp_path / "config.json").write_text(json.dumps(config))
    output = run(str(tmp_path), "--memory", "4G")
    assert "context 4,096 tokens (assumed)" in output
    assert "Nothing in its config says how long a text it can read; 4,096 tokens are assumed." in output
    asked = json.loads(run(str(tmp_path), "--memory", "4G", "--context", "9000", "--json"))
    assert (asked["model"]["context_tokens"], asked["model"]["context_assumed"]) == (9000, True)
    assert asked["fits"] is True


def test_weights_that_mlx_unpacks_are_said_so(tmp_path: Path) -> None:
    config = json.loads(Path(LLAMA).read_text()) | {"quantization_config": {"quant_method": "fp8"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    output = run(str(tmp_path), "--memory", "32G")
    words = (
        "Weights: 13.5 GB in memory, unpacked to 16 bits, since MLX does not compute in FP8 (7.0 GB on disk)."
    )
    assert words in output


def test_without_memory_it_is_what_is_free_here() -> None:
    assert " free here - 13.5 GB weights" in run(LLAMA)


def test_without_memory_it_is_no_more_than_the_settings_allow(octavo_home: Path) -> None:
    octavo_home.mkdir()
    settings = octavo_home / "settings.toml"
    settings.write_text(
        "[memory]\nmost_nbytes = 3_000_000_000\nreserve_nbytes = 500_000_000\nsafe_share = 1\n"
    )
    said = json.loads(run(LLAMA, "--json"))
    assert 2_000_000_000 < said["memory_nbytes"] < 3_000_000_000  # this process takes some of it
    assert said["reserve_nbytes"] == 500_000_000
    assert " GB that may be taken here - 13.5 GB weights - 500 MB reserve" in run(LLAMA)
    other = json.loads(run(LLAMA, "--json", "--memory", "16G", "--reserve", "1G", "--kv", "16"))
    assert (other["memory_nbytes"], other["reserve_nbytes"]) == (16_000_000_000, 1_000_000_000)
    # All of the 1,523,168,768 bytes that 16 GB leave may be used: the share stays that of the settings.
    assert other["precisions"][0]["theoretical_tokens"] == 2905
    assert other["precisions"][0]["safe_tokens"] == other["precisions"][0]["fitting_tokens"]


def test_a_damaged_settings_file_stays_where_it_is(octavo_home: Path) -> None:
    octavo_home.mkdir()
    settings = octavo_home / "settings.toml"
    settings.write_text("[memory\n")
    assert " free here - 13.5 GB weights - 1.1 GB reserve" in run(LLAMA)
    assert [path.name for path in octavo_home.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{folder}"], r"empty is no MLX model: there is no config\.json in the folder"),
        (["nothing"], "There is no model “nothing” here"),
        (["{damaged}"], r"damaged config\.json"),
        ([LLAMA, "--kv", "7"], "no KV precision"),
        ([LLAMA, "--kv", "99:4"], "names what this model does not have"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "config.json").write_text("{")
    places = {"folder": tmp_path / "empty", "damaged": tmp_path / "config.json"}
    with pytest.raises(OctavoError, match=words):
        run(*(argument.format(**places) for argument in arguments))


@pytest.mark.parametrize("option", ["--memory", "--reserve"])
def test_a_bare_number_that_cannot_be_bytes_is_refused(option: str) -> None:
    result = CliRunner().invoke(command, [LLAMA, option, "16"])
    assert result.exit_code == 2
    assert "“16” would be bytes; write it with a unit, such as 16G." in result.output


def test_nothing_may_be_kept_free() -> None:
    said = json.loads(run(LLAMA, "--memory", "16000000000", "--reserve", "0", "--json"))
    assert said["kv_budget_nbytes"] == 16_000_000_000 - said["weights_nbytes"]


@pytest.mark.parametrize("context", ["0", "1", "511", "1000000001"])
def test_a_context_that_cannot_be_asked_for_is_not_planned(context: str) -> None:
    assert CliRunner().invoke(command, [LLAMA, "--context", context]).exit_code == 2


@pytest.mark.parametrize("size", ["0", "lots", "1e30", "99999T"])
def test_a_size_that_cannot_be_is_refused(size: str) -> None:
    result = CliRunner().invoke(command, [LLAMA, "--memory", size])
    assert result.exit_code == 2
    assert "is no size of memory; write it as 16G" in result.output


@pytest.mark.slow
def test_planning_a_model_of_140_gb_loads_nothing(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from app.__main__ import main; sys.argv = ['octavo', 'plan', sys.argv[1]]\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    config = json.loads((CONFIGS / "Llama-3-70B-4bit.json").read_text())
    del config["quantization"], config["quantization_config"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    # Linux counts the most that a process ever took from the one that started it: that must be a small one.
    starter = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    command = [sys.executable, "-c", starter, sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "70.6 B parameters, bfloat16" in done.stdout
    assert int(done.stdout.splitlines()[-1]) * (1 if sys.platform == "darwin" else 1024) < 10**9


def test_a_model_that_is_gone_is_said_so(tmp_path: Path, octavo_home: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    ModelLibrary(AppPaths(octavo_home)).import_path(folder)
    folder.rename(tmp_path / "moved")
    with pytest.raises(ModelError, match="tiny is no longer at"):
        run("tiny")
