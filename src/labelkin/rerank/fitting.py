"""Training a reranker, comparing it with votes, and saving it."""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.corpus.document import Document
from labelkin.evaluate import Evaluation, evaluate, parse_measure
from labelkin.evaluate.stored import EvaluationSummary
from labelkin.exceptions import MissingExtraError
from labelkin.neighbours.indexes import Indexes
from labelkin.neighbours.search import NeighbourSearch
from labelkin.represent.counted_texts import Progress
from labelkin.rerank.labelled_candidates import LabelledCandidates
from labelkin.rerank.model import RERANK_NAME, RerankInfo, save_reranker
from labelkin.rerank.pairs import Floats
from labelkin.rerank.ranker import check_lightgbm
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import feature_names
from labelkin.rerank.training import Autoencoders, RerankTrainer, TrainedReranker
from labelkin.scoring.ranking import Ranking
from labelkin.store.held_out import HeldOut, HeldOutRule
from labelkin.store.models import Models, training_lock
from labelkin.store.snapshot import Views

logger = logging.getLogger(__name__)

# The votes that need no training, from the same neighbours.
_VOTES = "majority20"
# Features that are scores of their own, by the names that they are compared under.
_COMPARED = {"votes": _VOTES, "label-ae": "decoded"}
# None that needs to know which heading was missed.
_MEASURES = ("MiP", "MiR", "MiF", "P@1", "P@5", "R@10", "nDCG@5", "nDCG@10")


@dataclass(frozen=True)
class RerankReport:
    """What was trained, and how good it is on held-out documents.

    `score` is MiF at `threshold`, the best for them; `votes` is MiF of equal votes
    at their own best threshold, 0 if votes are no feature.
    """

    info: RerankInfo
    folder: Path
    score: float
    votes: float
    threshold: float


def check_rerank_training() -> None:
    """Raise MissingExtraError if an extra is missing, before anything expensive is done."""
    check_lightgbm()
    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtraError("the reranker needs scikit-learn: pip install 'labelkin[rerank]'")


def fit_reranker(
    views: Views,
    models: Models,
    search: NeighbourSearch,
    settings: RerankTrainingSettings,
    documents: Sequence[Document] = (),
    held_out: HeldOut | None = None,
    progress: Progress | None = None,
    indexes: Indexes | None = None,
    autoencoders: Autoencoders | None = None,
) -> RerankReport:
    """Train a reranker and make it the model of the collection.

    `held_out` is what the label autoencoder was trained without; by default the
    documents are chosen here, among those that it has not seen if that is recorded.
    `indexes` is needed if the settings name an encoder. `autoencoders` trains the
    autoencoder again for each fold after the first; without it, its scores are
    unknown there.
    """
    snapshot = views.snapshot
    folder = models.folder / RERANK_NAME
    with training_lock(folder):
        known = snapshot.known_rows(documents)
        if count := sum(map(bool, known)):
            logger.warning("skipping %s documents to train on: in the collection itself", count)
        given = [one for one, rows in zip(documents, known, strict=True) if one.labels and not rows]
        autoencoder = models.find(LabelModel)
        unseen = None
        if autoencoder is not None:
            unseen = _unseen_by(autoencoder, settings.seed, can_train=autoencoders is not None)
        if held_out is None:
            held_out = settings.held_out(snapshot, len(given), unseen)
        trainer = RerankTrainer(
            views,
            models,
            search,
            settings,
            held_out,
            autoencoder=autoencoder,
            has_seen=not _covers(unseen, held_out),
            autoencoders=autoencoders,
            indexes=indexes,
            progress=progress,
        )
        trained = trainer.train(given)
        report = _report(trained, folder)
        save_reranker(folder, report.info, trained.parts, reranker_card(report))
    return report


def _covers(unseen: HeldOutRule | None, held_out: HeldOut) -> bool:
    """Whether a model has seen none of the held-out documents."""
    return unseen is not None and held_out.rule.bound <= unseen.bound


