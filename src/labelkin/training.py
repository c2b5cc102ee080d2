"""All that `labelkin train` trains, one after another, on one snapshot of a collection."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.corpus.document import Document
from labelkin.cuts import CHOSEN, CutReport, choose_cuts, held_out_queries, sampled
from labelkin.exceptions import (
    CollectionBusyError,
    ConfigError,
    MissingExtraError,
    ModelError,
    TrainingError,
)
from labelkin.label_ae_training import (
    TrainingSources,
    check_writable,
    fold_autoencoders,
    train_label_ae,
)
from labelkin.represent.encoder import check_encoder_name, located_encoder
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.runtime import Runtime
from labelkin.scoring.settings import Settings
from labelkin.store.config import CONFIG_NAME, Config, set_by_hand, update_config
from labelkin.store.held_out import Fold, HeldOut
from labelkin.store.models import training_lock
from labelkin.store.reader import Reader
from labelkin.store.snapshot import Views
from labelkin.training_plan import (
    TrainingObserver,
    TrainingPlan,
    TrainingReport,
    is_first_process,
    labelled_documents,
    make_plan,
)
from labelkin.wording import counted

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.rerank.fitting import RerankReport

logger = logging.getLogger(__name__)


class Training:
    """Trains the models of a collection; settings that are None train nothing.

    A part whose extra is not installed is skipped, and so is the reranker if
    there are too few documents, unless nothing would be left.
    """

    def __init__(
        self,
        runtime: Runtime,
        label_ae: TrainingSettings | None,
        rerank: RerankTrainingSettings | None,
        given: Sequence[Document] = (),
        *,
        start_from: Path | None = None,
        resume: bool = False,
        representation: str | None = None,
        observer: TrainingObserver | None = None,
    ) -> None:
        self._runtime = runtime
        self._label_ae = label_ae
        self._rerank = None if rerank is None else _located(rerank)
        self._given = given
        self._start_from = start_from
        self._resume = resume
        self._representation = representation
        self._observer = observer or TrainingObserver()
        self._skipped: list[tuple[str, str]] = []

    def run(self) -> TrainingReport:
        """Train everything; what an interruption leaves is a whole model or a checkpoint."""
        from labelkin.rerank.model import RERANK_NAME

        collection = self._runtime.collection
        check_writable(self._runtime)
        snapshot = collection.snapshot()
        if self._label_ae is not None:
            self._label_ae = self._label_ae.fitted(labelled_documents(snapshot))
        self._skip_missing_extras()
        held_out = self._hold_out(snapshot)
        # A model to start from may have seen the held-out documents.
        is_unseen = self._start_from is None
        plan = make_plan(
            snapshot,
            self._label_ae,
            self._rerank,
            held_out,
            is_unseen=is_unseen,
            given=len(self._given),
        )
        self._check(plan)
        method = collection.config.suggest.method
        report = TrainingReport(plan, skipped=self._skipped, method_before=method, method=method)
        if is_first_process():
            self._observer.planned(report)
            self._warn_of_lost_encoder()
        # The state that is trained on is pinned by its views alone.
        del snapshot
        views = self._views()
        indexed = views.snapshot.generation()
        if held_out is not None and indexed != held_out.generation:
            # Documents were added while the index was built: everything starts from that state.
            held_out = self._hold_out(views.snapshot)
        sources = self._sources(views)
        if self._label_ae is not None:
            with ExitStack() as locks:
                if self._rerank is not None and is_first_process():
                    # Another training of the reranker would be in the way after all this work.
                    locks.enter_context(training_lock(self._runtime.models.folder / RERANK_NAME))
                report.label_ae = train_label_ae(
                    self._runtime,
                    views,
                    self._label_ae,
                    start_from=self._start_from,
                    held_out=held_out if is_unseen else None,
                    resume=self._resume,
                    representation=self._representation,
                    sources=sources,
                    observer=self._observer,
                )
            if report.label_ae is not None:
                self._observer.trained_label_ae(report.label_ae)
                unseen = held_out if is_unseen else None
                report.cuts = self._fit_cuts(views, report.label_ae, unseen)
        if not is_first_process():
            return report
        if self._rerank is None:
            report.outdated_reranker = reranker_uses_label_ae(self._runtime)
            return report
        # Without a new autoencoder, held-out documents are chosen among those the old one lacks.
        try:
            report.rerank = train_reranker(
                self._runtime,
                views,
                self._rerank,
                self._given,
                held_out=held_out if self._label_ae is not None else None,
                representation=self._representation,
                sources=sources,
                observer=self._observer,
            )
        except KeyboardInterrupt as error:
            if report.label_ae is None or error.args:
                raise
            raise KeyboardInterrupt(
                "interrupted; the label autoencoder is trained, `labelkin train … --only rerank` "
                "does the rest"
            ) from error
        self._observer.trained_reranker(report.rerank)
        adopt_reranker(self._runtime, report.rerank)
        report.method = collection.config.suggest.method
        return report

    def _fit_cuts(
        self, views: Views, label_ae: AutoencoderReport, held_out: HeldOut | None
    ) -> CutReport | None:
        """Cuts for the new autoencoder, on documents that it has not seen.

        Those that are held out for the reranker, or those that it validated with.
        """
        if not label_ae.info.training["epochs"]:
            self._observer.left_cuts("the model is adopted as it is")
            return None
        fold = Fold(label_ae.held_out, label_ae.held_out[:0])
        if held_out is not None and held_out.folds:
            fold = held_out.folds[0]
        try:
            cuts = fit_cuts(
                self._runtime,
                views,
                fold,
                seed=label_ae.info.seed,
                representation=self._representation,
                observer=self._observer,
            )
            if cuts is None:
                self._observer.left_cuts(
                    f"{counted(len(fold.rows), 'document')} held out, which are too few to choose "
                    "them on"
                )
                return None
            adopt_cuts(self._runtime, cuts)
        except ConfigError as error:
            # Someone has edited the file meanwhile; the reranker can still be trained.
            self._observer.left_cuts(str(error))
            return None
        self._observer.chose_cuts(cuts)
        return cuts

    def _needs_index(self) -> bool:
        """Whether anything needs neighbours: all but a model that is adopted as it is."""
        return self._rerank is not None or bool(self._label_ae and self._label_ae.epochs)

    def _skip_missing_extras(self) -> None:
        from labelkin.autoencoder.fitting import check_torch
        from labelkin.rerank.fitting import check_rerank_training

        if self._label_ae is not None and self._label_ae.epochs:
            try:
                check_torch()
            except MissingExtraError as error:
                self._skipped.append(("label autoencoder", str(error)))
                self._label_ae = None
        if self._rerank is not None:
            if self._rerank.encoder:
                check_encoder_name(self._rerank.encoder)
            try:
                check_rerank_training()
            except MissingExtraError as error:
                self._skipped.append(("reranker", str(error)))
                self._rerank = None
        if self._skipped and self._label_ae is None and self._rerank is None:
            raise MissingExtraError("; ".join(reason for _, reason in self._skipped))

    def _check(self, plan: TrainingPlan) -> None:
        """Raise what does not depend on torch before a plan is announced."""
        from labelkin.autoencoder.model import MODEL_NAME
        from labelkin.autoencoder.training_data import check_documents

        if self._label_ae is None or not self._label_ae.epochs:
            return
        check_documents(plan.documents)
        self._label_ae.check_preset(plan.headings, plan.documents)
        checkpoint = self._runtime.models.folder / MODEL_NAME / "checkpoint"
        if self._resume and not checkpoint.is_dir():
            raise TrainingError(f"{checkpoint}: nothing to resume; start a new training")

    def _hold_out(self, reader: Reader) -> HeldOut | None:
        if self._rerank is None:
            return None
        try:
            return self._rerank.held_out(reader, len(self._given))
        except TrainingError as error:
            if self._label_ae is None:
                raise
            self._skipped.append(("reranker", str(error)))
            self._rerank = None
            return None

    def _views(self) -> Views:
        """The state to train on, its index up to date if neighbours are needed."""
        if not self._needs_index():
            return self._runtime.views(needs_index=False)
        while True:
            try:
                if is_first_process():
                    self._runtime.retried(self._build_index)
                return self._runtime.retried(self._indexed_views)
            except CollectionBusyError:
                # The first process of several builds the index; the others wait for it.
                if is_first_process():
                    raise
                time.sleep(1)

    def _build_index(self) -> None:
        snapshot, indexes = self._runtime.collection.snapshot(), self._runtime.indexes
        indexes.build(
            snapshot,
            self._representation,
            progress=lambda done, total: self._observer.stage("Indexing", done, total),
        )
        if self._rerank is not None and self._rerank.encoder:
            indexes.build(
                snapshot,
                self._rerank.encoder,
                progress=lambda done, total: self._observer.stage("Encoding", done, total),
            )

    def _indexed_views(self) -> Views:
        """A state with all searches that the training needs."""
        views = self._runtime.views(self._representation)
        if self._rerank is not None and self._rerank.encoder and is_first_process():
            self._runtime.indexes.vector_search(views, self._rerank.encoder)
        return views

    def _sources(self, views: Views) -> TrainingSources | None:
        """What several trainings share; None if nothing looks at neighbours."""
        needs_neighbours = self._label_ae is not None and self._label_ae.needs_neighbours
        if self._rerank is None and not needs_neighbours:
            return None
        search = self._runtime.indexes.search(views, self._representation)
        return TrainingSources(search, views, self._observer)

    def _warn_of_lost_encoder(self) -> None:
        """Warn if the reranker so far has an encoder, from the command line, that this lacks."""
        from labelkin.rerank.model import RERANK_NAME, reranker_info

        folder = self._runtime.models.folder / RERANK_NAME
        if self._rerank is None or self._rerank.encoder:
            return
        if self._runtime.collection.config.rerank.encoder:
            # It was switched off for this training.
            return
        with suppress(ModelError):
            if name := reranker_info(folder).encoder_name:
                logger.warning(
                    "%s: the reranker so far has the vectors of %s, this one will not; give "
                    "--encoder %s, or set `encoder` in [rerank] of labelkin.toml, to keep them",
                    folder,
                    name,
                    name,
                )


def reranker_uses_label_ae(runtime: Runtime) -> bool:
    """Whether there is a reranker, and the scores of the label autoencoder are one of its signals.

    False for one that cannot be read: that is no failure of the autoencoder's training.
    """
    from labelkin.rerank.model import RERANK_NAME, reranker_info

    try:
        info = reranker_info(runtime.models.folder / RERANK_NAME)
    except ModelError:
        return False
    return info.uses_autoencoder


def fit_cuts(
    runtime: Runtime,
    views: Views,
    fold: Fold,
    *,
    seed: int = 0,
    representation: str | None = None,
    observer: TrainingObserver | None = None,
) -> CutReport | None:
    """The best cuts of the methods that use the label autoencoder; None for too few documents.

    `fold` has documents that the autoencoder was trained without, of which some are
    sampled. Values of labelkin.toml that were set by hand stay as they are.
    """
    observer = observer or TrainingObserver()
    rows = sampled(fold.rows, seed)
    if not len(rows):
        return None
    settings = Settings.from_config(runtime.collection.config)
    queries, gold = held_out_queries(
        views,
        runtime.models,
        runtime.indexes.search(views, representation),
        settings,
        rows,
        fold.unseen,
        lambda done, total: observer.stage("Finding neighbours", done, total),
    )
    return choose_cuts(
        queries,
        gold,
        settings,
        kept_cuts(runtime),
        lambda done, total: observer.stage("Choosing cuts", done, total),
    )


def kept_cuts(runtime: Runtime) -> dict[str, frozenset[str]]:
    """The values that were set by hand, by method."""
    path = runtime.collection.path / CONFIG_NAME
    settings = Settings.from_config(runtime.collection.config)
    kept = {}
    for method, names in CHOSEN.items():
        own = replace(settings, method=method)
        (section,) = own.implementation.as_config(own)
        kept[method] = set_by_hand(path, section, names)
    return kept


def adopt_cuts(runtime: Runtime, report: CutReport) -> None:
    """Write cuts into labelkin.toml, with comments that a training has chosen them."""
    update_config(runtime.collection.path / CONFIG_NAME, report.changes(), chosen=True)


def train_reranker(
    runtime: Runtime,
    views: Views,
    settings: RerankTrainingSettings,
    documents: Sequence[Document] = (),
    *,
    held_out: HeldOut | None = None,
    representation: str | None = None,
    sources: TrainingSources | None = None,
    observer: TrainingObserver | None = None,
) -> RerankReport:
    """Train the reranker on a snapshot; needs the extra `rerank`.

    It is trained on documents of the collection that are held out of all
    statistics, and on `documents` with labels, if given, which new ones should
    resemble. `held_out` are those that the label autoencoder was trained
    without; by default they are chosen here.
    """
    from labelkin.rerank.fitting import fit_reranker

    check_writable(runtime)
    observer = observer or TrainingObserver()
    settings = _located(settings)
    search = runtime.indexes.search(views, representation)
    if settings.encoder:
        runtime.indexes.vector_search(views, settings.encoder)
    report = fit_reranker(
        views,
        runtime.models,
        search,
        settings,
        documents,
        held_out,
        observer.stage,
        runtime.indexes,
        fold_autoencoders(
            runtime, views, sources or TrainingSources(search, views, observer), observer
        ),
    )
    _draw_reliability(report, runtime.collection.config)
    return report


def _located(settings: RerankTrainingSettings) -> RerankTrainingSettings:
    """The settings with a path to the encoder that does not depend on the working folder."""
    return replace(settings, encoder=located_encoder(settings.encoder))


def _draw_reliability(report: RerankReport, config: Config) -> None:
    """Draw `reliability.png` beside the reranker, if matplotlib is there."""
    from labelkin.plots.drawing import draw_reliability, save_figure
    from labelkin.plots.reliability import trained_reliability

    reliability = trained_reliability(report.info, Settings.from_config(config).rerank)
    if reliability is not None:
        with suppress(MissingExtraError):
            save_figure(draw_reliability(reliability), report.folder / "reliability.png")


def adopt_reranker(runtime: Runtime, report: RerankReport) -> bool:
    """Make `rerank` the method of labelkin.toml if it did better than votes; whether it did.

    Its threshold is written in either case.
    """
    is_better = report.score > report.votes
    changes: dict[str, dict[str, object]] = {"rerank": {"threshold": report.threshold}}
    if is_better:
        changes["suggest"] = {"method": "rerank"}
    update_config(runtime.collection.path / CONFIG_NAME, changes)
    return is_better
