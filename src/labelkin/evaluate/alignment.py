"""Matches predictions of any tool with gold labels, by document and by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.gold import hierarchy_of
from labelkin.evaluate.label_file import LabelFile, place
from labelkin.exceptions import InputError
from labelkin.scoring.ranking import Ranking
from labelkin.vocab.vocabulary import Vocabulary
from labelkin.wording import counted, shortened


@dataclass(frozen=True, eq=False)
class Aligned:
    """One file of predictions, matched with the gold labels.

    `missing` lists gold documents without predictions, `strangers` predicted
    documents without gold labels. `shared` is the number of distinct predicted
    labels that are gold in any document. If `by_place` is true, documents were
    matched by their order.
    """

    evaluation: Evaluation
    missing: list[str]
    strangers: list[str]
    shared: int
    by_place: bool


class LabelColumns:
    """Assigns a column to each label, so that equivalent labels in all files share one.

    With a vocabulary, labels that resolve to the same concept share a column,
    be they ids, names or synonyms. Without one, labels match if they are equal,
    or if the label in one file is the name beside the label in the other.
    """

    def __init__(self, gold: LabelFile, vocabulary: Vocabulary | None) -> None:
        self._vocabulary = vocabulary
        self._first = 0 if vocabulary is None else len(vocabulary)
        self._others: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._gold_by_name = {name: label for label, name in gold.names.items()}
        self._gold_labels = {*gold.all_labels()}

    def __len__(self) -> int:
        return self._first + len(self._others)

    def of(self, file: LabelFile, label: str) -> int:
        """The column of a label in `file`; new labels get new columns."""
        name = file.names.get(label, "")
        if self._vocabulary is not None:
            if file.width is not None:
                return self._matrix_column(file, label)
            column = self._vocabulary.resolve(label, name).column
            if column is not None:
                return column
        key = label if self._vocabulary is not None else self._gold_spelling(label, name)
        if name:
            self._names.setdefault(key, name)
        return self._others.setdefault(key, len(self))

    def described(self) -> list[tuple[str, str]]:
        """Id and name of the label in each column; unknown names are empty."""
        known = [(concept.id, concept.name()) for concept in self._vocabulary or ()]
        return [*known, *((label, self._names.get(label, "")) for label in self._others)]

    def _matrix_column(self, file: LabelFile, label: str) -> int:
        if file.width != self._first:
            width, concepts = file.width or 0, counted(self._first, "concept")
            raise InputError(
                f"{file.path}: the matrix has {counted(width, 'column')}, but the vocabulary has "
                f"{concepts}; give the vocabulary that it was made with"
            )
        return int(label)

    def _gold_spelling(self, label: str, name: str) -> str:
        if label in self._gold_labels:
            return label
        if name in self._gold_labels:
            return name
        return self._gold_by_name.get(label, label)


def align(
    gold: LabelFile, predicted: Sequence[LabelFile], vocabulary: Vocabulary | None = None
) -> tuple[list[Aligned], LabelColumns]:
    """Match each file of predictions with the documents that have gold labels.

    All files share the same label columns, as paired tests require. Documents
    are matched by id, or by position if one of the files has no ids.
    """
    widths = {file.width for file in (gold, *predicted) if file.width is not None}
    if len(widths) > 1:
        raise InputError(
            f"the matrices differ in width: {' and '.join(map(str, sorted(widths)))} columns"
        )
    documents = [document for document, labels in gold.labels.items() if labels]
    if not documents:
        raise InputError(f"{gold.path}: no document with labels")
    columns = LabelColumns(gold, vocabulary)
    gold_columns = [
        sorted({columns.of(gold, label) for label in gold.labels[document]})
        for document in documents
    ]
    in_gold = {column for labels in gold_columns for column in labels}
    partners = [_partners(gold, file) for file in predicted]
    rankings = [
        [_ranked(columns, file, of_file.get(document)) for document in documents]
        for file, of_file in zip(predicted, partners, strict=True)
    ]
    matrix = Ranking.from_lists(gold_columns).matrix(len(columns))
    hierarchy = None if vocabulary is None else hierarchy_of(vocabulary, len(columns))
    aligned = []
    for file, of_file, ranked in zip(predicted, partners, rankings, strict=True):
        used = {of_file[document] for document in documents if document in of_file}
        aligned.append(
            Aligned(
                Evaluation(matrix, Ranking.from_lists(ranked), hierarchy=hierarchy),
                missing=[document for document in documents if document not in of_file],
                strangers=[document for document in file.labels if document not in used],
                shared=len(in_gold & {column for labels in ranked for column in labels}),
                by_place=_by_place(gold, file),
            )
        )
    return aligned, columns


def _by_place(gold: LabelFile, predicted: LabelFile) -> bool:
    """Whether to match documents by their order.

    Generated ids are used if all gold ids occur among the predicted ones.
    """
    if gold.has_ids and predicted.has_ids:
        return False
    numbered = place(1) in gold.labels or place(1) in predicted.labels
    return numbered or not gold.labels.keys() <= predicted.labels.keys()


def _partners(gold: LabelFile, predicted: LabelFile) -> dict[str, str]:
    """Map each gold document to its predicted document, if there is one."""
    if not predicted.labels:
        return {}
    if not _by_place(gold, predicted):
        common = {document: document for document in gold.labels if document in predicted.labels}
        if not common:
            here, there = next(iter(predicted.labels)), next(iter(gold.labels))
            raise InputError(
                f"{predicted.path}: none of its documents is in {gold.path}; "
                f"ids look like {shortened(here)!r} here and {shortened(there)!r} there"
            )
        return common
    sizes = len(gold.labels), len(predicted.labels)
    if sizes[0] != sizes[1]:
        raise InputError(
            f"{predicted.path}: the number of documents ({sizes[1]:,}) differs from {gold.path} "
            f"({sizes[0]:,}); they cannot be matched without ids in both files"
        )
    return dict(zip(gold.labels, predicted.labels, strict=True))


def _ranked(columns: LabelColumns, file: LabelFile, document: str | None) -> list[int]:
    """The columns of a document's labels, best first and without duplicates."""
    labels = [] if document is None else file.ranked(document)
    return list(dict.fromkeys(columns.of(file, label) for label in labels))
