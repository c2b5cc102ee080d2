"""Training the label autoencoder of a collection: afresh, for a fold, or on what is new."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.exceptions import (
    CollectionReadOnlyError,
    ConfigError,
    MissingExtraError,
    TrainingError,
)
from labelkin.memo import Memo
from labelkin.neighbours.search import NeighbourSearch
from labelkin.represent.counted_texts import Terms
from labelkin.represent.term_columns import TermColumns
from labelkin.runtime import Runtime
from labelkin.store.held_out import HeldOut, HeldOutRule, copies_of, row_keys, with_reserve
from labelkin.store.snapshot import Snapshot, Views
from labelkin.training_plan import TrainingObserver, is_first_process, labelled_documents

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.autoencoder.model import LabelModel
    from labelkin.autoencoder.training_data import TrainingData, TrainingTexts
    from labelkin.neighbours.training import NearestRows

logger = logging.getLogger(__name__)

# How many neighbours are averaged, at most.
_AVERAGED = 30
# How the folder of a fold's autoencoder is called, while it is needed.
_FOLD = ".fold-"
# An update: epochs, the share of the learning rate, the fewest old documents seen again, and
# the share of a heading's documents that are new from which on it is trained.
_UPDATE_EPOCHS = 8
_UPDATE_RATE = 1.0
_LEAST_AGAIN = 2000
_RENEWED = 0.5


def train_label_ae(
    runtime: Runtime,
    views: Views,
    settings: TrainingSettings,
    *,
    start_from: Path | None = None,
    held_out: HeldOut | None = None,
    resume: bool = False,
    representation: str | None = None,
    sources: TrainingSources | None = None,
    observer: TrainingObserver | None = None,
) -> AutoencoderReport | None:
    """Train the label autoencoder on a snapshot; needs the extra `train`.

    `start_from` is a model folder, or a collection with a model, to start from;
    labels are matched by concept id, and the layers are that model's. With 0
    epochs it is adopted as it is, which needs no extra. `held_out` are documents that a
    reranker is trained on afterwards, which the autoencoder must not see. Among
    several processes (torchrun) only the first gets a report.
    """
    from labelkin.autoencoder.fitting import adopt_model, check_training, fit_label_model
    from labelkin.autoencoder.model import MODEL_NAME
    from labelkin.autoencoder.origin import find_origin

    check_writable(runtime)
    observer = observer or TrainingObserver()
    snapshot = views.snapshot
    folder = runtime.models.folder / MODEL_NAME
    origin = None
    if start_from is not None:
        origin = find_origin(start_from, snapshot.columns_by_id())
        settings = origin.shaped(settings)
    settings = settings.fitted(labelled_documents(snapshot))
    unseen = None if held_out is None else held_out.unseen
    data = _training_data(snapshot, settings, unseen, kept=None if origin is None else origin.known)
    data = replace(data, state=_state(snapshot))
    vocabulary = snapshot.vocabulary
    if origin is not None:
        origin.check(data, vocabulary)
        if settings.epochs == 0:
            is_own = _is_own(snapshot, origin.model)
            return adopt_model(data, vocabulary, settings, folder, origin, is_own=is_own)
    if held_out is not None and origin is None:
        data = replace(data, left_out=held_out.rule.to_json())
    check_training(data, settings, folder, resume=resume)
    if settings.needs_neighbours:
        sources = sources or TrainingSources(
            runtime.indexes.search(views, representation), views, observer
        )
        data = sources.completed(data, settings)
    report: AutoencoderReport | None = fit_label_model(
        data,
        vocabulary,
        settings,
        folder,
        origin=origin,
        resume=resume,
        watcher=observer.epoch if is_first_process() else None,
    )
    return report


def _training_data(
    snapshot: Snapshot,
    settings: TrainingSettings,
    unseen: npt.NDArray[np.int64] | None,
    *,
    kept: npt.NDArray[np.int64] | None = None,
) -> TrainingData:
    """The label sets of a snapshot without the rows that must not be seen."""
    from labelkin.autoencoder.training_data import make_training_data

    dropped = snapshot.tombstones()
    if unseen is not None:
        dropped = np.union1d(dropped, unseen)
    label_sets = snapshot.label_sets()
    return make_training_data(
        label_sets,
        snapshot.generation().next_column,
        dropped,
        held_out=settings.held_out,
        min_frequency=settings.min_frequency,
        seed=settings.seed,
        kept=kept,
        keys=_validation_keys(snapshot, settings.seed),
    )


def _validation_keys(snapshot: Snapshot, seed: int) -> npt.NDArray[np.uint64]:
    """The keys that documents are held out by; other ones than those of the reranker."""
    return row_keys(snapshot, -1 - seed, snapshot.label_sets().rows)


def update_label_ae(
    runtime: Runtime,
    views: Views,
    *,
    epochs: int | None = None,
    device: str = "auto",
    representation: str | None = None,
    observer: TrainingObserver | None = None,
) -> AutoencoderReport | None:
    """Train the collection's joint autoencoder further, on what was added since its training.

    New headings get rows of their own. Only the rows of headings whose documents are
    mostly new are trained, on the new documents and on as many old ones; all other
    weights stay, so that the network keeps what it knows. Documents that it was
    trained without stay unseen. None if there is no such heading.
    """
    from labelkin.autoencoder.fitting import check_torch, fit_label_model
    from labelkin.autoencoder.model import LabelModel
    from labelkin.autoencoder.origin import find_origin

    check_writable(runtime)
    check_torch()
    if epochs is not None and epochs < 1:
        raise TrainingError("an update needs at least 1 epoch")
    model = runtime.models.get(LabelModel)
    if (model.folder / "checkpoint").is_dir():
        raise TrainingError(
            f"{model.folder}: there is an unfinished training, which an update would discard; "
            "continue it with `labelkin train … --resume`, or train again without --update"
        )
    snapshot = views.snapshot
    new = _rows_since(snapshot, model)
    origin = find_origin(model.folder, snapshot.columns_by_id())
    usual = origin.shaped(_settings_of(model))
    settings = replace(
        usual,
        epochs=_UPDATE_EPOCHS if epochs is None else epochs,
        learning_rate=usual.learning_rate * _UPDATE_RATE,
        device=device,
        minutes=0.0,
    )
    rule = HeldOutRule.from_json(model.info.data.get("left_out"))
    unseen = None if rule is None else _rows_of(snapshot, rule)
    data = _training_data(snapshot, settings, unseen, kept=origin.known)
    new = np.intersect1d(data.all_rows, new)
    renewed = _renewed(data, new)
    if not renewed.any():
        return None
    random = np.random.default_rng((settings.seed, len(new)))
    old = np.setdiff1d(data.rows, new)
    again = random.choice(old, min(len(old), max(len(new), _LEAST_AGAIN)), replace=False)
    data = replace(
        data,
        rows=np.union1d(np.intersect1d(data.rows, new), again),
        voters=data.all_rows,
        renewed=renewed,
        left_out=None if rule is None else rule.to_json(),
        state=_state(snapshot),
    )
    origin.check(data, snapshot.vocabulary)
    observer = observer or TrainingObserver()
    sources = TrainingSources(
        runtime.indexes.search(views, representation),
        views,
        observer,
        rows=np.union1d(data.rows, data.held_out),
        terms=Terms(TermColumns.of(model.words(), model.tensor("idf")), model.words()),
    )
    report: AutoencoderReport | None = fit_label_model(
        sources.completed(data, settings),
        snapshot.vocabulary,
        settings,
        model.folder,
        origin=origin,
        watcher=observer.epoch,
        is_alone=True,
        is_resumable=False,
        recorded=usual,
    )
    return report


def _renewed(data: TrainingData, new: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The labels most of whose documents are new, such as those that are new themselves."""
    counts = np.bincount(data.batch(new)[0], minlength=data.labels)
    return (counts > 0) & (counts >= _RENEWED * data.frequencies)


