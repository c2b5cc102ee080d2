from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus
from labelkin.corpus.compression import compression_of, without_suffix
from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError

zstd = pytest.importorskip("backports.zstd")

Write = Callable[[str, str | bytes], Path]
Compress = Callable[[bytes], bytes]

COMPRESSIONS: dict[str, Compress] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "Zstandard": zstd.compress,
}
ROWS = [f"{number:06d} {number * 7919 % 10**12 * 104729 % 10**12}" for number in range(120_000)]
CONTENT = "\n".join(ROWS).encode()


def lines(path: Path) -> list[str]:
    with Source(path) as source:
        return [line for _, line in source.lines()]


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_one_stream_and_several_read_the_same(name: str, write: Write) -> None:
    compress = COMPRESSIONS[name]
    assert lines(write("a", compress(CONTENT))) == ROWS
    cut = len(CONTENT) // 3
    parts = [CONTENT[:cut], b"", CONTENT[cut : 2 * cut], CONTENT[2 * cut :]]
    assert lines(write("b", b"".join(map(compress, parts)))) == ROWS


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_position_reaches_size(name: str, write: Write) -> None:
    path = write("a", COMPRESSIONS[name](CONTENT))
    with Source(path) as source:
        assert 0 < source.position < source.size
        for _ in source.lines():
            pass
        assert source.position == source.size == path.stat().st_size


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_truncated_data_give_all_whole_lines_before_the_cut(name: str, write: Write) -> None:
    packed = COMPRESSIONS[name](CONTENT)
    got = []
    reason = rf"after line \d+: the {name} data is truncated"
    with (
        pytest.raises(DamagedFileError, match=reason),
        Source(write("a", packed[: len(packed) * 3 // 4])) as source,
    ):
        for _, line in source.lines():
            got.append(line)
    assert len(got) > len(ROWS) / 3
    assert got == ROWS[: len(got)]


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_corrupt_data_are_damage(name: str, write: Write) -> None:
    packed = bytearray(COMPRESSIONS[name](CONTENT))
    middle = len(packed) * 3 // 4
    packed[middle : middle + 200] = bytes(200)
    with pytest.raises(DamagedFileError, match="damaged after line"):
        lines(write("a", bytes(packed)))


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_what_follows_the_data_is_not_lost_in_silence(name: str, write: Write) -> None:
    with pytest.raises(DamagedFileError):
        lines(write("a", COMPRESSIONS[name](CONTENT) + b"and now in plain text\n" * 20))


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_corpus_says_how_far_it_came(name: str, write: Write) -> None:
    records = "\n".join(f'{{"id": "{row}", "title": "x"}}' for row in ROWS).encode()
    packed = COMPRESSIONS[name](records)
    corpus = read_corpus(write("c.jsonl", packed[: len(packed) // 2]))
    assert 0 < len(list(corpus)) < len(ROWS)
    assert len(corpus.report.files_damaged) == 1


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_reading_does_not_hold_the_whole_content(name: str, write: Write) -> None:
    path = write("a", COMPRESSIONS[name]((b"again and " * 1000 + b"again\n") * 1_500))
    tracemalloc.start()
    with Source(path) as source:
        assert sum(1 for _ in source.lines()) == 1_500
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


def test_frames_that_hold_no_data_are_skipped(write: Write) -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    packed = skippable + zstd.compress(b"one\n") + skippable + zstd.compress(b"two\n")
    assert lines(write("a.zst", packed)) == ["one", "two"]


def test_a_file_that_asks_for_gigabytes_of_memory_is_refused(write: Write) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    stream = io.BytesIO()
    with lzma.open(stream, "wb", filters=filters) as file:
        file.write(b"x\n")
    with pytest.raises(DamagedFileError, match=r"[Mm]emory"):
        lines(write("a.xz", stream.getvalue()))


def test_text_is_not_taken_for_compressed(write: Write) -> None:
    assert compression_of(b"BZh is no word") is None
    assert lines(write("a", "BZh9 and more")) == ["BZh9 and more"]


def test_names() -> None:
    assert without_suffix("a.tsv.GZ") == without_suffix("a.tsv.zst") == "a.tsv"
    assert without_suffix("gz") == "gz"
