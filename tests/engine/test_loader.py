from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx_lm
import numpy as np
import pytest

from engine.backend import Backend, Device
from engine.bench.mlx_folder import write_mlx_folder
from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError
from engine.events import LoadProgress, LoadStage
from engine.loader import load_model
from engine.model import ChatMessage, Model
from engine.parameters import named_parameters
from tests.engine.folders import write_folder

CPU = Backend(Device.CPU, None)
METAL = Backend(Device.METAL, None)
TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 97, 93, 238]])


def _load(path: Path, backend: Backend = CPU, *, dequantize: bool = True) -> Model:
    return load_model(
        path, backend, dequantize=dequantize, cancel=CancelToken(), on_progress=lambda progress: None
    )


def _reference(path: Path) -> nn.Module:
    """The model as mlx-lm loads it, computing in float32."""
    model, _ = mlx_lm.load(str(path))
    model.set_dtype(mx.float32)
    return model


@pytest.mark.slow
def test_starter_has_the_logits_of_mlx_lm_on_the_same_weights(starter_gguf: Path, tmp_path: Path) -> None:
    folder = tmp_path / "starter"
    write_mlx_folder(starter_gguf, folder)
    reference = _reference(folder)
    model = _load(starter_gguf)
    text = "The library opened in 1907.\n\n```python\ndef area(r):\n\treturn 3.14 * r ** 2\n```\nΩ 你好 😀"
    tokens = mx.array([model.tokenizer.encode(text)])

    logits, expected = np.array(model.module(tokens)), np.array(reference(tokens))

    np.testing.assert_allclose(logits, expected, atol=1e-3, rtol=0)
    assert tokens.size > 40


@pytest.mark.parametrize("dequantize", [True, False])
@pytest.mark.parametrize(
    "changes", [{}, {"bits": 8}, {"bits": None}, {"mode": "mxfp4"}, {"attention_bias": True}], ids=str
)
def test_a_folder_on_the_cpu_has_the_logits_of_mlx_lm_in_float32(
    changes: dict[str, Any], dequantize: bool, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny", **changes)

    model = _load(folder, dequantize=dequantize)

    logits = model.module(TOKENS)
    assert logits.dtype == mx.float32
    np.testing.assert_allclose(np.array(logits), np.array(_reference(folder)(TOKENS)), atol=1e-3, rtol=1e-3)
    types = {value.dtype for _, value in named_parameters(model.module)}
    assert types <= {mx.float32, mx.uint32, mx.uint8}
    if dequantize:
        assert types == {mx.float32}


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16])
def test_a_folder_off_the_cpu_stays_as_it_is(dtype: mx.Dtype, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", dtype=dtype)

    model = _load(folder, METAL, dequantize=False)

    stored = mx.load(str(folder / "model.safetensors"))
    for name, value in named_parameters(model.module):
        assert value.dtype == stored[name].dtype
        assert mx.array_equal(value, stored[name])
    assert model.module(TOKENS).dtype == dtype


def test_starter_off_the_cpu_computes_in_16_bits(starter_gguf: Path) -> None:
    model = _load(starter_gguf, METAL, dequantize=False)

    embedded = model.module.model.embed_tokens(TOKENS)
    # One layer is enough: a norm in float32 would widen everything behind it.
    assert model.module.layers[0](embedded, "causal").dtype == mx.float16


def test_bytes_of_the_weights_are_those_in_memory(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")

    plain = _load(folder)

    assert plain.weights_nbytes == 4 * plain.info.num_parameters
    assert _load(folder, METAL, dequantize=False).weights_nbytes == plain.info.weights_nbytes


def test_layers_are_dequantized_one_after_another(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "deep", num_hidden_layers=24, hidden_size=128)
    quantized_nbytes = (folder / "model.safetensors").stat().st_size
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()

    model = _load(folder)

    peak = mx.get_peak_memory() - before
    assert model.weights_nbytes <= peak < model.weights_nbytes + quantized_nbytes / 2


def _progress(path: Path, **options: Any) -> list[LoadProgress]:
    seen: list[LoadProgress] = []
    load_model(path, CPU, dequantize=True, cancel=CancelToken(), on_progress=seen.append, **options)
    return seen


def test_progress_runs_to_the_end_for_a_folder(tmp_path: Path) -> None:
    _assert_complete(_progress(write_folder(tmp_path / "tiny")))


def test_progress_runs_to_the_end_for_a_gguf_file(starter_gguf: Path) -> None:
    _assert_complete(_progress(starter_gguf))


def _assert_complete(seen: list[LoadProgress]) -> None:
    weights = [progress for progress in seen if progress.stage is LoadStage.WEIGHTS]
    assert seen[0].stage is LoadStage.READING
    assert LoadStage.TOKENIZER in {progress.stage for progress in seen}
    assert len(weights) > 10
    done = [progress.done for progress in weights]
    assert done == sorted(done)
    assert done[-1] == weights[-1].total > 0


@pytest.mark.parametrize("kind", ["folder", "gguf"])
@pytest.mark.parametrize("steps", [1, 2, 3, 9])
def test_loading_stops_at_any_step(kind: str, steps: int, starter_gguf: Path, tmp_path: Path) -> None:
    path = starter_gguf if kind == "gguf" else write_folder(tmp_path / "tiny")
    cancel = CancelToken()
    seen: list[LoadProgress] = []

    def stop(progress: LoadProgress) -> None:
        seen.append(progress)
        if len(seen) == steps:
            cancel.cancel()

    with pytest.raises(Cancelled):
        load_model(path, CPU, dequantize=True, cancel=cancel, on_progress=stop)

    assert len(seen) == steps


def test_weights_that_do_not_fit_the_config_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))

    with pytest.raises(ModelError, match=r"^tiny \(llama\) cannot be loaded: .*$"):
        _load(folder)


def test_a_config_that_lacks_a_value_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    del config["rms_norm_eps"]
    (folder / "config.json").write_text(json.dumps(config))

    with pytest.raises(ModelError, match="rms_norm_eps"):
        _load(folder)


def test_a_model_class_that_ends_the_program_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    # mlx-lm's olmo module calls sys.exit where the package hf_olmo is not installed.
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "olmo"}))

    with pytest.raises(ModelError, match=r"^tiny \(olmo\) cannot be loaded: .*$"):
        _load(folder)


@pytest.mark.parametrize("content", ["{", "{}"])
def test_a_damaged_tokenizer_is_refused(content: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    (folder / "tokenizer.json").write_text(content)

    with pytest.raises(ModelError, match="tokenizer of tiny cannot be read"):
        _load(folder)


def test_nothing_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model at"):
        _load(tmp_path / "missing.gguf")


def test_end_tokens_of_the_config_end_answers(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", eos_token_id=[10, 256])

    assert _load(folder).tokenizer.eos_token_ids == {10, 256}


def test_a_conversation_is_rendered_in_the_words_of_the_starter(starter_gguf: Path) -> None:
    model = _load(starter_gguf, METAL, dequantize=False)

    tokens = model.render([ChatMessage("system", "Be brief."), ChatMessage("user", "1 <|im_end|>?")])

    assert model.tokenizer.decode(tokens) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n1 <|im_end|>?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert tokens[0] == 1
    without = model.render([ChatMessage("user", "hi")], add_generation_prompt=False)
    assert not model.tokenizer.decode(without).endswith("assistant\n")
