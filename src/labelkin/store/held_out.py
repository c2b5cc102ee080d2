"""Documents held out of training, chosen by a hash of their ids.

Each document has a key: a hash of the seed and its id. The documents with the
smallest keys are held out. Adding or removing a document therefore changes the
held-out set by that document and at most one other at the boundary, and the
largest key (`bound`) describes the whole set: a model that was trained without
the documents up to a bound has seen none of them, now or later.

What is quickly trained can be trained several times, each time without other
documents: these are the folds, of which the first is that set.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.text import document_key
from labelkin.exceptions import TrainingError
from labelkin.store.reader import Generation, Reader
from labelkin.wording import counted

logger = logging.getLogger(__name__)

# At most one document in seven is held out at a time, so that the rest resembles the whole.
LARGEST_SHARE = 7
MOST_FOLDS = 3
LEAST_DOCUMENTS = 20
# Documents that have to be left for the statistics.
_LEAST_OTHERS = 2
_PAGE = 1000

Integers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


def row_keys(reader: Reader, seed: int, rows: int) -> Keys:
    """The keys of the documents by row; rows without a document have the largest key."""
    keys = np.full(rows, np.iinfo(np.uint64).max, dtype=np.uint64)
    for identifier, row in reader.identifiers():
        if row < rows:
            keys[row] = document_key(identifier, seed)
    return keys


def with_reserve(k: int) -> int:
    """Enough neighbours to have `k` after the held-out ones are dropped."""
    return round(k * (1 + 2 / LARGEST_SHARE)) + 10


@dataclass(frozen=True)
class HeldOutRule:
    """Which documents a model has not seen: all whose key is at most `bound`."""

    seed: int
    bound: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"seed": self.seed, "bound": f"{self.bound:016x}"}

    @classmethod
    def from_json(cls, content: Any) -> HeldOutRule | None:
        """The rule that `to_json` wrote; None for anything else, as in models of version 0.1."""
        if not isinstance(content, Mapping):
            return None
        return cls(int(content["seed"]), int(str(content["bound"]), 16))


@dataclass(frozen=True, eq=False)
class Fold:
    """Documents that are held out together.

    `copies` are the others with the text of one of them: they would give its
    labels away. All are rows of one generation, ascending.
    """

    rows: Integers
    copies: Integers

    @property
    def unseen(self) -> Integers:
        """The rows that no statistic may count while the documents of the fold are scored."""
        return np.union1d(self.rows, self.copies)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The documents to count statistics over, and those of them that are held out, by folds.

    The documents of the first fold are described by `rule`: models that are
    trained only once have not seen them. The others are held out of what is
    trained again for each fold.
    """

    generation: Generation
    rows: Integers
    folds: tuple[Fold, ...]
    rule: HeldOutRule

    @property
    def unseen(self) -> Integers:
        """The rows that a model must not see which is trained only once."""
        return self.folds[0].unseen if self.folds else np.zeros(0, dtype=np.int64)

    @property
    def count(self) -> int:
        """How many documents are held out, by all folds together."""
        return sum(len(fold.rows) for fold in self.folds)

    def places(self, fold: Fold) -> Integers:
        """Where the documents of a fold are among `rows`."""
        return np.searchsorted(self.rows, fold.rows)


def choose_held_out(
    reader: Reader,
    *,
    documents: int,
    statistics_documents: int,
    seed: int,
    given: int = 0,
    within: HeldOutRule | None = None,
) -> HeldOut:
    """Hold out `documents` of those that have labels, at most one in seven by each fold.

    If one fold has too few, there are further ones of the same size, up to three
    in all, and so a few documents more: each fold costs a training of its own.
    Statistics are counted over all documents with labels, or over a sample of
    `statistics_documents`. `given` is the number of documents to train on that
    are not in the collection. `within` is the rule of a model whose scores are
    to be used: the first fold has only documents that it has not seen.
    """
    generation = reader.generation()
    sizes = reader.label_sets().sizes()
    alive = sizes > 0
    tombstones = reader.tombstones()
    alive[tombstones[tombstones < len(sizes)]] = False
    rows = np.flatnonzero(alive)
    if len(rows) == 0:
        raise TrainingError("no document of the collection has labels to train on; add some")
    keys = row_keys(reader, seed, len(sizes))
    rows = rows[np.argsort(keys[rows], kind="stable")][:statistics_documents]
    size = count = min(documents, len(rows) // LARGEST_SHARE)
    if within is not None:
        count = min(count, int(np.count_nonzero(keys[rows] <= np.uint64(within.bound))))
    if count < LEAST_DOCUMENTS and given < LEAST_DOCUMENTS:
        raise TrainingError(_too_few(len(rows), documents, unseen=count))
    bound = int(keys[rows[count - 1]]) if count else 0
    held_out = [np.sort(rows[:count])] if count else []
    if count and documents > size:
        last = min(documents, count + (MOST_FOLDS - 1) * size)
        held_out += [np.sort(rows[at : at + size]) for at in range(count, last, size)]
    rows = np.sort(rows)
    folds = tuple(Fold(fold, copies_of(reader, fold)) for fold in held_out)
    for fold in folds:
        if not len(fold.copies):
            continue
        if len(np.setdiff1d(rows, fold.unseen, assume_unique=True)) < _LEAST_OTHERS:
            raise TrainingError(
                f"nearly all of {counted(len(rows), 'document')} with labels have the same text: "
                "too few are left to train a reranker on"
            )
        logger.info("%d documents have the text of a held-out one: held out too", len(fold.copies))
    return HeldOut(generation, rows, folds, HeldOutRule(seed, bound))


def _too_few(labelled: int, wanted: int, *, unseen: int) -> str:
    """Why no reranker can be trained: too few documents, or too few that may be held out."""
    if wanted < LEAST_DOCUMENTS:
        return (
            f"a reranker cannot be trained on {counted(wanted, 'document')}; set `documents` in "
            f"[rerank] of labelkin.toml to at least {LEAST_DOCUMENTS}"
        )
    if labelled < LEAST_DOCUMENTS * LARGEST_SHARE:
        many = counted(labelled, "document with labels is", "documents with labels are")
        return (
            f"{many} too few to train a reranker on; "
            f"it needs at least {LEAST_DOCUMENTS * LARGEST_SHARE}"
        )
    return (
        f"the label autoencoder was trained without {counted(unseen, 'document')} only, and a "
        f"reranker needs at least {LEAST_DOCUMENTS}; `labelkin train` without --only trains both"
    )


def copies_of(reader: Reader, rows: Integers) -> Integers:
    """The other rows with the text of one of these."""
    copies: set[int] = set()
    for start in range(0, len(rows), _PAGE):
        page = rows[start : start + _PAGE].tolist()
        for known in reader.known_rows(list(reader.texts_of(page).values())):
            copies.update(known)
    return np.setdiff1d(np.array(sorted(copies), dtype=np.int64), rows)
