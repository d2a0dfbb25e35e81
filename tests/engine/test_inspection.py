from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from gguf.constants import GGMLQuantizationType as Kind

from engine.errors import ModelError, UnsupportedModelError
from engine.inspection import inspect_config, inspect_model
from engine.kv.precision import LayerShape
from engine.kv.room import OwnCache
from engine.model_info import CachedLayers, ModelFormat, ModelInfo
from engine.parameters import named_parameters
from tests.engine.folders import CONFIG, random_model, write_folder
from tests.engine.gguf.files import LLAMA, with_prefix, write_gguf

DBRX = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "vocab_size": 100_352,
    "max_seq_len": 32_768,
    "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500_000},
    "ffn_config": {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4},
}
CONFIGS = Path(__file__).parent / "configs"


def _change_config(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_starter_is_what_its_card_says(starter_gguf: Path) -> None:
    info = inspect_model(starter_gguf)

    assert info == ModelInfo(
        path=starter_gguf,
        format=ModelFormat.GGUF,
        name="SmolLM2-135M-Instruct",
        architecture="llama",
        quantization="Q4_1",
        num_layers=30,
        num_heads=9,
        num_kv_heads=3,
        head_dim=64,
        context_tokens=8192,
        vocab_size=49152,
        num_parameters=134_515_008,
        weights_nbytes=96_576_768,
        # Numbers of 4 bits, and of 8 in the embedding; a scale and a bias for each group of 32; 61 norms.
        packed_nbytes=(134_515_008 - 61 * 576 + 49_152 * 576) // 2,
        num_plain_values=2 * (134_515_008 - 61 * 576) // 32 + 61 * 576,
    )


def test_a_gguf_file_is_inspected_without_mlx(starter_gguf: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from engine.inspection import inspect_model; "
        f"inspect_model(Path({str(starter_gguf)!r})); print('mlx.core' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("bits", "words"), [(4, "4-bit, group 32"), (8, "8-bit, group 32"), (None, "bfloat16")]
)
def test_a_folder_is_what_its_config_and_weights_say(bits: int | None, words: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", bits=bits)

    info = inspect_model(folder)

    parameters = named_parameters(random_model(CONFIG))
    stored = mx.load(str(folder / "model.safetensors"))
    assert info == ModelInfo(
        path=folder,
        format=ModelFormat.MLX,
        name="tiny",
        architecture="llama",
        quantization=words,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        context_tokens=512,
        vocab_size=257,
        num_parameters=sum(value.size for _, value in parameters),
        weights_nbytes=sum(value.nbytes for value in stored.values()),
        packed_nbytes=sum(value.nbytes for value in stored.values() if value.dtype == mx.uint32),
        num_plain_values=sum(value.size for value in stored.values() if value.dtype != mx.uint32),
        layers=CachedLayers((LayerShape(2, 16, 16),) * 2),
    )


def test_microscaled_weights_are_named_and_counted(tmp_path: Path) -> None:
    info = inspect_model(write_folder(tmp_path / "tiny", mode="mxfp4"))

    assert info.quantization == "MXFP4 4-bit, group 32"
    assert info.num_parameters == sum(value.size for _, value in named_parameters(random_model(CONFIG)))


def test_heads_have_their_defaults(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    del config["num_key_value_heads"]
    (folder / "config.json").write_text(json.dumps(config | {"head_dim": None}))

    info = inspect_model(folder)

    assert (info.num_kv_heads, info.head_dim) == (4, 16)


def test_the_language_part_of_a_nested_config_counts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    nested = {"num_hidden_layers": 5, "max_position_embeddings": 777}

    info = inspect_model(_change_config(folder, model_type="gemma3", text_config=nested, vision_config={}))

    assert (info.architecture, info.num_layers, info.context_tokens) == ("gemma3", 5, 777)


@pytest.mark.parametrize(
    ("scaling", "tokens"),
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}, 2048),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}, 512),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 256}, 512),
        ({"rope_type": "linear", "factor": 4.0}, 512),
        ({"rope_type": "yarn", "factor": "4", "original_max_position_embeddings": 512}, 512),
        ("yarn", 512),
    ],
)
def test_yarn_stretches_the_context(scaling: object, tokens: int, tmp_path: Path) -> None:
    folder = _change_config(write_folder(tmp_path / "tiny"), rope_scaling=scaling)

    assert inspect_model(folder).context_tokens == tokens


