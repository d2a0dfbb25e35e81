from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Kind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError, UnsupportedModelError
from engine.gguf.header import read_header
from engine.gguf.tensor_types import SUPPORTED_NAMES
from tests.engine.gguf.files import write_gguf

ROWS = np.arange(128, dtype=np.float32).reshape(2, 64)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    metadata = {
        "general.name": "Größe ü",
        "a.count": 7,
        "a.ratio": 0.5,
        "a.flag": True,
        "a.words": ["one", "", "três"],
        "a.numbers": [1, 2, 3],
    }
    return write_gguf(tmp_path / "a.gguf", metadata, {"first": (ROWS, Kind.F32), "second": (ROWS, Kind.Q8_0)})


def test_metadata_and_tensors_are_what_ggml_wrote(file: Path) -> None:
    header = read_header(file)

    assert header.text("general.name") == "Größe ü"
    assert header.integer("a.count") == 7
    assert header.number("a.ratio") == 0.5
    assert header.metadata["a.flag"] is True
    assert header.items("a.words") == ["one", "", "três"]
    assert header.items("a.numbers") == [1, 2, 3]
    reader = gguf.GGUFReader(file)
    for tensor in reader.tensors:
        mine = header.tensors[tensor.name]
        assert mine.offset == tensor.data_offset
        assert mine.nbytes == tensor.n_bytes
        assert mine.type.name == tensor.tensor_type.name
        assert mine.shape == (2, 64)


def test_values_of_another_kind_are_refused_by_key(file: Path) -> None:
    header = read_header(file)

    with pytest.raises(ModelError, match=r"a\.words"):
        header.integer("a.words")
    with pytest.raises(ModelError, match=r"a\.count"):
        header.text("a.count")
    with pytest.raises(ModelError, match=r"no b\.count"):
        header.integer("b.count")


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.name not in SUPPORTED_NAMES])
def test_unsupported_quantizations_are_refused_by_name(kind: Kind, tmp_path: Path) -> None:
    nbytes = gguf.GGML_QUANT_SIZES[kind][1]
    file = write_gguf(tmp_path / "a.gguf", {}, {"t": (np.zeros((2, nbytes), np.uint8), kind)})

    with pytest.raises(UnsupportedModelError, match=rf"a\.gguf stores t as {kind.name}, .*Q4_0.*and Q6_K"):
        read_header(file)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.name in SUPPORTED_NAMES])
def test_block_sizes_are_those_of_ggml(kind: Kind, tmp_path: Path) -> None:
    values, nbytes = gguf.GGML_QUANT_SIZES[kind]
    file = write_gguf(tmp_path / "a.gguf", {}, {"t": (np.zeros((3, 2 * nbytes), np.uint8), kind)})

    tensor = read_header(file).tensors["t"]

    assert (tensor.shape, tensor.row_nbytes) == ((3, 2 * values), 2 * nbytes)


def test_a_big_endian_file_is_refused(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf", {"a": 1}, endianess=gguf.GGUFEndian.BIG)

    with pytest.raises(UnsupportedModelError, match="big-endian"):
        read_header(file)


def test_version_1_is_refused(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4] = 1
    file.write_bytes(data)

    with pytest.raises(UnsupportedModelError, match="version 1"):
        read_header(file)


@pytest.mark.parametrize(("data", "words"), [(b"", "is empty"), (b"PK\x03\x04 zip", "not a GGUF file")])
def test_other_files_are_refused(data: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(data)

    with pytest.raises(ModelError, match=words):
        read_header(file)


def test_weights_that_are_cut_off_are_noticed_without_reading_them(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])

    with pytest.raises(ModelError, match="ends before the weights do"):
        read_header(file)


def test_a_header_that_is_cut_off_anywhere_is_refused(file: Path) -> None:
    data = file.read_bytes()
    end = read_header(file).tensors["first"].offset
    for length in range(0, end, 7):
        file.write_bytes(data[:length])
        with pytest.raises(ModelError):
            read_header(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 400), value=st.integers(0, 255))
def test_a_damaged_byte_never_gives_another_error(file: Path, position: int, value: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] = value
    damaged = file.with_name("damaged.gguf")
    damaged.write_bytes(data)

    try:
        read_header(damaged)
    except ModelError as error:
        assert str(error)


def test_reading_can_be_cancelled(file: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()

    with pytest.raises(Cancelled):
        read_header(file, cancel)
