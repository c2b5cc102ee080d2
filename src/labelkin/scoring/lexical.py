"""The method `lexical`: headings that the text itself names. It needs no documents.

With t and b the numbers of times that title and body name a heading outside
longer names, w how much its most telling name tells (`NameTable.weights`: long
names of rare words tell most), n the number of concepts that share its least
ambiguous name, and p in [0, 1] the place where it is named first, its strength is

    s = w / n · (2 [t > 0] + log2(1 + t + b) + ¼ [nested]) · (1 − p / 2)

and its score s / (1 + s). The constants were chosen from a small grid on the
development parts of mesh47k and tibkat; what it reaches is in results/lexical.md.
"""

from __future__ import annotations

from copy import copy

import numpy as np
import numpy.typing as npt

from labelkin.scoring.cut import cut
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.policy import policy_for
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import LexicalSettings
from labelkin.scoring.suggestion import Suggestion
from labelkin.store.collection import Collection

_TITLE = 2.0
_NESTED = 0.25
_LATE = 0.5


class Lexical:
    """Ranks the headings that documents name, for one state of a collection."""

    def __init__(self, collection: Collection, settings: LexicalSettings) -> None:
        self.settings = settings
        self._collection = collection
        self._label_order = collection.label_order()
        policy = policy_for(collection, settings.include, settings.exclude)
        self._search = MentionSearch(collection, policy)

    def changed(self, settings: LexicalSettings) -> Lexical:
        """The same with another cut; what may be suggested stays as it was."""
        other = copy(self)
        other.settings = settings
        return other

    def rank(self, queries: Queries) -> Ranking:
        """All headings that are named, best first."""
        mentions = self._search.find(queries.documents)
        documents, scores = mentions.documents, lexical_scores(mentions)
        order = np.lexsort((self._label_order[mentions.columns], -scores, documents))
        return Ranking.from_pairs(
            documents[order], mentions.columns[order], scores[order], len(queries)
        )

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:  # noqa: ARG002 - see Method
        """The headings that are given out."""
        return cut(ranking, None, self.settings.threshold or None, self.settings.limit or None)

    def suggestions(self, queries: Queries, given: Ranking) -> list[list[Suggestion]]:
        """The given headings with the words that name them."""
        concepts = self._collection.concepts(sorted({*given.columns.tolist()}))
        found = []
        for document, (columns, scores) in zip(queries.documents, given, strict=True):
            namings = self._search.namings(document) if len(columns) else {}
            found.append(
                [
                    Suggestion(concepts[column], score, rank, named=namings[column])
                    for rank, (column, score) in enumerate(
                        zip(columns.tolist(), scores.tolist(), strict=True), start=1
                    )
                ]
            )
        return found


def lexical_scores(mentions: Mentions) -> npt.NDArray[np.float32]:
    """How strongly each heading is named, in [0, 1]."""
    often = (
        _TITLE * (mentions.title > 0)
        + np.log2(1 + mentions.title + mentions.body)
        + _NESTED * (mentions.nested > 0)
    )
    strength = mentions.weight / mentions.sharing * often * (1 - _LATE * mentions.first)
    scores: npt.NDArray[np.float32] = (strength / (1 + strength)).astype(np.float32)
    return scores
