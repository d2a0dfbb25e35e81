"""Open a BLAS library and check that it multiplies right; imports nothing but the standard library.

Run as a program it tries one library and says so with its exit status: a library built for another
processor kills the process that uses it, so this happens in a child first.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FLAG = "--check-blas"
"""First argument of a process that is started to check a library, before its path and its companions."""

_ROW_MAJOR, _NO_TRANSPOSE = 101, 111
_SHAPES = ((160, 96, 192), (1, 96, 192))
"""(rows, columns, inner) of the products tried: one that is spread over threads, one as decode has it."""


class UnfitBlasError(Exception):
    """A library that is no usable BLAS; the message says why."""


def open_blas(path: str, companions: Path | None) -> ctypes.CDLL:
    """Open the library for all later libraries of this process to use.

    Args:
        path: a file, or a name that the system's loader knows.
        companions: a folder of `libNAME-HASH.so.N` files, the libraries beside a Python wheel. Where the
            library at `path` asks for a `libNAME.so.N` that the system lacks, the one in there is used.

    Raises:
        UnfitBlasError: it is missing, no library, or needs others that are missing.
    """
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        missing = re.match(r"(lib\w+)\.so\.(\d+): cannot open", str(error))
        copies = missing and companions and [*companions.glob(f"{missing[1]}-*.so.{missing[2]}*")]
        if not (missing and companions and copies):
            raise UnfitBlasError(str(error).removeprefix(f"{path}: ")) from None
    with tempfile.TemporaryDirectory(prefix="octavo-blas-") as folder:
        # The loader looks for what a library needs beside the link by which it was opened ($ORIGIN).
        for file in companions.iterdir():
            (Path(folder) / file.name).symlink_to(file)
        (Path(folder) / f"{missing[1]}.so.{missing[2]}").symlink_to(copies[0])
        link = Path(folder) / Path(path).name
        link.symlink_to(path)
        try:
            return ctypes.CDLL(str(link), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise UnfitBlasError(str(error)) from None


def check_blas(library: ctypes.CDLL) -> None:
    """Raise `UnfitBlasError` unless the library is an OpenBLAS with 32-bit sizes whose products are right."""
    try:
        library.openblas_get_config.restype = ctypes.c_char_p
        config: bytes = library.openblas_get_config()
        multiply = library.cblas_sgemm
    except AttributeError:
        raise UnfitBlasError("it is not an OpenBLAS with plain cblas names") from None
    if b"USE64BITINT" in config:
        raise UnfitBlasError("it takes 64-bit sizes and MLX gives 32-bit ones")
    for rows, columns, inner in _SHAPES:
        _check_product(multiply, rows, columns, inner)


def _check_product(multiply: Callable[..., None], rows: int, columns: int, inner: int) -> None:
    """Compare (A B) x with A (B x) for small integers, which float32 sums exactly (Freivalds' check)."""
    digits = random.Random(rows)
    left = [digits.randint(-3, 3) for _ in range(rows * inner)]
    right = [digits.randint(-3, 3) for _ in range(inner * columns)]
    vector = [digits.randint(-3, 3) for _ in range(columns)]
    product = (ctypes.c_float * (rows * columns))()
    multiply(
        *(_ROW_MAJOR, _NO_TRANSPOSE, _NO_TRANSPOSE, rows, columns, inner, ctypes.c_float(1)),
        *((ctypes.c_float * len(left))(*left), inner, (ctypes.c_float * len(right))(*right), columns),
        *(ctypes.c_float(0), product, columns),
    )
    if _times(list(product), vector) != _times(left, _times(right, vector)):
        raise UnfitBlasError("it multiplies matrices wrongly on this processor")


def _times(matrix: list[float] | list[int], vector: list[float] | list[int]) -> list[float]:
    width = len(vector)
    return [
        sum(a * b for a, b in zip(matrix[start : start + width], vector, strict=True))
        for start in range(0, len(matrix), width)
    ]


def answer_check() -> None:
    """Check the library named in the arguments and leave, where this process was started for that.

    A bundled program must call it before anything else, since there the child is the program itself.
    """
    if sys.argv[1:2] != [FLAG]:
        return
    path, companions = sys.argv[2:4]
    try:
        check_blas(open_blas(path, Path(companions) if companions else None))
    except (UnfitBlasError, OSError) as error:
        with contextlib.suppress(OSError):
            os.write(2, str(error).encode())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    answer_check()
