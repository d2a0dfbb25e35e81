"""The backend of this machine, started in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.backend import Backend, Device

START = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
from engine.backend import start_backend
backend = start_backend()
import mlx.core as mx
assert start_backend() is backend
print(backend.device.name, mx.default_device().type == mx.DeviceType.cpu)
"""


def start(override: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", START],
        env=os.environ | {"OCTAVO_OPENBLAS": override},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_starting_names_the_device_that_mlx_uses() -> None:
    device, on_cpu = start().split()[-2:]
    assert (device == Device.CPU.name) == (on_cpu == "True")


def test_threads_that_start_it_at_once_get_the_same_backend() -> None:
    code = """
import threading
from concurrent.futures import ThreadPoolExecutor
from engine import backend
from engine.backend import start_backend
looked = []
together = threading.Barrier(4)
load_blas = backend.load_blas
backend.load_blas = lambda: (looked.append(1), load_blas())[1]
def start(_):
    together.wait()
    return start_backend()
with ThreadPoolExecutor(4) as pool:
    backends = list(pool.map(start, range(4)))
print(len({id(one) for one in backends}), len(looked))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1" if sys.platform == "linux" else "0"]


@pytest.mark.skipif(sys.platform != "linux", reason="MLX brings its own BLAS elsewhere")
def test_an_unfit_override_is_one_warning_in_the_log() -> None:
    lines = start(override="libm.so.6").splitlines()
    warnings = [line for line in lines if line.startswith("WARNING")]
    assert len(warnings) == 1
    assert "libm.so.6 cannot be used" in warnings[0]


def test_only_the_cpu_wants_float32() -> None:
    wants = {
        device: (Backend(device, None).dequantizes, Backend(device, None).activation_nbytes)
        for device in Device
    }
    assert wants == {Device.CPU: (True, 4), Device.METAL: (False, 2), Device.CUDA: (False, 2)}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MLX compiles without a C++ compiler")
def test_on_the_cpu_no_answer_waits_for_a_compiler(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    (tmp_path / "g++").write_text(f"#!/bin/sh\necho >> {calls}\nexit 1\n")
    (tmp_path / "g++").chmod(0o755)
    code = """
from engine.backend import start_backend
start_backend()
import mlx.core as mx
mx.eval(mx.compile(lambda x: mx.exp(x) * x)(mx.array(1.0)))
"""
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
    assert not calls.exists()
