"""C2AE, MANIC and AE-kNN on mesh47k: the methods that the paper names as kin, on labelkin's words.

python benchmarks/kin.py                          # all methods, then the table
python benchmarks/kin.py c2ae manic ae-knn        # some of them: text-network knn c2ae manic ae-knn
python benchmarks/kin.py report                   # the table alone

Needs ../shared/data. Figures and rankings stay in --work (benchmarks/work/kin), and the table,
kin.md, is made from those that are there. One thread; about 25 minutes of CPU in all.

Every method sees the words of the reranker's linear classifiers (all words, those of the title
once more; tf-idf) and predicts the headings with two training records or more. 2 % of the records
are held out of training: networks keep the epoch that is best on them. A training step sees the
headings of its records and 2,048 others at random, which stand for the rest. The threshold is
chosen on dev, and k of the k-NN methods too.

- **C2AE** (Yeh et al., AAAI 2017): a text encoder Fx and a label encoder Fe meet in one latent
  space, by the distance and the orthogonality terms of deep CCA; a decoder Fd ranks headings, with
  an exponential loss over all pairs of a right and a wrong heading, which is a product of two sums.
  It is fitted on the latents of labels; prediction is Fd(Fx(text)). Layers, activations, λ and α
  are those of the authors' code. Differences: 256 latent units instead of 80 % of the labels (the
  orthogonality of a batch allows no more than its size), Adam, and dropout on words. A second row
  has the log loss instead of the pairs.
- **MANIC** (Wicker et al., PAKDD 2016): a stack of sigmoid autoencoders, trained layer by layer and
  then together, compresses label sets; codes become bits, a linear classifier per bit predicts them
  from the text (binary relevance), the decoder turns bits into headings. Differences: 1,024 and 512
  units instead of 85 % from layer to layer, no Boltzmann machines, log loss instead of squared
  error. A second row decodes probabilities instead of bits.
- **AE-kNN** (Pulgar et al., IJCIS 2019): an autoencoder compresses the *words*, k-NN by Euclidean
  distance between codes votes. Differences: 512 tanh units instead of a share of the inputs; words
  in fewer than ten records are read but not restored; equal votes of k neighbours with a threshold,
  ties by distance, since records have several headings.
- Controls: **k-NN** by Euclidean distance between the words themselves, and a **text network** of
  512 hidden units with log loss, which is C2AE and MANIC without an autoencoder.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from labelkin import Indexer, __version__
from labelkin.evaluate import Evaluation, evaluate_bands, paired_test
from labelkin.represent.counted_texts import count_wording
from labelkin.represent.term_columns import wording_of
from labelkin.rerank.labelled_texts import label_matrix
from labelkin.scoring.cut import cut
from labelkin.scoring.policy import policy_for
from labelkin.scoring.ranking import Ranking
from rerank import MIF, P5, ROOT, SPLITS, Gold, corpus, make_collection, say

HELD_OUT = 0.02
# Headings that a training step samples besides those of its records.
SAMPLED = 2048
MIN_RECORDS = 2
# Headings of a document that are ranked.
RANKED = 100
# Records that a word must be in for AE-kNN to restore it.
RESTORED = 10
BATCH = 256
PATIENCE = 2
WARM_UP = 50
KS = (5, 10, 20, 40, 80)

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Matrix = sp.csr_matrix


@dataclass(frozen=True)
class Records:
    """The words and the headings of some records; `labels` has a column per predicted heading."""

    words: Matrix
    labels: Matrix

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def at(self, places: Integers) -> Records:
        return Records(self.words[places], self.labels[places])

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[Records]:
        """All records, in random order if a generator is given; then none but whole batches."""
        order = np.arange(len(self)) if rng is None else rng.permutation(len(self))
        end = len(order) if rng is None else len(order) - size + 1
        return (self.at(order[start : start + size]) for start in range(0, end, size))


@dataclass(frozen=True)
class Collection:
    """mesh47k as matrices: what is trained on, what is held out of it, and the other splits."""

    training: Records
    held_out: Records
    splits: dict[str, Matrix]
    headings: Integers

    @classmethod
    def read(cls, work: Path) -> Collection:
        if not (work / "labels.npz").exists():
            count_words(work)
        words, labels = (sp.load_npz(work / f"{name}.npz") for name in ("words", "labels"))
        is_held_out = np.random.default_rng(0).random(labels.shape[0]) < HELD_OUT
        frequencies = np.bincount(labels[~is_held_out].indices, minlength=labels.shape[1])
        headings = np.flatnonzero(frequencies >= MIN_RECORDS)
        records = Records(words, labels[:, headings].tocsr())
        return cls(
            records.at(np.flatnonzero(~is_held_out)),
            records.at(np.flatnonzero(is_held_out)),
            {split: sp.load_npz(work / f"words-{split}.npz") for split in SPLITS},
            headings,
        )


def count_words(work: Path) -> None:
    """The weighted words of all records, and the headings of those to train on, as matrices."""
    make_collection(work / "mesh47k")
    with Indexer.open(work / "mesh47k", read_only=True) as indexer:
        snapshot = indexer.runtime.views(needs_index=False).snapshot
        label_sets = snapshot.label_sets()
        labels = label_matrix(
            label_sets,
            np.arange(label_sets.rows),
            snapshot.generation().next_column,
            policy_for(snapshot),
        )
        rows = np.flatnonzero(np.diff(labels.indptr) > 0)
        terms, counts = count_wording(snapshot, rows)

        def save(name: str, of_terms: Matrix) -> None:
            weighted = terms.columns.weighted(of_terms, pairs=False)
            sp.save_npz(work / name, weighted[:, terms.columns.is_single])

        save("words.npz", counts)
        for split in SPLITS:
            documents = snapshot.prepared(corpus(split))
            save(f"words-{split}.npz", terms.columns.counts(wording_of(documents)))
    sp.save_npz(work / "labels.npz", labels[rows])


Scorer = Callable[[Matrix], Floats]


def ranked(words: Matrix, scorer: Scorer, headings: Integers) -> Ranking:
    """The best headings of each record, best first."""
    parts = []
    for start in range(0, words.shape[0], BATCH):
        scores = scorer(words[start : start + BATCH])
        best = np.argpartition(-scores, RANKED, axis=1)[:, :RANKED]
        values = np.take_along_axis(scores, best, 1)
        order = np.argsort(-values, axis=1, kind="stable")
        starts = np.arange(len(scores) + 1) * RANKED
        columns = headings[np.take_along_axis(best, order, 1)]
        values = np.take_along_axis(values, order, 1)
        parts.append(
            Ranking(starts, columns.ravel().astype(np.int32), values.ravel().astype(np.float32))
        )
    return Ranking.joined(parts)


def best_cut(ranking: Ranking, gold: Matrix) -> tuple[float, float]:
    """The highest MiF that one threshold gives, and that threshold."""
    documents = np.repeat(np.arange(len(ranking)), ranking.lengths)
    is_right = np.asarray(gold[documents, ranking.columns]).ravel() > 0
    order = np.argsort(-ranking.scores, kind="stable")
    scores = ranking.scores[order]
    values = 2 * np.cumsum(is_right[order]) / (np.arange(1, len(order) + 1) + gold.nnz)
    # A threshold lets all equal scores pass, or none.
    values[:-1][scores[:-1] == scores[1:]] = 0
    best = int(np.argmax(values))
    return float(values[best]), float(scores[best])


class Bag(nn.Module):
    """A layer over a sparse matrix; its gradients are sparse."""

    def __init__(self, inputs: int, outputs: int, scale: float = 1.0, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = nn.Embedding(inputs, outputs, sparse=True)
        nn.init.normal_(self.table.weight, std=0.05)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.scale = scale
        self.dropout = dropout

    def forward(self, matrix: Matrix) -> Tensor:
        weights = functional.dropout(
            torch.from_numpy(matrix.data * np.float32(self.scale)), self.dropout, self.training
        )
        # Each column of the batch is looked up once: a gradient per entry would be slow.
        present, places = np.unique(matrix.indices, return_inverse=True)
        lines = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        batch = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack((lines, places.ravel()))),
            weights,
            (matrix.shape[0], len(present)),
            check_invariants=False,
        )
        rows = self.table(torch.from_numpy(present.astype(np.int64)))
        return torch.sparse.mm(batch, rows) + self.bias


def words_bag(inputs: int, outputs: int) -> Bag:
    """A layer over words, whose rows have length 1."""
    return Bag(inputs, outputs, scale=3.0, dropout=0.3)


class Wide(nn.Linear):
    """A layer with many outputs: half-precision products while it is trained."""

    def __init__(self, inputs: int, outputs: int, prior: Floats | None = None) -> None:
        super().__init__(inputs, outputs)
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)
        if prior is not None:
            self.bias.data = torch.from_numpy(np.log(prior / (1 - prior)))

    def forward(self, hidden: Tensor, columns: Tensor | None = None) -> Tensor:
        """All outputs, or those in some columns."""
        weight, bias = self.weight, self.bias
        if columns is not None:
            weight, bias = weight[columns], bias[columns]
        if not self.training:
            return functional.linear(hidden, weight, bias)
        return (hidden.bfloat16() @ weight.t().bfloat16()).float() + bias


class Network(nn.Module):
    """What is trained: a loss over a batch, and a validation value, the higher the better."""

    batch = BATCH
    epochs = 8
    rate = 1e-3
    # A rare word has few steps: its weights may take larger ones.
    sparse_rate = 5e-3

    def targets(self, labels: Matrix) -> Targets:
        return Targets.sampled(labels) if self.training else Targets.all(labels)

    @abstractmethod
    def loss(self, batch: Records) -> Tensor: ...

    @abstractmethod
    def quality(self, held_out: Records) -> float: ...


class Classifier(Network):
    """A network that gives headings to words."""

    @abstractmethod
    def logits(self, words: Matrix) -> Tensor: ...

    def scores(self, words: Matrix) -> Floats:
        self.eval()
        with torch.no_grad():
            return self.logits(words).numpy()

    def quality(self, held_out: Records) -> float:
        places = np.arange(held_out.labels.shape[1])
        return best_cut(ranked(held_out.words, self.scores, places), held_out.labels)[0]


class Clock:
    """Wall and CPU minutes since it was made."""

    def __init__(self) -> None:
        self._began, self._busy = time.perf_counter(), time.process_time()

    def minutes(self) -> tuple[float, float]:
        return (
            (time.perf_counter() - self._began) / 60,
            (time.process_time() - self._busy) / 60,
        )


def train(network: Network, training: Records, held_out: Records, minutes: float) -> int:
    """Train by Adam with a falling rate; keep the epoch of the best validation value, return it."""
    bags = [m for m in network.modules() if isinstance(m, Bag)]
    sparse = [one.table.weight for one in bags if one.table.weight.requires_grad]
    tables = {id(parameter) for parameter in sparse}
    dense = [p for p in network.parameters() if p.requires_grad and id(p) not in tables]
    optimisers: list[tuple[torch.optim.Optimizer, float]] = [
        (torch.optim.Adam(dense), network.rate)
    ]
    if sparse:
        optimisers.append((torch.optim.SparseAdam(sparse), network.sparse_rate))
    rng, clock = np.random.default_rng(0), Clock()
    steps, step = network.epochs * (len(training) // network.batch), 0
    best, best_epoch, state = -np.inf, 0, None
    for epoch in range(1, network.epochs + 1):
        network.train()
        total = 0.0
        for batch in training.batches(network.batch, rng):
            step += 1
            loss = network.loss(batch)
            for optimiser, rate in optimisers:
                optimiser.zero_grad(set_to_none=True)
                for group in optimiser.param_groups:
                    group["lr"] = rate * min(1, step / WARM_UP) * max(0.02, 1 - step / steps)
            loss.backward()
            for optimiser, _ in optimisers:
                optimiser.step()
            total += loss.item()
        network.eval()
        with torch.no_grad():
            value = network.quality(held_out)
        _, busy = clock.minutes()
        mean = total * network.batch / len(training)
        say(f"  epoch {epoch}: loss {mean:.4f}, held out {value:.4f}, {busy:.1f} CPU-minutes")
        if value > best:
            best, best_epoch, state = value, epoch, deepcopy(network.state_dict())
        if epoch - best_epoch >= PATIENCE or busy > minutes:
            break
    if state is not None:
        network.load_state_dict(state)
    network.eval()
    return best_epoch


@dataclass(frozen=True)
class Targets:
    """Columns of headings, which records have them, and how many headings each stands for."""

    columns: Tensor
    is_right: Tensor
    weights: Tensor

    @classmethod
    def all(cls, labels: Matrix) -> Targets:
        columns = torch.arange(labels.shape[1])
        return cls(columns, torch.from_numpy(labels.toarray()), torch.ones(len(columns)))

    @classmethod
    def sampled(cls, labels: Matrix) -> Targets:
        """The headings of a batch, and some at random that stand for all others."""
        width = labels.shape[1]
        present = torch.from_numpy(np.unique(labels.indices).astype(np.int64))
        is_absent = torch.ones(width, dtype=torch.bool)
        is_absent[present] = False
        absent = torch.nonzero(is_absent).ravel()
        others = absent[torch.randperm(len(absent))[:SAMPLED]]
        columns = torch.cat((present, others))
        weights = torch.ones(len(columns))
        weights[len(present) :] = len(absent) / max(1, len(others))
        return cls(columns, torch.from_numpy(labels[:, columns.numpy()].toarray()), weights)


def log_loss(logits: Tensor, targets: Targets) -> Tensor:
    """Summed over headings, averaged over records."""
    return functional.binary_cross_entropy_with_logits(
        logits, targets.is_right, targets.weights, reduction="sum"
    ) / len(logits)


def priors(labels: Matrix) -> Floats:
    counts = np.maximum(np.asarray(labels.sum(0)).ravel(), 0.5)
    shares: Floats = (counts / labels.shape[0]).astype(np.float32)
    return shares


class TextNetwork(Classifier):
    """Words → hidden → headings."""

    def __init__(self, training: Records, hidden: int = 512) -> None:
        super().__init__()
        self.words = words_bag(training.words.shape[1], hidden)
        self.output = Wide(hidden, training.labels.shape[1], priors(training.labels))

    def logits(self, words: Matrix, columns: Tensor | None = None) -> Tensor:
        hidden = functional.dropout(functional.relu(self.words(words)), 0.3, self.training)
        logits: Tensor = self.output(hidden, columns)
        return logits

    def loss(self, batch: Records) -> Tensor:
        targets = self.targets(batch.labels)
        return log_loss(self.logits(batch.words, targets.columns), targets)


class C2AE(Classifier):
    """Text and label encoders that share a latent space, and a decoder of headings.

    L = ‖Fx − Fe‖² + λ (‖FxᵀFx − I‖² + ‖FeᵀFe − I‖²) + Γ(Fd(Fe)) / α, summed over a batch, with
    Γ = mean over right p and wrong q of exp(−5 (Fd_p − Fd_q)). As in the authors' code, Γ trains
    Fe and Fd, not Fx. Without `pairs`, Γ is the log loss.
    """

    batch = 512
    epochs = 20
    # Latents are small, so the decoder has a long way to go; the authors' momentum does as much.
    rate = 5e-3
    orthogonality = 0.5
    alpha = 2.0
    sharpness = 5.0

    def __init__(
        self, training: Records, *, pairs: bool, hidden: int = 512, latent: int = 256
    ) -> None:
        super().__init__()
        self.pairs = pairs
        labels = training.labels.shape[1]
        self.words = words_bag(training.words.shape[1], hidden)
        self.text = nn.Sequential(
            nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, latent)
        )
        self.label_bag = Bag(labels, hidden)
        self.label = nn.Sequential(nn.LeakyReLU(), nn.Linear(hidden, latent))
        # The gradient of pairs vanishes where a sigmoid starts near 0.
        prior = None if pairs else priors(training.labels)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.LeakyReLU())
        self.output = Wide(hidden, labels, prior)

    def text_latents(self, words: Matrix) -> Tensor:
        return torch.sigmoid(self.text(self.words(words))) - 0.5

    def label_latents(self, labels: Matrix) -> Tensor:
        return torch.sigmoid(self.label(self.label_bag(labels))) - 0.5

    def logits(self, words: Matrix) -> Tensor:
        logits: Tensor = self.output(self.decoder(self.text_latents(words)))
        return logits

    def loss(self, batch: Records) -> Tensor:
        text, label = self.text_latents(batch.words), self.label_latents(batch.labels)
        meeting = (text - label).square().sum() + self.orthogonality * sum(
            (one.t() @ one - torch.eye(one.shape[1])).square().sum() for one in (text, label)
        )
        targets = self.targets(batch.labels)
        decoded = self.output(self.decoder(label), targets.columns)
        output_loss = self.pair_loss if self.pairs else log_loss
        return meeting / self.batch + output_loss(decoded, targets) / self.alpha

    def pair_loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """The exponential loss of all pairs: a sum over right times a sum over wrong headings."""
        outputs = torch.sigmoid(logits) * self.sharpness
        is_right = targets.is_right
        wrong_weights = (1 - is_right) * targets.weights
        right = (is_right * torch.exp(-outputs)).sum(1) / is_right.sum(1).clamp(min=1)
        wrong = (wrong_weights * torch.exp(outputs)).sum(1) / wrong_weights.sum(1)
        return (right * wrong).mean()


class LabelAutoencoder(Network):
    """Two sigmoid layers from label sets to codes, and two back.

    `stage` is what is trained: the outer layers alone, the inner ones on the outer codes, or all.
    """

    epochs = 6
    stages = ("outer", "inner", "all")

    def __init__(self, training: Records, outer: int = 1024, inner: int = 512) -> None:
        super().__init__()
        labels = training.labels.shape[1]
        self.stage = "all"
        self.bag = Bag(labels, outer)
        self.encoder = nn.Linear(outer, inner)
        self.decoder = nn.Linear(inner, outer)
        self.output = Wide(outer, labels, priors(training.labels))

    def codes(self, labels: Matrix) -> Tensor:
        return torch.sigmoid(self.encoder(torch.sigmoid(self.bag(labels))))

    def decoded(self, codes: Tensor, columns: Tensor | None = None) -> Tensor:
        logits: Tensor = self.output(torch.sigmoid(self.decoder(codes)), columns)
        return logits

    def loss(self, batch: Records) -> Tensor:
        targets = self.targets(batch.labels)
        if self.stage == "outer":
            outer = torch.sigmoid(self.bag(batch.labels))
            return log_loss(self.output(outer, targets.columns), targets)
        if self.stage == "all":
            return log_loss(self.decoded(self.codes(batch.labels), targets.columns), targets)
        with torch.no_grad():
            outer = torch.sigmoid(self.bag(batch.labels))
        decoded = self.decoder(torch.sigmoid(self.encoder(outer)))
        return functional.binary_cross_entropy_with_logits(decoded, outer, reduction="sum") / len(
            batch
        )

    def quality(self, held_out: Records) -> float:
        batches = held_out.batches(BATCH)
        return -float(np.mean([self.loss(batch).item() for batch in batches]))

    def bits(self, labels: Matrix) -> Floats:
        with torch.no_grad():
            parts = [
                self.codes(labels[start : start + BATCH])
                for start in range(0, labels.shape[0], BATCH)
            ]
        return (torch.cat(parts).numpy() > 0.5).astype(np.float32)


class BitClassifiers(Network):
    """A logistic regression per bit of a code."""

    sparse_rate = 1e-2

    def __init__(self, inputs: int, bits: int) -> None:
        super().__init__()
        self.words = words_bag(inputs, bits)
        nn.init.zeros_(self.words.table.weight)

    def loss(self, batch: Records) -> Tensor:
        return log_loss(self.words(batch.words), Targets.all(batch.labels))

    def quality(self, held_out: Records) -> float:
        return -self.loss(held_out).item()

    def probabilities(self, words: Matrix) -> Tensor:
        self.eval()
        with torch.no_grad():
            return torch.sigmoid(self.words(words))


class WordAutoencoder(Network):
    """Words → code → words, squared error."""

    batch = 512
    # A step of Adam changes the error of thousands of small outputs at once.
    rate = 2e-4

    def __init__(self, training: Records, code: int = 512) -> None:
        super().__init__()
        inputs = training.words.shape[1]
        frequencies = np.bincount(training.words.indices, minlength=inputs)
        self.restored = np.flatnonzero(frequencies >= RESTORED)
        self.words = words_bag(inputs, code)
        self.output = Wide(code, len(self.restored))
        nn.init.normal_(self.output.weight, std=0.001)

    def codes(self, words: Matrix) -> Tensor:
        return torch.tanh(self.words(words))

    def loss(self, batch: Records) -> Tensor:
        words = torch.from_numpy(batch.words[:, self.restored].toarray())
        error = self.output(self.codes(batch.words)) - words
        return error.square().sum() / len(batch)

    def quality(self, held_out: Records) -> float:
        return -float(np.mean([self.loss(batch).item() for batch in held_out.batches(BATCH)]))

    def all_codes(self, words: Matrix) -> Floats:
        with torch.no_grad():
            parts = [
                self.codes(words[start : start + BATCH])
                for start in range(0, words.shape[0], BATCH)
            ]
        return torch.cat(parts).numpy()


@dataclass
class Result:
    """A method's ranking of every split, and what its training took."""

    rankings: dict[str, Ranking]
    minutes: float
    cpu_minutes: float
    notes: dict[str, Any]


