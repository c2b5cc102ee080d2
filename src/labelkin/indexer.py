"""The whole of labelkin behind one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.closing import Closing
from labelkin.corpus.document import Deletion, Document
from labelkin.corpus.language import normalise_language
from labelkin.exceptions import ConfigError
from labelkin.neighbours import Neighbours, NeighbourSearch, open_search
from labelkin.neighbours.search import BuildProgress
from labelkin.neighbours.term_index import indexed_kinds
from labelkin.neighbours.vector_index import indexed_encoders
from labelkin.scoring.knn import Knn, KnnSettings
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.suggestion import Suggestion, fold_broader
from labelkin.store.collection import Collection, Generation
from labelkin.store.config import CollectionSection, Config, LabelsSection
from labelkin.store.info import CollectionInfo, collection_info
from labelkin.store.reports import AddReport, RemoveReport
from labelkin.store.writer import Progress, add_documents, remove_documents
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from labelkin.evaluate import Evaluation, Measure
    from labelkin.evaluate.comparison import Comparison
    from labelkin.evaluate.sweep import Trial


class Indexer(Closing):
    """A collection that one can fill, look into and, step by step, learn from.

    >>> with Indexer.create("news", vocabulary) as indexer:
    ...     indexer.add(read_corpus("indexed.jsonl"))
    ...     indexer.info().documents
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._searches: dict[str, NeighbourSearch] = {}
        self._method: tuple[tuple[Generation, KnnSettings], Knn] | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        vocabulary: Vocabulary | None = None,
        *,
        name: str = "",
        language: str = "auto",
    ) -> Indexer:
        """A new collection at `path`.

        Without a vocabulary, the labels found in documents become it.
        `language` is that of documents that do not state their own; "auto"
        detects it from each text.
        """
        code = language if language == "auto" else normalise_language(language)
        if code is None:
            raise ConfigError(f"{language!r} is no language code; give one such as 'en', or 'auto'")
        config = Config(
            collection=CollectionSection(name=name, language=code),
            labels=LabelsSection(unknown="keep" if vocabulary is None else "report"),
        )
        return cls(Collection.create(Path(path), vocabulary or Vocabulary(), config))

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False) -> Indexer:
        """An existing collection; one on a read-only disk can be read and searched."""
        return cls(Collection(Path(path), read_only=read_only))

    def close(self) -> None:
        """Let go of the collection's files."""
        for search in self._searches.values():
            search.close()
        self._searches.clear()
        self.collection.close()

    @property
    def config(self) -> Config:
        """The settings in labelkin.toml."""
        return self.collection.config

    @property
    def vocabulary(self) -> Vocabulary:
        """The concepts that documents can be labelled with."""
        return self.collection.vocabulary

    def add(
        self,
        documents: Iterable[Document | Deletion],
        *,
        keep_unknown: bool | None = None,
        progress: Progress | None = None,
    ) -> AddReport:
        """Store documents, a corpus from `read_corpus` for one; known ids are replaced.

        `progress` is called after each stored batch with the report so far.
        """
        return add_documents(
            self.collection, documents, keep_unknown=keep_unknown, progress=progress
        )

    def remove(self, identifiers: Iterable[str]) -> RemoveReport:
        """Take documents out by their ids."""
        return remove_documents(self.collection, identifiers)

    def document(self, identifier: str) -> Document | None:
        """The document with this id."""
        return self.collection.document(identifier)

    def documents(self) -> Iterator[Document]:
        """All documents, oldest first."""
        return self.collection.documents()

    def info(self) -> CollectionInfo:
        """Counts over documents, labels, languages and files."""
        found = collection_info(self.collection)
        indexes = [*indexed_kinds(self.collection), *indexed_encoders(self.collection)]
        return replace(found, indexes=indexes)

    def build(
        self,
        representation: str | None = None,
        *,
        relearn: bool = False,
        progress: BuildProgress | None = None,
    ) -> int:
        """Bring the index up to date; the number of documents that were new to it.

        Searching does so by itself; this is for doing it at a time of one's choice.
        `relearn` has `lsa` learn from the collection as it is now. `progress`
        hears how many rows are done, of how many.
        """
        search = self.search(representation)
        if relearn:
            search.relearn()
        return search.build(progress)

    def neighbours(
        self,
        documents: Sequence[Document],
        k: int | None = None,
        *,
        representation: str | None = None,
        store_terms: bool = False,
    ) -> Neighbours:
        """The `k` most similar labelled documents of each (default: as labelkin.toml says).

        A document that is in the collection is never its own neighbour.
        `store_terms` keeps the terms of the texts on disk for the next time.
        """
        return self.search(representation).search(documents, k, store_terms=store_terms)

    def suggest(
        self,
        documents: Sequence[Document],
        *,
        settings: KnnSettings | None = None,
        representation: str | None = None,
        fold: bool = False,
    ) -> list[list[Suggestion]]:
        """Headings for each document, best first, with the neighbours that carry them.

        `settings` are labelkin.toml's by default; `fold` drops headings that a
        narrower one among them implies.
        """
        knn = self._knn(settings)
        found = self.neighbours(documents, knn.settings.k, representation=representation)
        given = knn.suggestions(found, knn.cut(found, knn.rank(found)))
        return [fold_broader(one, self.vocabulary) for one in given] if fold else given

    def labels(
        self,
        documents: Sequence[Document],
        settings: KnnSettings | None = None,
        representation: str | None = None,
    ) -> Ranking:
        """As `suggest`, for many documents: columns and scores only, without the evidence."""
        knn = self._knn(settings)
        found = self.neighbours(documents, knn.settings.k, representation=representation)
        return knn.cut(found, knn.rank(found))

    def _knn(self, settings: KnnSettings | None) -> Knn:
        """The method for the collection as it is now, kept while nothing changes."""
        wanted = settings or KnnSettings.from_config(self.config)
        state = (self.collection.generation(), wanted)
        if self._method is None or self._method[0] != state:
            self._method = (state, Knn(self.collection, wanted))
        return self._method[1]

    def evaluate(
        self,
        documents: Sequence[Document],
        *,
        settings: KnnSettings | None = None,
        representation: str | None = None,
    ) -> Evaluation:
        """What would be suggested for documents that have labels, beside those labels.

        Hand it to `labelkin.evaluate.evaluate` for the values of measures. A
        document that is in the collection is searched leave-one-out.
        """
        from labelkin.evaluate import Evaluation
        from labelkin.evaluate.gold import gold_matrix, hierarchy_of

        knn = self._knn(settings)
        found = self.neighbours(documents, knn.settings.k, representation=representation)
        ranked = knn.rank(found)
        gold = gold_matrix(documents, self.vocabulary)
        generation = self.collection.generation()
        dropped = self.collection.tombstones(generation)
        training = self.collection.label_sets().frequencies(gold.shape[1], dropped)
        return Evaluation(
            gold=gold,
            predicted=knn.cut(found, ranked),
            ranked=ranked,
            training_frequencies=training,
            training_documents=self.collection.count(),
            hierarchy=hierarchy_of(self.vocabulary, gold.shape[1]),
        )

    def tune(
        self,
        documents: Sequence[Document],
        measure: Measure,
        *,
        representation: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Trial]:
        """How all combinations of k, weighting, count and threshold do, best first.

        Where representations are fused, the way and the weights are chosen
        first, at the settings of labelkin.toml.
        """
        from labelkin.evaluate.gold import gold_matrix
        from labelkin.evaluate.sweep import KS, sweep, sweep_fusion
        from labelkin.neighbours.fused_search import FusedSearch
        from labelkin.neighbours.fusion import fuse

        gold = gold_matrix(documents, self.vocabulary)
        search = self.search(representation)
        if not isinstance(search, FusedSearch):
            found = search.search(documents, max(KS), store_terms=True)
            return sweep(self._knn(None), found, gold, measure, progress=progress)
        parts = search.parts(documents, max(KS), store_terms=True)
        constant = self.config.fusion.rank_constant
        best = sweep_fusion(self._knn(None), parts, gold, measure, constant, progress)[0].fusion
        if best is None:
            return []
        found = fuse(parts, max(KS), best.weights, best.method, constant)
        trials = sweep(self._knn(None), found, gold, measure, progress=progress)
        return [replace(trial, fusion=best) for trial in trials]

    def compare(
        self,
        documents: Sequence[Document],
        representations: Sequence[str],
        measures: Sequence[Measure],
        ks: Sequence[int],
    ) -> Iterator[Comparison]:
        """How basic k-NN does by each representation and k: the paper's first table."""
        from labelkin.evaluate.comparison import compare_ks
        from labelkin.evaluate.gold import gold_matrix

        gold = gold_matrix(documents, self.vocabulary)
        for name in representations:
            found = self.neighbours(documents, max(ks), representation=name, store_terms=True)
            knn = self._knn(KnnSettings())
            yield from compare_ks(name, knn, found, gold, measures, ks)

    def search(self, representation: str | None = None) -> NeighbourSearch:
        """The search by one representation, for more than `neighbours` tells."""
        name = representation or self.config.representation.name
        if name not in self._searches:
            self._searches[name] = open_search(self.collection, name)
        return self._searches[name]
