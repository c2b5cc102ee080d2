"""What a training will do and about how long it takes, what it did, and who is told meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.store.held_out import HeldOut
from labelkin.store.reader import Reader

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.autoencoder.training import TrainingProgress
    from labelkin.cuts import CutReport
    from labelkin.rerank.fitting import RerankReport

# Rough rates of an idle machine with two cores; a busy one takes several times as long.
NEIGHBOURS_A_SECOND = 600
# Documents times the headings for which the loss is computed; a step's own headings come on top.
OUTPUTS_A_SECOND = 2_500_000
# The joint network computes them faster, and is trained again for each fold.
JOINT_OUTPUTS_A_SECOND = 25_000_000
OWN_OUTPUTS = 1000
TEXTS_A_SECOND = 2000
CANDIDATE_SETS_A_SECOND = 150
# Documents to train on times trees, which are grown twice.
GROWTH_A_SECOND = 150_000
CLASSIFIERS_A_SECOND = 220


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Which models are trained, and on how many documents; None for no model.

    `held_out` documents train the reranker, besides those `given`, in so many
    `folds`; `unseen` of them are not shown to the autoencoder.
    """

    documents: int
    headings: int
    held_out: int = 0
    folds: int = 0
    unseen: int = 0
    given: int = 0
    label_ae: TrainingSettings | None = None
    rerank: RerankTrainingSettings | None = None

    def label_ae_seconds(self) -> float:
        """About how long the autoencoder takes at most."""
        if self.label_ae is None or not self.label_ae.needs_neighbours:
            return self._epochs_seconds()
        searched = min(self.documents - self.unseen, self.label_ae.searched_documents)
        return self._epochs_seconds() + searched / NEIGHBOURS_A_SECOND

    def _epochs_seconds(self) -> float:
        """The same without the search for neighbours, which is done once for all folds."""
        if self.label_ae is None or self.label_ae.epochs == 0:
            return 0.0
        settings, documents = self.label_ae, self.documents - self.unseen
        outputs = self.headings
        if settings.sampled_outputs:
            outputs = min(outputs, settings.sampled_outputs + OWN_OUTPUTS)
        speed = JOINT_OUTPUTS_A_SECOND if settings.recipe == "joint" else OUTPUTS_A_SECOND
        seconds = settings.epochs * min(documents, settings.trained_documents) * outputs / speed
        if settings.minutes:
            seconds = min(seconds, 60 * settings.minutes)
        return seconds

    def rerank_seconds(self) -> float:
        """About how long the reranker takes."""
        if self.rerank is None:
            return 0.0
        trained_on = self.held_out + self.given
        seconds = self.documents / TEXTS_A_SECOND + trained_on / CANDIDATE_SETS_A_SECOND
        seconds += 2 * trained_on * self.rerank.rounds / GROWTH_A_SECOND
        if self.label_ae is not None and self.label_ae.recipe == "joint":
            # The first fold uses the collection's own, unless that has seen its documents.
            again = self.folds - 1 if self.unseen else self.folds
            seconds += max(again, 0) * self._epochs_seconds()
        if self.rerank.linear:
            # Once without the documents of each fold, once with all.
            seconds += (self.folds + 1) * self.headings / CLASSIFIERS_A_SECOND
            seconds += self.documents * (1 / NEIGHBOURS_A_SECOND + 1 / TEXTS_A_SECOND)
        return seconds


def labelled_documents(reader: Reader) -> int:
    """How many documents have labels."""
    return int(np.count_nonzero(np.delete(reader.label_sets().sizes(), reader.tombstones())))


def make_plan(
    reader: Reader,
    label_ae: TrainingSettings | None,
    rerank: RerankTrainingSettings | None,
    held_out: HeldOut | None,
    *,
    is_unseen: bool = True,
    given: int = 0,
) -> TrainingPlan:
    """The plan for a collection. The autoencoder sees held-out documents unless `is_unseen`."""
    frequencies = reader.label_sets().frequencies(
        reader.generation().next_column, reader.tombstones()
    )
    count = 0 if held_out is None else held_out.count
    return TrainingPlan(
        documents=labelled_documents(reader),
        headings=int(np.count_nonzero(frequencies)),
        held_out=count,
        folds=0 if held_out is None else len(held_out.folds),
        unseen=0 if held_out is None or not is_unseen else len(held_out.unseen),
        given=given,
        label_ae=label_ae,
        rerank=rerank,
    )


@dataclass
class TrainingReport:
    """What a training did; None for a model that was not trained.

    `skipped` names the models that could not be trained, with the reason.
    `method` is the collection's method afterwards, `method_before` the one before.
    `cuts` are those of the methods that use a new label autoencoder; None if they
    stay as they were.
    """

    plan: TrainingPlan
    label_ae: AutoencoderReport | None = None
    rerank: RerankReport | None = None
    skipped: list[tuple[str, str]] = field(default_factory=list)
    method_before: str = ""
    method: str = ""
    outdated_reranker: bool = False
    cuts: CutReport | None = None


class TrainingObserver:
    """Receives the progress of a training. Override the methods of interest."""

    def planned(self, report: TrainingReport) -> None:
        """Nothing has been done yet: the plan, and what is skipped."""

    def stage(self, name: str, done: int, total: int) -> None:
        """A long step has come this far."""

    def epoch(self, progress: TrainingProgress) -> None:
        """The label autoencoder has come this far."""

    def trained_label_ae(self, report: AutoencoderReport) -> None:
        """The label autoencoder is saved."""

    def chose_cuts(self, report: CutReport) -> None:
        """The cuts for the new label autoencoder are in labelkin.toml."""

    def left_cuts(self, reason: str) -> None:
        """The cuts in labelkin.toml stay as they are, for a reason."""

    def trained_reranker(self, report: RerankReport) -> None:
        """The reranker is saved."""


def is_first_process() -> bool:
    """Whether this is the first, or only, process that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"