def classified(collection: Collection, scorer: Scorer) -> dict[str, Ranking]:
    return {
        split: ranked(words, scorer, collection.headings)
        for split, words in collection.splits.items()
    }


def run_classifier(collection: Collection, network: Classifier, minutes: float) -> Result:
    clock = Clock()
    epoch = train(network, collection.training, collection.held_out, minutes)
    spent = clock.minutes()
    return Result(classified(collection, network.scores), *spent, {"epochs": epoch})


def run_manic(collection: Collection, minutes: float) -> dict[str, Result]:
    training, held_out = collection.training, collection.held_out
    clock = Clock()
    autoencoder = LabelAutoencoder(training)
    notes: dict[str, Any] = {}
    for stage in autoencoder.stages:
        autoencoder.stage = stage
        say(f"  {stage} layers")
        notes[f"epochs, {stage}"] = train(autoencoder, training, held_out, minutes / 3)

    def with_bits(records: Records) -> Records:
        return Records(records.words, sp.csr_matrix(autoencoder.bits(records.labels)))

    bits = with_bits(training)
    notes["share of ones"] = float(bits.labels.mean())
    for name, codes in (
        ("codes", lambda labels: autoencoder.codes(labels)),
        ("bits", lambda labels: torch.from_numpy(autoencoder.bits(labels))),
    ):
        with torch.no_grad():
            decoded = autoencoder.decoded(codes(held_out.labels)).numpy()
        ranking = ranked(held_out.words, Slices(decoded), np.arange(decoded.shape[1]))
        notes[f"held out MiF decoded from true {name}"] = best_cut(ranking, held_out.labels)[0]
    classifiers = BitClassifiers(training.words.shape[1], bits.labels.shape[1])
    say("  classifiers")
    notes["epochs, classifiers"] = train(classifiers, bits, with_bits(held_out), minutes / 3)
    spent = clock.minutes()

    def decoded_from(rounded: bool) -> Scorer:
        def scores(words: Matrix) -> Floats:
            codes = classifiers.probabilities(words)
            with torch.no_grad():
                return autoencoder.decoded(codes.round() if rounded else codes).numpy()

        return scores

    say(f"  {notes}")
    return {
        "manic": Result(classified(collection, decoded_from(True)), *spent, notes),
        "manic-soft": Result(classified(collection, decoded_from(False)), *spent, notes),
    }


