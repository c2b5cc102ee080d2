"""Documents with neighbours and texts for tests of the joint autoencoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labelkin.autoencoder.architecture import NAME_FEATURES
from labelkin.autoencoder.ballots import NamedLabels
from labelkin.autoencoder.training_data import TrainingData, TrainingNeighbours, TrainingTexts
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.represent.counted_texts import Terms
from labelkin.represent.term_columns import TermColumns

from .label_data import data_of, topics

# Small enough for a test, trained long enough to learn something.
JOINT = TrainingSettings(
    preset="16",
    epochs=3,
    batch_size=32,
    device="cpu",
    held_out=0.1,
    min_frequency=1,
    precision="float32",
)


def joint_data(
    sets: list[list[int]] | int = 200,
    words: list[list[str]] | None = None,
    *,
    width: int = 40,
    near: int = 8,
    seed: int = 0,
) -> TrainingData:
    """Label sets with texts; by default of topics, and each text has the word of its topic.

    The neighbours of a document are those that share most labels with it, the
    labels that it names every fifth of the vocabulary.
    """
    if isinstance(sets, int):
        sets = topics(sets, seed)
    data = data_of(sets, width)
    rows = np.union1d(data.rows, data.held_out)
    if words is None:
        words = [
            [f"t{labels[0]}", "text", f"w{n % 11}"] if labels else []
            for n, labels in enumerate(sets)
        ]
    random = np.random.default_rng(seed)
    carried = np.zeros((len(sets), width), dtype=np.float64)
    for row, labels in enumerate(sets):
        carried[row, labels] = 1
    alike = carried @ carried.T + random.random((len(sets), len(sets))) / 2
    np.fill_diagonal(alike, -1)
    alike[:, np.setdiff1d(np.arange(len(sets)), rows)] = -1
    order = np.argsort(-alike[rows], axis=1)[:, :near]
    scores = np.take_along_axis(alike[rows], order, 1)
    weights = np.where(scores < 0, 0, scores / (width + 1)).astype(np.float32)
    columns, kept = TermColumns.counted(
        [words[row] for row in rows], len(rows), at_least=3, pairs_at_least=1000
    )
    counts = columns.counts([words[row] for row in rows])
    return replace(
        data,
        neighbours=TrainingNeighbours(rows, np.where(scores < 0, -1, order), weights),
        texts=TrainingTexts(
            Terms(columns, kept),
            columns.weighted(counts, pairs=True),
            named_of([[n for n in range(0, width, 5) if n % 3 == row % 3] for row in rows], seed),
        ),
    )


def named_of(columns: list[list[int]], seed: int = 0) -> NamedLabels:
    """Named vocabulary columns with features that differ."""
    starts = np.concatenate(([0], np.cumsum([len(one) for one in columns]))).astype(np.int64)
    features = np.random.default_rng(seed).random((int(starts[-1]), NAME_FEATURES))
    flat = np.array([column for one in columns for column in one], dtype=np.int32)
    return NamedLabels(starts, flat, features.astype(np.float32))


def weights_of(network: Any) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}