def _rows_since(snapshot: Snapshot, model: LabelModel) -> npt.NDArray[np.int64]:
    """The documents with labels that were added since a model was trained."""
    if not model.is_joint:
        raise TrainingError(
            f"{model.folder}: only a joint label autoencoder can be trained further; "
            "run `labelkin train` without --update"
        )
    if not _is_own(snapshot, model):
        raise TrainingError(
            f"{model.folder}: trained on another collection, so what is new here is not known; "
            "run `labelkin train` without --update"
        )
    rows, _ = snapshot.documents_since(model.info.data["state"]["generation"])
    return rows[snapshot.label_sets().sizes_of(rows) > 0]


def _is_own(snapshot: Snapshot, model: LabelModel) -> bool:
    """Whether a model was trained on an earlier state of the collection, or of a copy of it."""
    state = model.info.data.get("state")
    return state is not None and snapshot.knows(state["generation"], state["token"])


def _rows_of(snapshot: Snapshot, rule: HeldOutRule) -> npt.NDArray[np.int64]:
    """The rows that a model must not see, with those that have the same text."""
    keys = row_keys(snapshot, rule.seed, snapshot.label_sets().rows)
    rows = np.flatnonzero(keys <= np.uint64(rule.bound))
    return np.union1d(rows, copies_of(snapshot, rows))