def _unseen_by(autoencoder: LabelModel, seed: int, *, can_train: bool) -> HeldOutRule | None:
    """The documents that the label autoencoder was trained without; None if they are not known.

    Then it cannot be used, unless one can be trained for each fold.
    """
    recorded = autoencoder.info.data.get("left_out")
    rule = HeldOutRule.from_json(recorded)
    if rule is not None and rule.seed == seed:
        return rule
    if can_train:
        return None
    reason = "it was trained on all documents"
    if rule is not None:
        reason = f"its held-out documents were chosen with seed {rule.seed}, not {seed}"
    elif recorded is not None:
        reason = "an earlier version trained it and did not record which documents it held out"
    elif autoencoder.info.origin:
        reason = "the model that it started from may have seen the documents"
    logger.warning(
        "%s: the reranker is trained without the label autoencoder, because %s; "
        "`labelkin train` trains both",
        autoencoder.folder,
        reason,
    )
    return None


def _report(trained: TrainedReranker, folder: Path) -> RerankReport:
    held_out = trained.held_out
    names = feature_names(trained.info.groups)
    ranked_by = {"rerank": trained.scores} | {
        name: held_out.features[:, names.index(feature)]
        for name, feature in _COMPARED.items()
        if feature in names
    }
    best = {name: best_threshold(held_out, scores) for name, scores in ranked_by.items()}
    evaluation = EvaluationSummary.now(
        held_out.pairs.count,
        {
            name: evaluate(
                as_evaluation(held_out, scores, best[name][1]), map(parse_measure, _MEASURES)
            )
            for name, scores in ranked_by.items()
        },
    )
    score, threshold = best["rerank"]
    votes, _ = best.get("votes", (0.0, 0.0))
    info = replace(trained.info, evaluation=evaluation)
    return RerankReport(info, folder, score, votes, threshold)


def as_evaluation(candidates: LabelledCandidates, scores: Floats, threshold: float) -> Evaluation:
    """Candidates ranked by scores above 0 and cut at a threshold, beside the right headings.

    Which headings are right but no candidates is not known, only how many: they
    get columns after those of the vocabulary.
    """
    from scipy.sparse import csr_matrix

    pairs = candidates.pairs
    order = np.lexsort((-scores, pairs.documents))
    order = order[scores[order] > 0]
    ranked = Ranking.from_pairs(
        pairs.documents[order], pairs.columns[order], scores[order], pairs.count
    )
    right = candidates.right
    missed = candidates.gold - np.bincount(pairs.documents[right], minlength=pairs.count)
    documents = np.concatenate((pairs.documents[right], np.repeat(np.arange(pairs.count), missed)))
    columns = np.concatenate((pairs.columns[right], pairs.width + np.arange(int(missed.sum()))))
    gold = csr_matrix(
        (np.ones(len(columns), dtype=np.int8), (documents, columns)),
        shape=(pairs.count, pairs.width + int(missed.sum())),
    )
    return Evaluation(gold, ranked.kept(ranked.scores >= threshold), ranked)


def best_threshold(candidates: LabelledCandidates, scores: Floats) -> tuple[float, float]:
    """The highest MiF that a single threshold gives, and that threshold."""
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(candidates.right[order])
    given = np.arange(1, len(order) + 1)
    values: npt.NDArray[np.float64] = 2 * right / (given + candidates.gold.sum())
    if len(values) == 0:
        return 0.0, 0.5
    # A threshold lets all equal scores pass, or none.
    descending = scores[order]
    values[:-1][descending[:-1] == descending[1:]] = 0
    best = int(np.argmax(values))
    return float(values[best]), math.floor(float(descending[best]) * 1000) / 1000


def reranker_card(report: RerankReport) -> str:
    """The model card: what the reranker is, and how good, in Markdown."""
    info, training = report.info, report.info.training
    versions = ", ".join(f"{name} {version}" for name, version in info.versions.items())
    return f"""# Reranker

Gradient-boosted trees over {len(info.groups)} signals ({", ".join(info.groups)}), with calibrated
scores. Made by `labelkin train` with {versions}.

- Statistics over {training["documents"]:,} documents; trained on {training["held_out"]:,} that were
  held out of them and on {training["given"]:,} given documents.
- {training["candidate_recall"]:.1%} of their headings are among the candidates.
- On {info.calibration.documents:,} held-out documents that the trees were not trained on: MiF
  {report.score:.4f} at a threshold of {report.threshold}, {report.votes:.4f} of plain votes;
  expected calibration error {info.calibration.error:.4f} (`reliability.png`).
- {training["seconds"]:,.0f} s.
"""
