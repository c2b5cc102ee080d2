from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.exceptions import FormatError
from labelkin.outputs import guarded, output_format, unguarded

EXTENSIONS = {".jsonl": "jsonl", ".csv": "csv"}
KNOWN = ("jsonl", "csv", "npz")


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("a.csv", None, "csv"),
        ("a.CSV.Gz", None, "csv"),
        ("a.b.jsonl", None, "jsonl"),
        ("-", None, "jsonl"),
        ("/dev/null", None, "jsonl"),
        ("a.csv", "jsonl", "jsonl"),
        ("a", "npz", "npz"),
    ],
)
def test_formats(name: str, asked: str | None, expected: str) -> None:
    assert output_format(Path(name), asked, EXTENSIONS, KNOWN) == expected


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("a", None, r"a: no extension; use \.jsonl, \.csv, or name the format with --to \(jsonl"),
        ("a.gz", None, "no extension; use"),
        ("a.xlsx", None, r"a\.xlsx: no format for the extension '\.xlsx'; use"),
        ("a.csv.zst", None, r"cannot write \.zst files; use \.gz"),
        ("a.csv.bz2", "csv", r"cannot write \.bz2 files"),
        ("a.csv", "marc", "no output format 'marc'; known: jsonl, csv, npz"),
        ("/tmp", None, "/tmp: a folder; name a file in it"),
    ],
)
def test_other_outputs_are_refused(name: str, asked: str | None, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        output_format(Path(name), asked, EXTENSIONS, KNOWN)


def test_a_pipe_has_no_extension(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert output_format(tmp_path / "pipe", None, EXTENSIONS, KNOWN) == "jsonl"


@given(st.text(max_size=5) | st.text("'=-+@\t\rab", max_size=5))
def test_guarded_cells_are_no_formulas_and_come_back(cell: str) -> None:
    assert not guarded(cell).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert unguarded(guarded(cell)) == cell
    if not cell.lstrip("'").startswith(("=", "+", "-", "@", "\t", "\r")):
        assert guarded(cell) == cell