def _settings_of(model: LabelModel) -> TrainingSettings:
    """The settings that a model was trained with."""
    known = {one.name for one in fields(TrainingSettings)}
    values = {name: value for name, value in model.info.settings.items() if name in known}
    return TrainingSettings(**values)


def _state(snapshot: Snapshot) -> dict[str, Any]:
    generation = snapshot.generation()
    return {"generation": generation.number, "token": generation.token}


@dataclass(frozen=True)
class FoldAutoencoders:
    """Trains the label autoencoder of a collection again, without the documents of a fold.

    The reranker learns from the scores of documents that an autoencoder has not
    seen; these do not stay.
    """

    views: Views
    folder: Path
    settings: TrainingSettings
    sources: TrainingSources
    observer: TrainingObserver

    @contextmanager
    def without(self, unseen: npt.NDArray[np.int64]) -> Iterator[LabelModel]:
        """An autoencoder that has not seen these rows."""
        from labelkin.autoencoder.fitting import fit_label_model
        from labelkin.autoencoder.model import LabelModel

        snapshot = self.views.snapshot
        data = self.sources.completed(
            _training_data(snapshot, self.settings, unseen), self.settings
        )
        # What a training left that was killed; no other one runs, the reranker has a lock.
        for left in self.folder.glob(f"{_FOLD}*"):
            rmtree(left, ignore_errors=True)
        with TemporaryDirectory(dir=self.folder, prefix=_FOLD) as folder:
            fit_label_model(
                data,
                snapshot.vocabulary,
                self.settings,
                Path(folder),
                watcher=self.observer.epoch,
                is_alone=True,
                is_resumable=False,
            )
            model = LabelModel(Path(folder))
            try:
                yield model
            finally:
                model.close()


def fold_autoencoders(
    runtime: Runtime, views: Views, sources: TrainingSources, observer: TrainingObserver
) -> FoldAutoencoders | None:
    """What trains the collection's autoencoder for each fold; None if that is not possible.

    The paper's network takes too long to be trained several times, and a model that was
    adopted without training has no settings to train another one with.
    """
    from labelkin.autoencoder.fitting import check_torch
    from labelkin.autoencoder.model import LabelModel

    model = runtime.models.find(LabelModel)
    if model is None or not model.is_joint:
        return None
    settings = _settings_of(model)
    if settings.epochs == 0:
        return None
    try:
        check_torch()
    except MissingExtraError:
        logger.warning(
            "torch is not installed: the reranker sees the scores of the label autoencoder for "
            "one fold of its documents only"
        )
        return None
    from labelkin.autoencoder.workers import find_device

    try:
        find_device(settings.device)
    except ConfigError:
        # The model was trained on another machine.
        settings = replace(settings, device="auto")
    return FoldAutoencoders(views, runtime.models.folder, settings, sources, observer)


