"""What the stages of a run share: the open collection, documents, neighbours and a model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.experiments.sources import Source
from labelkin.neighbours.neighbours import Neighbours
from labelkin.store.models import Loaded, Models

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.autoencoder.model import LabelModel
    from labelkin.experiments.models import ModelStage
    from labelkin.experiments.preparation import (
        CollectionStage,
        FusedStage,
        NeighbourStage,
    )
    from labelkin.indexer import Indexer
    from labelkin.scoring.queries import Queries
    from labelkin.store.snapshot import Views

    Prepare = Callable[[Indexer], Closing]


class StageModels(Models):
    """The label autoencoder of a stage, in place of the collection's."""

    def __init__(self, model: LabelModel) -> None:
        super().__init__(model.folder)
        self._model = model

    def close(self) -> None:
        """Close the model."""
        super().close()
        self._model.close()

    def get(self, kind: type[Loaded]) -> Loaded:
        """The label autoencoder; a stage has no other model."""
        return self._model if isinstance(self._model, kind) else super().get(kind)


class RunContext(Closing):
    """Opens and caches what stages need: one collection and one label autoencoder at a time.

    Asking for another collection closes the current one and drops its cached data. Not
    for use by several threads. `prepare` is called with every collection that is opened;
    what it returns is closed before the collection.
    """

    def __init__(self, prepare: Prepare | None = None) -> None:
        self._prepare = prepare
        self._prepared = ExitStack()
        self._open: tuple[CollectionStage, Indexer] | None = None
        self._documents: dict[Source, list[Document]] = {}
        self._gold: dict[Source, csr_matrix[Any]] = {}
        self._neighbours: dict[str, Neighbours] = {}
        self._model: tuple[ModelStage, Views, StageModels] | None = None

    def close(self) -> None:
        """Close the collection and drop everything that depends on it."""
        self._close_model()
        self._prepared.close()
        if self._open is not None:
            self._open[1].close()
        self._open = None
        self._gold.clear()
        self._neighbours.clear()

    def indexer(self, stage: CollectionStage) -> Indexer:
        """The open collection of a stage."""
        from labelkin.indexer import Indexer

        if self._open is None or self._open[0] is not stage:
            self.close()
            self._open = (stage, Indexer.open(stage.path))
            if self._prepare is not None:
                self._prepared.enter_context(self._prepare(self._open[1]))
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

    def queries(
        self, stage: CollectionStage, neighbours: Neighbours, model: ModelStage | None = None
    ) -> Queries:
        """Saved neighbours as methods take them, without texts; `model` decodes label sets."""
        from labelkin.scoring.queries import Queries

        indexer = self.indexer(stage)
        documents = [Document(name, "") for name in neighbours.ids]
        if model is None:
            return indexer.queries(documents, neighbours=neighbours)
        views, models = self._opened(model)
        cache = indexer.runtime.indexes.context.cache
        return Queries(views, models, documents, cache, neighbours=neighbours)

    def _opened(self, stage: ModelStage) -> tuple[Views, StageModels]:
        """The label autoencoder of a stage, and the latent vectors of its collection."""
        from labelkin.autoencoder.model import LabelModel
        from labelkin.store.snapshot import Views

        if self._model is None or self._model[0] is not stage:
            self._close_model()
            # Views of its own: they are dropped together with the model.
            views = Views(self.indexer(stage.collection).snapshot())
            self._model = (stage, views, StageModels(LabelModel.load(stage.path)))
        return self._model[1:]

    def _close_model(self) -> None:
        if self._model is not None:
            self._model[2].close()
        self._model = None
