"""The interface of term engines, which `[neighbours] engine` selects.

An engine keeps documents as bags of terms in named fields, each under its row,
and ranks rows by BM25 (`bm25.py` has the formula). It knows nothing of texts,
labels or tombstones. tests/neighbours/engine_conformance.py tests what every
engine must do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection as Container
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.exceptions import CollectionError
from labelkin.neighbours.bm25 import FieldStatistics
from labelkin.registry import Registry
from labelkin.store.derived import StoreState

# A document to index: its row, and its terms by field, repeats included.
IndexedDocument = tuple[int, Mapping[str, Sequence[str]]]
# A query: for each field its terms and their weights.
WeightedTerms = Mapping[str, Mapping[str, float]]
Hits = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]

#: Scores that differ by less than this share of the best count as equal: a float32 sum depends on
#: the order in which an engine adds.
TIE = 1e-5


@dataclass(frozen=True, slots=True)
class EngineState:
    """What an index records about itself.

    `pending` names the generation whose rows may be in the index beyond
    `applied` because a crash came between a commit and its record; `newest` is
    the largest row in the index, −1 for an empty one.
    """

    applied: StoreState
    pending: tuple[int, str] | None = None
    newest: int = -1


class NotCompactableError(CollectionError):
    """An engine can neither compact its files nor exchange them for others."""


class TermStatistics(ABC):
    """The numbers by which terms of queries are weighted; threads may share them."""

    @abstractmethod
    def statistics(self, field: str) -> FieldStatistics:
        """The number of documents and their average length, as scores use them."""

    @abstractmethod
    def document_frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        """In how many documents each term occurs; 0 for unknown terms."""


class EngineSearcher(TermStatistics):
    """Searches the index as it was when the searcher was made; threads may share it."""

    @abstractmethod
    def nearest(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        """For each query the rows and scores of the `k` best documents, best first.

        Rows in `excluded` (one container per query) do not count. Scores that
        differ by less than TIE of the best count as equal; equal ones are
        ordered by row, and a tie at the last place is resolved to its end.
        """


def tie_ranks(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Numbers that are the same for scores that count as equal, and higher for higher ones."""
    best = float(scores.max(initial=0.0))
    ranks: npt.NDArray[np.float32] = np.round(scores / (best * TIE)) if best > 0 else scores
    return ranks


def best_hits(rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float32], k: int) -> Hits:
    """The `k` best of some rows, equal ones by row."""
    order = np.lexsort((rows, -tie_ranks(scores)))[:k]
    return rows[order], scores[order]


class TermEngine(Closing, ABC):
    """An index in a folder. The caller makes sure that only one process writes it."""

    @abstractmethod
    def state(self) -> EngineState:
        """What the index reflects; StoreDamagedError if it cannot be read."""

    def recorded(self) -> StoreState:
        """What the index claims to reflect, as far as that is known without opening it."""
        return self.state().applied

    @abstractmethod
    def apply(
        self,
        removed: Iterable[int],
        pages: Iterable[Sequence[IndexedDocument]],
        target: StoreState,
    ) -> None:
        """Remove and add rows, and record that the index reflects `target`.

        Pages come in row order. What is committed on the way is recorded, so
        an interrupted call continues with the rows that are missing.
        """

    def unverified_bytes(self) -> int:
        """The size of the files that `verify` has not read yet."""
        return 0

    def verify(self) -> None:
        """Raise StoreDamagedError if a file is damaged; reads those that have not been read."""
        return

    def rows(self) -> npt.NDArray[np.int64] | None:
        """The rows of all documents in the index, ascending; None if the engine cannot tell."""
        return None

    def removed(self) -> int:
        """How many removed documents the index still holds; they may count in statistics."""
        return 0

    def leftovers(self) -> list[Path]:
        """Files and folders that do not belong to the index, as a killed process leaves them."""
        return []

    def compact(self) -> bool:
        """Drop removed documents and merge small files; searchers keep what they see.

        False if nothing was done because the engine has to be rebuilt for it.
        """
        return False

    def take_over(self, other: TermEngine) -> None:
        """Exchange all files for those of another index on this engine, which is lost by that.

        Searchers keep what they see. A crash leaves the index as it was, or the other one.
        """
        raise NotCompactableError(
            f"{type(self).__name__} neither compacts its files nor exchanges them for {other}"
        )

    @property
    def exchanges_files(self) -> bool:
        """Whether the engine has a `take_over` of its own."""
        return type(self).take_over is not TermEngine.take_over

    @abstractmethod
    def clear(self) -> None:
        """Delete everything."""

    @abstractmethod
    def searcher(self) -> EngineSearcher:
        """A searcher of the present state."""


class EngineFactory(Protocol):
    """Opens an index; a registry row names a class or function of this kind."""

    def __call__(self, folder: Path, fields: Mapping[str, str], *, read_only: bool) -> TermEngine:
        """The index in `folder` with these fields (name → version), empty if there is none."""
        ...


#: labelkin's own engines: the default, and the one for batches.
TANTIVY, POSTINGS = "tantivy", "postings"

ENGINES: Registry[EngineFactory] = Registry(
    "labelkin.engines",
    "term engine",
    {
        TANTIVY: "labelkin.neighbours.tantivy_engine:TantivyEngine",
        POSTINGS: "labelkin.neighbours.postings_engine:PostingsEngine",
    },
    factories=True,
)
