"""The whole of labelkin behind one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.corpus.document import Deletion, Document
from labelkin.corpus.language import normalise_language
from labelkin.exceptions import CollectionReadOnlyError, ConfigError, VocabularyError
from labelkin.neighbours import Neighbours, NeighbourSearch, open_search
from labelkin.neighbours.search import BuildProgress
from labelkin.neighbours.term_index import indexed_kinds
from labelkin.neighbours.vector_index import indexed_encoders
from labelkin.scoring.methods import Method, make_method, method_digest, usable_methods
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Suggestion, fold_broader, fold_broader_labels
from labelkin.store.collection import Collection, Generation
from labelkin.store.config import CollectionSection, Config, LabelsSection
from labelkin.store.info import CollectionInfo, collection_info
from labelkin.store.reports import AddReport, RemoveReport
from labelkin.store.writer import Progress, add_documents, remove_documents
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import TrainingReport
    from labelkin.autoencoder.training import Watcher
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.evaluate import Evaluation, Measure
    from labelkin.evaluate.comparison import Comparison
    from labelkin.evaluate.sweep import Trial
    from labelkin.rerank.fitting import LearningReport
    from labelkin.rerank.settings import LearningSettings
    from labelkin.scoring.settings import MethodName
    from labelkin.store.held_out import HeldOut


class Indexer(Closing):
    """A collection that one can fill, look into and, step by step, learn from.

    >>> with Indexer.create("news", vocabulary) as indexer:
    ...     indexer.add(read_corpus("indexed.jsonl"))
    ...     indexer.info().documents
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._searches: dict[str, NeighbourSearch] = {}
        self._methods: dict[Settings, tuple[tuple[Generation, str], Method]] = {}

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

    def queries(
        self,
        documents: Sequence[Document],
        k: int | None = None,
        *,
        representation: str | None = None,
        store_terms: bool = False,
    ) -> Queries:
        """Documents with their neighbours, as methods take them; with none where `k` is 0."""
        if k == 0:
            return Queries.alone(documents)
        found = self.neighbours(
            documents, k, representation=representation, store_terms=store_terms
        )
        return Queries(documents, found)

    def suggest(
        self,
        documents: Sequence[Document],
        *,
        settings: Settings | None = None,
        representation: str | None = None,
        fold: bool = False,
    ) -> list[list[Suggestion]]:
        """Headings for each document, best first, with the evidence for them.

        `settings` are labelkin.toml's by default; `fold` drops headings that a
        narrower one among them implies.
        """
        method, found = self._method_and_queries(documents, settings, representation)
        given = method.suggestions(found, method.cut(found, method.rank(found)))
        return [fold_broader(one, self.vocabulary) for one in given] if fold else given

    def labels(
        self,
        documents: Sequence[Document],
        settings: Settings | None = None,
        representation: str | None = None,
        *,
        fold: bool = False,
    ) -> Ranking:
        """As `suggest`, for many documents: columns and scores only, without the evidence."""
        method, found = self._method_and_queries(documents, settings, representation)
        given = method.cut(found, method.rank(found))
        return fold_broader_labels(given, self.vocabulary) if fold else given

    def method(self, settings: Settings | None = None) -> Method:
        """A method for the collection and the model as they are now, kept while nothing changes."""
        wanted = settings or Settings.from_config(self.config)
        model = self.model_digest(wanted.method) if wanted.learned else ""
        state = (self.collection.generation(), model)
        known = self._methods.get(wanted)
        if known is None or known[0] != state:
            known = self._methods[wanted] = (state, make_method(self.collection, wanted))
        return known[1]

    def _method_and_queries(
        self, documents: Sequence[Document], settings: Settings | None, representation: str | None
    ) -> tuple[Method, Queries]:
        # Neighbours first: the method must know whoever they are.
        wanted = settings or Settings.from_config(self.config)
        found = self.queries(documents, wanted.k, representation=representation)
        return self.method(wanted), found

    def train(
        self,
        settings: TrainingSettings | None = None,
        *,
        representation: str | None = None,
        start_from: str | Path | None = None,
        held_out: HeldOut | None = None,
        resume: bool = False,
        watcher: Watcher | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> TrainingReport | None:
        """Train the label autoencoder; needs the extra `train`.

        `start_from` is a model folder or a collection whose model is to start
        from, labels matched by concept id; its layers are those of the result.
        With 0 epochs it is taken over as it is, which needs no extra.
        `held_out` are documents that a reranker is trained on afterwards, which
        the autoencoder must not see; a model to start from may have seen them.
        `watcher` hears how training goes; `progress` how many documents'
        neighbours have been found before it, of how many. Among several
        processes (torchrun) only the first gets a report.
        """
        from labelkin.autoencoder.fitting import check_training, fit_label_model, take_over_model
        from labelkin.autoencoder.origin import find_origin
        from labelkin.autoencoder.training_data import make_training_data
        from labelkin.autoencoder.training_settings import TrainingSettings
        from labelkin.neighbours.training import training_neighbours
        from labelkin.scoring.label_ae import model_folder
        from labelkin.store.held_out import row_keys

        wanted = settings or TrainingSettings.from_config(self.config)
        collection = self.collection
        if collection.database.read_only:
            raise CollectionReadOnlyError(f"{collection.path}: the collection cannot be written to")
        origin = None
        with collection.database.snapshot():
            generation = collection.generation()
            if start_from is not None:
                origin = find_origin(Path(start_from), collection.columns_by_id())
                wanted = origin.shaped(wanted)
            dropped = collection.tombstones(generation)
            if held_out is not None:
                dropped = np.union1d(dropped, held_out.held_out)
            label_sets = collection.label_sets()
            data = make_training_data(
                label_sets,
                generation.next_column,
                dropped,
                held_out=wanted.held_out,
                min_frequency=wanted.min_frequency,
                seed=wanted.seed,
                kept=None if origin is None else origin.known,
                # Other keys than those of the reranker's held-out documents.
                keys=row_keys(collection, -1 - wanted.seed, label_sets.rows),
            )
        if origin is not None:
            origin.check(data, self.vocabulary)
            if wanted.epochs == 0:
                folder = model_folder(collection)
                return take_over_model(data, self.vocabulary, wanted, folder, origin)
        if held_out is not None and origin is None:
            data = replace(data, left_out=held_out.rule.to_json())
        check_training(data, wanted, model_folder(collection), resume=resume)
        if wanted.averages and wanted.averaged_documents:
            neighbours = training_neighbours(
                self.search(representation), data, wanted.averaged_documents, wanted.seed, progress
            )
            data = replace(data, neighbours=neighbours)
        return fit_label_model(
            data,
            self.vocabulary,
            wanted,
            model_folder(collection),
            origin=origin,
            resume=resume,
            watcher=watcher,
        )

    def train_reranker(
        self,
        documents: Sequence[Document] = (),
        settings: LearningSettings | None = None,
        *,
        representation: str | None = None,
        held_out: HeldOut | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> LearningReport:
        """Train the reranker; needs the extra `rerank`.

        It is trained on documents of the collection that are held out of all
        statistics, and on `documents` with labels, if given, which new ones
        should resemble. `held_out` are those that the label autoencoder was
        trained without; by default they are chosen here. `progress` is called
        with the name of the stage, the amount done and the total.
        """
        from labelkin.rerank.fitting import fit_reranker
        from labelkin.rerank.settings import LearningSettings

        if self.collection.database.read_only:
            raise CollectionReadOnlyError(
                f"{self.collection.path}: the collection cannot be written to"
            )
        wanted = settings or LearningSettings.from_config(self.config)
        return fit_reranker(
            self.collection, self.search(representation), wanted, documents, held_out, progress
        )

    def adopt_reranker(self, report: LearningReport) -> bool:
        """Make `rerank` the method of labelkin.toml if it did better than votes; whether it did.

        Its threshold is written down either way.
        """
        from labelkin.store.config import CONFIG_NAME, read_config, update_config

        is_better = report.score > report.votes
        changes: dict[str, dict[str, object]] = {"rerank": {"threshold": report.threshold}}
        if is_better:
            changes["suggest"] = {"method": "rerank"}
        path = self.collection.path / CONFIG_NAME
        update_config(path, changes)
        self.collection.config = read_config(path)
        return is_better

    def usable_methods(self) -> list[MethodName]:
        """The methods that the collection can use: all whose models have been trained."""
        return usable_methods(self.collection)

    def related(self, heading: str, limit: int = 10) -> list[tuple[Concept, float]]:
        """The headings that go together with one, by the label autoencoder, nearest first."""
        from labelkin.autoencoder.model import LabelModel
        from labelkin.scoring.label_ae import model_folder

        concept = self.vocabulary.find(heading)
        model = LabelModel(model_folder(self.collection))
        if concept.id not in model.info.labels:
            raise VocabularyError(f"{concept.name()}: the label autoencoder does not know it")
        near = (
            (name, value) for name, value in model.related(concept.id) if name in self.vocabulary
        )
        return [(self.vocabulary.concept(name), value) for name, value in islice(near, limit)]

    def model_digest(self, method: MethodName = "label-ae") -> str:
        """Changes whenever the model that a method uses is trained anew."""
        return method_digest(self.collection, method)

    def evaluate(
        self,
        documents: Sequence[Document],
        *,
        settings: Settings | None = None,
        representation: str | None = None,
    ) -> Evaluation:
        """What would be suggested for documents that have labels, beside those labels.

        Hand it to `labelkin.evaluate.evaluate` for the values of measures. A
        document that is in the collection is searched leave-one-out.
        """
        wanted = settings or Settings.from_config(self.config)
        (evaluation,) = self.compare(documents, [wanted], representation=representation)
        return evaluation

    def compare(
        self,
        documents: Sequence[Document],
        settings: Sequence[Settings],
        *,
        representation: str | None = None,
    ) -> list[Evaluation]:
        """As `evaluate`, for several settings over the same neighbours."""
        k = max(wanted.k for wanted in settings)
        found = self.queries(documents, k, representation=representation)
        methods = [self.method(wanted) for wanted in settings]
        gold = self._gold(documents)
        evaluations = []
        for method in methods:
            ranked = method.rank(found)
            predicted = method.cut(found, ranked)
            evaluations.append(replace(gold, predicted=predicted, ranked=ranked))
        return evaluations

    def label_frequencies(self, labels: int | None = None) -> npt.NDArray[np.integer]:
        """How many documents carry the label of each column; columns behind the vocabulary's 0."""
        dropped = self.collection.tombstones(self.collection.generation())
        width = len(self.vocabulary) if labels is None else labels
        return self.collection.label_sets().frequencies(width, dropped)

    def _gold(self, documents: Sequence[Document]) -> Evaluation:
        """What documents should get, and all that measures may want to know."""
        from labelkin.evaluate import Evaluation
        from labelkin.evaluate.gold import gold_matrix, hierarchy_of

        gold = gold_matrix(documents, self.vocabulary)
        labels = gold.shape[1]
        return Evaluation.unpredicted(
            gold,
            training_frequencies=self.label_frequencies(labels),
            training_documents=self.collection.count(),
            hierarchy=hierarchy_of(self.vocabulary, labels),
        )

    def tune(
        self,
        documents: Sequence[Document],
        measure: Measure,
        *,
        method: MethodName | None = None,
        representation: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Trial]:
        """How all combinations of a method's settings do, best first.

        Where representations are fused, the way and the weights are chosen
        first, at the settings of labelkin.toml.
        """
        from labelkin.evaluate.sweep import KS, sweep, sweep_fusion
        from labelkin.neighbours.fused_search import FusedSearch
        from labelkin.neighbours.fusion import fuse

        measure.check_goal()
        settings = Settings.from_config(self.config, method)
        gold = self._gold(documents)
        if settings.k == 0:
            alone = Queries.alone(documents)
            return sweep(self.method(settings), settings, alone, gold, measure, progress=progress)
        search = self.search(representation)
        if not isinstance(search, FusedSearch):
            found = Queries(documents, search.search(documents, max(KS), store_terms=True))
            return sweep(self.method(settings), settings, found, gold, measure, progress=progress)
        parts = search.parts(documents, max(KS), store_terms=True)
        constant = self.config.fusion.rank_constant
        scorer = self.method(settings)
        depth = max(settings.k, self.config.fusion.depth)
        near = [part.nearest(depth) for part in parts]
        best = sweep_fusion(scorer, settings, documents, near, gold, measure, constant, progress)[
            0
        ].fusion
        if best is None:
            return []
        found = Queries(documents, fuse(parts, max(KS), best.weights, best.method, constant))
        trials = sweep(scorer, settings, found, gold, measure, progress=progress)
        return [replace(trial, fusion=best) for trial in trials]

    def compare_representations(
        self,
        documents: Sequence[Document],
        names: Sequence[str],
        measures: Sequence[Measure],
        ks: Sequence[int],
    ) -> Iterator[Comparison]:
        """How basic k-NN does by each representation and k: the paper's first table."""
        from labelkin.evaluate.comparison import compare_ks
        from labelkin.evaluate.gold import gold_matrix
        from labelkin.scoring.knn import Knn
        from labelkin.scoring.settings import ScorerSettings

        gold = gold_matrix(documents, self.vocabulary)
        for name in names:
            found = self.queries(documents, max(ks), representation=name, store_terms=True)
            knn = Knn(self.collection, ScorerSettings())
            yield from compare_ks(name, knn, found, gold, measures, ks)

    def search(self, representation: str | None = None) -> NeighbourSearch:
        """The search by one representation, for more than `neighbours` tells."""
        name = representation or self.config.representation.name
        if name not in self._searches:
            self._searches[name] = open_search(self.collection, name)
        return self._searches[name]

    def close_search(self, representation: str | None = None) -> None:
        """Let go of what a search holds in memory; it is opened anew when it is asked for."""
        search = self._searches.pop(representation or self.config.representation.name, None)
        if search is not None:
            search.close()
