from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin.checksums import BlockChecksums, ChecksumError
from labelkin.exceptions import ConfigError
from labelkin.rerank.matrices import matrix_arrays, matrix_of
from labelkin.tensors import TensorFile, tensor_bytes

ARRAYS = {
    "large": np.arange(20_000, dtype=np.int64),
    "halves": np.linspace(-3, 3, 12, dtype=np.float16).reshape(3, 4),
    "number": np.array(7),
    "nothing": np.zeros((0, 3), dtype=np.float32),
    "flags": np.array([True, False]),
    "places": np.array([3, 65_535], dtype=np.uint16),
    "turned": np.arange(6.0).reshape(2, 3).T,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "arrays.safetensors"
    path.write_bytes(tensor_bytes(ARRAYS))
    return path


def test_arrays_come_back_mapped(path):
    file = TensorFile(path, BlockChecksums.of_file(path))
    assert {*file} == {*ARRAYS}
    assert len(file) == len(ARRAYS)
    for name, expected in ARRAYS.items():
        for array in (file[name], file.verified(name)):
            assert array.dtype == expected.dtype
            assert array.shape == expected.shape
            assert not array.flags.writeable
            np.testing.assert_array_equal(array, expected)


def test_products_with_a_mapped_matrix_do_not_copy_it(tmp_path):
    from scipy.sparse import random_array

    matrix = random_array((50, 40), density=0.2, format="csr", rng=1)
    path = tmp_path / "matrix.safetensors"
    path.write_bytes(tensor_bytes({**ARRAYS, **matrix_arrays("matrix", matrix)}))
    mapped = matrix_of(TensorFile(path, BlockChecksums.of_file(path)), "matrix")
    # SciPy makes such a matrix of the right one in each product.
    again = type(mapped)(mapped)
    assert np.shares_memory(again.data, mapped.data)
    assert np.shares_memory(again.indices, mapped.indices)
    np.testing.assert_array_equal((again @ mapped.T).toarray(), (matrix @ matrix.T).toarray())


def test_it_reads_what_safetensors_writes_and_the_other_way_round(path):
    from safetensors.numpy import load_file, save_file

    for name, array in load_file(path).items():
        np.testing.assert_array_equal(array, ARRAYS[name])
    save_file({"a": ARRAYS["large"]}, path, metadata={"made": "by hand"})
    assert [*TensorFile(path, None)] == ["a"]


@pytest.mark.parametrize("kind", ["int8", "int16", "uint64", ">i4"])
def test_all_kinds_of_whole_numbers(tmp_path, kind):
    path = tmp_path / "numbers.safetensors"
    path.write_bytes(tensor_bytes({"a": np.arange(5).astype(kind)}))
    assert TensorFile(path, None)["a"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("array", [np.array(["text"]), np.array([1j]), np.array([b"text"])])
def test_what_cannot_be_saved_is_named(array):
    with pytest.raises(ConfigError, match=r"signal mine: array 'a' of type .* cannot be saved"):
        tensor_bytes({"a": array}, "signal mine")


def test_an_unknown_name(path):
    with pytest.raises(KeyError):
        TensorFile(path, None)["other"]


@pytest.mark.parametrize("size", [0, 7, 8, 50, 20_000])
def test_a_cut_file(path, size):
    checksums, content = BlockChecksums.of_file(path), path.read_bytes()
    path.write_bytes(content[:size])
    with pytest.raises(ChecksumError):
        TensorFile(path, checksums)


def test_damage_in_an_array_is_found_when_it_is_verified(path):
    checksums, content = BlockChecksums.of_file(path), bytearray(path.read_bytes())
    start, end = TensorFile(path, checksums).span("large")
    content[end - 1] ^= 1
    path.write_bytes(content)
    file = TensorFile(path, checksums)
    file.mapped.verify(start, start + 8)
    with pytest.raises(ChecksumError):
        file.verified("large")


@pytest.mark.parametrize("content", [b"\xff" * 64, b"\x02" + b"\0" * 7 + b"{]", b"\0" * 8])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        TensorFile(path, None)
