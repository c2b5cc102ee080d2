"""From a collection to a reranker in its folder, and whether it pays."""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError, MissingExtraError, ModelNotFoundError
from labelkin.neighbours.search import NeighbourSearch
from labelkin.rerank.calibration import reliability
from labelkin.rerank.card import reranker_card
from labelkin.rerank.features import feature_names
from labelkin.rerank.learning import Learned, Learner
from labelkin.rerank.lesson import Lesson
from labelkin.rerank.model import RerankInfo, save_reranker
from labelkin.rerank.open import DECODING, reranker_folder
from labelkin.rerank.pairs import Floats
from labelkin.rerank.ranker import check_lightgbm
from labelkin.rerank.reading import Progress
from labelkin.rerank.reliability import draw_reliability
from labelkin.rerank.settings import LearningSettings
from labelkin.scoring.label_ae import LabelAe, model_folder
from labelkin.store.collection import Collection
from labelkin.store.held_out import HeldOut, HeldOutRule
from labelkin.store.locks import FileLock

logger = logging.getLogger(__name__)

_VOTES = "majority20"


@dataclass(frozen=True)
class LearningReport:
    """What was learned, and how good it is on documents kept aside.

    `score` is MiF at `threshold`, the best for them; `votes` is that of equal
    votes at their own best threshold, 0 where votes are no feature.
    """

    info: RerankInfo
    folder: Path
    score: float
    votes: float
    threshold: float


def check_learning() -> None:
    """Raise where an extra is missing, before anything expensive is done."""
    check_lightgbm()
    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtraError("the reranker needs scikit-learn: pip install 'labelkin[rerank]'")


def fit_reranker(
    collection: Collection,
    search: NeighbourSearch,
    settings: LearningSettings,
    documents: Sequence[Document] = (),
    held_out: HeldOut | None = None,
    progress: Progress | None = None,
) -> LearningReport:
    """Train a reranker and make it the model of the collection.

    `held_out` is what the label autoencoder was trained without; by default the
    documents are chosen here, among those that it has not seen if it can tell.
    """
    folder = reranker_folder(collection)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".training.lock")
    with lock:
        if not lock.take():
            raise CollectionBusyError(f"{folder}: another process is training")
        given = _unknown(collection, documents)
        unseen = _unseen_by_label_ae(collection, settings.seed)
        if held_out is None:
            held_out = settings.held_out(collection, len(given), unseen)
        label_ae = None
        if unseen is not None and held_out.rule.bound <= unseen.bound:
            label_ae = LabelAe(collection, DECODING)
        learner = Learner(
            collection, search, settings, held_out, label_ae=label_ae, progress=progress
        )
        learned = learner.learn(given)
        draw_reliability(
            reliability(learned.scores, learned.held_out.right), folder / "reliability.png"
        )
        report = _report(learned, folder)
        save_reranker(folder, learned.info, learned.parts, reranker_card(report))
    return report


def _unknown(collection: Collection, documents: Sequence[Document]) -> list[Document]:
    """Those with labels that no statistic has seen: a document of the collection is counted."""
    known = collection.rows_of([document.id for document in documents])
    if known:
        logger.warning("%s documents to learn from are in the collection; left out", len(known))
    return [one for one in documents if one.labels and one.id not in known]


def _unseen_by_label_ae(collection: Collection, seed: int) -> HeldOutRule | None:
    """The documents that the label autoencoder was trained without; None if it cannot be used."""
    folder = model_folder(collection)
    try:
        recorded = LabelModel(folder).info.data.get("left_out")
    except ModelNotFoundError:
        return None
    rule = HeldOutRule.from_json(recorded)
    if rule is not None and rule.seed == seed:
        return rule
    reason = "it was trained on all documents"
    if rule is not None:
        reason = f"its held-out documents were chosen with seed {rule.seed}, not {seed}"
    elif recorded is not None:
        reason = "an earlier version trained it and did not record which documents it held out"
    logger.warning(
        "%s: the reranker is trained without the label autoencoder, because %s; "
        "`labelkin train` trains both",
        folder,
        reason,
    )
    return None


def _report(learned: Learned, folder: Path) -> LearningReport:
    lesson = learned.held_out
    score, threshold = best_threshold(lesson, learned.scores)
    # The votes that need no learning, from the same neighbours.
    names = feature_names(learned.info.groups)
    votes = 0.0
    if _VOTES in names:
        votes, _ = best_threshold(lesson, lesson.features[:, names.index(_VOTES)])
    return LearningReport(learned.info, folder, score, votes, threshold)


def best_threshold(lesson: Lesson, scores: Floats) -> tuple[float, float]:
    """The highest MiF that a single threshold brings, and that threshold."""
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(lesson.right[order])
    given = np.arange(1, len(order) + 1)
    values: npt.NDArray[np.float64] = 2 * right / (given + lesson.gold.sum())
    if len(values) == 0:
        return 0.0, 0.5
    # A threshold lets all equal scores pass, or none.
    ordered = scores[order]
    values[:-1][ordered[:-1] == ordered[1:]] = 0
    best = int(np.argmax(values))
    return float(values[best]), math.floor(float(ordered[best]) * 1000) / 1000
