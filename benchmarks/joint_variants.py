"""The joint label autoencoder with parts left out, changed or added, for label_ae_beyond.py.

What did not pay lives only here: true label sets mixed with averages, label vectors that share
strength through names and broader headings, other losses, scores adjusted by frequency, and
neighbours in the latent space.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import Stemmer
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from labelkin import Vocabulary
from labelkin.autoencoder import cross_entropy
from labelkin.autoencoder.ballots import NEIGHBOURS, Ballots, NamedLabels, cast_ballots
from labelkin.autoencoder.joint_network import JointBatch, JointNetwork
from labelkin.autoencoder.joint_task import JointTask
from labelkin.autoencoder.network import OutputSample
from labelkin.autoencoder.training import Trainer
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.scoring.mentions import named_labels
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.store.label_sets import LabelSets

# Logits below are too low for any cut.
LOWEST = -4.0
CHUNK = 250

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Variant:
    """The joint network without some of its parts, or with others.

    `compared` is the row that its effect is measured against. `sets` is the share of a batch
    that is also reconstructed from its own label sets; `shared` label vectors add those of the
    words of their names and of broader headings; `latent` 0 is the size that `labelkin train`
    chooses.
    """

    name: str
    compared: str
    average: bool = True
    corrected: bool = True
    learned: bool = True
    words: bool = True
    names: bool = True
    loss: str = "asymmetric"
    neighbours: int = NEIGHBOURS
    latent: int = 0
    sets: float = 0.0
    shared: bool = False


WHOLE = "+ asymmetric loss (joint)"
_VOTES = {"words": False, "names": False, "loss": "BCE"}
VARIANTS = (
    Variant("average decoded", "knn", corrected=False, learned=False, **_VOTES),
    Variant("+ votes beside it", "average decoded", learned=False, **_VOTES),
    Variant("+ learned weights", "+ votes beside it", **_VOTES),
    Variant("+ words of the text", "+ learned weights", names=False, loss="BCE"),
    Variant("+ names in the text", "+ words of the text", loss="BCE"),
    Variant(WHOLE, "+ names in the text"),
    Variant("joint, label vectors of names and broader headings", WHOLE, shared=True),
    Variant("joint, true label sets mixed in", WHOLE, sets=0.25),
    Variant("joint, class-balanced loss", WHOLE, loss="balanced"),
    Variant("joint, focal loss", WHOLE, loss="focal"),
    Variant("joint, 20 neighbours instead of 60", WHOLE, neighbours=20),
    Variant("joint, latent space of 128", WHOLE, latent=128),
    Variant("joint, latent space of 768", WHOLE, latent=768),
    Variant("joint without votes beside it", WHOLE, corrected=False),
    Variant("joint without the latent average", WHOLE, average=False),
    Variant("joint without words", WHOLE, words=False),
)


class VariantTask(JointTask):
    """Trains a variant."""

    variant = VARIANTS[0]

    def __init__(self, data: TrainingData, settings: TrainingSettings, *rest: Any) -> None:
        texts, near, one = data.texts, data.neighbours, self.variant
        assert texts is not None and near is not None
        if not one.words:
            texts = replace(texts, weighted=sp.csr_matrix(texts.weighted.shape, dtype=np.float32))
        if not one.names:
            texts = replace(texts, named=unnamed(len(texts.named)))
        near = replace(near, near=near.near[:, : one.neighbours])
        near = replace(near, weights=near.weights[:, : one.neighbours])
        if one.latent:
            settings = replace(settings, preset=str(one.latent))
        super().__init__(replace(data, texts=texts, neighbours=near), settings, *rest)
        self.architecture = replace(self.architecture, asymmetric=one.loss != "BCE")
        network = self.network
        network.architecture = self.architecture
        if not one.learned:
            network.weigh2.weight.data.zero_()
            for weight in (network.weigh2.weight, network.sharpness):
                weight.requires_grad_(False)
        if not one.corrected:
            network.corrections = no_corrections  # type: ignore[method-assign, assignment]
        if not one.average:
            network.inputs.weight.data.zero_()
            network.inputs.weight.requires_grad_(False)

    @property
    def fast_tables(self) -> list[Tensor]:
        if not self.variant.shared:
            return super().fast_tables
        shared = self.network.inputs.parametrizations.weight
        return [shared.original, shared[0].words, self.network.terms.weight]


def no_corrections(ballots: Ballots, votes: Tensor) -> Tensor:  # noqa: ARG001
    return torch.zeros_like(votes)


def unnamed(documents: int) -> NamedLabels:
    starts = np.zeros(documents + 1, dtype=np.int64)
    return NamedLabels(starts, np.zeros(0, np.int32), np.zeros((0, 9), np.float32))


class ReconstructingNetwork(JointNetwork):
    """Also decodes the true label sets of a part of each batch, some of their labels left out."""

    share = 0.25
    left_out = 0.3

    def forward(self, batch: JointBatch, sample: OutputSample | None = None) -> Tensor:
        loss = super().forward(batch, sample)
        documents = int(len(batch.targets) * self.share)
        starts = batch.targets.starts[: documents + 1]
        labels = batch.targets.labels[: starts[-1]]
        kept = (torch.rand(len(labels)) >= self.left_out).float()
        latent = functional.relu(self.inputs(labels, starts[:-1], kept) + self.shift)
        hidden = functional.dropout(latent, self.architecture.dropout, self.training)
        if torch.is_autocast_enabled("cpu"):
            hidden = hidden.to(torch.get_autocast_dtype("cpu"))
        owners = torch.repeat_interleave(torch.arange(documents), starts.diff())
        reconstruction = cross_entropy.cross_entropy(
            hidden,
            self.outputs.weight,
            self.outputs.bias,
            owners,
            labels,
            asymmetric=self.architecture.asymmetric,
        )
        return loss + reconstruction / len(batch.targets)


class SharedVectors(nn.Module):
    """Adds to a label's vector those of the words of its names, and its broader labels' mean."""

    def __init__(self, names: Tensor, broader: Tensor, latent: int) -> None:
        super().__init__()
        self.names, self.broader = names, broader
        self.words = nn.Parameter(torch.zeros(names.shape[1], latent))
        self.strength = nn.Parameter(torch.tensor(0.1))

    def forward(self, weight: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            by_names = torch.sparse.mm(self.names, self.words)
            return weight + by_names + self.strength * torch.sparse.mm(self.broader, weight)


class SharedNetwork(JointNetwork):
    """A joint network whose label vectors share strength through names and hierarchy."""

    names: Tensor
    broader: Tensor

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        for table in (self.inputs, self.outputs):
            shared = SharedVectors(self.names, self.broader, self.architecture.latent)
            parametrize.register_parametrization(table, "weight", shared)


def as_torch(matrix: sp.csr_matrix) -> Tensor:
    """Each line of a sparse matrix divided by its sum, as a tensor."""
    scale = 1 / np.maximum(np.asarray(matrix.sum(1)).ravel(), 1)
    coo = (sp.diags(scale) @ matrix).tocoo()
    places = torch.from_numpy(np.stack((coo.row, coo.col)).astype(np.int64))
    values = torch.from_numpy(coo.data.astype(np.float32))
    return torch.sparse_coo_tensor(places, values, coo.shape).coalesce()


def label_kinship(vocabulary: Vocabulary, columns: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Which words the names of each label have, and which labels are broader than it."""
    stemmer = Stemmer.Stemmer("english")
    concepts = [vocabulary[int(column)] for column in columns]
    places = {concept.id: place for place, concept in enumerate(concepts)}
    numbers: dict[str, int] = {}
    words: list[tuple[int, int]] = []
    broader: list[tuple[int, int]] = []
    for place, concept in enumerate(concepts):
        texts = [*concept.names.values(), *(s for some in concept.synonyms.values() for s in some)]
        found = {word for text in texts for word in re.findall(r"\w+", text.lower())}
        stems = sorted(set(stemmer.stemWords(sorted(found))))
        words += [(place, numbers.setdefault(stem, len(numbers))) for stem in stems]
        broader += [(place, places[one]) for one in concept.broader if one in places]

    def matrix(pairs: list[tuple[int, int]], width: int) -> sp.csr_matrix:
        lines, cells = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return sp.csr_matrix((np.ones(len(pairs)), (lines, cells)), shape=(len(columns), width))

    by_word = matrix(words, len(numbers))
    # A word of one label alone is no more than the label's own vector.
    common = np.flatnonzero(np.asarray(by_word.sum(0)).ravel() > 1)
    return as_torch(by_word[:, common].tocsr()), as_torch(matrix(broader, len(columns)))


