"""A label autoencoder over one snapshot: scores and evidence for the headings of texts."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import ModelMismatchError
from labelkin.scoring.evidence import NeighbourEvidence
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings
from labelkin.scoring.suggestion import Suggestion
from labelkin.store.reader import Reader
from labelkin.store.snapshot import Snapshot, Views

logger = logging.getLogger(__name__)

# Headings with a lower score are not ranked at all.
_FLOOR = 0.005
LOWEST = float(np.log(_FLOOR / (1 - _FLOOR)))
# Documents decoded at a time.
CHUNK = 256
INFERRED_FROM = 3
_LEAST_KNOWN = 0.5

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


class Decoder(ABC):
    """A label autoencoder over one snapshot; `columns` are its labels as vocabulary columns."""

    columns: LabelColumns

    def __init__(self, snapshot: Snapshot, model: LabelModel) -> None:
        self.snapshot = snapshot
        self.model = model

    @classmethod
    def of(cls, queries: Queries) -> Decoder:
        """The decoder for a batch of queries."""
        return cls.at(queries.views, queries.model(LabelModel))

    @classmethod
    def at(cls, views: Views, model: LabelModel) -> Decoder:
        """The decoder of a snapshot, made once."""
        from labelkin.scoring.joint_decoder import JointDecoder
        from labelkin.scoring.latent_decoder import LatentDecoder

        key = ("decoder", model.checksum)
        kind = JointDecoder if model.is_joint else LatentDecoder
        decoder: Decoder = views.get(key, lambda views: kind(views.snapshot, model))
        for other in views.used():
            # A model that has been trained again takes the place of the old one.
            if isinstance(other, tuple) and other[0] == "decoder" and other != key:
                views.drop(other)
        return decoder

    @abstractmethod
    def depth(self, scorer: ScorerSettings) -> int:
        """How many neighbours it looks at."""

    @abstractmethod
    def rank(self, queries: Queries, scorer: ScorerSettings, policy: LabelPolicy | None) -> Ranking:
        """All labels that score above a floor, best first."""

    @abstractmethod
    def scores_of(
        self,
        queries: Queries,
        scorer: ScorerSettings,
        policy: LabelPolicy | None,
        documents: Integers,
        columns: Integers,
    ) -> tuple[Floats, Floats]:
        """The scores of some pairs of document and column, and those of the latent space alone.

        0 for columns that the decoder does not score.
        """

    @abstractmethod
    def explain(
        self,
        queries: Queries,
        place: int,
        given: tuple[npt.NDArray[np.int32], Floats],
        evidence: NeighbourEvidence,
        scorer: ScorerSettings,
        policy: LabelPolicy | None,
    ) -> list[Suggestion]:
        """The labels that one document is given, with what each neighbour contributes."""

    def unknown_labels(self) -> int:
        """How many labels of the collection's documents the model has never seen."""
        snapshot, known = self.snapshot, matched(self.snapshot, self.model).places
        used = snapshot.label_sets().frequencies(len(known), snapshot.tombstones()) > 0
        return int(np.count_nonzero(used & (known < 0)))

    def targets(self, policy: LabelPolicy | None) -> Integers:
        """The column that each label is suggested as, −1 for none."""
        targets = self.columns.columns
        if policy is None:
            return targets
        targets = targets.copy()
        known = targets >= 0
        targets[known] = policy.target[targets[known]]
        return targets

    def ranked(
        self,
        pairs: tuple[Integers, Integers, Floats],
        documents: int,
        policy: LabelPolicy | None,
    ) -> Ranking:
        """Pairs of document and label with their logits as a ranking of columns."""
        owners, labels, logits = pairs
        columns = self.targets(policy)[labels]
        scores = 1 / (1 + np.exp(-logits))
        allowed = columns >= 0
        owners, columns, scores = owners[allowed], columns[allowed], scores[allowed]
        label_order = self.snapshot.label_order()
        order = np.lexsort((label_order[columns], -scores, owners))
        owners, columns, scores = owners[order], columns[order], scores[order]
        if policy is not None:
            # Several labels may stand for one concept: the best of them counts.
            keys = owners * len(label_order) + columns
            first = np.sort(np.unique(keys, return_index=True)[1])
            owners, columns, scores = owners[first], columns[first], scores[first]
        return Ranking.from_pairs(owners, columns, scores, documents)

    def suggested(
        self,
        columns: npt.NDArray[np.int32],
        scores: Floats,
        evidence: NeighbourEvidence,
        contributions: Floats,
        sources: Mapping[int, Sequence[int]],
    ) -> list[Suggestion]:
        """Columns as suggestions: their carriers by what each contributes (neighbours × columns).

        `sources` has the columns that some of them, by place, are inferred from.
        """
        wanted = {*columns.tolist()} | {one for many in sources.values() for one in many}
        concepts = self.snapshot.concepts(sorted(wanted))
        suggestions = []
        for number, (column, score) in enumerate(zip(columns.tolist(), scores, strict=True)):
            carrying = evidence.carrying(column)
            shares = np.maximum(contributions[:, number], 0)
            shares = shares / (shares.sum() or 1.0)
            contributing = np.union1d(np.flatnonzero(shares > 0), carrying)
            order = contributing[np.argsort(-shares[contributing], kind="stable")]
            suggestions.append(
                Suggestion(
                    concept=concepts[column],
                    score=float(score),
                    rank=number + 1,
                    carriers=evidence.carriers(order.tolist(), shares[order], carrying),
                    neighbours=len(evidence),
                    inferred_from=tuple(concepts[one] for one in sources.get(number, ())),
                )
            )
        return suggestions

    def standing_for(
        self, columns: npt.NDArray[np.int32], logits_of: Any, policy: LabelPolicy | None
    ) -> Integers:
        """The label that each column stands for: of several, the one that scores best.

        A column differs from its label if the label's concept was replaced.
        `logits_of` gives the logits of some labels.
        """
        targets, labels = self.targets(policy), []
        for column in columns.tolist():
            standing = np.flatnonzero(targets == column)
            if len(standing) > 1:
                standing = standing[[int(np.argmax(logits_of(standing)))]]
            labels.append(int(standing[0]))
        return np.array(labels, dtype=np.int64)


