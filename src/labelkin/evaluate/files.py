"""Labels in files, made by any tool: gold label sets and predictions.

| what | looks like |
|---|---|
| BioASQ's lines | labels parted by spaces, a document a line, nothing else |
| TSV | `id<TAB>label<TAB>score`, with or without a header |
| JSON Lines | `{"id", "suggestions": [{"id", "score"}, …]}` a line, as in `suggest --json` |
| scipy .npz | a sparse matrix, a document a row |
| any corpus format | its documents with their labels |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.corpus import Corpus, is_recognised
from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError, FormatError, InputError
from labelkin.scoring.ranking import Ranking

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LABEL_LINE = re.compile(rb"[\w.:-]+( [\w.:-]+)*\s*")
_SCORE_LINE = re.compile(r"[^\t]+\t[^\t]+\t-?[\d.]+(e-?\d+)?\s*$", re.IGNORECASE)


@dataclass
class LabelFile:
    """Labels by document, best first; scores only order them."""

    labels: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, document: str, label: str, score: float) -> None:
        """Give `document` a label; of a label that comes twice the better score counts."""
        scores = self.labels.setdefault(document, {})
        scores[label] = max(score, scores.get(label, score))

    def names(self) -> Iterator[str]:
        """All labels, as often as they occur."""
        return (label for scores in self.labels.values() for label in scores)

    def ranked(self, document: str) -> list[str]:
        """The labels of a document, equal scores in file order."""
        scores = self.labels.get(document, {})
        return sorted(scores, key=lambda label: -scores[label])


def read_label_file(path: Path) -> LabelFile:
    """Labels from a file in any of the known forms."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".npz":
        return _from_npz(path)
    with Source(path) as source:
        first, _, rest = source.head.partition(b"\n")
        second = rest.partition(b"\n")[0].decode("utf-8", "replace")
        try:
            if _SCORE_LINE.match(first.decode("utf-8", "replace")) or _SCORE_LINE.match(second):
                return _from_tsv(source)
            if b"\t" not in first and _LABEL_LINE.fullmatch(first):
                return _from_lines(source)
            if first.startswith(b"{") and b'"suggestions"' in first:
                return _from_suggestions(source)
            if not is_recognised(source):
                raise FormatError(f"{path}: neither labels nor a corpus in a known form")
        except DamagedFileError as error:
            raise DamagedFileError(f"{path}: {error}") from error
    return _from_corpus(path)


def align(
    gold: LabelFile, predicted: LabelFile, names: Sequence[str] = ()
) -> tuple[csr_matrix[Any], Ranking, list[str]]:
    """Gold matrix, predicted ranking and label names over the documents of `gold`.

    `names` have the first columns; other labels follow as they come.
    """
    from scipy.sparse import csr_matrix

    columns = {name: column for column, name in enumerate(names)}
    starts, indices = [0], []
    ranked: list[list[int]] = []
    for document in gold.labels:
        mine = {columns.setdefault(label, len(columns)) for label in gold.labels[document]}
        indices += sorted(mine)
        starts.append(len(indices))
        ranked.append(
            [columns.setdefault(label, len(columns)) for label in predicted.ranked(document)]
        )
    ones = np.ones(len(indices), dtype=np.int8)
    shape = (len(gold.labels), len(columns))
    matrix = csr_matrix((ones, np.array(indices, dtype=np.int64), starts), shape=shape)
    return matrix, Ranking.from_lists(ranked), list(columns)


def _from_lines(source: Source) -> LabelFile:
    found = LabelFile()
    for number, line in source.lines():
        labels = line.split()
        found.labels[str(number)] = {
            label: float(len(labels) - rank) for rank, label in enumerate(labels)
        }
    return found


def _from_tsv(source: Source) -> LabelFile:
    found = LabelFile()
    for number, line in source.lines():
        if not line.strip():
            continue
        if not _SCORE_LINE.match(line):
            if number > 1:
                raise DamagedFileError(f"line {number} is not `id<TAB>label<TAB>score`")
            continue
        document, label, score = line.split("\t")
        found.add(document.strip(), label.strip(), float(score))
    return found


def _from_suggestions(source: Source) -> LabelFile:
    found = LabelFile()
    for number, line in source.lines():
        try:
            record: Mapping[str, Any] = json.loads(line)
            for suggestion in record["suggestions"]:
                found.add(str(record["id"]), str(suggestion["id"]), float(suggestion["score"]))
            found.labels.setdefault(str(record["id"]), {})
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(f"line {number} is no list of suggestions") from error
    return found


def _from_npz(path: Path) -> LabelFile:
    from scipy.sparse import csr_matrix, load_npz

    try:
        matrix = csr_matrix(load_npz(path))
    except (ValueError, KeyError, OSError) as error:
        raise DamagedFileError(f"{path}: no sparse matrix ({error})") from error
    found = LabelFile()
    for row in range(matrix.shape[0]):
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        pairs = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
        found.labels[str(row + 1)] = {str(column): float(score) for column, score in pairs}
    return found


def _from_corpus(path: Path) -> LabelFile:
    found = LabelFile()
    for document in _documents(path):
        labels = document.labels
        found.labels[document.id] = {
            label: float(len(labels) - rank) for rank, label in enumerate(labels)
        }
    return found


def _documents(path: Path) -> Iterator[Any]:
    corpus = Corpus([path])
    yield from corpus.documents()
    if corpus.report.files_refused or corpus.report.files_damaged:
        raise DamagedFileError(f"{path}: could not be read to its end")
