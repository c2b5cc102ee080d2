"""The public interface: one object per open collection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.corpus.document import CorpusItem, Correction, Document
from labelkin.corpus.language import normalise_language
from labelkin.exceptions import (
    CollectionError,
    ConfigError,
    InputError,
    ModelError,
    VocabularyError,
)
from labelkin.layout import is_collection
from labelkin.neighbours import Neighbours, NeighbourSearch
from labelkin.neighbours.neighbour import Neighbour, StoredDocument, describe
from labelkin.neighbours.term_index import indexed_kinds
from labelkin.runtime import Runtime
from labelkin.scoring.methods import METHODS, usable_methods
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Suggestion, fold_broader, fold_broader_labels
from labelkin.store.collection import Collection
from labelkin.store.config import CollectionSection, Config, LabelsSection, with_recipe
from labelkin.store.derived import BuildProgress
from labelkin.store.snapshot import Snapshot
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary
from labelkin.wording import shortened

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.backup import BackupProgress, BackupReport
    from labelkin.compaction import CompactProgress, CompactReport
    from labelkin.desk.decisions import Decision
    from labelkin.desk.desk import Desk
    from labelkin.evaluate import Evaluation, Measure
    from labelkin.evaluate.comparison import Comparison
    from labelkin.evaluate.stored import EvaluationSummary
    from labelkin.evaluate.sweep import Trial
    from labelkin.inspection import Staleness
    from labelkin.integrity import CheckReport
    from labelkin.plots.latent import LatentMap
    from labelkin.plots.reliability import Reliability
    from labelkin.rerank.fitting import RerankReport
    from labelkin.rerank.settings import RerankTrainingSettings
    from labelkin.store.held_out import HeldOut
    from labelkin.store.info import CollectionInfo
    from labelkin.store.reports import AddReport, EditionReport, RemoveReport
    from labelkin.store.writer import Progress
    from labelkin.training_plan import TrainingObserver, TrainingReport


# An `add` of more documents drops the current state, so that SQLite's log can shrink.
_MANY = 5_000


@dataclass(frozen=True, slots=True)
class Answer:
    """Suggestions for some documents, and the generation of the collection they come from."""

    generation: int
    suggestions: list[list[Suggestion]]


def _listed(documents: Iterable[Document]) -> list[Document]:
    """The documents of a request; anything else is refused."""
    if isinstance(documents, Document | str):
        raise InputError(f"give a list of documents, not {type(documents).__name__} alone")
    listed = list(documents)
    for one in listed:
        if not isinstance(one, Document):
            raise InputError(
                f"{shortened(repr(one))} is not a Document; a text is one as Document('', TEXT)"
            )
    return listed


def _as_correction(item: Correction) -> Correction:
    if not isinstance(item, Correction):
        raise InputError(f"{shortened(repr(item))} is not a Correction")
    return item


class Indexer(Closing):
    """A collection that can be filled, searched, trained and asked for headings.

    An open `Indexer` can be shared between threads. Every call answers from one
    state of the collection; a thread's own writes are part of its next call.

    >>> with Indexer.create("news", vocabulary) as indexer:
    ...     indexer.add(read_corpus("indexed.jsonl"))
    ...     indexer.suggest([Document("new", "A title", "A text")])
    """

    def __init__(self, collection: Collection, *, follow: bool = False) -> None:
        self.collection = collection
        self.runtime = Runtime(collection, follow=follow)
        self._desk: Desk | None = None
        self._desk_lock = Lock()
        self._is_closed = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        vocabulary: Vocabulary | None = None,
        *,
        name: str = "",
        language: str = "auto",
        recipe: str | None = None,
        follow: bool = False,
    ) -> Indexer:
        """A new collection at `path`.

        Without a vocabulary, the labels found in documents become it.
        `language` is that of documents that do not state their own; "auto"
        detects it from each text. `recipe` names settings other than the defaults:
        "paper" finds neighbours as the paper does. `follow` is explained at `open`.
        """
        if isinstance(vocabulary, str | Path):
            raise ConfigError(
                f"the vocabulary is {str(vocabulary)!r}; read the file first: "
                f"read_vocabulary({str(vocabulary)!r})"
            )
        code = language if language == "auto" else normalise_language(language)
        if code is None:
            raise ConfigError(
                f"{language!r} is not a language code; give one such as 'en', or 'auto'"
            )
        config = Config(
            collection=CollectionSection(name=name, language=code),
            labels=LabelsSection(unknown="keep" if vocabulary is None else "report"),
        )
        if recipe is not None:
            config = with_recipe(config, recipe)
        collection = Collection.create(Path(path), vocabulary or Vocabulary(), config)
        return cls(collection, follow=follow)

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False, follow: bool = False) -> Indexer:
        """An existing collection; one on a read-only disk can be read and searched.

        `follow` starts a background thread that brings the indexes up to date
        after every change, so that requests need not wait for it: right for a
        process that runs for long. Without it each call looks for changes.
        """
        return cls(Collection(Path(path), read_only=read_only), follow=follow)

    @classmethod
    def open_or_create(
        cls,
        path: str | Path,
        vocabulary: Vocabulary | None = None,
        *,
        name: str = "",
        language: str = "auto",
        recipe: str | None = None,
        follow: bool = False,
    ) -> Indexer:
        """The collection at `path`, created if there is none; the rest as in `create`."""
        if is_collection(Path(path)):
            return cls.open(path, follow=follow)
        return cls.create(
            path, vocabulary, name=name, language=language, recipe=recipe, follow=follow
        )

    @property
    def desk(self) -> Desk:
        """Work lists and verdicts of indexers; its file is opened when it is first used."""
        from labelkin.desk.desk import Desk

        with self._desk_lock:
            if self._desk is None:
                self._desk = Desk(self.collection.path, read_only=self.collection.read_only)
                if self._is_closed:
                    self._desk.close()
            return self._desk

    def close(self) -> None:
        """Close all files, models and threads."""
        with self._desk_lock:
            self._is_closed = True
            if self._desk is not None:
                self._desk.close()
        self.runtime.close()

    def verdicts(self, *, every: bool = False) -> Iterator[Decision]:
        """The latest decision of indexers about each document, or every one, the oldest first."""
        decisions = self.desk.decisions
        return decisions.all() if every else decisions.latest()

    def warm_up(self, methods: Iterable[str] | None = None) -> list[str]:
        """Load what requests with these methods need (default: the collection's); their names."""
        names = [self.config.suggest.method] if methods is None else list(methods)
        text = next(iter(self.documents()), Document("", "warm up"))
        query = Document("", text.title, text.body, language=text.language)
        # Twice: what is loaded for an explanation is used for scores from then on.
        for name in names * 2:
            self.suggest([query], settings=Settings.from_config(self.config, name), explain=True)
        return names

    @property
    def config(self) -> Config:
        """The settings in labelkin.toml, as the file has them now."""
        return self.collection.config

    @property
    def vocabulary(self) -> Vocabulary:
        """The concepts that documents can be labelled with. Do not change it."""
        return self.collection.vocabulary

    def snapshot(self) -> Snapshot:
        """The current state, unaffected by later writes."""
        return self.runtime.views(needs_index=False).snapshot

    def require(self, generation: int) -> None:
        """Let this thread's next calls see at least this generation, say of another's write."""
        self.runtime.require(generation)

    def add(
        self,
        documents: Iterable[CorpusItem],
        *,
        keep_unknown: bool | None = None,
        take_older: bool = False,
        progress: Progress | None = None,
    ) -> AddReport:
        """Store documents, for example a corpus from `read_corpus`; known ids are replaced.

        Corrections and deletions among them apply to what precedes them. What has
        an older revision than the stored document is left out and reported, unless
        `take_older`. `progress` is called after each stored batch with the report so far.
        """
        from labelkin.store.writer import add_documents

        def report(so_far: AddReport) -> None:
            if so_far.documents > _MANY:
                self.runtime.forget()
            if progress is not None:
                progress(so_far)

        try:
            return add_documents(
                self.collection,
                documents,
                keep_unknown=keep_unknown,
                take_older=take_older,
                progress=report,
            )
        finally:
            self.runtime.wrote()

    def correct(
        self,
        corrections: Iterable[Correction],
        *,
        keep_unknown: bool | None = None,
        take_older: bool = False,
    ) -> AddReport:
        """Replace the headings of stored documents; their texts stay. The rest as in `add`."""
        items = map(_as_correction, corrections)
        return self.add(items, keep_unknown=keep_unknown, take_older=take_older)

    def remove(self, identifiers: Iterable[str]) -> RemoveReport:
        """Remove documents by their ids; a string is one id."""
        from labelkin.store.writer import remove_documents

        if isinstance(identifiers, str):
            identifiers = [identifiers]
        try:
            return remove_documents(self.collection, identifiers)
        finally:
            self.runtime.wrote()

    def update_vocabulary(
        self,
        vocabulary: Vocabulary,
        *,
        dry_run: bool = False,
        force: bool = False,
        progress: BuildProgress | None = None,
    ) -> EditionReport:
        """Make another edition the vocabulary of the collection; models stay usable.

        Documents follow their headings by id and by replaced-by links, and labels that
        were unknown are resolved again. Headings that the edition lacks are no longer
        suggested. `dry_run` reports the same and changes nothing. An edition that lacks
        most headings is refused without `force`.
        """
        if not isinstance(vocabulary, Vocabulary):
            raise ConfigError(
                f"the vocabulary is {shortened(repr(vocabulary))}; read a file with "
                "read_vocabulary(FILE) first"
            )
        from labelkin.inspection import new_to_models
        from labelkin.store.editions import update_vocabulary

        try:
            report = update_vocabulary(
                self.collection, vocabulary, dry_run=dry_run, force=force, progress=progress
            )
        finally:
            self.runtime.wrote()
        report.new_to_models = new_to_models(self.snapshot(), report.new_headings)
        return report

    def undo_vocabulary(
        self, *, dry_run: bool = False, progress: BuildProgress | None = None
    ) -> EditionReport:
        """Restore the edition before the last `update_vocabulary`, and the labels it changed.

        Documents that were added or changed since stay as they are.
        """
        from labelkin.store.editions import undo_vocabulary

        try:
            return undo_vocabulary(self.collection, dry_run=dry_run, progress=progress)
        finally:
            self.runtime.wrote()

    def document(self, identifier: str) -> Document | None:
        """The document with this id."""
        return self.collection.document(identifier)

    def show(
        self,
        identifier: str,
        k: int = 5,
        *,
        representation: str | None = None,
        terms: int = 0,
    ) -> StoredDocument | None:
        """The document with this id and its `k` nearest neighbours, both of one state.

        None if it is not stored. `terms` is as in `neighbours`.
        """

        def work() -> StoredDocument | None:
            views = self.runtime.views(representation, needs_index=k > 0)
            snapshot = views.snapshot
            document = snapshot.document(identifier)
            if document is None:
                return None
            near: list[Neighbour] = []
            if k > 0:
                search = self.runtime.indexes.search(views, representation)
                found = search.search(search.texts([document]), k)
                (near,) = describe(search, [document], found, terms)
            known = snapshot.vocabulary
            headings = {
                label: known.concept(label) if label in known else None for label in document.labels
            }
            return StoredDocument(snapshot.generation().number, document, headings, near)

        return self.runtime.retried(work)

    def documents(self) -> Iterator[Document]:
        """All documents, oldest first."""
        return self.snapshot().documents()

    def info(self) -> CollectionInfo:
        """Counts over documents, labels, languages and files."""
        from labelkin.inspection import model_states
        from labelkin.neighbours.vector_index import indexed_encoders
        from labelkin.store.info import collection_info

        info = collection_info(self.collection)
        indexes = [*indexed_kinds(self.collection), *indexed_encoders(self.collection)]
        states = model_states(self.snapshot())
        return replace(
            info,
            **self._desk_info(),
            indexes=indexes,
            models=[state.name for state in states if state.is_usable],
            model_states=[
                {**asdict(state), "is_outdated": state.is_outdated, "reason": state.reason}
                for state in states
            ],
        )

    def _desk_info(self) -> dict[str, Any]:
        """Counts of the desk; a damaged one does not keep anybody from the rest."""
        try:
            return {"worklists": len(self.desk.worklists), "decisions": len(self.desk.decisions)}
        except CollectionError as error:
            return {"desk_problem": str(error)}

    def check(self) -> CheckReport:
        """Verify every file of the collection, as `labelkin doctor` does without `--repair`."""
        from labelkin.integrity import check_collection

        return check_collection(self.collection.path)

    def compact(self, progress: CompactProgress | None = None) -> CompactReport:
        """Give back what removed documents still take up; others may read and write meanwhile.

        `progress` is called with a part, the rows done and the total.
        """
        from labelkin.compaction import compact_collection

        return compact_collection(self.collection, progress)

    def backup(
        self,
        target: str | Path,
        *,
        indexes: bool = True,
        progress: BackupProgress | None = None,
    ) -> BackupReport:
        """Copy the collection to a new folder, or a file .tar or .tar.gz; others may write.

        Without `indexes`, what can be rebuilt from the documents is left out. `progress` is
        called with the pages of the database that are copied, and all of them.
        """
        from labelkin.backup import back_up

        return back_up(self.collection, Path(target), indexes=indexes, progress=progress)

    def build(
        self,
        representation: str | None = None,
        *,
        relearn: bool = False,
        progress: BuildProgress | None = None,
    ) -> int:
        """Bring the index up to date; the number of documents that were new to it.

        Searching does so by itself. `relearn` fits `lsa` to the collection as
        it is now. `progress` is called with the rows done and the total.
        """
        added = self.runtime.retried(
            lambda: self.runtime.indexes.build(
                self.collection.snapshot(), representation, relearn=relearn, progress=progress
            )
        )
        if relearn:
            name = self.config.representation.name if representation is None else representation
            for part in name.split(","):
                self.runtime.release(part.strip())
        return added

    def neighbours(
        self,
        documents: Iterable[Document],
        k: int | None = None,
        *,
        representation: str | None = None,
        terms: int = 0,
    ) -> list[list[Neighbour]]:
        """The `k` most similar labelled documents of each (default: as labelkin.toml says).

        A document that is in the collection is never its own neighbour. `terms`
        is the number of shared terms to list for each.
        """
        listed = _listed(documents)

        def work() -> list[list[Neighbour]]:
            search = self.search(representation)
            near = search.search(search.texts(listed), k)
            return describe(search, listed, near, terms)

        return self.runtime.retried(work)

    def neighbour_arrays(
        self,
        documents: Iterable[Document],
        k: int | None = None,
        *,
        representation: str | None = None,
        store_terms: bool = False,
    ) -> Neighbours:
        """As `neighbours`, as arrays of rows and scores that can be saved and reused.

        `store_terms` keeps the terms of the texts on disk for the next time.
        """
        listed = _listed(documents)

        def work() -> Neighbours:
            search = self.search(representation)
            return search.search(search.texts(listed, store_terms=store_terms), k)

        return self.runtime.retried(work)

    def search(self, representation: str | None = None) -> NeighbourSearch:
        """The search of the current state by a representation."""
        views = self.runtime.views(representation)
        return self.runtime.indexes.search(views, representation)

    def queries(
        self,
        documents: Sequence[Document],
        k: int = 0,
        *,
        representation: str | None = None,
        neighbours: Neighbours | None = None,
        store_terms: bool = False,
        without_copies: bool = False,
    ) -> Queries:
        """Documents as methods take them, with at least `k` neighbours found.

        `neighbours` are those found before, for the same documents. A document
        is never its own neighbour; `without_copies`, neither is any with the
        same text.
        """
        needs_index = k > 0 and neighbours is None
        queries = self._unsearched(
            documents,
            representation,
            needs_index=needs_index,
            store_terms=store_terms,
            without_copies=without_copies,
        )
        if neighbours is not None:
            return queries.with_neighbours(neighbours)
        if needs_index:
            queries.neighbours(k)
        return queries

    def check_representation(
        self, settings: Sequence[Settings], representation: str | None
    ) -> None:
        """Refuse a representation that a method cannot use before an index is built for it."""
        for one in settings:
            name = representation or self.config.representation.name
            one.implementation.check_representation(self.runtime.models, name)

    def _unsearched(
        self,
        documents: Sequence[Document],
        representation: str | None,
        *,
        needs_index: bool,
        store_terms: bool = False,
        without_copies: bool = False,
    ) -> Queries:
        """Documents as queries on the present state, whose neighbours are found when needed."""
        views = self.runtime.views(representation, needs_index=needs_index)
        return Queries(
            views,
            self.runtime.models,
            documents,
            self.runtime.indexes.context.cache,
            self.runtime.indexes.search(views, representation) if needs_index else None,
            store_terms=store_terms,
            without_copies=without_copies,
            indexes=self.runtime.indexes,
        )

    def suggest(
        self,
        documents: Iterable[Document],
        *,
        settings: Settings | None = None,
        representation: str | None = None,
        fold: bool = False,
        explain: bool = False,
    ) -> list[list[Suggestion]]:
        """Headings for each document, best first, with the evidence for them.

        `settings` are labelkin.toml's by default; `fold` drops headings that a
        narrower one among them implies; `explain` adds the weights of the
        signals of reranked headings, which take longer to compute.
        """
        return self.answer(
            documents,
            settings=settings,
            representation=representation,
            fold=fold,
            explain=explain,
        ).suggestions

    def answer(
        self,
        documents: Iterable[Document],
        *,
        settings: Settings | None = None,
        representation: str | None = None,
        fold: bool = False,
        explain: bool = False,
    ) -> Answer:
        """As `suggest`, with the generation that the suggestions come from."""
        chosen = settings or Settings.from_config(self.config)
        (answer,) = self.answers(
            documents, [chosen], representation=representation, fold=fold, explain=explain
        )
        return answer

    def answers(
        self,
        documents: Iterable[Document],
        settings: Sequence[Settings],
        *,
        representation: str | None = None,
        fold: bool = False,
        explain: bool = False,
    ) -> list[Answer]:
        """As `answer` for several settings, over the same neighbours of one state."""
        self.check_representation(settings, representation)
        listed = _listed(documents)
        k = max((one.k for one in settings), default=0)

        def work() -> list[Answer]:
            queries = self.queries(listed, k, representation=representation)
            number = queries.snapshot.generation().number
            answers = []
            for one in settings:
                method = one.implementation
                given = method.cut(queries, method.rank(queries, one), one)
                suggestions = method.explain(queries, given, one, signals=explain)
                if fold:
                    vocabulary = queries.snapshot.vocabulary
                    suggestions = [fold_broader(each, vocabulary) for each in suggestions]
                answers.append(Answer(number, suggestions))
            return answers

        return self.runtime.retried(work)

    def explain(
        self,
        document: Document,
        headings: Sequence[str],
        *,
        settings: Settings | None = None,
        representation: str | None = None,
    ) -> list[Suggestion]:
        """Why some headings (ids or names; a string is one) are or are not suggested.

        Headings that the method does not rank at all are left out.
        """
        chosen = settings or Settings.from_config(self.config)
        self.check_representation([chosen], representation)
        asked = [headings] if isinstance(headings, str) else headings

        def work() -> list[Suggestion]:
            queries = self.queries([document], chosen.k, representation=representation)
            vocabulary = queries.snapshot.vocabulary
            wanted = [vocabulary.column(vocabulary.find(heading).id) for heading in asked]
            method = chosen.implementation
            ranking = method.rank(queries, chosen)
            ranks = {int(column): int(rank) for rank, column in enumerate(ranking.columns, 1)}
            given = ranking.kept(np.isin(ranking.columns, wanted))
            (suggestions,) = method.explain(queries, given, chosen, signals=True)
            return [
                replace(suggestion, rank=ranks[vocabulary.column(suggestion.concept.id)])
                for suggestion in suggestions
            ]

        return self.runtime.retried(work)

    def labels(
        self,
        documents: Sequence[Document],
        settings: Settings | None = None,
        representation: str | None = None,
        *,
        fold: bool = False,
    ) -> Ranking:
        """As `suggest`, for many documents: columns and scores only, without the evidence."""
        chosen = settings or Settings.from_config(self.config)
        self.check_representation([chosen], representation)

        def work() -> Ranking:
            queries = self.queries(documents, chosen.k, representation=representation)
            method = chosen.implementation
            given = method.cut(queries, method.rank(queries, chosen), chosen)
            return fold_broader_labels(given, queries.snapshot.vocabulary) if fold else given

        return self.runtime.retried(work)

    def train(
        self,
        *,
        label_ae: TrainingSettings | bool = True,
        rerank: RerankTrainingSettings | bool = True,
        documents: Sequence[Document] = (),
        start_from: str | Path | None = None,
        resume: bool = False,
        representation: str | None = None,
        observer: TrainingObserver | None = None,
    ) -> TrainingReport:
        """Train label autoencoder and reranker, as `labelkin train` does.

        `label_ae` and `rerank` are settings, True for those of labelkin.toml,
        or False to train the other one only. The reranker is also trained on
        `documents`, which have labels and are not in the collection.
        `start_from` is a model folder or a collection to start the autoencoder
        from. A model whose extra is not installed is skipped and reported.
        `rerank` becomes the collection's method if it does better than votes
        on held-out documents. Cuts of methods that use the autoencoder are
        chosen on such documents and written to labelkin.toml.
        """
        from labelkin.autoencoder.training_settings import TrainingSettings
        from labelkin.rerank.settings import RerankTrainingSettings
        from labelkin.training import Training

        config = self.config
        if isinstance(label_ae, bool):
            label_ae_settings = TrainingSettings.from_config(config) if label_ae else None
        else:
            label_ae_settings = label_ae
        if isinstance(rerank, bool):
            rerank_settings = RerankTrainingSettings.from_config(config) if rerank else None
        else:
            rerank_settings = rerank
        return Training(
            self.runtime,
            label_ae_settings,
            rerank_settings,
            documents,
            start_from=None if start_from is None else Path(start_from),
            resume=resume,
            representation=representation,
            observer=observer,
        ).run()

    def staleness(self, *, label_ae: bool = True, rerank: bool = True, given: int = 0) -> Staleness:
        """Whether training these models again would pay, and why or why not.

        `given` counts the documents to train the reranker on that the collection lacks.
        """
        from labelkin.autoencoder.model import MODEL_NAME
        from labelkin.inspection import staleness
        from labelkin.rerank.model import RERANK_NAME

        wanted = {MODEL_NAME: label_ae, RERANK_NAME: rerank}
        names = [name for name, is_wanted in wanted.items() if is_wanted]
        return staleness(self.snapshot(), names, given=given)

    def train_label_ae(
        self,
        settings: TrainingSettings | None = None,
        *,
        representation: str | None = None,
        start_from: str | Path | None = None,
        held_out: HeldOut | None = None,
        resume: bool = False,
        observer: TrainingObserver | None = None,
    ) -> AutoencoderReport | None:
        """Train the label autoencoder alone, as `labelkin.label_ae_training` does."""
        from labelkin.autoencoder.training_settings import TrainingSettings
        from labelkin.label_ae_training import train_label_ae

        settings = settings or TrainingSettings.from_config(self.config)
        return train_label_ae(
            self.runtime,
            self.runtime.views(representation, needs_index=settings.needs_neighbours),
            settings,
            start_from=None if start_from is None else Path(start_from),
            held_out=held_out,
            resume=resume,
            representation=representation,
            observer=observer,
        )

    def update_label_ae(
        self,
        *,
        epochs: int | None = None,
        device: str = "auto",
        representation: str | None = None,
        observer: TrainingObserver | None = None,
    ) -> AutoencoderReport | None:
        """Train the label autoencoder further on documents added since its training.

        Headings that are new, or whose documents are mostly new, are trained; None if
        there are none. The reranker stays as it is.
        """
        from labelkin.label_ae_training import update_label_ae

        return update_label_ae(
            self.runtime,
            self.runtime.views(representation),
            epochs=epochs,
            device=device,
            representation=representation,
            observer=observer,
        )

    def train_reranker(
        self,
        documents: Sequence[Document] = (),
        settings: RerankTrainingSettings | None = None,
        *,
        representation: str | None = None,
        held_out: HeldOut | None = None,
        observer: TrainingObserver | None = None,
    ) -> RerankReport:
        """Train the reranker alone; see `labelkin.training.train_reranker`."""
        from labelkin.rerank.settings import RerankTrainingSettings
        from labelkin.training import train_reranker

        return train_reranker(
            self.runtime,
            self.runtime.views(representation),
            settings or RerankTrainingSettings.from_config(self.config),
            documents,
            held_out=held_out,
            representation=representation,
            observer=observer,
        )

    def adopt_reranker(self, report: RerankReport) -> bool:
        """Make `rerank` the method of labelkin.toml if it did better than votes."""
        from labelkin.training import adopt_reranker

        return adopt_reranker(self.runtime, report)

    def usable_methods(self) -> list[str]:
        """The methods that the collection can use: all whose models have been trained."""
        return usable_methods(self.runtime.models)

    def models_checksum(self, method: str | None = None) -> str:
        """Changes whenever a model that a method uses is trained again."""
        return METHODS[method or self.config.suggest.method].models_checksum(self.runtime.models)

    def related(self, heading: str, limit: int = 10) -> list[tuple[Concept, float]]:
        """The headings that go together with one, by the label autoencoder, nearest first."""
        from labelkin.autoencoder.model import LabelModel

        vocabulary = self.vocabulary
        concept = vocabulary.find(heading)
        model = self.runtime.models.get(LabelModel)
        if concept.id not in model.info.labels:
            raise VocabularyError(f"{concept.name()}: the label autoencoder does not know it")
        near = ((name, value) for name, value in model.related(concept.id) if name in vocabulary)
        return [(vocabulary.concept(name), value) for name, value in islice(near, limit)]

    def unknown_labels(self) -> int:
        """How many labels of the documents the label autoencoder has never seen."""
        from labelkin.autoencoder.model import LabelModel
        from labelkin.scoring.decoder import Decoder

        model = self.runtime.models.get(LabelModel)
        return self.runtime.retried(
            lambda: Decoder.at(self.runtime.views(needs_index=False), model).unknown_labels()
        )

    def evaluate(
        self,
        documents: Sequence[Document],
        *,
        settings: Settings | None = None,
        representation: str | None = None,
    ) -> Evaluation:
        """What would be suggested for documents that have labels, beside those labels.

        Pass it to `labelkin.evaluate.evaluate` for the values of measures. A
        document that is in the collection, by its id or its text, is searched
        leave-one-out.
        """
        chosen = settings or Settings.from_config(self.config)
        (evaluation,) = self.compare(documents, [chosen], representation=representation)
        return evaluation

    def known(self, documents: Sequence[Document]) -> list[bool]:
        """Whether each document is in the collection, by its id or exactly its text."""
        return [bool(rows) for rows in self.snapshot().known_rows(documents)]

    def compare(
        self,
        documents: Sequence[Document],
        settings: Sequence[Settings],
        *,
        representation: str | None = None,
        ranked: tuple[Snapshot, Sequence[tuple[Ranking, Ranking]]] | None = None,
    ) -> list[Evaluation]:
        """As `evaluate`, for several settings over the same neighbours.

        `ranked` is what `rankings` has returned elsewhere, after the snapshot that it is of.
        """
        from labelkin.evaluate.gold import gold_evaluation

        def work() -> list[Evaluation]:
            snapshot, found = ranked or self._ranked(documents, settings, representation)
            gold = gold_evaluation(documents, snapshot)
            return [replace(gold, predicted=cut, ranked=ranking) for ranking, cut in found]

        self.check_representation(settings, representation)
        return self.runtime.retried(work)

    def rankings(
        self,
        documents: Sequence[Document],
        settings: Sequence[Settings],
        *,
        representation: str | None = None,
    ) -> list[tuple[Ranking, Ranking]]:
        """For each of the settings the labels of documents by rank, and those suggested.

        Copies of a document in the collection are no neighbours of it.
        """
        self.check_representation(settings, representation)
        return self.runtime.retried(lambda: self._ranked(documents, settings, representation)[1])

    def _ranked(
        self,
        documents: Sequence[Document],
        settings: Sequence[Settings],
        representation: str | None,
    ) -> tuple[Snapshot, list[tuple[Ranking, Ranking]]]:
        k = max((one.k for one in settings), default=0)
        queries = self.queries(documents, k, representation=representation, without_copies=True)
        rankings = []
        for one in settings:
            ranked = one.implementation.rank(queries, one)
            rankings.append((ranked, one.implementation.cut(queries, ranked, one)))
        return queries.snapshot, rankings

    def save_evaluation(self, summary: EvaluationSummary) -> None:
        """Store an evaluation as the collection's latest; it replaces the one before."""
        from labelkin.evaluate.stored import save_summary
        from labelkin.label_ae_training import check_writable

        check_writable(self.runtime)
        save_summary(self.collection.path, summary)

    def latest_evaluation(self) -> tuple[Literal["eval", "training"], EvaluationSummary] | None:
        """The later of the stored evaluation and that of the reranker's training, if any."""
        from labelkin.evaluate.stored import read_summary
        from labelkin.rerank.model import RERANK_NAME, reranker_info

        stored = read_summary(self.collection.path)
        try:
            trained = reranker_info(self.runtime.models.folder / RERANK_NAME).evaluation
        except ModelError:
            trained = None
        if stored is not None and (trained is None or stored.at >= trained.at):
            return "eval", stored
        return None if trained is None else ("training", trained)

    def reliability(self, documents: Sequence[Document] = ()) -> Reliability | None:
        """How far the reranker's scores are right: on documents with labels, or as in training.

        Without documents None for a reranker of an earlier version, which recorded nothing.
        """
        from labelkin.evaluate.gold import gold_matrix
        from labelkin.plots.reliability import measured_reliability, trained_reliability
        from labelkin.rerank.model import RERANK_NAME, reranker_info

        settings = Settings.from_config(self.config, "rerank")
        info = reranker_info(self.runtime.models.folder / RERANK_NAME)
        if not documents:
            return trained_reliability(info, settings.rerank)
        self.check_representation([settings], None)

        def work() -> Reliability:
            queries = self.queries(documents, settings.k, without_copies=True)
            gold = gold_matrix(documents, queries.snapshot.vocabulary)
            return measured_reliability(queries, gold, info, settings)

        return self.runtime.retried(work)

    def latent_map(self, limit: int = 3000, language: str = "en") -> LatentMap:
        """A map of the most frequent headings by the label autoencoder; takes some seconds once."""
        from labelkin.autoencoder.model import LabelModel
        from labelkin.plots.latent import latent_map

        model = self.runtime.models.get(LabelModel)
        return latent_map(model, self.snapshot(), limit=limit, language=language)

    def label_frequencies(self, labels: int | None = None) -> npt.NDArray[np.integer]:
        """How many documents carry the label of each column; 0 beyond the vocabulary.

        Counted once per state of the collection; the array cannot be written to.
        """
        counts = self.snapshot().label_frequencies()
        if labels is None or labels == len(counts):
            return counts
        return np.pad(counts[:labels], (0, max(labels - len(counts), 0)))

    def tune(
        self,
        documents: Sequence[Document],
        measure: Measure,
        *,
        method: str | None = None,
        representation: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Trial]:
        """How all combinations of a method's settings do, best first.

        If representations are fused, the fusion and the weights are chosen
        first, at the settings of labelkin.toml.
        """
        from labelkin.evaluate.tuning import tune

        settings = Settings.from_config(self.config, method)
        self.check_representation([settings], representation)

        def work() -> list[Trial]:
            queries = self._unsearched(
                documents,
                representation,
                needs_index=settings.k > 0,
                store_terms=True,
                without_copies=True,
            )
            return tune(queries, settings, measure, progress)

        return self.runtime.retried(work)

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

        gold = gold_matrix(documents, self.vocabulary)
        for name in names:
            queries = self.queries(
                documents, max(ks), representation=name, store_terms=True, without_copies=True
            )
            yield from compare_ks(name, queries, gold, measures, ks)

    def release(self, representation: str) -> None:
        """Drop what the search by a representation holds in memory, until it is used again."""
        self.runtime.release(representation)