def pair_scores(
    targets: Integers, labels: Integers, logits: Floats, documents: Integers, columns: Integers
) -> Floats:
    """The scores of pairs of document and column, from the logits of some labels.

    0 for columns that none of them stands for; of several that do the best counts.
    """
    best = np.full(len(columns), -np.inf, dtype=np.float32)
    places, standing = labels_by_column(targets[labels], columns)
    np.maximum.at(best, places, logits[documents[places], standing])
    return np.asarray(1 / (1 + np.exp(-best)), dtype=np.float32)


def labels_by_column(targets: Integers, columns: Integers) -> tuple[Integers, Integers]:
    """The labels that stand for each of some columns: places of columns, and a label for each."""
    order = np.argsort(targets, kind="stable")
    width = int(max(targets.max(initial=0), columns.max(initial=0))) + 1
    starts = np.searchsorted(targets[order], np.arange(width + 1))
    firsts, counts = starts[columns], np.diff(starts)[columns]
    places = np.repeat(np.arange(len(columns)), counts)
    offsets = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places, order[firsts[places] + offsets]


def matched(reader: Reader, model: LabelModel) -> LabelColumns:
    """The columns of the model's labels in the collection's vocabulary."""
    by_id = reader.columns_by_id()
    columns = np.array([by_id.get(label, -1) for label in model.info.labels], dtype=np.int64)
    known = int(np.count_nonzero(columns >= 0))
    if known < _LEAST_KNOWN * len(columns):
        raise ModelMismatchError(
            f"{model.folder}: trained on another vocabulary ({known:,} of its "
            f"{len(columns):,} headings are in this one); train it again"
        )
    if known < len(columns):
        logger.warning(
            "%s: skipping %d headings of the model that are not in the vocabulary any more",
            model.folder,
            len(columns) - known,
        )
    return LabelColumns(columns, len(by_id))