def focal(logits: Tensor) -> tuple[Tensor, Tensor]:
    """As the asymmetric loss, but nothing is left out below a margin."""
    scores = torch.sigmoid(logits)
    weights = scores.square() * 2
    cost = functional.softplus(logits) * weights
    return cost, scores * weights


class BalancedLoss:
    """The asymmetric loss in which a rare label counts more where a document carries it.

    Weights are those of Cui et al. (2019), the inverse of the effective number of documents; over
    all occurrences of labels they average 1.
    """

    beta = 0.999

    def __init__(self, frequencies: npt.NDArray[np.int64]) -> None:
        weights = (1 - self.beta) / (1 - self.beta ** np.maximum(frequencies, 1))
        weights /= np.average(weights, weights=frequencies)
        self._weights = torch.from_numpy(weights.astype(np.float32))

    def __call__(
        self,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        documents: Tensor,
        columns: Tensor,
        chances: Tensor | None = None,
        corrections: cross_entropy.Corrections | None = None,
        *,
        asymmetric: bool = False,
    ) -> Tensor:
        assert chances is None and corrections is not None and asymmetric
        logits = (hidden @ weight.T.to(hidden.dtype)).float() + bias
        logits = logits.index_put(
            (corrections.documents, corrections.columns), corrections.values, accumulate=True
        )
        where = (documents, columns)
        above = (torch.sigmoid(logits) - cross_entropy._MARGIN).clamp(min=0)
        factors = above.detach().square() * cross_entropy._SCALE
        absent = torch.ones_like(logits).index_put(where, torch.zeros(()))
        wrong = -(torch.log1p(-above.clamp(max=1 - 1e-6)) * factors * absent).sum()
        right = functional.softplus(-logits[where]) * self._weights[columns]
        return wrong + right.sum()


