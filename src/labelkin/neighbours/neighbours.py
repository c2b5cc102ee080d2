"""Neighbour sets: arrays of rows and scores that can be saved and reused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file
from labelkin.exceptions import ConfigError, DamagedFileError, StaleNeighboursError
from labelkin.tensors import npz_arrays

Distance = Literal["self", "top"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)
NO_NEIGHBOUR = -1
# Two float32 sums of the same terms in another order differ by less.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of a batch of documents, nearest first.

    `rows` and `scores` have a line per document and a place per neighbour;
    empty places hold row −1 and score 0. `own_scores` is what each text would
    score as a document of the collection itself. `fingerprint` identifies the
    state and the settings of the search.
    """

    ids: tuple[str, ...]
    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    own_scores: npt.NDArray[np.float32]
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    duplicates: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> Neighbours:
        """The neighbours of some of the documents."""
        return replace(
            self,
            ids=self.ids[part],
            rows=self.rows[part],
            scores=self.scores[part],
            own_scores=self.own_scores[part],
            duplicates=(),
        )

    @property
    def k(self) -> int:
        """How many neighbours there can be."""
        return int(self.rows.shape[1])

    def nearest(self, k: int) -> Neighbours:
        """The first `k` places."""
        return replace(self, rows=self.rows[:, :k], scores=self.scores[:, :k])

    def distances(self, kind: Distance = "self", floor: float = 0.0) -> npt.NDArray[np.float32]:
        """Distances in [0, 1], never smaller than `floor`; 1 for empty places.

        `self` is 1 − score / own score: 0 for a document with the same text.
        `top` is 1 − score / best score: the nearest neighbour is always at 0,
        or at the floor.
        """
        if kind not in DISTANCES:
            raise ConfigError(f"no distance {kind!r}; known: {', '.join(DISTANCES)}")
        best = self.scores[:, :1] if self.k else np.zeros((len(self), 1), dtype=np.float32)
        scale = self.own_scores[:, None] if kind == "self" else best
        capped = np.minimum(self.scores, scale)
        shares = np.divide(capped, scale, out=np.zeros_like(capped), where=scale > 0)
        distances: npt.NDArray[np.float32] = np.clip(1 - shares, 0, 1)
        distances[distances < _ROUNDING] = 0
        np.maximum(distances, np.float32(floor), out=distances)
        distances[self.rows == NO_NEIGHBOUR] = 1
        return distances

    def save(self, path: Path) -> None:
        """Write to a .npz file atomically."""
        with atomic_file(path) as file:
            np.savez(
                file,
                ids=np.array(self.ids, dtype=np.str_),
                rows=self.rows,
                scores=self.scores,
                own_scores=self.own_scores,
                fingerprint=np.array(json.dumps(self.fingerprint, sort_keys=True)),
                duplicates=np.array(json.dumps(self.duplicates)),
            )

    @classmethod
    def load(cls, path: Path, fingerprint: Mapping[str, Any] | None = None) -> Neighbours:
        """Read a saved set; StaleNeighboursError if its fingerprint is not `fingerprint`."""
        try:
            arrays = npz_arrays(path)
            neighbours = cls(
                ids=tuple(map(str, arrays["ids"])),
                rows=arrays["rows"],
                scores=arrays["scores"],
                own_scores=arrays["own_scores"],
                fingerprint=json.loads(str(arrays["fingerprint"])),
                duplicates=tuple(
                    (name, row) for name, row in json.loads(str(arrays["duplicates"]))
                ),
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DamagedFileError(f"{path}: not a neighbour set ({error})") from error
        if fingerprint is not None and dict(fingerprint) != neighbours.fingerprint:
            difference = _difference(neighbours.fingerprint, fingerprint)
            raise StaleNeighboursError(f"{path}: {difference}")
        return neighbours

    @classmethod
    def empty(cls, ids: Sequence[str]) -> Neighbours:
        """A set without any neighbours for these documents."""
        return cls(
            ids=tuple(ids),
            rows=np.empty((len(ids), 0), dtype=np.int64),
            scores=np.empty((len(ids), 0), dtype=np.float32),
            own_scores=np.zeros(len(ids), dtype=np.float32),
        )

    @classmethod
    def joined(cls, parts: Sequence[Neighbours]) -> Neighbours:
        """Concatenate batches; all must come from the same state and settings."""
        for part in parts[1:]:
            if part.fingerprint != parts[0].fingerprint:
                difference = _difference(parts[0].fingerprint, part.fingerprint)
                raise StaleNeighboursError(f"the collection has changed: {difference}")
        return cls(
            ids=tuple(name for part in parts for name in part.ids),
            rows=np.concatenate([part.rows for part in parts]),
            scores=np.concatenate([part.scores for part in parts]),
            own_scores=np.concatenate([part.own_scores for part in parts]),
            fingerprint=parts[0].fingerprint,
            duplicates=tuple(pair for part in parts for pair in part.duplicates),
        )


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    key = next(key for key in {**was, **now} if was.get(key) != now.get(key))
    return (
        f"found with {key} {was.get(key)!r}, which is {now.get(key)!r} now; "
        "search for the neighbours again"
    )
