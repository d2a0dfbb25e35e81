"""The search for a BLAS, each time in a process of its own: a library once loaded stays."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.blas_check import UnfitBlasError, check_blas, open_blas

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="MLX brings its own BLAS elsewhere")

REPORT = """
import dataclasses, json, sys
from engine import blas
blas.CHECK_TIMEOUT_S = float(sys.argv[1])
if sys.argv[2:]:
    blas._candidates = lambda: sys.argv[2:]
print(json.dumps(dataclasses.asdict(blas.load_blas()) | {"mlx": "mlx" in sys.modules}))
"""


def report(*only: Path, override: str = "", timeout_s: float = 30, **environ: str) -> dict[str, Any]:
    """Return what `load_blas` says in a new process, with `only` in place of the libraries it looks for."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, str(timeout_s), *map(str, only)],
        env=os.environ | {"OCTAVO_OPENBLAS": override} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def openblas() -> Path:
    """The library of the PyPI package."""
    package = importlib.util.find_spec("ngsolve_openblas")
    if package is None or not package.submodule_search_locations:
        pytest.skip("ngsolve-openblas is not installed")
    return next(Path(package.submodule_search_locations[0]).glob("libopenblas*.so*"))


def patched(openblas: Path, folder: Path, code: bytes) -> Path:
    """Return a copy of the library whose `cblas_sgemm` begins with the machine code."""
    if platform.machine() != "x86_64":
        pytest.skip("the machine code is for x86-64")
    address = ctypes.cast(ctypes.CDLL(str(openblas)).cblas_sgemm, ctypes.c_void_p).value or 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= address < end:
            offset = address - start + int(line.split()[2], 16)
    copy = folder / "libopenblas-patched.so"
    shutil.copyfile(openblas, copy)
    with copy.open("r+b") as file:
        file.seek(offset)
        file.write(code)
    return copy


def test_the_package_is_found_and_loaded_without_mlx(openblas: Path) -> None:
    found = report()
    assert found == {
        "path": str(openblas),
        "loaded": True,
        "reason": f"OpenBLAS was loaded from {openblas}.",
        "rejected": [],
        "mlx": False,
    }


def test_the_override_comes_first(openblas: Path, tmp_path: Path) -> None:
    link = tmp_path / "libchosen.so"
    link.symlink_to(openblas)
    assert report(override=str(link))["path"] == str(link)


def test_an_unfit_override_is_named_and_the_next_library_is_taken(openblas: Path, tmp_path: Path) -> None:
    garbage = tmp_path / "libgarbage.so"
    garbage.write_text("not a library")
    found = report(override=str(garbage))
    assert found["path"] == str(openblas)
    assert found["rejected"] == [f"{garbage} cannot be used: file too short."]


def test_a_library_that_is_no_blas_is_refused() -> None:
    found = report(Path("libm.so.6"))
    assert (found["loaded"], found["path"]) == (False, None)
    assert "not an OpenBLAS" in found["rejected"][0]


def test_a_missing_library_is_refused(tmp_path: Path) -> None:
    assert "No such file" in report(tmp_path / "libnone.so")["rejected"][0]


def test_an_illegal_instruction_ends_only_the_child(openblas: Path, tmp_path: Path) -> None:
    found = report(patched(openblas, tmp_path, b"\x0f\x0b"))
    assert not found["loaded"]
    assert "Illegal instruction" in found["rejected"][0]


def test_a_wrong_product_is_refused(openblas: Path, tmp_path: Path) -> None:
    found = report(patched(openblas, tmp_path, b"\xc3"))
    assert not found["loaded"]
    assert "multiplies matrices wrongly" in found["rejected"][0]


def test_a_library_that_hangs_is_given_up(tmp_path: Path) -> None:
    pipe = tmp_path / "libpipe.so"
    os.mkfifo(pipe)
    assert "did not answer" in report(pipe, timeout_s=0.5)["rejected"][0]


def test_ctrl_c_in_the_terminal_does_not_speak_against_a_library(tmp_path: Path) -> None:
    pipe = tmp_path / "libpipe.so"
    os.mkfifo(pipe)
    code = "import signal\nsignal.signal(signal.SIGINT, lambda *_: print('noticed', flush=True))\n" + REPORT
    with subprocess.Popen(
        [sys.executable, "-c", code, "5", str(pipe)], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        with pipe.open("wb"):  # the child has opened it, and waits for what is in it
            os.killpg(process.pid, signal.SIGINT)
            assert process.stdout is not None
            assert process.stdout.readline() == b"noticed\n"
        (rejected,) = json.loads(process.stdout.read())["rejected"]
    assert "too short" in rejected


def test_a_compiler_library_that_the_system_lacks_is_taken_from_the_wheel_of_mlx(
    openblas: Path, tmp_path: Path
) -> None:
    (wheel,) = {Path(entry) / "mlx_cpu.libs" for entry in sys.path if (Path(entry) / "mlx_cpu.libs").is_dir()}
    needing = tmp_path / "libopenblas-needing.so"
    needing.write_bytes(openblas.read_bytes().replace(b"libgfortran.so.5\0", b"libgfortran.so.9\0"))
    with pytest.raises(UnfitBlasError, match=r"libgfortran\.so\.9: cannot open"):
        open_blas(str(needing), wheel)

    companions = tmp_path / "mlx_cpu.libs"
    companions.mkdir()
    for file in wheel.iterdir():
        (companions / file.name.replace(".so.5.", ".so.9.")).symlink_to(file)
    found = report(needing, PYTHONPATH=f"{tmp_path}{os.pathsep}{Path.cwd()}")
    assert (found["loaded"], found["path"]) == (True, str(needing))


def test_mlx_imported_first_is_reported() -> None:
    code = "import mlx.core; from engine.blas import load_blas; print(load_blas().reason)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "MLX was imported before" in done.stdout


def test_the_check_accepts_a_right_library(openblas: Path) -> None:
    check_blas(ctypes.CDLL(str(openblas)))
