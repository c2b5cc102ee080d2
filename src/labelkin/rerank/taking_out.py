"""Which documents of a collection are taken out to learn a reranker from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from labelkin.exceptions import TrainingError
from labelkin.rerank.pairs import Integers
from labelkin.rerank.settings import LearningSettings
from labelkin.store.collection import Collection

# No more than one document in seven is taken out: the rest must be like the whole.
_LARGEST_SHARE = 7
LEAST_DOCUMENTS = 20


@dataclass(frozen=True, eq=False)
class TakingOut:
    """The rows that statistics are counted over, and which places among them are taken out."""

    rows: Integers
    places: Integers

    @property
    def out(self) -> Integers:
        """The rows that are taken out."""
        taken: Integers = self.rows[self.places]
        return taken

    def fingerprint(self) -> str:
        """A digest of the rows that are out: a model that has not seen them names it."""
        return hashlib.blake2b(self.out.tobytes(), digest_size=8).hexdigest()


def take_out(collection: Collection, settings: LearningSettings, given: int = 0) -> TakingOut:
    """The same rows for the same collection and seed; `given` documents are there besides.

    Statistics are counted over all documents with labels, or a sample of very many.
    """
    generation = collection.generation()
    dropped = collection.tombstones(generation)
    sizes = collection.label_sets().sizes()
    alive = sizes > 0
    alive[dropped[dropped < len(sizes)]] = False
    rows = np.flatnonzero(alive)
    if len(rows) > settings.statistics_documents:
        random = np.random.default_rng((settings.seed, settings.statistics_documents))
        rows = np.sort(random.choice(rows, settings.statistics_documents, replace=False))
    count = min(settings.documents, len(rows) // _LARGEST_SHARE)
    if len(rows) == 0:
        raise TrainingError("no document of the collection has labels to learn from; add some")
    if count < LEAST_DOCUMENTS and given < LEAST_DOCUMENTS:
        raise TrainingError(
            f"{len(rows)} documents with labels are too few to learn a reranker from; "
            f"it takes {LEAST_DOCUMENTS * _LARGEST_SHARE}"
        )
    random = np.random.default_rng((settings.seed, len(rows)))
    return TakingOut(rows, np.sort(random.choice(len(rows), count, replace=False)))