class Slices:
    """A scorer that returns ready scores, batch after batch."""

    def __init__(self, scores: Floats) -> None:
        self._scores, self._start = scores, 0

    def __call__(self, words: Matrix) -> Floats:
        start, self._start = self._start, self._start + words.shape[0]
        return self._scores[start : self._start]


def nearest(codes: Any, queries: Any, k: int) -> tuple[Integers, Floats]:
    """The k nearest of `codes` to each query, nearest first, and their Euclidean distances."""
    lengths, rows, distances = squared_lengths(codes), [], []
    for start in range(0, queries.shape[0], BATCH):
        part = queries[start : start + BATCH]
        products = part @ codes.T
        products = products.toarray() if sp.issparse(products) else products
        squares = lengths[None] - 2 * products
        best = np.argpartition(squares, k, axis=1)[:, :k]
        values = np.take_along_axis(squares, best, 1)
        order = np.argsort(values, axis=1)
        rows.append(np.take_along_axis(best, order, 1))
        values = np.take_along_axis(values, order, 1) + squared_lengths(part)[:, None]
        distances.append(np.sqrt(np.maximum(values, 0)))
    return np.concatenate(rows), np.concatenate(distances).astype(np.float32)


def squared_lengths(vectors: Any) -> Floats:
    if sp.issparse(vectors):
        return np.asarray(vectors.multiply(vectors).sum(1)).ravel()
    lengths: Floats = np.square(vectors).sum(1)
    return lengths


