"""What a training will do, and about how long it takes, before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labelkin.cli.console import counted, tell

if TYPE_CHECKING:
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.rerank.settings import LearningSettings
    from labelkin.store.collection import Collection
    from labelkin.store.held_out import HeldOut

# Rough rates of an idle machine with two cores; a busy one takes several times as long.
NEIGHBOURS_A_SECOND = 600
# Documents times the headings for which the loss is computed; a step's own headings come on top.
OUTPUTS_A_SECOND = 2_500_000
OWN_OUTPUTS = 1000
TEXTS_A_SECOND = 500
LESSONS_A_SECOND = 100
# Lessons times trees, which are grown twice.
GROWTH_A_SECOND = 30_000
CLASSIFIERS_A_SECOND = 100


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Which models are trained, and from how many documents; no settings, no model.

    `taken_out` are those that the reranker learns from, besides those `given`;
    `left_out` of them are not shown to the autoencoder.
    """

    documents: int
    headings: int
    taken_out: int = 0
    left_out: int = 0
    given: int = 0
    label_ae: TrainingSettings | None = None
    reranker: LearningSettings | None = None

    def label_ae_seconds(self) -> float:
        """About how long the autoencoder takes at most."""
        if self.label_ae is None or self.label_ae.epochs == 0:
            return 0.0
        settings, documents = self.label_ae, self.documents - self.left_out
        outputs = self.headings
        if settings.sampled_outputs:
            outputs = min(outputs, settings.sampled_outputs + OWN_OUTPUTS)
        seconds = settings.epochs * documents * outputs / OUTPUTS_A_SECOND
        if settings.minutes:
            seconds = min(seconds, 60 * settings.minutes)
        averaged = min(documents, settings.averaged_documents) if settings.averages else 0
        return seconds + averaged / NEIGHBOURS_A_SECOND

    def reranker_seconds(self) -> float:
        """About how long the reranker takes."""
        if self.reranker is None:
            return 0.0
        lessons = self.taken_out + self.given
        seconds = self.documents / TEXTS_A_SECOND + lessons / LESSONS_A_SECOND
        seconds += 2 * lessons * self.reranker.rounds / GROWTH_A_SECOND
        if self.reranker.linear:
            # Once without the documents taken out, once with them.
            seconds += 2 * self.headings / CLASSIFIERS_A_SECOND
            seconds += self.documents / NEIGHBOURS_A_SECOND
        return seconds

    def tell(self) -> None:
        """Say it all."""
        documents = counted(self.documents, "document")
        tell(f"Training on {documents} with {counted(self.headings, 'heading')}:")
        if self.label_ae is not None:
            tell(f"  label autoencoder: {self._label_ae_line()}")
        if self.reranker is not None:
            tell(f"  reranker: {self._reranker_line()}")
        if self.label_ae_seconds() + self.reranker_seconds():
            tell("The times are rough estimates, for two cores; a busy machine takes longer.")

    def _label_ae_line(self) -> str:
        if self.label_ae is None or self.label_ae.epochs == 0:
            return "taken over as it is"
        learned = counted(self.documents - self.left_out, "label set")
        epochs = counted(self.label_ae.epochs, "epoch")
        return f"{learned}, at most {epochs}; {_about(self.label_ae_seconds())}"

    def _reranker_line(self) -> str:
        given = f" and {self.given:,} given" if self.given else ""
        linear = ", linear classifiers" if self.reranker and self.reranker.linear else ""
        return (
            f"from {counted(self.taken_out, 'document')} taken out of all statistics{given}"
            f"{linear}; {_about(self.reranker_seconds())}"
        )


def make_plan(
    collection: Collection,
    label_ae: TrainingSettings | None,
    reranker: LearningSettings | None,
    taken: HeldOut | None,
    left_out: HeldOut | None,
    given: int = 0,
) -> TrainingPlan:
    """The plan for a collection, with what the two models learn from and what they do not."""
    import numpy as np

    sizes = collection.label_sets()
    dropped = collection.tombstones(collection.generation())
    frequencies = sizes.frequencies(collection.generation().next_column, dropped)
    return TrainingPlan(
        documents=int(np.count_nonzero(np.delete(sizes.sizes(), dropped))),
        headings=int(np.count_nonzero(frequencies)),
        taken_out=0 if taken is None else len(taken.places),
        left_out=0 if left_out is None else len(left_out.places),
        given=given,
        label_ae=label_ae,
        reranker=reranker,
    )


def _about(seconds: float) -> str:
    if seconds < 50:
        return "less than a minute"
    return f"about {max(round(seconds / 60), 1)} min"
