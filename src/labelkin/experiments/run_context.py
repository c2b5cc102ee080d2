"""What the stages of a run share: the open collection, documents, neighbours and scorers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelkin.closing import Closing
from labelkin.experiments.sources import Source
from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.settings import ScorerSettings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.corpus.document import Document
    from labelkin.experiments.models import ModelStage
    from labelkin.experiments.preparation import (
        CollectionStage,
        FusedStage,
        NeighbourStage,
    )
    from labelkin.indexer import Indexer
    from labelkin.scoring.knn import Knn
    from labelkin.scoring.label_ae import LabelAe


class RunContext(Closing):
    """Opens and caches what stages need: one collection and one label autoencoder at a time.

    Asking for another collection closes the current one and drops its cached data. Not
    for use by several threads.
    """

    def __init__(self) -> None:
        self._open: tuple[CollectionStage, Indexer] | None = None
        self._documents: dict[Source, list[Document]] = {}
        self._gold: dict[Source, csr_matrix[Any]] = {}
        self._neighbours: dict[str, Neighbours] = {}
        self._knn: Knn | None = None
        self._label_ae: tuple[ModelStage, LabelAe] | None = None

    def close(self) -> None:
        """Close the collection and drop everything that depends on it."""
        if self._open is not None:
            self._open[1].close()
        self._open = self._knn = self._label_ae = None
        self._gold.clear()
        self._neighbours.clear()

    def indexer(self, stage: CollectionStage) -> Indexer:
        """The open collection of a stage."""
        from labelkin.indexer import Indexer

        if self._open is None or self._open[0] is not stage:
            self.close()
            self._open = (stage, Indexer.open(stage.path))
        return self._open[1]

    def documents(self, source: Source) -> list[Document]:
        """The documents of a split that have labels."""
        if source not in self._documents:
            self._documents[source] = [d for d in source.documents() if d.labels]
        return self._documents[source]

    def gold(self, stage: CollectionStage, source: Source) -> csr_matrix[Any]:
        """The gold labels of a split, by document and column of the collection's vocabulary."""
        from labelkin.evaluate.gold import gold_matrix

        indexer = self.indexer(stage)
        if source not in self._gold:
            self._gold[source] = gold_matrix(self.documents(source), indexer.vocabulary)
        return self._gold[source]

    def neighbours(self, stage: NeighbourStage | FusedStage) -> Neighbours:
        """The saved neighbours of a stage."""
        if stage.fingerprint not in self._neighbours:
            self._neighbours[stage.fingerprint] = Neighbours.load(stage.path)
        return self._neighbours[stage.fingerprint]

    def knn(self, stage: CollectionStage) -> Knn:
        """The k-NN scorer of a collection."""
        from labelkin.scoring.knn import Knn

        indexer = self.indexer(stage)
        if self._knn is None:
            self._knn = Knn(indexer.collection, ScorerSettings())
        return self._knn

    def label_ae(self, stage: ModelStage) -> LabelAe:
        """The label autoencoder of a stage with the latent vectors of its collection."""
        from labelkin.scoring.label_ae import LabelAe

        knn = self.knn(stage.collection)
        if self._label_ae is None or self._label_ae[0] is not stage:
            self._label_ae = None
            settings = ScorerSettings(weighting="difference", count=None, threshold=0.5)
            scorer = LabelAe(knn.collection, settings, knn, folder=stage.path)
            self._label_ae = (stage, scorer)
        return self._label_ae[1]