def voted(collection: Collection, near: tuple[Integers, Floats], k: int, words: Matrix) -> Ranking:
    """Equal votes of k neighbours; nearer ones break ties."""
    rows, distances = (one[:, :k] for one in near)
    votes = (1 + 0.001 / (1 + distances)) / k
    starts = np.arange(len(rows) + 1) * k
    weights = sp.csr_matrix(
        (votes.ravel(), rows.ravel(), starts), shape=(len(rows), len(collection.training))
    )
    scores = weights @ collection.training.labels
    return ranked(words, Slices(scores.toarray().astype(np.float32)), collection.headings)


def run_neighbours(
    collection: Collection, encode: Callable[[Matrix], Any], gold: Matrix
) -> tuple[dict[str, Ranking], int]:
    """The votes of the k neighbours that is best on dev."""
    codes = encode(collection.training.words)
    near = {
        split: nearest(codes, encode(words), max(KS)) for split, words in collection.splits.items()
    }

    def rankings(k: int, splits: tuple[str, ...]) -> dict[str, Ranking]:
        return {
            split: voted(collection, near[split], k, collection.splits[split]) for split in splits
        }

    k = max(KS, key=lambda k: best_cut(rankings(k, ("dev",))["dev"], gold)[0])
    return rankings(k, SPLITS), k


