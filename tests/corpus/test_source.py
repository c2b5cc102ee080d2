from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus.source import HEAD_BYTES, Source
from labelkin.exceptions import DamagedFileError, FormatError, InputError

Write = Callable[[str, str | bytes], Path]


def lines(path: Path) -> list[str]:
    with Source(path) as source:
        return [line for _, line in source.lines()]


def test_plain_and_gzipped_read_the_same(write: Write) -> None:
    text = "\ufefffirst\r\nsecond ü\n\nlast" + "x" * (2 * HEAD_BYTES)
    plain = write("a.txt", text)
    packed = write("b.gz", gzip.compress(text.encode()))
    assert (
        lines(plain) == lines(packed) == text.removeprefix("\ufeff").replace("\r", "").split("\n")
    )


def test_position_reaches_size(write: Write) -> None:
    path = write("a.gz", gzip.compress(b"line\n" * 100_000))
    with Source(path) as source:
        assert 0 < source.position <= source.size
        for _ in source.lines():
            pass
        assert source.position == source.size == path.stat().st_size


def test_truncated_gzip_gives_all_whole_lines_before_the_cut(write: Write) -> None:
    rows = [f"{number:06d} {hash(number) * 7919 % 10**12}" for number in range(50_000)]
    packed = gzip.compress("\n".join(rows).encode())
    got = []
    with (
        pytest.raises(DamagedFileError, match=r"after line \d+: the gzip data is truncated"),
        Source(write("a.gz", packed[: len(packed) // 2])) as source,
    ):
        for _, line in source.lines():
            got.append(line)
    assert len(got) > 10_000
    assert got == rows[: len(got)]


def test_a_small_file_damaged_at_its_end_is_read_up_to_there(write: Write) -> None:
    packed = gzip.compress("\n".join(str(n * 7919 % 10007) for n in range(2000)).encode())
    got = 0
    with pytest.raises(DamagedFileError), Source(write("a.gz", packed[:-500])) as source:
        for _ in source.lines():
            got += 1
    assert got > 1000


def test_not_utf8_is_read_as_windows_1252(write: Write) -> None:
    with Source(write("a.txt", b"na\xefve\nna\xc3\xafve\n")) as source:
        assert [line for _, line in source.lines()] == ["naïve", "naïve"]
        assert source.not_utf8 == 1


def test_utf16_and_missing_files_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="UTF-16"):
        Source(write("a.txt", "x".encode("utf-16")))
    with pytest.raises(InputError, match="No such file"):
        Source(tmp_path / "nothing")


def test_stem() -> None:
    with Source(Path(__file__)) as source:
        assert source.stem == "test_source"
