from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labelkin.evaluate import Evaluation, evaluate, parse_measure
from labelkin.evaluate.files import align, read_label_file
from labelkin.exceptions import DamagedFileError, FormatError, InputError

Write = Callable[[str, str | bytes], Path]


def test_lines(write: Write) -> None:
    found = read_label_file(write("a.txt", "12 7 3\n5\n\n7 1\n"))
    assert [found.ranked(str(number)) for number in (1, 2, 3, 4)] == [
        ["12", "7", "3"],
        ["5"],
        [],
        ["7", "1"],
    ]


def test_tsv_with_and_without_a_header(write: Write) -> None:
    rows = "d1\tRye, Wild\t0.5\nd1\tOats\t2e1\nd2\tOats\t1\nd1\tRye, Wild\t30\n"
    for text in (rows, "pmid\theading\tscore\n" + rows):
        found = read_label_file(write("a.tsv.gz", gzip.compress(text.encode())))
        assert found.ranked("d1") == ["Rye, Wild", "Oats"]
        assert found.ranked("d2") == ["Oats"]
    with pytest.raises(DamagedFileError, match="line 2 is not"):
        read_label_file(write("b.tsv", "d1\tOats\t1\nd1\tOats\n"))


def test_suggestions_and_corpora(write: Write) -> None:
    record = {"id": "d1", "suggestions": [{"id": "V1", "score": 0.2}, {"id": "V2", "score": 0.9}]}
    assert read_label_file(write("a.jsonl", json.dumps(record))).ranked("d1") == ["V2", "V1"]
    corpus = write("c.jsonl", '{"id": "d1", "title": "x", "labels": ["V3", "V1"]}\n')
    assert read_label_file(corpus).ranked("d1") == ["V3", "V1"]


def test_npz(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix, save_npz

    save_npz(tmp_path / "m.npz", csr_matrix(np.array([[0, 0.5, 0.9], [0, 0, 0]])))
    found = read_label_file(tmp_path / "m.npz")
    assert (found.ranked("1"), found.ranked("2")) == (["2", "1"], [])


def test_what_cannot_be_read(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_label_file(tmp_path / "nothing")
    with pytest.raises(FormatError, match="neither labels nor a corpus"):
        read_label_file(write("a.txt", "What is this? (nothing)"))
    with pytest.raises(DamagedFileError, match="no sparse matrix"):
        read_label_file(write("a.npz", "nonsense"))


def test_align(write: Write) -> None:
    gold = read_label_file(write("g.txt", "1 2 3\n1 4 5\n2 4\n"))
    predicted = read_label_file(write("p.txt", "1\n2 4\n2 4\n"))
    matrix, ranking, names = align(gold, predicted)
    assert sorted(names) == ["1", "2", "3", "4", "5"]
    values = evaluate(Evaluation(matrix, ranking), [parse_measure("MiF"), parse_measure("EBF")])
    assert values == {"MiF": pytest.approx(0.6153846), "EBF": pytest.approx(0.6333333)}