def run_knn(collection: Collection, gold: Matrix) -> Result:
    rankings, k = run_neighbours(collection, lambda words: words, gold)
    return Result(rankings, 0.0, 0.0, {"k": k})


def run_ae_knn(collection: Collection, gold: Matrix, minutes: float) -> Result:
    clock = Clock()
    autoencoder = WordAutoencoder(collection.training)
    epoch = train(autoencoder, collection.training, collection.held_out, minutes)
    spent = clock.minutes()
    rankings, k = run_neighbours(collection, autoencoder.all_codes, gold)
    return Result(rankings, *spent, {"epochs": epoch, "k": k})


METHODS = {
    "knn": ("k-NN on the words (control)", ""),
    "ae-knn": ("AE-kNN", "knn"),
    "text-network": ("text network (control)", ""),
    "manic": ("MANIC", "text-network"),
    "manic-soft": ("… decoding probabilities", "text-network"),
    "c2ae": ("C2AE", "text-network"),
    "c2ae-log": ("… log loss instead of pairs", "text-network"),
}


def run(name: str, collection: Collection, dev: Matrix, minutes: float) -> dict[str, Result]:
    torch.manual_seed(0)
    training = collection.training
    if name == "manic":
        return run_manic(collection, minutes)
    if name == "knn":
        return {name: run_knn(collection, dev)}
    if name == "ae-knn":
        return {name: run_ae_knn(collection, dev, minutes)}
    if name == "text-network":
        return {name: run_classifier(collection, TextNetwork(training), minutes)}
    network = C2AE(training, pairs=name == "c2ae")
    return {name: run_classifier(collection, network, minutes)}


