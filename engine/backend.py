"""Which device MLX computes on, and what follows from it."""

from __future__ import annotations

import enum
import functools
import logging
import sys
import threading
from dataclasses import dataclass

from engine.blas import BlasReport, load_blas

logger = logging.getLogger(__name__)


class Device(enum.Enum):
    """What MLX computes on."""

    CPU = "CPU"
    METAL = "Metal"
    CUDA = "CUDA"


@dataclass(frozen=True)
class Backend:
    """The device of this process; `blas` is None where no BLAS is looked for (anywhere but on Linux)."""

    device: Device
    blas: BlasReport | None

    @property
    def dequantizes(self) -> bool:
        """Whether float32 weights are wanted when they fit: MLX's quantized CPU kernels are scalar code."""
        return self.device is Device.CPU

    @property
    def activation_nbytes(self) -> int:
        """Bytes of an activation: float32 on the CPU, where float16 is far slower, 16-bit elsewhere."""
        return 4 if self.device is Device.CPU else 2


_starting = threading.Lock()


def start_backend() -> Backend:
    """Prepare MLX and return its backend; the first call must come before anything imports MLX.

    Any thread may call it, also two at once: a model is inspected while another one is loaded.
    """
    with _starting:
        return _start()


@functools.cache
def _start() -> Backend:
    blas = load_blas() if sys.platform == "linux" else None

    import mlx.core as mx

    if mx.metal.is_available():
        device = Device.METAL
        # As mlx-lm does: keep the weights resident, within what the system recommends; more is an error.
        mx.set_wired_limit(int(mx.device_info()["max_recommended_working_set_size"]))
    elif mx.cuda.is_available():
        device = Device.CUDA
    else:
        device = Device.CPU
        mx.set_default_device(mx.cpu)
        # There MLX would write C++ into the folder for temporary files and wait for a compiler in mid-answer.
        mx.disable_compile()
    backend = Backend(device, blas)
    _log(backend)
    return backend


def _log(backend: Backend) -> None:
    """Write one line, a warning where a CPU has no BLAS or a library on the way was unfit."""
    blas = backend.blas
    sentences = (blas.reason, *blas.rejected) if blas else ()
    unfit = backend.device is Device.CPU and blas is not None and (not blas.loaded or bool(blas.rejected))
    level = logging.WARNING if unfit else logging.INFO
    logger.log(level, "MLX computes on %s. %s", backend.device.value, " ".join(sentences))
