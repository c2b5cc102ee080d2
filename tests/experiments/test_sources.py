from __future__ import annotations

from pathlib import Path

import pytest

from labelkin.experiments.sources import (
    MissingDataError,
    Source,
    check_data_files,
    data_files,
    file_checksum,
)


def ids(data: Path, size: int, seed: int = 0) -> list[str]:
    return [d.id for d in Source((data / "train.jsonl",), size, seed).documents()]


def test_smaller_samples_are_subsets_of_larger_ones(data: Path) -> None:
    whole = ids(data, 0)
    assert len(whole) == 160
    small, large = ids(data, 20), ids(data, 80)
    assert len(small) == 20
    assert len(large) == 80
    assert set(small) < set(large)
    assert large == [name for name in whole if name in set(large)]
    assert ids(data, 20) == small
    assert ids(data, 20, seed=1) != small
    assert ids(data, 1000) == whole


def test_files_and_their_checksums(data: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="--data") as caught:
        check_data_files(data, ["dev.jsonl", "none.jsonl", "no.tsv"], {"no.tsv": "from a shelf"})
    assert caught.value.lines == (
        f"{data / 'none.jsonl'}: a file of your own grid",
        f"{data / 'no.tsv'}: from a shelf",
    )
    check_data_files(data, ["dev.jsonl"], {})
    assert data_files(data, ["dev.jsonl"]) == (data / "dev.jsonl",)
    copy = tmp_path / "copy"
    copy.write_bytes((data / "dev.jsonl").read_bytes())
    assert file_checksum(copy) == file_checksum(data / "dev.jsonl")
    copy.write_bytes(b"")
    assert file_checksum(copy) != file_checksum(data / "dev.jsonl")
