from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin import Document
from labelkin.exceptions import FormatError
from labelkin.scoring import annotation
from labelkin.scoring.annotation import annotate

LABELS = ["V1", "V2", "V3", "V4", "V5"]
DOCUMENTS = [Document(f"d{n}", f"Title {n}") for n in range(25)]


def suggest(documents: list[Document]) -> list[dict[str, Any]]:
    return [
        {
            "id": document.id,
            "title": document.title,
            "suggestions": [
                {"id": "V1", "name": "Bread, white", "score": 0.75, "column": 0},
                {"id": "V3", "name": "Oats", "score": 0.5, "column": 2},
            ],
        }
        for document in documents
    ]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotation, "_BATCH", 10)


def run(output: Path, documents: list[Document] = DOCUMENTS, **options: Any) -> Any:
    settings = options.pop("settings", {"k": 20})
    return annotate(documents, suggest, output, labels=LABELS, settings=settings, **options)


def test_formats(tmp_path: Path) -> None:
    for name in ("o.jsonl", "o.csv", "o.tsv", "o.json", "o.npz"):
        assert run(tmp_path / name).documents == 25
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [document.id for document in DOCUMENTS]
    rows = list(csv.reader((tmp_path / "o.csv").read_text().splitlines()))
    assert rows[1] == ["d0", "1", "V1", "Bread, white", "0.75"]
    assert len(rows) == 51
    assert (tmp_path / "o.tsv").read_text().splitlines()[3] == "Title 3\t<V1> <V3>"
    submission = json.loads((tmp_path / "o.json").read_text())
    assert submission["documents"][24] == {"labels": ["V1", "V3"], "pmid": "d24"}
    from scipy.sparse import load_npz

    matrix = load_npz(tmp_path / "o.npz").toarray()
    assert matrix.shape == (25, 5)
    assert matrix[7].tolist() == [0.75, 0, 0.5, 0, 0]
    with np.load(tmp_path / "o.npz") as arrays:
        assert arrays["documents"].tolist() == [document.id for document in DOCUMENTS]
        assert arrays["labels"].tolist() == LABELS
    assert len(list(tmp_path.iterdir())) == 5
    with pytest.raises(FormatError, match="known: jsonl, csv"):
        run(tmp_path / "o", format="marc")


def failing(after: int) -> Iterator[Document]:
    yield from DOCUMENTS[:after]
    raise KeyboardInterrupt


def interrupted(output: Path, after: int) -> Path:
    with pytest.raises(KeyboardInterrupt):
        annotate(failing(after), suggest, output, labels=LABELS, settings={"k": 20})
    assert not output.exists()
    return output.with_name(f".{output.name}.journal")


def test_an_interrupted_run_is_taken_up(tmp_path: Path) -> None:
    run(tmp_path / "whole.jsonl")
    journal = interrupted(tmp_path / "o.jsonl", after=23)
    assert len(journal.read_text().splitlines()) == 1 + 20
    report = run(tmp_path / "o.jsonl")
    assert (report.documents, report.resumed) == (25, 20)
    assert (tmp_path / "o.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not journal.exists()


def test_a_line_cut_short_is_done_again(tmp_path: Path) -> None:
    run(tmp_path / "whole.jsonl")
    journal = interrupted(tmp_path / "o.jsonl", after=20)
    journal.write_bytes(journal.read_bytes()[:-15])
    assert run(tmp_path / "o.jsonl").resumed == 19
    assert (tmp_path / "o.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_other_settings_begin_again(tmp_path: Path) -> None:
    interrupted(tmp_path / "o.jsonl", after=23)
    assert run(tmp_path / "o.jsonl", settings={"k": 30}).resumed == 0


def test_another_input_is_noticed(tmp_path: Path) -> None:
    interrupted(tmp_path / "o.jsonl", after=23)
    with pytest.raises(FormatError, match="left by another input and removed"):
        run(tmp_path / "o.jsonl", DOCUMENTS[5:])
    assert run(tmp_path / "o.jsonl", DOCUMENTS[5:]).documents == 20
