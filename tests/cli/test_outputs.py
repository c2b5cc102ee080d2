"""What may be written where, by every verb that writes a file."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin.cli.outputs import check_output
from labelkin.corpus import read_corpus
from labelkin.exceptions import InputError

Run = Callable[..., Result]
Mounted = Callable[..., AbstractContextManager[Callable[..., None]]]

# Each verb with an option for a file that it writes; OUT is the file.
VERBS = {
    "convert": ("corpus", "convert", "c.jsonl", "-o", "OUT"),
    "export": ("corpus", "convert", "c", "-o", "OUT"),
    "neighbours": ("neighbours", "c", "c.jsonl", "-o", "OUT"),
    "annotate": ("annotate", "c", "c.jsonl", "-o", "OUT"),
    "eval": ("eval", "c", "c.jsonl", "--per-label", "OUT"),
    "score": ("score", "c.jsonl", "p.jsonl", "--per-label", "OUT"),
    "add": ("add", "c", "c.jsonl", "--unresolved", "OUT"),
}
WRITES_OVER_ITS_INPUT = {name: verb for name, verb in VERBS.items() if "c.jsonl" in verb}


@pytest.fixture
def files(collection: Path, tmp_path: Path) -> dict[Path, bytes]:
    """All files of the collection and the input, with their content."""
    (tmp_path / "p.jsonl").write_text((tmp_path / "c.jsonl").read_text())
    return content(tmp_path)


def content(folder: Path) -> dict[Path, bytes]:
    kept = (folder / "c", folder / "c.jsonl", folder / "p.jsonl")
    paths = [path for top in kept for path in (top, *top.rglob("*")) if path.is_file()]
    return {path: path.read_bytes() for path in paths if "sqlite-" not in path.name}


def refused(run: Run, verb: tuple[str, ...], output: object, problem: str) -> None:
    result = run(*(output if part == "OUT" else part for part in verb))
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"error: {output}: ")
    assert problem in result.stderr


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize(
    "output",
    [
        "c/documents.sqlite",
        "c/new.jsonl",
        "c/indexes/new.csv",
        "linked/new.jsonl",
        "x/../c/new.csv",
    ],
)
def test_nothing_is_written_into_a_collection(
    run: Run, files: dict[Path, bytes], tmp_path: Path, verb: tuple[str, ...], output: str
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "linked").symlink_to("c")
    refused(run, verb, output, "inside the collection")
    assert content(tmp_path) == files


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_not_through_a_link_to_a_file_nor_into_another_collection(
    run: Run, files: dict[Path, bytes], tmp_path: Path, verb: tuple[str, ...]
) -> None:
    (tmp_path / "link.jsonl").symlink_to("c/documents.sqlite")
    refused(run, verb, "link.jsonl", "inside the collection")
    assert run("init", "other").exit_code == 0
    (tmp_path / "other" / "manifest.json").unlink()
    refused(run, verb, "other/new.jsonl", "inside the collection")
    assert content(tmp_path) == files


@pytest.mark.parametrize("verb", WRITES_OVER_ITS_INPUT.values(), ids=WRITES_OVER_ITS_INPUT)
@pytest.mark.parametrize("output", ["c.jsonl", "./c/../c.jsonl", "soft.jsonl", "hard.jsonl"])
def test_nothing_is_written_over_an_input(
    run: Run, files: dict[Path, bytes], tmp_path: Path, verb: tuple[str, ...], output: str
) -> None:
    (tmp_path / "soft.jsonl").symlink_to("c.jsonl")
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "c.jsonl")
    refused(run, verb, Path(output), "an input of this command")
    assert content(tmp_path) == files


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("no/such/folder/o.jsonl", "there is no folder no/such/folder; create it first"),
        ("dangling.jsonl", "/nowhere; create it first"),
        ("x", "a folder; name a file in it"),
        ("c.jsonl/o.jsonl", "there is no folder c.jsonl"),
        ("/dev/stdin", "the standard input"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    run: Run,
    files: dict[Path, bytes],
    tmp_path: Path,
    verb: tuple[str, ...],
    output: str,
    problem: str,
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "dangling.jsonl").symlink_to("nowhere/o.jsonl")
    refused(run, verb, output, problem)
    assert content(tmp_path) == files


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_folder_or_file_without_permission(
    run: Run, files: dict[Path, bytes], verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("x").mkdir()
    Path("old.jsonl").touch()
    allowed = os.access
    closed = ("x", "old.jsonl")

    def access(path: str | Path, mode: int) -> bool:
        return allowed(path, mode) and not (mode & os.W_OK and Path(path).name in closed)

    monkeypatch.setattr(os, "access", access)
    refused(run, verb, "x/o.jsonl", "cannot be written to")
    refused(run, verb, "old.jsonl", "cannot be written to")


def test_devices_and_pipes_are_no_inputs(tmp_path: Path) -> None:
    check_output(Path("/dev/null"), [Path("/dev/null"), Path("-")])
    check_output(Path("-"), [tmp_path])
    check_output(tmp_path / "new", [Path("-")])


def test_another_programs_manifest_is_no_collection(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "web"}')
    check_output(tmp_path / "o.csv")


def test_reports_of_experiments(run: Run, collection: Path, tmp_path: Path) -> None:
    check_output(tmp_path / "new" / "report", folder=True)
    for output, problem in (
        (collection / "report", "inside the"),
        (tmp_path / "c.jsonl", "a file"),
    ):
        with pytest.raises(InputError, match=problem):
            check_output(output, folder=True)
        result = run("experiment", "report", "paper", "--quick", "-o", output)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert problem in result.stderr


@pytest.mark.parametrize("name", ["convert", "export", "neighbours", "annotate"])
@pytest.mark.parametrize("output", ["o.parquet", "o.xlsx", "o", "o.gz", "o.jsonl.zst"])
def test_unknown_extensions_are_refused(
    run: Run, files: dict[Path, bytes], name: str, output: str
) -> None:
    refused(run, VERBS[name], output, "use ")
    assert not Path(output).exists()


@pytest.mark.parametrize("output", ["o.csv", "o.csv.gz", "o.json", "o.jsonl", "o.JSONL.gz"])
def test_converted_documents_are_the_same(run: Run, collection: Path, output: str) -> None:
    records = [
        {"id": "1", "title": 'A "b"', "abstract": "=x\ny", "labels": ["a|b", "c"], "year": 3},
        {"id": "-2", "title": "B", "labels": ["d"], "fields": {"toc": "T"}, "language": "en"},
    ]
    Path("in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    result = run("corpus", "convert", "in.jsonl", "-o", output)
    assert result.exit_code == 0
    assert list(read_corpus(output)) == list(read_corpus("in.jsonl"))
    exported = run("corpus", "convert", collection, "-o", f"exported-{output}")
    assert exported.exit_code == 0
    assert len(list(read_corpus(f"exported-{output}"))) == 3


def test_tables_of_labels_to_standard_output(run: Run, collection: Path) -> None:
    result = run("eval", "c", "c.jsonl", "--per-label", "-", "--measures", "MiF")
    assert "label\tname\tTP" in result.stdout
    result = run("add", "c", "c.jsonl", "--unresolved", "-")
    assert "count\treason\tlabel\n1\tunknown\tWheat" in result.stdout
    assert not Path("-").exists()


def test_a_named_format_and_standard_output(run: Run, collection: Path) -> None:
    assert run("corpus", "convert", "c.jsonl", "-o", "x.data", "--to", "csv").exit_code == 0
    assert Path("x.data").read_text().startswith("id,title,abstract,labels,language")
    assert run("corpus", "convert", "c.jsonl", "-o", "-", "--to", "csv").stdout == (
        Path("x.data").read_text()
    )
    assert run("corpus", "convert", "c.jsonl", "-o", "-").stdout.startswith('{"id": "1"')
    assert run("corpus", "convert", "c.jsonl", "-o", "-", "--json").exit_code == 2
    assert run("corpus", "convert", "c.jsonl", "-o", "x", "--to", "marc").exit_code == 1


@pytest.mark.parametrize("output", ["n.csv", "n.tsv", "n.csv.gz", "-"])
def test_neighbours_as_a_table(run: Run, collection: Path, output: str) -> None:
    queries = [{"id": "=1", "title": "-rye\t'x"}, {"id": "q2", "title": 'zz "z", y'}]
    Path("q.jsonl").write_text("".join(json.dumps(record) + "\n" for record in queries))
    result = run("neighbours", "c", "q.jsonl", "-o", output)
    assert result.exit_code == 0
    if output == "-":
        assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["=1", "q2"]
        return
    raw = Path(output).read_bytes()
    text = (gzip.decompress(raw) if output.endswith(".gz") else raw).decode()
    if output == "n.tsv":
        rows = [line.split("\t") for line in text.splitlines()]
    else:
        rows = list(csv.reader(text.splitlines()))
    assert rows[0] == [
        *("id", "title", "rank", "neighbour", "neighbour_title", "distance", "score", "terms")
    ]
    assert rows[1][:5] == ["'=1", "'-rye 'x", "1", "1", "On rye"]
    assert sorted(rows[1][7].split()) == ["heading:rye", "rye"]
    assert rows[-1] == ["q2", 'zz "z", y', "", "", "", "", "", ""]


def test_a_full_disk_names_the_file_and_what_is_kept(
    run: Run, collection: Path, mounted: Mounted, tmp_path: Path
) -> None:
    line = '{"id": "%d", "title": "On rye and oats", "abstract": "%s", "language": "en"}\n'
    Path("big.jsonl").write_text("".join(line % (n, "rye " * 200) for n in range(1500)))
    with mounted(tmp_path / "small", "size=100k"):
        Path("small/o.csv").write_text("old")
        for verb in (("corpus", "convert"), ("neighbours", "c"), ("annotate", "c")):
            result = run(*verb, "big.jsonl", "-o", "small/o.csv")
            assert result.exit_code == 1, verb
            error = result.stderr.splitlines()[-1]
            assert "small/o.csv: No space left on device; " in error
            kept = "is as it was before; make room and run the same command again"
            if verb[0] == "annotate":
                kept = "are kept in .o.csv.journal. Make room"
            assert kept in error
            assert Path("small/o.csv").read_text() == "old"
    result = run("annotate", "c", "big.jsonl", "-o", "/dev/full")
    assert "error: /dev/full: No space left on device; nothing is kept." in result.stderr
    # The input was closed with the error, not when some garbage collection finds it.
    descriptors = Path("/proc/self/fd").iterdir()
    open_files = [str(one.readlink()) for one in descriptors if one.exists()]
    assert not [name for name in open_files if name.endswith("big.jsonl")]


def test_annotate_continues_after_a_full_disk(
    run: Run, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def full(descriptor: int) -> None:
        if ".o.jsonl." in str(Path(f"/proc/self/fd/{descriptor}").readlink()).replace(
            ".journal", ""
        ):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        result = run("annotate", "c", "c.jsonl", "-o", "o.jsonl")
    assert result.exit_code == 1
    assert "the results of 3 documents are kept in .o.jsonl.journal" in result.stderr
    again = run("annotate", "c", "c.jsonl", "-o", "o.jsonl", "--json")
    assert json.loads(again.stdout)["resumed"] == 3
