"""NLM's Medical Text Indexer: what it once suggested for the records of l1000."""

from __future__ import annotations

from collections.abc import Sequence

from .data_folder import DataFolder
from .datasets import DATA_SETS, SHARED, read_tsv
from .label_sets import LabelSets
from .peer import Peer, Place, System

PART = "l1000"


class Mti(Peer):
    """Its stored output; there is none for dev, so its list stays as it is."""

    name = "mti"
    runs = False
    note = "Stored output of NLM's service: nothing was run, and no cut could be chosen."

    def systems(self, data: DataFolder) -> Sequence[System]:
        """One, on mesh47k."""
        return [System("mti")] if data.name == "mesh47k" else []

    def parts(self, data: DataFolder) -> Sequence[str]:
        """The records of l1000."""
        return [PART] if PART in data.sizes else []

    def read(self, place: Place, system: System, part: str) -> LabelSets:  # noqa: ARG002
        """The headings by score; those that the vocabulary lacks are wrong suggestions."""
        vocabulary = DATA_SETS[place.data.name].read_vocabulary()
        columns = {label: column for column, label in enumerate(place.data.labels)}
        suggested: dict[str, dict[int, float]] = {}
        for pmid, heading, score in read_tsv(SHARED / "mesh47k" / "l1000-mti.tsv.gz"):
            column = vocabulary.resolve(heading).column
            if column is None:
                column = columns.setdefault(heading, len(columns))
            scores = suggested.setdefault(pmid, {})
            scores[column] = max(float(score), scores.get(column, float(score)))
        ranked = [
            sorted(suggested.get(pmid, {}).items(), key=lambda one: (-one[1], one[0]))
            for pmid in place.data.ids(part)
        ]
        return LabelSets.from_lists(
            [[column for column, _ in one] for one in ranked],
            [[score for _, score in one] for one in ranked],
        )
