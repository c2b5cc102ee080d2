from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labelkin.evaluate.files import read_label_file
from labelkin.exceptions import DamagedFileError

Write = Callable[[str, str | bytes], Path]
OURS = [
    {
        "id": "d1",
        "title": "Rye",
        "suggestions": [
            {"id": "V1", "name": "Oats", "score": 0.2},
            {"id": "V2", "name": "Rye", "score": 0.9},
        ],
    },
    {"id": "d2", "title": "Nothing", "suggestions": []},
]


def as_lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    "text", [as_lines(OURS), json.dumps(OURS), json.dumps(OURS, indent=2)], ids=range(3)
)
def test_our_own(write: Write, text: str) -> None:
    file = read_label_file(write("a.json", text))
    assert [file.ranked(one) for one in ("d1", "d2")] == [["V2", "V1"], []]
    assert list(file.labels) == ["d1", "d2"]
    assert file.names == {"V1": "Oats", "V2": "Rye"}
    assert file.has_ids


def test_annifs_results(write: Write) -> None:
    results = [
        {"uri": "http://v/1", "label": "Oats", "notation": None, "score": 0.25},
        {"uri": "http://v/2", "label": "Rye", "notation": None, "score": 0.5},
    ]
    # The text may be longer than what is looked at to recognise a format.
    long = {"text": "rye " * 30_000, "subjects": [{"uri": "http://v/9"}], "results": results}
    file = read_label_file(write("a.jsonl", as_lines([long, {"results": results[:1]}])))
    assert [file.ranked(one) for one in ("#1", "#2")] == [
        ["http://v/2", "http://v/1"],
        ["http://v/1"],
    ]
    assert file.names == {"http://v/1": "Oats", "http://v/2": "Rye"}
    assert not file.has_ids
    named = read_label_file(write("b.jsonl", as_lines([{"document_id": "d1", "results": results}])))
    assert list(named.labels) == ["d1"]
    assert named.has_ids


def test_a_submission(write: Write) -> None:
    documents = [{"labels": ["D2", "D1"], "pmid": 12}, {"labels": [], "pmid": "13"}]
    for indent in (None, 1):
        text = json.dumps({"documents": documents}, indent=indent)
        file = read_label_file(write("a.json", text))
        assert [file.ranked(one) for one in ("12", "13")] == [["D2", "D1"], []]


def test_a_submission_that_names_its_sender(write: Write) -> None:
    documents = [{"pmid": 12, "labels": ["D2", "D1"]}]
    sent = {"username": "me", "password": "", "system": "knn 1", "documents": documents}
    for indent in (None, 1):
        file = read_label_file(write("a.json", json.dumps(sent, indent=indent)))
        assert file.ranked("12") == ["D2", "D1"]


def test_a_submission_that_breaks_off(write: Write) -> None:
    rng = random.Random(0)
    documents = [{"pmid": n, "labels": [str(rng.random())] * 3} for n in range(3000)]
    whole = gzip.compress(json.dumps({"documents": documents}).encode())
    with pytest.raises(DamagedFileError, match=r"a\.json\.gz: damaged after record \d+"):
        read_label_file(write("a.json.gz", whole[: len(whole) // 2]))


def test_a_text_called_results_is_a_text(write: Write) -> None:
    record = {"id": "d1", "title": "Rye", "results": "It grew.", "labels": ["V1"]}
    assert read_label_file(write("a.jsonl", as_lines([record]))).ranked("d1") == ["V1"]


def test_records_of_which_some_have_ids(write: Write) -> None:
    records = [{"id": "", "labels": ["A"]}, {"id": "d2", "labels": None, "meshMajor": ["B"]}]
    file = read_label_file(write("a.jsonl", as_lines(records)))
    assert [file.ranked(one) for one in ("#1", "d2")] == [["A"], ["B"]]
    assert file.has_ids


@pytest.mark.parametrize(
    "given",
    [
        {"labels": "Rye|Oats"},
        {"labels": ["Rye", "Oats"]},
        {"subjects": [{"uri": "<Rye>", "label": "N"}, {"uri": "Oats"}]},
        {"labels": ["Rye", "Oats"], "label_names": {"Rye": "N"}},
        {"meshMajor": ["Rye", "Oats"]},
    ],
)
def test_labels_alone(write: Write, given: dict[str, Any]) -> None:
    file = read_label_file(write("a.jsonl", as_lines([{"id": "d1", **given}])))
    assert file.ranked("d1") == ["Rye", "Oats"]
    assert file.names in ({}, {"Rye": "N"})


def test_a_corpus_is_left_to_its_reader(write: Write) -> None:
    article = {"pmid": "12", "title": "Rye", "abstractText": "Bread.", "meshMajor": ["Rye"]}
    for key in ("articles", "documents"):
        file = read_label_file(write("a.json", json.dumps({key: [article]})))
        assert file.ranked("12") == ["Rye"]
    lines = '{"id": broken\n{"id": "d1", "title": "Rye", "labels": ["V1"]}\n'
    assert read_label_file(write("b.jsonl", lines)).ranked("d1") == ["V1"]


@pytest.mark.parametrize(
    "line",
    ['{"id": "d2"}', '{"id": "d2", "suggestions": [{"id": "V1"}]}', "{", "7", '{"results": 5}'],
)
def test_damage(write: Write, line: str) -> None:
    with pytest.raises(DamagedFileError, match=r"a\.jsonl: line 3 is not a list of suggestions"):
        read_label_file(write("a.jsonl", as_lines(OURS) + line + "\n"))


def test_a_list_that_breaks_off(write: Write) -> None:
    with pytest.raises(DamagedFileError, match=r"a\.json: broken JSON after record 1"):
        read_label_file(write("a.json", json.dumps(OURS, indent=1)[:-20]))