def trained(
    variant: Variant, data: TrainingData, settings: TrainingSettings, vocabulary: Vocabulary
) -> tuple[VariantTask, float]:
    """The task with the best weights of its training, and the CPU-seconds that it took."""
    VariantTask.variant = variant
    network = JointNetwork
    if variant.sets:
        network = ReconstructingNetwork
        ReconstructingNetwork.share = variant.sets
    if variant.shared:
        network = SharedNetwork
        kin = label_kinship(vocabulary, data.columns.columns)
        SharedNetwork.names, SharedNetwork.broader = kin
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(patch("labelkin.autoencoder.training.JointTask", VariantTask))
        stack.enter_context(patch("labelkin.autoencoder.joint_task.JointNetwork", network))
        if variant.loss == "focal":
            stack.enter_context(patch.object(cross_entropy, "_asymmetric", focal))
        if variant.loss == "balanced":
            loss = BalancedLoss(data.frequencies)
            stack.enter_context(patch("labelkin.autoencoder.joint_network.cross_entropy", loss))
        started = time.process_time()
        trainer = Trainer(data, settings, Path(folder))
        trainer.run()
        seconds = time.process_time() - started
        trainer.network.load_state_dict(trainer.checkpoints.best())
        return trainer.task, seconds  # type: ignore[return-value]


@dataclass(frozen=True)
class Inputs:
    """What a variant sees of some documents of a split."""

    ballots: Ballots
    texts: sp.csr_matrix


