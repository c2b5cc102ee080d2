"""What reaches a terminal: encodings, control characters, pipes that are closed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from labelkin.cli import console
from labelkin.cli.console import visible

Run = Callable[..., Result]

# Escape sequences, C1 controls, direction marks, zero-width characters and a tag.
HOSTILE = "\x1b[31mred\x9b0m \u202eevil\u202c \u2066x\u2069 \u200b\ufeff\u200e \x07\x08 \U000e0041"
# An id may have all of these but the controls.
HOSTILE_ID = re.sub("[\x00-\x1f\x7f-\x9f]", "", HOSTILE)
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u202a-\u202e\u2066-\u2069\ufeff\U000e0041]"
)
VERBS = {
    "suggest": ("suggest", "c", "q.jsonl"),
    "explain": ("suggest", "c", "q.jsonl", "--explain"),
    "neighbours": ("neighbours", "c", "q.jsonl"),
    "info": ("info", "c"),
    "show": ("vocab", "show", "c", "T1"),
    "search": ("vocab", "search", "c", "yto"),
    "tree": ("vocab", "tree", "c"),
    "vocab stats": ("vocab", "stats", "c"),
    "corpus stats": ("corpus", "stats", "q.jsonl"),
    "eval": ("eval", "c", "q.jsonl", "--measures", "MiF"),
    "compare": ("compare", "c", "q.jsonl", "--measures", "MiF", "--methods", "knn,lexical"),
    "score": ("score", "q.jsonl", "p.jsonl", "r.jsonl", "--measures", "MiF"),
    "missing": ("remove", "c", f"Ż{HOSTILE}"),
    "unknown": ("vocab", "show", "c", f"Ż{HOSTILE}"),
    "no file": ("add", "c", f"Ż{HOSTILE}.jsonl"),
    "usage": ("suggest", "c", f"--Ż{HOSTILE}"),
    "verb": (f"Ż{HOSTILE}",),
    "help": ("suggest", "--help"),
}
WITH_JSON = [name for name in VERBS if name not in ("explain", "usage", "verb", "help")]


@pytest.fixture
def hostile(run: Run, tmp_path: Path) -> Path:
    """A collection whose names, titles and ids are hostile to terminals, and files like it."""
    name = f"Żyto █ {HOSTILE}"
    (tmp_path / "v.tsv").write_text(f"id\tname\nT1\t{name}\nT2\tOats – é\n")
    records = [
        {
            "id": f"{number}{HOSTILE_ID}",
            "title": f"Rye łąka {number} {HOSTILE}",
            "abstract": "Rye and oats.",
            "labels": labels,
            "language": "en",
        }
        for number, labels in enumerate([["T1"], ["T1", "T2"], ["T2", f"Nowhere {HOSTILE}"]])
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    for name in ("q.jsonl", "p.jsonl"):
        (tmp_path / name).write_text(text)
    (tmp_path / "r.jsonl").write_text(text.replace('"T1"', '"T3"'))
    assert run("init", "c", "--vocab", "v.tsv").exit_code == 0
    added = run("add", "c", "q.jsonl")
    assert added.exit_code == 0
    assert not UNSAFE.search(added.output)
    return tmp_path / "c"


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_no_control_character_reaches_a_terminal(
    run: Run, hostile: Path, verb: tuple[str, ...]
) -> None:
    result = run(*verb)
    assert not UNSAFE.search(result.output), UNSAFE.findall(result.output)


@pytest.mark.parametrize("name", WITH_JSON)
def test_json_has_them_escaped(run: Run, hostile: Path, name: str) -> None:
    result = run(*VERBS[name], "--json")
    assert not UNSAFE.search(result.output)
    if result.exit_code == 0:
        json.loads(result.stdout)


def test_json_is_the_same_value(run: Run, hostile: Path) -> None:
    run("corpus", "convert", "c", "-o", "o.jsonl")
    first = json.loads(Path("o.jsonl").read_text().splitlines()[0])
    shown = json.loads(run("suggest", "c", "q.jsonl", "--json").stdout)[0]
    assert shown["title"] == first["title"]
    assert "\u202e" in first["title"]


@pytest.mark.parametrize("charset", ["latin-1", "cp1252", "ascii"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_encodings_degrade_characters(
    hostile: Path, charset: str, verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelkin.cli.main import app

    expected = CliRunner().invoke(app, verb)
    result = CliRunner(charset=charset).invoke(app, verb)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code == expected.exit_code
    result.stdout_bytes.decode(charset)
    assert "this should not happen" not in result.output
    if "Żyto" in expected.stdout:
        assert "\\u017byto" in result.stdout


@pytest.mark.parametrize("charset", ["latin-1", "cp1252", "ascii"])
@pytest.mark.parametrize("name", WITH_JSON)
def test_json_loses_nothing_in_any_encoding(hostile: Path, charset: str, name: str) -> None:
    from labelkin.cli.main import app

    expected = CliRunner().invoke(app, [*VERBS[name], "--json"])
    result = CliRunner(charset=charset).invoke(app, [*VERBS[name], "--json"])
    assert result.exit_code == expected.exit_code
    if expected.stdout:
        values = [json.loads(one.stdout) for one in (expected, result)]
        for value in values:
            if isinstance(value, dict):
                value.pop("seconds", None)
        assert values[0] == values[1]


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C"},
    ],
)
def test_encodings_of_the_environment(hostile: Path, environment: dict[str, str]) -> None:
    def labelkin(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "labelkin", *arguments]
        settings = {**os.environ, **environment}
        return subprocess.run(command, env=settings, capture_output=True, check=True)

    assert b"\xe2\x96\x88" not in labelkin("suggest", "c", "q.jsonl").stdout or (
        environment == {"LC_ALL": "C"}
    )
    assert json.loads(labelkin("vocab", "show", "c", "T1", "--json").stdout)["id"] == "T1"
    # The content of files is UTF-8, whatever the terminal is.
    labelkin("corpus", "convert", "c", "-o", "o.csv")
    assert "łąka" in Path("o.csv").read_text(encoding="utf-8")
    data = labelkin("corpus", "convert", "c", "-o", "-", "--to", "csv").stdout
    assert data == Path("o.csv").read_bytes()


def test_tables_stay_aligned(hostile: Path) -> None:
    from labelkin.cli.main import app

    Path("q.jsonl").write_text('{"id": "q", "title": "Rye", "language": "en"}\n')
    lines = CliRunner(charset="ascii").invoke(app, ["suggest", "c", "q.jsonl"]).stdout.splitlines()
    header = next(line for line in lines if "evidence" in line)
    rows = [line for line in lines if "nearest" in line]
    assert rows
    assert all(row.index(" of ") == header.index("evidence") + 1 for row in rows)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[0mb", "a\\x1b[0mb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("tab\there", "tab\there"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_overlong_values_lose_their_middle(run: Run, collection: Path) -> None:
    long = "x" * 50_000
    Path("long.jsonl").write_text(json.dumps({"id": "l", "title": "Rye", "labels": [long]}))
    for verb, code in (
        (("vocab", "show", "c", long), 1),
        (("remove", "c", long, long), 3),
        (("add", "c", "long.jsonl"), 0),
    ):
        result = run(*verb)
        assert result.exit_code == code
        assert len(result.stderr) < 1500
        assert "…" in result.stderr


def test_results_are_printed_by_the_console_only() -> None:
    """What typer prints is not made visible."""
    for path in Path(console.__file__).parent.glob("*.py"):
        if path.name not in ("console.py", "main.py"):
            assert not re.search(r"typer\.echo\([^)]|\bprint\(", path.read_text()), path


PIPED = {
    **{name: VERBS[name] for name in ("suggest", "neighbours", "info", "tree", "eval", "help")},
    "json": ("suggest", "c", "q.jsonl", "--json"),
    "version": ("--version",),
    "top help": ("--help",),
    "group help": ("vocab", "--help"),
    "data": ("corpus", "convert", "c", "-o", "-"),
    "annotations": ("annotate", "c", "q.jsonl", "-o", "-"),
}


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def environment(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    yield {**kept, **({"PYTHONUNBUFFERED": "1"} if request.param else {})}


@pytest.mark.parametrize("verb", PIPED.values(), ids=PIPED)
def test_a_closed_pipe_ends_silently(
    hostile: Path, verb: tuple[str, ...], environment: dict[str, str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "labelkin", *verb]
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment, check=False
    )
    os.close(writer)
    assert done.returncode == 141
    assert not re.search("error|Traceback|ignored|[Pp]ipe", done.stderr)


@pytest.mark.parametrize("name", ["info", "json", "data", "help", "annotations", "suggest"])
def test_closed_streams(hostile: Path, name: str) -> None:
    command = f"{sys.executable} -m labelkin {' '.join(PIPED[name])} >&- 2>&-"
    assert subprocess.run(command, shell=True, check=False).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["suggest", "json", "data", "annotations", "info"])
def test_a_full_disk_behind_standard_output(
    hostile: Path, name: str, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "labelkin", *PIPED[name]]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert done.returncode == 1
    (error,) = (line for line in done.stderr.splitlines() if "error" in line or "xception" in line)
    assert error.startswith("error: standard output: No space left on device")