def test_nothing_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model at"):
        inspect_model(tmp_path / "missing.gguf")


def test_one_file_of_a_folder_is_not_taken_for_a_model(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")

    with pytest.raises(ModelError, match="choose the folder"):
        inspect_model(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "martian"}, "of the type martian, which mlx-lm does not run"),
        ({"model_type": "../llama"}, r"of the type \.\./llama"),
        ({"model_type": "martian", "vision_config": {}}, "for images and text of the type martian"),
        ({"model_file": "modeling.py"}, r"code of its own \(modeling\.py\)"),
    ],
)
def test_folders_that_cannot_be_run_are_refused_by_name(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    folder = _change_config(write_folder(tmp_path / "tiny"), **changes)

    with pytest.raises(UnsupportedModelError, match=words):
        inspect_model(folder)


def _cut(path: Path, nbytes: int) -> None:
    path.write_bytes(path.read_bytes()[:nbytes])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"no config\.json"),
        (lambda folder: _cut(folder / "config.json", 40), r"damaged config\.json"),
        (lambda folder: (folder / "config.json").write_text("{}"), "names no model_type"),
        (lambda folder: _change_config(folder, num_hidden_layers=None), "does not say num_hidden_layers"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
        (lambda folder: _cut(folder / "model.safetensors", 20_000), "is cut off"),
        (lambda folder: _cut(folder / "model.safetensors", 100), "damaged"),
        (lambda folder: _cut(folder / "model.safetensors", 3), "damaged"),
        (lambda folder: _cut(folder / "model.safetensors", 0), "damaged"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer"),
    ],
)
def test_incomplete_folders_are_refused_in_a_sentence(damage: Any, words: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    damage(folder)

    with pytest.raises(ModelError, match=words):
        inspect_model(folder)


def test_missing_shards_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    shards = {"a": "model.safetensors", "b": "model-00002-of-00003.safetensors", "c": "model-3.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))

    with pytest.raises(ModelError, match=r"model-00002-of-00003\.safetensors and 1 more is missing"):
        inspect_model(folder)


@pytest.mark.parametrize("content", ["{", "{}", '{"weight_map": []}', "[]"])
def test_a_damaged_list_of_shards_is_refused(content: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    (folder / "model.safetensors.index.json").write_text(content)

    with pytest.raises(ModelError, match=r"damaged model\.safetensors\.index\.json"):
        inspect_model(folder)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Qwen3-0.6B-Q8_0.gguf", "Qwen3-0.6B"),
        ("tiny.q4_k_m.gguf", "tiny"),
        ("Llama-3.2-1B-IQ2_XS.gguf", "Llama-3.2-1B"),
        ("model-f16.gguf", "model"),
        ("Phi-3.gguf", "Phi-3"),
    ],
)
def test_the_name_leaves_the_quantization_out(file: str, name: str, tmp_path: Path) -> None:
    import numpy as np

    tensors = {"token_embd.weight": (np.zeros((8, 64), np.float32), Kind.F32)}

    assert inspect_model(write_gguf(tmp_path / file, with_prefix("llama", LLAMA), tensors)).name == name


# Parameters as the models' cards tell them. A 4-bit weight takes half a byte and its share of two 16-bit
# numbers for each 64; norms stay as they are.
SIZES = {
    "Llama-2-7b": (6_738_415_616, 2 * 6_738_415_616),
    "Mistral-7B": (7_241_732_096, 2 * 7_241_732_096),
    "Llama-2-13b-4bit": (13_015_864_320, (13_015_864_320 - 81 * 5120) * 9 // 16 + 81 * 5120 * 2),
    "Llama-3-70B-4bit": (70_553_706_496, (70_553_706_496 - 161 * 8192) * 9 // 16 + 161 * 8192 * 2),
}


YARN = {"rope_type": "yarn", "original_max_position_embeddings": 512}


@pytest.mark.parametrize("name", SIZES)
def test_a_config_alone_tells_parameters_and_bytes_exactly(name: str) -> None:
    info = inspect_config(CONFIGS / f"{name}.json")

    assert (info.num_parameters, info.weights_nbytes) == SIZES[name]
    assert (info.name, info.format, info.architecture) == (name, ModelFormat.CONFIG, info.architecture)
    assert len(info.layers.paged) == info.num_layers


def test_a_head_that_is_shared_with_the_embedding_counts_once() -> None:
    info = inspect_config(CONFIGS / "gemma-3-4b-it-4bit.json")

    # As its card says, 3.88 B without the vision tower; this config has 64 entries more in its vocabulary.
    assert info.num_parameters == 3_880_099_328 + 64 * 2560
    # What the config leaves to mlx-lm: eight heads, and every sixth layer sees everything.
    assert (info.num_heads, info.num_kv_heads, info.head_dim, info.vocab_size) == (8, 4, 256, 262_208)
    full = [number for number, shape in enumerate(info.layers.paged) if shape.num_kv_heads]
    assert full == [5, 11, 17, 23, 29]
    assert set(info.layers.own) == {OwnCache(numbers_per_token=2 * 4 * 256, window_tokens=1024)}
    assert len(info.layers.own) == 29


@pytest.mark.parametrize("bits", [4, None])
def test_a_config_alone_says_the_same_as_the_whole_folder(bits: int | None, tmp_path: Path) -> None:
    whole = inspect_model(write_folder(tmp_path / "tiny", bits=bits))

    alone = inspect_config(_config_only(tmp_path))

    assert alone == dataclasses.replace(
        whole, format=ModelFormat.CONFIG, path=alone.path, quantization=alone.quantization
    )


def _config_only(folder: Path) -> Path:
    alone = folder / "alone" / "tiny"
    alone.mkdir(parents=True)
    (alone / "config.json").write_bytes((folder / "tiny" / "config.json").read_bytes())
    return alone


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.mlp"]}, {"self_attn"}),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, {"self_attn", "mlp"}),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, set()),
        ({"group_size": 32, "bits": 4, "model.layers.1.mlp.up_proj": False}, {"all but one"}),
    ],
)
def test_formats_of_other_programs_leave_out_what_their_configs_name(
    settings: dict[str, Any], parts: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"quantization_config": settings}))
    attention, mlp, embedding = 2 * (2 * 64 * 64 + 2 * 64 * 32), 2 * 3 * 64 * 128, 257 * 64
    packed = {
        frozenset(): 0,
        frozenset({"self_attn"}): attention,
        frozenset({"self_attn", "mlp"}): attention + mlp,
        frozenset({"all but one"}): attention + mlp + embedding - 64 * 128,
    }[frozenset(parts)]

    info = inspect_config(path)

    if settings.get("quant_method") == "mxfp4":  # its scales are bytes
        assert info.packed_nbytes == packed // 2 + packed // 32
    else:
        assert info.packed_nbytes == packed // 2
    assert info.num_parameters == attention + mlp + embedding + 5 * 64


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_hidden_layers": 10**9}, r"damaged config: its num_hidden_layers of 1,000,000,000 cannot be"),
        ({"vocab_size": 10**12}, r"its vocab_size of 1,000,000,000,000 cannot be"),
        ({"hidden_size": "many"}, "its hidden_size of many cannot be"),
        ({"num_hidden_layers": 0}, "its num_hidden_layers of 0 cannot be"),
        ({"num_hidden_layers": 2.5}, r"its num_hidden_layers of 2\.5 cannot be"),
        ({"num_key_value_heads": -1}, "its num_key_value_heads of -1 cannot be"),
        ({"max_position_embeddings": 0}, "its max_position_embeddings of 0 cannot be"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3 key and value heads"),
        ({"rms_norm_eps": [], "hidden_size": 63}, "mlx-lm cannot make a llama model of this config"),
        ({"quantization": {"group_size": 64, "bits": 7}}, "whose quantization cannot be"),
        ({"quantization": {"bits": 4}}, r"whose quantization cannot be: it names no group_size\."),
        ({"quantization_config": {"quant_method": "quip"}}, "quantized by quip"),
        ({"quantization_config": {"quant_method": ["gptq"]}}, r"quantized by \['gptq'\]"),
        ({"rope_scaling": YARN | {"factor": 1e30}}, r"context of 5.12e\+32 tokens cannot be"),
        ({"rope_scaling": YARN | {"factor": float("inf")}}, "context of inf tokens cannot be"),
        ({"rope_scaling": YARN | {"factor": float("nan")}}, "context of nan tokens cannot be"),
        ({"model_type": "martian"}, "of the type martian"),
    ],
)
def test_configs_that_cannot_be_are_refused_in_a_sentence(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | changes))

    with pytest.raises(ModelError, match=words):
        inspect_config(path)


