from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin import Document
from labelkin.evaluate.files import read_label_file
from labelkin.exceptions import CollectionBusyError, FormatError, InputError
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
    assert rows[0] == ["id", "rank", "label", "name", "score", "band", "title"]
    assert rows[1] == ["d0", "1", "V1", "Bread, white", "0.75", "", "Title 0"]
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


def test_csv_has_bands_titles_and_documents_without_suggestions(tmp_path: Path) -> None:
    records = [
        {
            "id": "-1",
            "title": "=HYPERLINK(A1)",
            "suggestions": [
                {"id": "@V", "name": "+plus", "score": -0.25, "band": "review", "column": 0}
            ],
        },
        {"id": "'=2", "title": "", "text": "The\nbeginning", "suggestions": []},
    ]
    documents = [Document(str(record["id"]), "x") for record in records]
    annotate(documents, lambda _: records, tmp_path / "o.csv", labels=["@V"], settings={})
    _, *rows = csv.reader((tmp_path / "o.csv").read_text().splitlines())
    assert rows == [
        ["'-1", "1", "'@V", "'+plus", "-0.25", "review", "'=HYPERLINK(A1)"],
        ["''=2", "", "", "", "", "", "The beginning"],
    ]
    back = read_label_file(tmp_path / "o.csv")
    assert back.labels == {"-1": {"@V": -0.25}, "'=2": {}}
    assert back.names == {"@V": "+plus"}


def failing(after: int) -> Iterator[Document]:
    yield from DOCUMENTS[:after]
    raise KeyboardInterrupt


def interrupted(output: Path, after: int) -> Path:
    with pytest.raises(KeyboardInterrupt):
        annotate(failing(after), suggest, output, labels=LABELS, settings={"k": 20})
    assert not output.exists()
    return output.with_name(f".{output.name}.journal")


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
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


def test_another_input_is_reused_as_far_as_it_is_the_same(tmp_path: Path) -> None:
    changed = [*DOCUMENTS[:7], replace(DOCUMENTS[7], title="Another"), *DOCUMENTS[8:]]
    run(tmp_path / "whole.jsonl", changed)
    interrupted(tmp_path / "o.jsonl", after=23)
    report = run(tmp_path / "o.jsonl", changed)
    assert (report.documents, report.resumed) == (25, 7)
    assert (tmp_path / "o.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("documents", [DOCUMENTS[:5], DOCUMENTS[5:], DOCUMENTS[::-1]])
def test_a_shorter_or_another_input(tmp_path: Path, documents: list[Document]) -> None:
    run(tmp_path / "whole.jsonl", documents)
    interrupted(tmp_path / "o.jsonl", after=23)
    assert run(tmp_path / "o.jsonl", documents).documents == len(documents)
    assert (tmp_path / "o.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_without_documents_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text("precious")
    with pytest.raises(InputError, match="no document to annotate"):
        run(tmp_path / "o.jsonl", [])
    assert (tmp_path / "o.jsonl").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_output_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    for output, message in (
        (tmp_path, "a folder"),
        (tmp_path / "no" / "o.jsonl", "there is no folder"),
        (tmp_path / "o.xlsx", r"'\.xlsx'; use \.jsonl, .* with --to \(jsonl, csv, ann"),
        (tmp_path / "o.npz.gz", "compressed already"),
    ):
        with pytest.raises(InputError, match=message):
            annotate(failing(0), suggest, output, labels=LABELS, settings={})
    with pytest.raises(FormatError, match="no extension; use"):
        run(tmp_path / "o")
    assert run(tmp_path / "o.CSV").documents == 25
    assert (tmp_path / "o.CSV").read_text().startswith("id,rank,label")


def test_two_runs_do_not_write_the_same_file(tmp_path: Path) -> None:
    output = tmp_path / "o.jsonl"

    def suggest_and_look(documents: list[Document]) -> list[dict[str, Any]]:
        with pytest.raises(CollectionBusyError, match="another process"):
            run(output)
        return suggest(documents)

    annotate(DOCUMENTS, suggest_and_look, output, labels=LABELS, settings={"k": 20})
    assert len(output.read_text().splitlines()) == 25


def test_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text)
        run(pipe)
        assert len(read.result().splitlines()) == 25
    assert list(tmp_path.iterdir()) == [pipe]