class Predictor:
    """A trained variant over a collection."""

    def __init__(self, task: VariantTask, label_sets: LabelSets) -> None:
        self.task, self.network, self.label_sets = task, task.network, label_sets
        self.columns = task.data.columns
        self.network.train(False)

    def inputs(self, queries: Queries) -> Iterator[Inputs]:
        one, texts = self.task.variant, self.task.data.texts
        assert texts is not None
        terms = texts.terms.columns
        near = queries.neighbours(NEIGHBOURS).nearest(one.neighbours)
        closeness = np.where(near.rows >= 0, 1 - near.distances("self"), 0).astype(np.float32)
        weighted = terms.weighted(terms.counts(queries.wording()), pairs=True)
        named = named_labels(queries.mentions())
        if not one.words:
            weighted = sp.csr_matrix(weighted.shape, dtype=np.float32)
        if not one.names:
            named = unnamed(len(named))
        for start in range(0, len(near), CHUNK):
            places = np.arange(start, min(start + CHUNK, len(near)))
            ballots = cast_ballots(
                near.rows[places],
                closeness[places],
                named.taken(places),
                self.columns,
                self.label_sets,
            )
            yield Inputs(ballots, weighted[places])

    def ranked(self, queries: Queries, adjust: Callable[[Floats], Floats] | None = None) -> Ranking:
        """All labels that a cut may reach; `adjust` changes the logits of a batch."""
        parts = []
        for batch in self.inputs(queries):
            with torch.no_grad():
                logits = self.network.decode(batch.ballots, batch.texts).numpy()
            parts.append(rank_logits(logits if adjust is None else adjust(logits), self))
        return Ranking.joined(parts)

    def latents(self, queries: Queries) -> Floats:
        """The vectors that neighbours and text add up to."""
        parts = []
        for batch in self.inputs(queries):
            with torch.no_grad():
                votes = self.network.votes(batch.ballots)
                parts.append(self.network.hidden(batch.ballots, votes, batch.texts).numpy())
        return np.concatenate(parts)


def rank_logits(logits: Floats, predictor: Predictor) -> Ranking:
    documents, labels = np.nonzero(logits > LOWEST)
    scores = 1 / (1 + np.exp(-logits[documents, labels]))
    order = np.lexsort((-scores, documents))
    columns = predictor.columns.columns[labels[order]]
    return Ranking.from_pairs(documents[order], columns, scores[order], len(logits))


def frequency_adjustment(predictor: Predictor, strength: float) -> Callable[[Floats], Floats]:
    """Logits less a share of the labels' log-odds, as in Menon et al. (2021)."""
    odds = predictor.task.data.log_odds()
    return lambda logits: logits - np.float32(strength) * (odds - odds.mean())


class LatentNeighbours:
    """Documents whose label sets lie near the latent vector of a text, and their votes.

    The vector of a label set is the mean of its labels' output vectors: its product with the
    latent vector of a text is the mean logit of the set.
    """

    def __init__(self, predictor: Predictor) -> None:
        import faiss

        data, network = predictor.task.data, predictor.network
        self._predictor = predictor
        rows = data.all_rows
        labels, starts = data.columns.sets(predictor.label_sets, rows)
        shape = (len(rows), data.labels)
        self._sets = sp.csr_matrix((np.ones(len(labels), np.float32), labels, starts), shape=shape)
        vectors = self._sets @ network.outputs.weight.detach().numpy()
        faiss.normalize_L2(vectors)
        self._index = faiss.IndexFlatIP(vectors.shape[1])
        self._index.add(vectors)

    def votes(self, queries: Queries, k: int, power: float) -> sp.csr_matrix:
        """The share of the nearest k that carry each label; the nearest count most."""
        import faiss

        latents = self._predictor.latents(queries)
        faiss.normalize_L2(latents)
        closeness, near = self._index.search(latents, k)
        weights = np.maximum(closeness, 1e-6) ** power
        weights /= weights.sum(1, keepdims=True)
        starts = np.arange(len(near) + 1) * k
        shape = (len(near), self._sets.shape[0])
        return sp.csr_matrix((weights.ravel(), near.ravel(), starts), shape=shape) @ self._sets

    def ranked(self, queries: Queries, k: int, power: float) -> Ranking:
        """Their votes alone."""
        votes = self.votes(queries, k, power).toarray()
        with np.errstate(divide="ignore"):
            return rank_logits(
                np.log(votes) - np.log1p(-np.minimum(votes, 1 - 1e-6)), self._predictor
            )

    def mixed(self, queries: Queries, k: int, power: float, share: float) -> Ranking:
        """Their votes beside the scores of the network."""
        votes = self.votes(queries, k, power)
        done = 0

        def mix(logits: Floats) -> Floats:
            nonlocal done
            mine = votes[done : done + len(logits)].toarray()
            done += len(logits)
            scores = (1 - share) / (1 + np.exp(-logits)) + share * mine
            scores = np.clip(scores, 1e-6, 1 - 1e-6)
            return np.log(scores / (1 - scores))

        return self._predictor.ranked(queries, mix)
