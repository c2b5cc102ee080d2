"""What the training of a reranker reads of a collection, each part once, and what signals see."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import ConfigError
from labelkin.memo import Memo
from labelkin.neighbours.sample_search import nearest_places
from labelkin.neighbours.search import NeighbourSearch
from labelkin.represent.counted_texts import Progress, Terms, count_wording
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank.headings import Headings, describe_headings
from labelkin.rerank.labelled_texts import LabelledTexts, label_matrix, read_labelled_texts
from labelkin.rerank.pairs import Integers
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.policy import policy_for
from labelkin.store.held_out import with_reserve
from labelkin.store.snapshot import Snapshot, Views

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.neighbours.indexes import Indexes
    from labelkin.neighbours.vector_search import VectorSearch

Value = TypeVar("Value")

_NEAREST = 20


class TrainingData:
    """The labelled documents in some rows of a snapshot, as a training needs them.

    `indexes` is needed if the settings name an encoder.
    """

    def __init__(
        self,
        views: Views,
        rows: Integers,
        search: NeighbourSearch,
        settings: RerankTrainingSettings,
        *,
        indexes: Indexes | None = None,
        progress: Progress | None = None,
    ) -> None:
        if settings.encoder and indexes is None:
            raise ConfigError(f"training with vectors by {settings.encoder} needs the indexes")
        self.views = views
        self.snapshot = views.snapshot
        self.rows = rows
        self.search = search
        self.settings = settings
        self.indexes = indexes
        self.policy = policy_for(self.snapshot)
        self.label_sets = self.snapshot.label_sets()
        self.width = self.snapshot.generation().next_column
        self._progress = progress
        self._memo = Memo()

    @property
    def texts(self) -> LabelledTexts:
        """The documents as matrices."""
        return self._read()[0]

    @property
    def terms(self) -> Terms:
        """The terms that texts are counted by."""
        return self._read()[1]

    @property
    def headings(self) -> Headings:
        """The facts about headings."""
        language = self.snapshot.usual_language()
        return self._memo.get(
            "headings",
            lambda: describe_headings(self.snapshot.vocabulary, self.terms.columns, language),
        )

    def wording(self) -> tuple[Terms, csr_matrix[Any]]:
        """All words of the texts, stop words and numbers too, and how often each text has them."""
        return self._memo.get(
            "wording", lambda: count_wording(self.snapshot, self.rows, self._progress)
        )

    def nearest(self) -> Integers:
        """For each text the places of its nearest among all texts, −1 for none."""
        return self._memo.get("nearest", self._find_nearest)

    def vector_search(self) -> VectorSearch:
        """The search by the vectors of the settings' encoder."""
        if self.indexes is None:
            raise ConfigError("the training has no encoder")
        return self.indexes.vector_search(self.views, self.settings.encoder)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """A value that is computed once for all folds."""
        return self._memo.get(("of signals", key), make)

    def report(self, stage: str, done: int, total: int) -> None:
        """Report the progress of a long step."""
        if self._progress is not None:
            self._progress(stage, done, total)

    def _read(self) -> tuple[LabelledTexts, Terms]:
        return self._memo.get(
            "texts",
            lambda: read_labelled_texts(
                self.snapshot,
                self.search.context.cache,
                self.rows,
                label_matrix(self.label_sets, self.rows, self.width, self.policy),
                self._progress,
            ),
        )

    def _find_nearest(self) -> Integers:
        return nearest_places(
            self.search,
            self.rows,
            with_reserve(_NEAREST),
            lambda done, total: self.report("Finding neighbours", done, total),
        )


class TrainingContext:
    """The documents that everything is counted and fitted over, for signals to fit.

    They are at some `places` of the data: all of them, or those that are not held
    out. `autoencoder` is one that has not seen the held-out documents, if there is any.
    """

    def __init__(
        self, data: TrainingData, places: Integers, *, autoencoder: LabelModel | None = None
    ) -> None:
        self._data = data
        self._places = places
        self.has_autoencoder = autoencoder is not None
        self.has_joint_autoencoder = autoencoder is not None and autoencoder.is_joint

    @property
    def snapshot(self) -> Snapshot:
        """The state of the collection."""
        return self._data.snapshot

    @property
    def settings(self) -> RerankTrainingSettings:
        """How the reranker is trained."""
        return self._data.settings

    @cached_property
    def texts(self) -> LabelledTexts:
        """The labelled documents; held-out ones are not among them."""
        return self._data.texts.at(self._places)

    @property
    def terms(self) -> TermColumns:
        """The terms that texts are counted by."""
        return self._data.terms.columns

    def wording(self) -> tuple[Terms, csr_matrix[Any]]:
        """All words of the texts, stop words and numbers too, and how often each text has them."""
        terms, counts = self._data.wording()
        return terms, counts[self._places]

    def nearest(self) -> Integers:
        """For each text the places of its nearest among the texts, −1 for none."""
        nearest = self._data.nearest()
        inside = np.full(len(nearest), -1, dtype=np.int64)
        inside[self._places] = np.arange(len(self._places))
        mine = nearest[self._places]
        near = np.where(mine >= 0, inside[mine], -1)
        # Without those that are held out, the next ones move up.
        order = np.argsort(near < 0, axis=1, kind="stable")[:, :_NEAREST]
        return np.take_along_axis(near, order, 1)

    def vector_search(self) -> VectorSearch:
        """The search by the vectors of the settings' encoder; it has those of all texts."""
        return self._data.vector_search()

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """A value that does not depend on the labels, computed once for all folds."""
        return self._data.once(key, make)

    def report(self, stage: str, done: int, total: int) -> None:
        """Report the progress of a long step."""
        self._data.report(stage, done, total)
