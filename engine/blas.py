"""A fast BLAS for MLX on Linux, loaded before MLX.

MLX's wheel for the CPU links a reference BLAS whose matrix products are some 40 times slower than
OpenBLAS's. Symbols of a library that is loaded globally before it take precedence over that one. This
module never imports MLX.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine import blas_check
from engine.blas_threads import ThreadBalance
from engine.wording import last_line

OVERRIDE = "OCTAVO_OPENBLAS"
"""Environment variable with the path of the library to try first."""
SYSTEM_NAMES = ("libopenblasp.so.0", "libopenblas.so.0")
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""Where one of these is set, the user has chosen."""
CHECK_TIMEOUT_S = 30


@dataclass(frozen=True)
class BlasReport:
    """What became of the search for a BLAS.

    Attributes:
        path: the library in use: a file, or the name by which the system's loader found it.
        loaded: whether there is one.
        reason: one sentence for the log and `octavo doctor`.
        rejected: one sentence for each library that was found and could not be used.
    """

    path: str | None
    loaded: bool
    reason: str
    rejected: tuple[str, ...] = ()


@functools.cache
def load_blas() -> BlasReport:
    """Load the first OpenBLAS that proves itself in a child process; must run before `import mlx.core`."""
    if "mlx.core" in sys.modules:
        return BlasReport(None, False, "MLX was imported before an OpenBLAS could be loaded.")
    rejected: list[str] = []
    for path in _candidates():
        try:
            _check_in_child(path)
            library = blas_check.open_blas(path, _companions())
        except (blas_check.UnfitBlasError, OSError) as error:
            if path not in SYSTEM_NAMES or "cannot open" not in str(error):
                rejected.append(f"{path} cannot be used: {error}.")
            continue
        if not any(os.environ.get(name) for name in THREAD_VARIABLES):
            ThreadBalance(library).start()
        return BlasReport(path, True, f"OpenBLAS was loaded from {path}.", tuple(rejected))
    return BlasReport(
        None,
        False,
        "No OpenBLAS could be loaded, so reading a prompt is about 20 times slower.",
        tuple(rejected),
    )


def _candidates() -> Iterator[str]:
    """Yield libraries to try: the user's choice, the PyPI package's, the system's."""
    if override := os.environ.get(OVERRIDE):
        yield override
    package = importlib.util.find_spec("ngsolve_openblas")
    for folder in (package and package.submodule_search_locations) or ():
        yield from sorted(map(str, Path(folder).glob("libopenblas*.so*")))
    yield from SYSTEM_NAMES


def _companions() -> Path | None:
    """Return the folder with the compiler libraries that MLX's own wheel brings along."""
    folders = (Path(entry) / "mlx_cpu.libs" for entry in sys.path)
    return next((folder for folder in folders if folder.is_dir()), None)


def _check_in_child(path: str) -> None:
    """Raise `UnfitBlasError` when a child process that tries the library fails, crashes or hangs."""
    bundled = getattr(sys, "frozen", False)
    program = [sys.executable] if bundled else [sys.executable, "-I", "-S", blas_check.__file__]
    command = [*program, blas_check.FLAG, path, str(_companions() or "")]
    try:
        # In a group of its own, Ctrl+C in the terminal does not end it and speak against the library.
        child = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=CHECK_TIMEOUT_S,
            process_group=0,
        )
    except subprocess.TimeoutExpired:
        raise blas_check.UnfitBlasError(f"it did not answer within {CHECK_TIMEOUT_S} seconds") from None
    if child.returncode < 0:
        cause = signal.strsignal(-child.returncode)
        raise blas_check.UnfitBlasError(f"a process that tried it was ended by the system ({cause})")
    if child.returncode:
        said = last_line(child.stderr.decode(errors="replace"))
        raise blas_check.UnfitBlasError(said or f"it failed with status {child.returncode}")
