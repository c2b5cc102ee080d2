"""Places vectors in the plane so that similar ones are near each other.

A layout of the kind of UMAP (McInnes, Healy and Melville, 2018), in NumPy: each
vector is joined to its nearest ones; joined points attract each other, and all
points are repelled by random others. All points move at once, so that a step is a
few operations on arrays. On the 3,000 most frequent headings of mesh47k it takes
some seconds, and 43 % of a heading's ten nearest points are of its own branch of
MeSH (t-SNE, which took ten times as long: 44 %; by the vectors themselves: 45 %).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_NEAREST = 8
_STEPS = 300
_REPELLED_BY = 15
_RATE = 0.05
_LONGEST_STEP = 4.0
# The curve 1 / (1 + a·d^2b) for a smallest distance of 0.1.
_A, _B = 1.577, 0.895
_START_WIDTH = 10.0


def plane_layout(vectors: Floats, seed: int = 0) -> Floats:
    """A place in the plane for each vector; the same for the same vectors and seed."""
    if len(vectors) == 0:
        return np.zeros((0, 2), dtype=np.float32)
    centred = vectors - vectors.mean(axis=0)
    places = _principal(centred)
    if len(vectors) <= 2:
        return places
    random = np.random.default_rng(seed)
    heads, tails, weights = _joined(centred)
    for step in range(_STEPS):
        # A pair counts in a share of the steps that is its weight.
        now = random.random(len(weights)) < weights
        forces = _attraction(places, heads[now], tails[now])
        forces += _repulsion(places, np.repeat(heads[now], _REPELLED_BY), random)
        rate = _RATE * (1 - step / _STEPS)
        places += np.clip(rate * forces, -_LONGEST_STEP, _LONGEST_STEP)
    return places


def _principal(centred: Floats) -> Floats:
    """The two principal components, as a start; signs are fixed."""
    _, axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    axes = axes[:, ::-1][:, :2]
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, [0, 1]] < 0, -1, 1)
    places = centred @ axes
    width = np.abs(places).max(initial=0.0)
    scaled: Floats = (places * (_START_WIDTH / width if width else 1)).astype(np.float32)
    return scaled


def _joined(centred: Floats) -> tuple[Integers, Integers, Floats]:
    """Pairs of vectors of which one is among the nearest of the other, with weights up to 1."""
    from scipy.sparse import csr_matrix

    count, nearest = len(centred), min(_NEAREST, len(centred) - 1)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = centred / np.maximum(lengths, np.float32(1e-12))
    distances = 1 - unit @ unit.T
    np.fill_diagonal(distances, np.inf)
    columns = np.argpartition(distances, nearest - 1, axis=1)[:, :nearest]
    chosen = np.take_along_axis(distances, columns, axis=1)
    beyond = chosen - chosen.min(axis=1, keepdims=True)
    weights = np.exp(-beyond / np.maximum(beyond.mean(axis=1, keepdims=True), 1e-6))
    starts = np.arange(count + 1) * nearest
    one_way: Any = csr_matrix((weights.ravel(), columns.ravel(), starts), shape=(count, count))
    both = (one_way + one_way.T - one_way.multiply(one_way.T)).tocoo()
    return both.row.astype(np.int64), both.col.astype(np.int64), both.data.astype(np.float32)


def _attraction(places: Floats, heads: Integers, tails: Integers) -> Floats:
    apart = places[heads] - places[tails]
    squares = np.maximum((apart**2).sum(axis=1), 1e-12)
    pull = -2 * _A * _B * squares ** (_B - 1) / (1 + _A * squares**_B)
    forces = np.clip(pull[:, None] * apart, -_LONGEST_STEP, _LONGEST_STEP)
    return _summed(forces, heads, len(places)) - _summed(forces, tails, len(places))


def _repulsion(places: Floats, heads: Integers, random: np.random.Generator) -> Floats:
    others = random.integers(0, len(places), len(heads))
    apart = places[heads] - places[others]
    squares = (apart**2).sum(axis=1)
    push = 2 * _B / ((0.001 + squares) * (1 + _A * squares**_B))
    forces = np.clip(push[:, None] * apart, -_LONGEST_STEP, _LONGEST_STEP)
    return _summed(forces, heads, len(places))


def _summed(forces: Floats, points: Integers, count: int) -> Floats:
    sums = [np.bincount(points, forces[:, axis], count) for axis in (0, 1)]
    return np.stack(sums, axis=1).astype(np.float32)