def save(work: Path, name: str, result: Result, gold: Gold) -> None:
    """Measure a method on every split; keep figures and rankings."""
    _, threshold = best_cut(result.rankings["dev"], gold.matrices["dev"])
    figures: dict[str, Any] = {
        "minutes": result.minutes,
        "cpu_minutes": result.cpu_minutes,
        "threshold": threshold,
        **result.notes,
        "splits": {},
    }
    for split, ranking in result.rankings.items():
        evaluation = gold.evaluation(split, ranking, cut(ranking, None, threshold))
        bands = evaluate_bands(evaluation, [MIF])
        figures["splits"][split] = {
            "MiF": MIF.value(evaluation),
            "P@5": P5.value(evaluation),
            **{band: bands[band]["MiF"] for band in bands},
        }
        np.savez_compressed(
            work / f"{name}-{split}.npz",
            starts=ranking.starts,
            columns=ranking.columns,
            scores=ranking.scores,
        )
    (work / f"{name}.json").write_text(json.dumps(figures, indent=1))
    values = ", ".join(f"{s} {one['MiF']:.4f}" for s, one in figures["splits"].items())
    say(f"{name}: {values}")


def load_evaluation(work: Path, name: str, split: str, threshold: float, gold: Gold) -> Evaluation:
    with np.load(work / f"{name}-{split}.npz") as arrays:
        ranking = Ranking(arrays["starts"], arrays["columns"], arrays["scores"])
    return gold.evaluation(split, ranking, cut(ranking, None, threshold))


