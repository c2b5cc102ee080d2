"""`labelkin serve`: what it says before and instead of serving. tests/serve has the rest."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra `serve`")

from labelkin.serve.server import listening_socket

from .conftest import Run


def one_line(text: str) -> str:
    """What an error says: one line, no traceback."""
    lines = text.strip().splitlines()
    assert "Traceback" not in text
    assert len(lines) == 1, text
    return lines[0]


def test_a_port_that_is_taken(run: Run, collection: Path) -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "c", "--port", port)
    assert result.exit_code == 1
    assert f"cannot listen at 127.0.0.1, port {port}" in " ".join(result.stderr.split())


def test_no_collection(run: Run) -> None:
    result = run("serve", "nothere")
    assert result.exit_code != 0
    assert "there is no collection" in one_line(result.stderr)


def test_two_collections_with_one_name(run: Run, collection: Path) -> None:
    (collection.parent / "other").mkdir()
    shutil.copytree(collection, collection.parent / "other" / "c")
    result = run("serve", "c", "other/c")
    assert result.exit_code != 0
    assert "are both called c; give one another name" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_collection_that_cannot_be_opened(collection: Path, workers: int) -> None:
    """As a process: with workers, each of them would fail and be started again for ever."""
    (collection / "documents.sqlite").write_bytes(b"garbage" * 1000)
    command = [sys.executable, "-m", "labelkin", "serve", str(collection), "--port", "0"]
    done = subprocess.run(
        [*command, "--workers", str(workers)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "documents.sqlite" in done.stderr


def test_the_extra_is_missing(run: Run, collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith("labelkin.serve"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = run("serve", "c")
    assert result.exit_code != 0
    said = " ".join(result.stderr.split())
    assert "the service needs fastapi" in said
    assert "pip install 'labelkin[serve]'" in said


@pytest.mark.parametrize(
    "options",
    [
        ("--port", "70000"),
        ("--port", "x"),
        ("--workers", "0"),
        ("--max-body", "0"),
        ("--timeout", "0"),
        ("--queue", "-1"),
        (),
    ],
)
def test_options_that_cannot_be(run: Run, collection: Path, options: tuple[str, ...]) -> None:
    result = run("serve", *(("c", *options) if options else ()))
    assert result.exit_code == 2
