"""All that `labelkin train` trains, one after another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import tell
from labelkin.cli.train_label_ae import is_first, print_label_ae, train_label_ae, wait_for_index
from labelkin.cli.train_reranker import (
    print_reranker,
    reranker_as_json,
    tell_adopted,
    train_reranker,
)
from labelkin.cli.training_plan import make_plan
from labelkin.exceptions import MissingExtraError, TrainingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labelkin.autoencoder.fitting import TrainingReport
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.rerank.fitting import LearningReport
    from labelkin.rerank.settings import LearningSettings
    from labelkin.store.held_out import HeldOut


class Training:
    """What is trained of a collection, step by step; settings that are None train nothing.

    A part whose extra is not installed is left out and said, and so is the
    reranker where there are too few documents, unless nothing would be left.
    """

    def __init__(
        self,
        indexer: Indexer,
        label_ae: TrainingSettings | None,
        reranker: LearningSettings | None,
        tuning: Sequence[Document] = (),
        *,
        start_from: Path | None = None,
    ) -> None:
        self._indexer = indexer
        self._tuning = tuning
        self._start_from = start_from
        self._label_ae = label_ae
        self._reranker = reranker
        self._taken: HeldOut | None = None
        self.label_ae_report: TrainingReport | None = None
        self.reranker_report: LearningReport | None = None

    def run(
        self, representation: str | None = None, *, resume: bool = False, show: bool = True
    ) -> None:
        """Say what will be done, do it, and, to `show` it, what came out."""
        self._leave_out_what_is_missing()
        self._take_out()
        label_ae, reranker = self._label_ae, self._reranker
        # A model to start from may have seen what is left out: no use in leaving it out now.
        left_out = None if self._start_from else self._taken
        if is_first():
            given = len(self._tuning)
            collection = self._indexer.collection
            make_plan(collection, label_ae, reranker, self._taken, left_out, given).tell()
        if reranker is not None or (label_ae is not None and label_ae.epochs):
            if is_first():
                build_with_progress(self._indexer, representation)
            else:
                wait_for_index(self._indexer, representation)
        if label_ae is not None:
            self.label_ae_report = train_label_ae(
                self._indexer,
                label_ae,
                representation,
                start_from=self._start_from,
                held_out=left_out,
                resume=resume,
            )
            if self.label_ae_report is not None and show:
                print_label_ae(self.label_ae_report)
        if not is_first():
            return
        if reranker is None:
            self._tell_reranker_of_before()
            return
        # Without a new autoencoder, the documents are chosen among those the present one lacks.
        self.reranker_report = report = train_reranker(
            self._indexer,
            reranker,
            self._tuning,
            representation,
            held_out=self._taken if label_ae is not None else None,
        )
        if show:
            print_reranker(report, self._indexer.config.rerank)
        before = self._indexer.config.suggest.method
        tell_adopted(report, before, is_better=self._indexer.adopt_reranker(report))

    def as_json(self) -> dict[str, Any]:
        """What came out, for programs."""
        label_ae, reranker = self.label_ae_report, self.reranker_report
        config = self._indexer.config
        return {
            "label_ae": (
                None
                if label_ae is None
                else label_ae.info.to_json() | {"labels": len(label_ae.info.labels)}
            ),
            "rerank": None if reranker is None else reranker_as_json(reranker, config.rerank),
            "method": config.suggest.method,
        }

    def _leave_out_what_is_missing(self) -> None:
        from labelkin.autoencoder.fitting import check_torch
        from labelkin.rerank.fitting import check_learning

        missing = []
        if self._label_ae is not None and self._label_ae.epochs:
            try:
                check_torch()
            except MissingExtraError as error:
                missing.append(("label autoencoder", error))
                self._label_ae = None
        if self._reranker is not None:
            try:
                check_learning()
            except MissingExtraError as error:
                missing.append(("reranker", error))
                self._reranker = None
        if missing and self._label_ae is None and self._reranker is None:
            raise MissingExtraError("; ".join(str(error) for _, error in missing))
        for name, reason in missing:
            tell(f"Without the {name}: {reason}")

    def _take_out(self) -> None:
        if self._reranker is None:
            return
        try:
            self._taken = self._reranker.held_out(self._indexer.collection, len(self._tuning))
        except TrainingError as error:
            if self._label_ae is None:
                raise
            tell(f"Without the reranker: {error}.")
            self._reranker = None

    def _tell_reranker_of_before(self) -> None:
        """Say that a reranker was learned with another autoencoder than there is now."""
        from labelkin.exceptions import ModelNotFoundError
        from labelkin.rerank.model import reranker_info
        from labelkin.rerank.open import reranker_folder

        try:
            info = reranker_info(reranker_folder(self._indexer.collection))
        except ModelNotFoundError:
            return
        if "autoencoder" in info.groups:
            tell(
                "The reranker was learned with the label autoencoder of before; "
                "`labelkin train` trains both."
            )