@pytest.mark.parametrize("content", ["", "[]", "{" * 100_000, '{"model_type": 3}'])
def test_a_damaged_config_is_refused_in_a_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)

    with pytest.raises(ModelError, match=r"damaged config\.json|names no model_type"):
        inspect_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"), [("{", "odd.json is damaged."), ("{}", "odd.json names no model_type.")]
)
def test_a_config_with_a_name_of_its_own_is_named_once(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(content)

    with pytest.raises(ModelError) as caught:
        inspect_config(tmp_path / "odd.json")

    assert str(caught.value).startswith(words)


def _context(config: dict[str, Any], path: Path) -> tuple[int, bool]:
    path.write_text(json.dumps(config))
    info = inspect_config(path)
    return info.context_tokens, info.is_context_assumed


def test_a_context_that_the_config_leaves_out_is_that_of_the_family(tmp_path: Path) -> None:
    gemma = json.loads((CONFIGS / "gemma-3-4b-it-4bit.json").read_text())
    assert _context(gemma, tmp_path / "config.json") == (131_072, False)
    del gemma["text_config"]["max_position_embeddings"]  # as Google publishes it

    assert _context(gemma, tmp_path / "config.json") == (131_072, False)


MAMBA = {"model_type": "mamba", "vocab_size": 500, "hidden_size": 64, "intermediate_size": 128}
MAMBA |= {"state_size": 8, "num_hidden_layers": 2, "conv_kernel": 4, "use_bias": False, "time_step_rank": 4}


def test_a_context_that_nobody_tells_is_assumed(tmp_path: Path) -> None:
    mamba = MAMBA | {"use_conv_bias": True}
    assert _context(mamba, tmp_path / "config.json") == (4096, True)
    assert _context(mamba | {"max_position_embeddings": 2048}, tmp_path / "config.json") == (2048, False)


def test_a_context_that_is_asked_for_is_believed_only_beyond_an_assumed_one(tmp_path: Path) -> None:
    known = inspect_model(write_folder(tmp_path / "tiny"))
    assumed = dataclasses.replace(known, is_context_assumed=True)

    assert known.with_context(600) == known
    assert [assumed.with_context(most).context_tokens for most in (None, 100, 600)] == [512, 512, 600]


@pytest.mark.parametrize(
    ("block", "scales"),
    [([128, 128], 2 * (4 + 3)), ([32, 64], 2 * (2 * 2 + 2 * 1 + 2 * 4 + 2 * 2)), (None, 14)],
)
def test_weights_of_8_bits_that_mlx_lm_unpacks_take_a_byte_on_disk(
    block: list[int] | None, scales: int, tmp_path: Path
) -> None:
    """Two layers, each of four attention and three feed-forward matrices, with a float32 scale a block."""
    settings = {"quant_method": "fp8"} | ({"weight_block_size": block} if block else {})
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"quantization_config": settings}))
    matrices = 2 * (2 * 64 * 64 + 2 * 64 * 32) + 2 * 3 * 64 * 128

    info = inspect_config(tmp_path)

    assert info.weights_nbytes == matrices + 4 * scales + 2 * (257 * 64 + 5 * 64)
    assert (info.packed_nbytes, info.num_plain_values) == (0, info.num_parameters)


def test_layers_that_mlx_lm_cannot_show_are_taken_for_the_most_that_they_can_be(tmp_path: Path) -> None:
    folder = _change_config(write_folder(tmp_path / "tiny"), rms_norm_eps={})

    info = inspect_model(folder)

    assert not info.layers.is_known
    assert info.layers.own == (OwnCache(numbers_per_token=2 * 2 * 16),) * 2


def test_a_model_whose_forward_pass_would_compute_is_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DBRX))
    before = mx.get_peak_memory()

    info = inspect_config(path)

    assert mx.get_peak_memory() - before < 1_000_000
    assert info.num_parameters > 100_000_000_000
    assert not info.layers.is_known
    assert info.layers.own == (OwnCache(numbers_per_token=2 * 48 * 128),) * 40


def test_configs_are_inspected_on_several_threads_at_once() -> None:
    paths = sorted(CONFIGS.glob("*tiny.json")) * 3
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(inspect_config, paths))
    assert together == [inspect_config(path) for path in paths]
