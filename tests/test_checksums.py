from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin.checksums import (
    BLOCK,
    BlockChecksums,
    ChecksumError,
    ChecksumWriter,
    MappedFile,
    TrailedFile,
    is_sealed,
    read_sealed,
    sealed,
    verify_trailer,
)

RANDOM = np.random.default_rng(0).bytes(3 * BLOCK + 1000)


def flipped(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 16
    path.write_bytes(content)


def test_every_flipped_bit_of_a_sealed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    content = {"name": "Käse", "rows": 12, "none": None, "list": [1, 2]}
    text = sealed(content).encode()
    path.write_bytes(text)
    assert read_sealed(path) == content
    assert is_sealed(path)
    for place in range(len(text)):
        for bit in range(8):
            changed = bytearray(text)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            try:
                found = read_sealed(path)
            except ValueError:
                continue
            # The name of the checksum itself: then there is none, but the content is right.
            assert {**found, **content} == found
            assert 1 <= place <= 10


def test_a_file_without_a_checksum_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"rows": 12}')
    assert read_sealed(path) == {"rows": 12}
    assert not is_sealed(path)


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "\0\0"])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.json"):
        read_sealed(path)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, len(RANDOM)])
@pytest.mark.parametrize("first", [0, 7, BLOCK, 2 * BLOCK + 5])
def test_checksums_of_appended_parts_are_those_of_the_whole(
    size: int, first: int, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    first = min(first, size)
    with path.open("wb") as file:
        writer = ChecksumWriter(file)
        writer.write(RANDOM[:first])
        continued = ChecksumWriter(file, writer.checksums())
        continued.write(RANDOM[first:size])
    checksums = continued.checksums()
    assert checksums == BlockChecksums.of_file(path)
    assert BlockChecksums.from_json(checksums.to_json()) == checksums
    checksums.verify(path)
    # What others append later does not matter.
    with path.open("ab") as file:
        file.write(b"more")
    checksums.verify(path)
    assert BlockChecksums.of_file(path, size) == checksums


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, len(RANDOM) - 1])
def test_damage_is_found_in_every_block(place: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(RANDOM)
    checksums = BlockChecksums.of_file(path)
    flipped(path, place)
    with pytest.raises(ChecksumError, match="file: damaged"):
        checksums.verify(path)
    if place < 2 * BLOCK:
        checksums.verify(path, after=2 * BLOCK)
    path.write_bytes(RANDOM[:-1])
    with pytest.raises(ChecksumError):
        checksums.verify(path)


def test_a_mapped_file_is_verified_where_it_is_read(tmp_path: Path) -> None:
    path, size = tmp_path / "file", 100
    path.write_bytes(RANDOM)
    checksums = BlockChecksums.of_file(path)
    flipped(path, BLOCK + 10)
    mapped = MappedFile(path, checksums, len(RANDOM))
    items = np.arange(len(RANDOM) // size)
    is_hit = (items * size < 2 * BLOCK) & ((items + 1) * size > BLOCK)
    mapped.verify_items(0, size, items[~is_hit])
    for item in items[is_hit]:
        with pytest.raises(ChecksumError):
            mapped.verify_items(0, size, np.array([item]))
    mapped.verify(0, BLOCK)
    with pytest.raises(ChecksumError):
        mapped.verify(0, BLOCK + 1)
    MappedFile(path, None, len(RANDOM)).verify(0, len(RANDOM))


def test_items_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(RANDOM)
    checksums = BlockChecksums.of_file(path)
    flipped(path, 2 * BLOCK + 3)
    mapped = MappedFile(path, checksums, len(RANDOM))
    with pytest.raises(ChecksumError):
        mapped.verify_items(8, 3 * BLOCK, np.array([0]))


def test_a_part_of_a_file_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(RANDOM)
    mapped = MappedFile(path, BlockChecksums.of_file(path), BLOCK + 100)
    mapped.verify(0, BLOCK + 100)
    with pytest.raises(ChecksumError):
        MappedFile(path, BlockChecksums.of_file(path, BLOCK), BLOCK + 100)


def test_a_trailer(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        trailed = TrailedFile(file)
        trailed.write(RANDOM[:500])
        trailed.write(RANDOM[500:])
        trailed.finish()
    assert verify_trailer(path)
    flipped(path, 600)
    with pytest.raises(ChecksumError):
        verify_trailer(path)
    path.write_bytes(RANDOM)
    assert not verify_trailer(path)