class TrainingSources:
    """Neighbours, words and names of a snapshot's documents, found once for several trainings.

    `rows` are the documents to find them for, by default all that have labels;
    `terms` those to count, by default those that are frequent enough.
    """

    def __init__(
        self,
        search: NeighbourSearch,
        views: Views,
        observer: TrainingObserver | None = None,
        *,
        rows: npt.NDArray[np.int64] | None = None,
        terms: Terms | None = None,
    ) -> None:
        self._rows = rows
        self._terms = terms
        self._search = search
        self._snapshot = views.snapshot
        self._observer = observer or TrainingObserver()
        self._memo = Memo()

    def completed(self, data: TrainingData, settings: TrainingSettings) -> TrainingData:
        """The data with the neighbours of its documents and, for the joint network, their texts."""
        from labelkin.autoencoder.ballots import NEIGHBOURS

        k = NEIGHBOURS if settings.recipe == "joint" else _AVERAGED
        nearest = self._nearest(settings.searched_documents, settings.seed, k)
        mine = np.union1d(data.rows, data.held_out)
        rows = np.intersect1d(nearest.rows, mine, assume_unique=True)
        data = replace(data, neighbours=nearest.among(rows, data.all_rows, k))
        if settings.recipe != "joint":
            return data
        texts = self._memo.get(
            ("texts", settings.searched_documents, settings.seed, settings.terms),
            lambda: self._read(nearest.rows, settings.terms),
        )
        return replace(data, texts=texts.taken(np.searchsorted(nearest.rows, rows)))

    def _nearest(self, most: int, seed: int, k: int) -> NearestRows:
        """The neighbours of all documents with labels, or of a sample of them."""
        from labelkin.neighbours.training import find_nearest

        rows = self._labelled() if self._rows is None else self._rows
        if len(rows) > most:
            # By the same keys as documents are held out for validation: these are among them.
            keys = _validation_keys(self._snapshot, seed)[rows]
            rows = np.sort(rows[np.argsort(keys, kind="stable")[:most]])
        return self._memo.get(
            ("nearest", most, seed, k),
            lambda: find_nearest(
                self._search,
                rows,
                with_reserve(k),
                lambda done, total: self._observer.stage("Finding neighbours", done, total),
            ),
        )

    def _labelled(self) -> npt.NDArray[np.int64]:
        sizes = self._snapshot.label_sets().sizes()
        tombstones = self._snapshot.tombstones()
        sizes[tombstones[tombstones < len(sizes)]] = 0
        return np.flatnonzero(sizes)

    def _read(self, rows: npt.NDArray[np.int64], most: int) -> TrainingTexts:
        from labelkin.autoencoder.training_data import TrainingTexts
        from labelkin.represent.counted_texts import TextPages, count_known, count_words
        from labelkin.scoring.mention_search import MentionSearch
        from labelkin.scoring.mentions import Mentions, named_labels

        if self._terms is None:
            terms, counts = count_words(self._snapshot, rows, most, self._observer.stage)
        else:
            terms = self._terms
            counts = count_known(self._snapshot, rows, terms, self._observer.stage)
        weighted = terms.columns.weighted(counts, pairs=True)
        search = MentionSearch.of(self._snapshot)
        pages = TextPages(self._snapshot, rows, 1, "Finding names", self._observer.stage)
        mentions = Mentions.joined([search.matches(batch).mentions() for batch in pages])
        return TrainingTexts(terms, weighted, named_labels(mentions))


def check_writable(runtime: Runtime) -> None:
    """Raise CollectionReadOnlyError for a collection that cannot be trained."""
    if runtime.collection.read_only:
        raise CollectionReadOnlyError(
            f"{runtime.collection.path}: the collection cannot be written to"
        )
