"""Label sets for tests of training, and settings that are quick."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelkin.autoencoder.training_data import TrainingData, make_training_data
from labelkin.autoencoder.training_settings import paper_settings
from labelkin.store.label_sets import LabelSets, Segment

# The paper's network, small enough for a test, trained long enough to learn something.
QUICK = paper_settings(preset="64/32/16", epochs=3, batch_size=32, device="cpu", held_out=0.1)


def label_sets_of(sets: list[list[int]]) -> LabelSets:
    lengths = np.array([len(labels) for labels in sets], dtype=np.int64)
    flat = np.array([label for labels in sets for label in labels], dtype=np.int32)
    return LabelSets([Segment.from_bytes(0, lengths, flat.tobytes())])


def data_of(sets: list[list[int]], width: int = 40, **changes: Any) -> TrainingData:
    label_sets = label_sets_of(sets)
    given: dict[str, Any] = {"held_out": 0.1, "min_frequency": 1, "seed": 0, **changes}
    return make_training_data(label_sets, width, np.empty(0, dtype=np.int64), **given)


def topics(documents: int, seed: int = 0) -> list[list[int]]:
    """Label sets that can be learned: each document has the five labels of one topic."""
    drawn = np.random.default_rng(seed).integers(8, size=documents).tolist()
    return [[topic * 5 + n for n in range(5)] for topic in drawn]
