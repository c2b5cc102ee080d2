"""Votes and names as arrays, the same for training and prediction of the joint autoencoder.

Neighbours differ in weight by what a small network makes of their closeness,
rank and agreement with the others. Beside the weighted votes a label has its
shares of the nearest few: plain counts, which need no weights. A label that the
text names is there with or without votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.architecture import NAME_FEATURES
from labelkin.autoencoder.columns import LabelColumns
from labelkin.store.label_sets import LabelSets

#: How many neighbours are looked at.
NEIGHBOURS = 60
#: A label has a share of the nearest 3, 10, …; the last counts all of them.
_NEAREST = (3, 10, 25, NEIGHBOURS)
#: Labels that are rarer than this count as this frequent: leave-one-out, a label's own
#: document is missing among its votes, and the difference would give the label away.
RARE = 10

_LEAST_CLOSE = 1e-3
#: The strength of an empty place, which no neighbour has: it gets no weight beside any.
NO_VOTE = -1e4
#: What is added to votes, so that none has a logarithm.
LEAST_VOTE = 1e-3

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class NamedLabels:
    """The vocabulary columns that texts name, one text after another, and how they do."""

    starts: Integers
    columns: npt.NDArray[np.integer]
    features: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1

    def taken(self, places: Integers) -> NamedLabels:
        """The texts at `places`, in that order."""
        lengths = np.diff(self.starts)[places]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        inside = np.arange(starts[-1]) + np.repeat(self.starts[places] - starts[:-1], lengths)
        return NamedLabels(starts, self.columns[inside], self.features[inside])


@dataclass(frozen=True, eq=False)
class Ballots:
    """The neighbours of a batch of documents, the labels that they carry, and those named.

    `documents` and `labels` are the distinct pairs that have votes or are named,
    in order; `shares` and `named` have a line for each. Every vote is an entry of `pairs`, the pair
    that it is for, and of `voters`, the neighbour that gives it, numbered
    through all documents. `neighbours` has the features of each, `is_there`
    tells which places are taken, `closest` how close the nearest is.
    """

    documents: Integers
    labels: Integers
    shares: Floats
    named: Floats
    pairs: Integers
    voters: Integers
    neighbours: Floats
    is_there: npt.NDArray[np.bool_]
    closest: Floats

    def __len__(self) -> int:
        return len(self.closest)

    @property
    def starts(self) -> Integers:
        """Where the pairs of each document begin."""
        return np.searchsorted(self.documents, np.arange(len(self)))


def cast_ballots(
    near: Integers,
    closeness: Floats,
    named: NamedLabels,
    columns: LabelColumns,
    label_sets: LabelSets,
) -> Ballots:
    """Count the votes of neighbours: rows, nearest first, and how close each is.

    Empty places, which hold row −1, come last. `named` are the labels that each
    document names.
    """
    near, closeness = near[:, :NEIGHBOURS], closeness[:, :NEIGHBOURS]
    documents, places = near.shape
    is_there = near >= 0
    voting = np.flatnonzero(is_there)
    labels, starts = columns.sets(label_sets, near.ravel()[voting])
    sizes = np.zeros(documents * places, dtype=np.int64)
    sizes[voting] = np.diff(starts)
    voters = np.repeat(np.arange(documents * places), sizes)
    owners, ranks = np.divmod(voters, max(places, 1))
    width = max(len(columns), 1)
    namers = np.repeat(np.arange(documents), np.diff(named.starts))
    names = columns.places[named.columns]
    is_label = names >= 0
    keys = np.concatenate((owners * width + labels, (namers * width + names)[is_label]))
    distinct, places_of = np.unique(keys, return_inverse=True)
    pairs, by_name = places_of[: len(voters)], places_of[len(voters) :]
    of_names = np.zeros((len(distinct), NAME_FEATURES + 1), dtype=np.float32)
    of_names[by_name, :-1] = named.features[is_label]
    of_names[by_name, -1] = 1
    shares = np.empty((len(distinct), len(_NEAREST)), dtype=np.float32)
    for place, nearest in enumerate(_NEAREST):
        votes = np.bincount(pairs[ranks < nearest], minlength=len(distinct))
        shares[:, place] = votes / nearest
    agreement = np.bincount(voters, shares[pairs, -1], documents * places) / np.maximum(sizes, 1)
    closest = closeness[:, 0] if places else np.zeros(documents, dtype=np.float32)
    relative = closeness / np.maximum(closest, np.float32(1e-9))[:, None]
    ranked = np.log(np.arange(1, places + 1, dtype=np.float32)) / 4
    neighbours = np.stack(
        (
            np.log(np.maximum(relative, _LEAST_CLOSE)),
            closeness,
            np.broadcast_to(ranked, near.shape),
            3 * agreement.reshape(near.shape),
        ),
        axis=2,
    )
    return Ballots(
        *np.divmod(distinct, width),
        shares=np.sqrt(shares),
        named=of_names,
        pairs=pairs,
        voters=voters,
        neighbours=neighbours.astype(np.float32),
        is_there=is_there,
        closest=closest.astype(np.float32),
    )


def log_frequencies(frequencies: Integers, documents: int) -> Floats:
    """How frequent labels are, as a feature: the same for all that are rare."""
    share = np.maximum(frequencies, RARE) / max(documents, RARE)
    return (np.log(share) / 3 + 1).astype(np.float32)
