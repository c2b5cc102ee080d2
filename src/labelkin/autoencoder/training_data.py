"""Training data of the label autoencoder: label sets by row, in the columns of the model.

The joint one is also trained on the neighbours and the texts of documents.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.ballots import NamedLabels
from labelkin.autoencoder.columns import LabelColumns
from labelkin.exceptions import TrainingError
from labelkin.represent.counted_texts import Terms
from labelkin.store.label_sets import LabelSets
from labelkin.wording import counted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Integers = npt.NDArray[np.int64]
# Validation gains nothing from more documents.
_MOST_HELD_OUT = 2000
_LEAST_STEPS = 100
_SMALLEST_BATCH = 16
# A label that no document carries still has finite odds.
_SMOOTHING = 0.5


@dataclass(frozen=True)
class TrainingNeighbours:
    """The leave-one-out neighbours of some documents, and their weights.

    A line per document; `near` holds rows, filled up with −1.
    """

    rows: Integers
    near: Integers
    weights: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.near) == len(self.weights):
            raise ValueError("rows, neighbours and weights differ in length")


@dataclass(frozen=True, eq=False)
class TrainingTexts:
    """The documents whose neighbours are known: their weighted terms, and the labels they name."""

    terms: Terms
    weighted: csr_matrix[Any]
    named: NamedLabels

    def taken(self, places: Integers) -> TrainingTexts:
        """Some of the documents."""
        return TrainingTexts(self.terms, self.weighted[places], self.named.taken(places))


@dataclass(frozen=True)
class TrainingData:
    """Label sets to train on, and some held out; labels are numbered as in the model.

    The most frequent label is number 0. `frequencies` count all documents, of which
    `rows` and `held_out` may be a part: `voters` are all of them. `renewed` tells which
    labels an update trains, all others stay as they are. `left_out` describes
    the documents that are held out for a reranker, `state` the generation of the
    collection.
    """

    label_sets: LabelSets
    rows: Integers
    held_out: Integers
    columns: LabelColumns
    frequencies: Integers
    neighbours: TrainingNeighbours | None = None
    texts: TrainingTexts | None = None
    voters: Integers | None = None
    renewed: npt.NDArray[np.bool_] | None = None
    left_out: dict[str, Any] | None = None
    state: dict[str, Any] | None = None

    @property
    def labels(self) -> int:
        """How many labels the model has."""
        return len(self.columns)

    @property
    def documents(self) -> int:
        """How many documents the frequencies count."""
        return len(self.all_rows)

    @property
    def all_rows(self) -> Integers:
        """The documents that the frequencies count and that may be neighbours."""
        return np.union1d(self.rows, self.held_out) if self.voters is None else self.voters

    @property
    def learned(self) -> int:
        """How many labels occur in a document; the others come last and are not trained."""
        return int(np.count_nonzero(self.frequencies))

    def log_odds(self) -> npt.NDArray[np.float32]:
        """The log-odds of every label among the documents."""
        documents = self.documents
        chance = (self.frequencies + _SMOOTHING) / (documents + 2 * _SMOOTHING)
        return np.log(chance / (1 - chance)).astype(np.float32)

    @property
    def validation(self) -> Integers:
        """The rows to validate with: the held-out ones; in the smallest collections, all."""
        return self.held_out if len(self.held_out) else self.rows

    def batch(self, rows: Integers) -> tuple[Integers, Integers]:
        """The label sets of `rows` one after another, and where each begins."""
        return self.columns.sets(self.label_sets, rows)

    def fingerprint(self) -> str:
        """A checksum of rows, labels, neighbours and texts; training resumes only with the same."""
        checksum = hashlib.blake2b(digest_size=16)
        for array in (self.rows, self.held_out, self.columns.columns, self.frequencies):
            checksum.update(np.ascontiguousarray(array).tobytes())
        if self.neighbours is not None:
            checksum.update(np.ascontiguousarray(self.neighbours.near).tobytes())
        if self.texts is not None:
            checksum.update("\n".join(self.texts.terms.words).encode("utf-8", "replace"))
            for values in (self.texts.weighted.data, self.texts.named.features):
                checksum.update(np.ascontiguousarray(values).tobytes())
        return checksum.hexdigest()


def batches(rows: Integers, number: int, batch_size: int, seed: int) -> Iterator[Integers]:
    """The rows of each batch of an epoch, in an order that depends on its number.

    An incomplete last batch is skipped; its documents come up in other epochs.
    """
    size = _fitting(len(rows), batch_size)
    order = np.random.default_rng((seed, number)).permutation(rows)
    for start in range(0, len(order) - size + 1, size):
        yield order[start : start + size]


def steps_of(documents: int, batch_size: int) -> int:
    """How many batches an epoch has."""
    return documents // _fitting(documents, batch_size)


def _fitting(documents: int, batch_size: int) -> int:
    """Smaller batches for few documents: an epoch needs enough steps."""
    return min(batch_size, max(documents // _LEAST_STEPS, _SMALLEST_BATCH), documents)


def check_documents(count: int) -> None:
    """Raise TrainingError if these are too few documents with labels."""
    if count < 2:
        raise TrainingError(
            f"the collection has {counted(count, 'document')} with labels; training needs at least "
            "2: add some with `labelkin add`"
        )


def make_training_data(
    label_sets: LabelSets,
    width: int,
    dropped: Integers,
    *,
    held_out: float,
    min_frequency: int,
    seed: int,
    kept: Integers | None = None,
    keys: npt.NDArray[np.uint64] | None = None,
) -> TrainingData:
    """Split the documents that have labels, without the rows in `dropped`.

    `width` is the number of vocabulary columns. Labels that fewer than
    `min_frequency` documents have are left out, unless they are among `kept`.
    The documents with the smallest `keys` (by row) are held out for validation;
    without keys, a random sample is.
    """
    sizes = label_sets.sizes()
    alive = np.ones(len(sizes), dtype=bool)
    alive[dropped[dropped < len(sizes)]] = False
    rows = np.flatnonzero(alive & (sizes > 0))
    check_documents(len(rows))
    frequencies = label_sets.frequencies(width, dropped)
    is_wanted = frequencies >= max(min_frequency, 1)
    if kept is not None:
        is_wanted[kept] = True
    columns = np.flatnonzero(is_wanted)
    if len(columns) == 0:
        raise TrainingError(
            f"no label occurs in {counted(min_frequency, 'document')}; lower min_frequency in "
            "[joint] of labelkin.toml, or in [training] for --recipe paper"
        )
    columns = columns[np.argsort(-frequencies[columns], kind="stable")]
    count = min(math.ceil(len(rows) * held_out), _MOST_HELD_OUT, len(rows) - 2)
    if keys is None:
        keys = np.random.default_rng(seed).integers(1 << 63, size=len(sizes), dtype=np.uint64)
    order = rows[np.argsort(keys[rows], kind="stable")]
    return TrainingData(
        label_sets=label_sets,
        rows=np.sort(order[count:]),
        held_out=np.sort(order[:count]),
        columns=LabelColumns(columns, width),
        frequencies=frequencies[columns],
    )


@dataclass(frozen=True, slots=True)
class OutputSampling:
    """Which outputs a step computes: the most frequent labels, and a sample of the others."""

    labels: int
    always: int
    drawn: int

    @classmethod
    def of_size(cls, labels: int, size: int, learned: int | None = None) -> OutputSampling | None:
        """About `size` labels a step, three in ten of them always the same; None for all labels.

        Labels after the first `learned` are never sampled.
        """
        wanted = labels if learned is None else learned
        if size <= 0 or wanted <= 1.5 * size:
            return None if wanted == labels else cls(wanted, wanted, 0)
        always = size * 3 // 10
        return cls(wanted, always, size - always)

    def draw(
        self, own: Integers, random: np.random.Generator
    ) -> tuple[Integers, npt.NDArray[np.float32]]:
        """Columns for a step whose documents have the labels `own`, and their weights."""
        rare = self.labels - self.always
        drawn = random.choice(rare, self.drawn, replace=False) + self.always
        weights = np.zeros(self.labels, dtype=np.float32)
        weights[: self.always] = 1
        weights[drawn] = rare / max(self.drawn, 1)
        wanted = weights > 0
        wanted[own] = True
        columns = np.flatnonzero(wanted)
        return columns, weights[columns]