def report(work: Path, gold: Gold) -> None:
    """kin.json and kin.md: all methods that have figures, each compared with its control."""
    found = {
        name: json.loads((work / f"{name}.json").read_text())
        for name in METHODS
        if (work / f"{name}.json").exists()
    }
    lines = [
        f"Made by `python benchmarks/kin.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, one thread of 2 shared cores, no GPU; seed 0. The threshold "
        "is chosen on dev. head, torso and tail are MiF of headings with 1,000 and more, 100 to "
        "999, and fewer documents; p compares MiF with the control that lacks the autoencoder "
        "(paired randomisation test).",
    ]
    for split in SPLITS:
        lines += [
            "",
            f"### {split}",
            "",
            "| method | MiF | P@5 | head | torso | tail | p | minutes | CPU-minutes |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for name, figures in found.items():
            title, control = METHODS[name]
            values = figures["splits"][split]
            if control in found:
                pair = (
                    load_evaluation(work, one, split, found[one]["threshold"], gold)
                    for one in (name, control)
                )
                values["p"] = paired_test(MIF, *pair).p_value
            p = f"{values['p']:.3f}" if "p" in values else ""
            lines.append(
                f"| {title} | {values['MiF']:.4f} | {values['P@5']:.4f} | {values['head']:.3f} | "
                f"{values['torso']:.3f} | {values['tail']:.3f} | {p} | "
                f"{figures['minutes']:.1f} | {figures['cpu_minutes']:.1f} |"
            )
    (work / "kin.json").write_text(json.dumps(found, indent=1))
    (work / "kin.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    # MANIC's two rows come from one training.
    names = [name for name in METHODS if name != "manic-soft"]
    parser = argparse.ArgumentParser()
    parser.add_argument("methods", nargs="*", help=" ".join((*names, "report")))
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work" / "kin")
    parser.add_argument(
        "--minutes", type=float, default=12.0, help="of CPU at most, for each training"
    )
    asked = parser.parse_args()
    if unknown := set(asked.methods) - {*names, "report"}:
        parser.error(f"no method {', '.join(sorted(unknown))}; known: {', '.join(names)}, report")
    asked.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    chosen = [name for name in asked.methods or names if name != "report"]
    collection = Collection.read(asked.work) if chosen else None
    gold = Gold(asked.work)
    for name in chosen:
        say(name)
        results = run(name, collection, gold.matrices["dev"], asked.minutes)
        for one, result in results.items():
            save(asked.work, one, result, gold)
        report(asked.work, gold)
    if not chosen:
        report(asked.work, gold)


if __name__ == "__main__":
    main()
