"""Loading models: an MLX folder or a GGUF file becomes a `Model` in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_model as load_module
from mlx_lm.utils import load_tokenizer

from engine.backend import Backend, Device
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.events import LoadProgress, LoadStage
from engine.gguf.header import read_header
from engine.gguf.model import build_model
from engine.gguf.tokenizer import build_tokenizer
from engine.inspection import inspect_header, inspect_model
from engine.model import Model
from engine.model_info import ModelInfo
from engine.placement import Placement
from engine.safetensors_header import read_folder
from engine.wording import first_line

logger = logging.getLogger(__name__)

OnProgress = Callable[[LoadProgress], None]


def load_model(
    path: Path,
    backend: Backend,
    *,
    dequantize: bool,
    cancel: CancelToken,
    on_progress: OnProgress,
) -> Model:
    """Load an MLX folder or a GGUF file; its weights are in memory when this returns.

    Args:
        path: the folder or file.
        backend: what to compute on. On the CPU activations and plain weights become float32; elsewhere they
            keep the model's own 16-bit type.
        dequantize: whether quantized weights become plain ones.
        cancel: checked between pieces of a few megabytes.
        on_progress: told what is being done.

    Raises:
        ModelError: missing, damaged or incomplete.
        UnsupportedModelError: an architecture, quantization or tokenizer that is not supported, by name.
        Cancelled: `cancel` was called.
    """
    on_progress(LoadProgress(LoadStage.READING, 0, 0))
    load = _load_folder if path.is_dir() else _load_gguf
    model = load(path, backend, dequantize, cancel, on_progress)
    cancel.check()
    logger.info("Loaded %s: %d bytes in memory.", model.info.name, model.weights_nbytes)
    return model


def _load_gguf(
    path: Path, backend: Backend, dequantize: bool, cancel: CancelToken, on_progress: OnProgress
) -> Model:
    if not path.exists():
        raise ModelError(f"There is no model at {path}.")
    header = read_header(path, cancel)
    info = inspect_header(header)
    # The tokenizer first: it refuses by name what cannot be used, and the weights are what takes long.
    on_progress(LoadProgress(LoadStage.TOKENIZER, 0, info.weights_nbytes))
    tokenizer = build_tokenizer(header, cancel)
    done = 0

    def on_bytes(nbytes: int) -> None:
        nonlocal done
        done += nbytes
        on_progress(LoadProgress(LoadStage.WEIGHTS, done, info.weights_nbytes))

    module = build_model(
        header,
        activations=mx.float32 if backend.device is Device.CPU else None,
        dequantize=dequantize,
        cancel=cancel,
        on_bytes=on_bytes,
    )
    return Model(module, tokenizer, info, backend)


def _load_folder(
    path: Path, backend: Backend, dequantize: bool, cancel: CancelToken, on_progress: OnProgress
) -> Model:
    info = inspect_model(path)
    cancel.check()
    module, eos_token_ids = _lazy_module(path, info)
    cancel.check()
    on_progress(LoadProgress(LoadStage.TOKENIZER, 0, info.weights_nbytes))
    tokenizer = _folder_tokenizer(path, eos_token_ids)
    cancel.check()
    Placement(
        backend,
        dequantize=dequantize,
        stored=read_folder(path),
        cancel=cancel,
        on_progress=lambda done, total: on_progress(LoadProgress(LoadStage.WEIGHTS, done, total)),
    ).place(module)
    return Model(module, tokenizer, info, backend)


def _lazy_module(path: Path, info: ModelInfo) -> tuple[nn.Module, object]:
    """Return mlx-lm's model, its weights not read yet, and the end tokens that its config names."""
    try:
        module, config = load_module(path, lazy=True)
    except (Exception, SystemExit) as error:
        # mlx-lm and its models raise whatever a config or a tensor that does not fit leads them to, and one
        # of them ends the program when a package that it needs is not there.
        raise ModelError(
            f"{info.name} ({info.architecture}) cannot be loaded: its config and weights do not fit mlx-lm's "
            f"{info.architecture} model ({first_line(error)})."
        ) from error
    return module, config.get("eos_token_id")


def _folder_tokenizer(path: Path, eos_token_ids: object) -> TokenizerWrapper:
    options = {"trust_remote_code": False, "local_files_only": True}
    try:
        tokenizer: TokenizerWrapper = load_tokenizer(path, options, eos_token_ids=eos_token_ids)
    except Exception as error:
        # transformers raises many kinds, and OSError for a file that is merely missing.
        raise ModelError(f"The tokenizer of {path.name} cannot be read ({first_line(error)}).") from error
    return tokenizer
