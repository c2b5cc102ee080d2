from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]


def test_convert(run: Run, collection: Path) -> None:
    result = run("corpus", "convert", "c.jsonl", "-o", "c.tsv", "--vocab", "v.tsv")
    assert result.exit_code == 0
    assert "Wrote 3 documents to c.tsv; skipped 0." in result.stderr
    assert (
        Path("c.tsv").read_text() == "On rye\t<D000002> <Wheat>\nOn oats\t<D000003>\nOn nothing\t\n"
    )


def test_a_collection_can_leave(run: Run, collection: Path) -> None:
    assert run("corpus", "convert", collection, "-o", "out.jsonl.gz").exit_code == 0
    assert run("init", "copy", "--vocab", "v.tsv").exit_code == 0
    assert run("add", "copy", "out.jsonl.gz").exit_code == 0
    before, after = (
        json.loads(run("info", name, "--json").stdout) for name in (collection, "copy")
    )
    for key in ("documents", "label_occurrences", "documents_with_unresolved_labels"):
        assert before[key] == after[key]


def test_stats(run: Run, collection: Path) -> None:
    found = json.loads(run("corpus", "stats", "c.jsonl", "--json").stdout)
    assert (found["documents"], found["with_labels"], found["distinct_labels"]) == (3, 2, 3)
    assert found["languages"] == {"en": 3}
    assert "Documents            3\n" in run("corpus", "stats", "c.jsonl").stdout
    assert run("corpus", "stats", "nothing.jsonl").exit_code == 1
