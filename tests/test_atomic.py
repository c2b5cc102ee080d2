from __future__ import annotations

import errno
import gzip
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from labelkin.atomic import atomic_file, atomic_text

FULL = Path("/dev/full")
Mounted = Callable[..., AbstractContextManager[Callable[..., None]]]


@pytest.mark.parametrize("name", ["a.gz", "a.GZ"])
def test_gzip_by_extension_in_any_case(tmp_path: Path, name: str) -> None:
    with atomic_text(tmp_path / name) as file:
        file.write("text")
    assert gzip.decompress((tmp_path / name).read_bytes()) == b"text"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("size", [10, 1_000_000])
def test_an_error_of_a_device_names_it(size: int) -> None:
    with pytest.raises(OSError) as raised, atomic_text(FULL) as file:
        file.write("x" * size)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/dev/full")
    with pytest.raises(OSError) as raised, atomic_file(FULL) as binary:
        np.savez(binary, array=np.zeros(size))
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/dev/full")


@pytest.mark.parametrize("before", [None, "old"])
def test_a_full_disk_keeps_the_old_file(
    tmp_path: Path, mounted: Mounted, before: str | None
) -> None:
    with mounted(tmp_path / "small", "size=100k"):
        path = tmp_path / "small" / "out.csv"
        if before is not None:
            path.write_text(before)
        with pytest.raises(OSError) as raised, atomic_text(path) as file:
            file.write("x" * 1_000_000)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(path))
        if before is None:
            assert raised.value.__notes__ == ["the file was not written"]
            assert list(path.parent.iterdir()) == []
        else:
            assert raised.value.__notes__ == ["the file is as it was before"]
            assert path.read_text() == before


def test_errors_of_the_block_are_not_renamed(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised, atomic_text(tmp_path / "a") as file:
        file.write("x")
        raise OSError(errno.EIO, "reading failed")
    assert raised.value.filename is None
