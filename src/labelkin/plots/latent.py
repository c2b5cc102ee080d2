"""The map of the headings: those that go together are near each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.plots.layout import plane_layout
from labelkin.store.snapshot import Snapshot
from labelkin.vocab.categories import branch_names, top_branch

# The most frequent headings; a layout of all would take minutes, and nobody could read it.
MOST_HEADINGS = 3000
# Branches with a colour of their own.
_BRANCHES = 12
OTHER = ""


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A heading on the map; `branch` is the id of one of the map's branches."""

    id: str
    name: str
    x: float
    y: float
    branch: str
    documents: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of the vocabulary, and how many headings of the map are in it."""

    id: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class LatentMap:
    """Headings on a plane of 1 × 1, the most frequent first.

    `branches` are the twelve with most of the headings; all others are in the
    last one, whose id is empty.
    """

    points: tuple[MapPoint, ...]
    branches: tuple[Branch, ...]


def latent_map(
    model: LabelModel, snapshot: Snapshot, *, limit: int = MOST_HEADINGS, language: str = "en"
) -> LatentMap:
    """The headings that most documents carry, placed by the label autoencoder.

    The places are computed once per model, for the 3,000 headings that are most
    frequent then; the numbers of documents are those of the snapshot.
    """
    vocabulary, columns = snapshot.vocabulary, snapshot.columns_by_id()
    frequencies = snapshot.label_frequencies()

    def documents(label: str) -> int:
        column = columns.get(label, -1)
        return int(frequencies[column]) if 0 <= column < len(frequencies) else 0

    labels, places = _placed(model, documents)
    shown = [one for one, label in enumerate(labels) if label in columns][:limit]
    branch = _branches(model, snapshot)
    codes = [branch(labels[one]) for one in shown]
    counts = Counter(codes)
    largest = [code for code, _ in counts.most_common() if code != OTHER][:_BRANCHES]
    rest = len(codes) - sum(counts[code] for code in largest)
    names = branch_names(vocabulary, largest, language)
    branches = [Branch(code, names[code], counts[code]) for code in largest]
    if rest:
        branches.append(Branch(OTHER, "other", rest))
    return LatentMap(
        tuple(
            MapPoint(
                labels[one],
                vocabulary.concept(labels[one]).name(language),
                round(float(places[one, 0]), 4),
                round(float(places[one, 1]), 4),
                code if code in largest else OTHER,
                documents(labels[one]),
            )
            for one, code in zip(shown, codes, strict=True)
        ),
        tuple(branches),
    )


def _placed(
    model: LabelModel, documents: Callable[[str], int]
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """The labels with most documents, and their places."""

    def compute() -> tuple[list[str], npt.NDArray[np.float32]]:
        counts = np.array([documents(label) for label in model.info.labels], dtype=np.int64)
        chosen = np.argsort(-counts, kind="stable")[:MOST_HEADINGS]
        chosen = chosen[counts[chosen] > 0]
        places = plane_layout(model.label_vectors()[chosen])
        if len(places):
            places -= places.min(axis=0)
            places /= max(float(places.max()), 1e-6)
        return [model.info.labels[one] for one in chosen], places

    return model.derived.get("latent map", compute)


def _branches(model: LabelModel, snapshot: Snapshot) -> Callable[[str], str]:
    key = ("top branch", snapshot.vocabulary_state.key)
    return model.derived.get(key, lambda: top_branch(snapshot.vocabulary))
