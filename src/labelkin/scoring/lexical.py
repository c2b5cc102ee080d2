"""The method `lexical`: headings that the text itself names. It needs no documents.

With t and b the numbers of times that title and body name a heading outside
longer names, w the weight of its most specific name (`NameTable.weights`: long
names of rare words weigh most), n the number of concepts that share its least
ambiguous name, and p in [0, 1] the place where it is named first, its strength is

    s = w / n · (2 [t > 0] + log2(1 + t + b) + ¼ [nested]) · (1 − p / 2)

and its score s / (1 + s). The constants were chosen from a small grid on the
development parts of mesh47k and tibkat; results/lexical.md has the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from labelkin.scoring.mentions import Mentions
from labelkin.scoring.method import Method
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Suggestion

_TITLE = 2.0
_NESTED = 0.25
_LATE = 0.5


class Lexical(Method):
    """Ranks the headings that documents name."""

    name = "lexical"

    def depth(self, settings: Settings) -> int:  # noqa: ARG002
        """It needs no neighbours."""
        return 0

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All headings that are named, best first."""
        mentions = queries.mentions(queries.policy(settings.include, settings.exclude))
        documents, scores = mentions.documents, lexical_scores(mentions)
        label_order = queries.snapshot.label_order()
        order = np.lexsort((label_order[mentions.columns], -scores, documents))
        return Ranking.from_pairs(
            documents[order], mentions.columns[order], scores[order], len(queries)
        )

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,
        *,
        signals: bool = False,
    ) -> list[list[Suggestion]]:
        """The given headings with the words that name them."""
        suggestions = super().explain(queries, given, settings, signals=signals)
        for place, (columns, _) in enumerate(given):
            namings = queries.namings(place) if len(columns) else {}
            suggestions[place] = [
                replace(suggestion, named=namings.get(column, ()))
                for suggestion, column in zip(suggestions[place], columns.tolist(), strict=True)
            ]
        return suggestions

    def threshold(self, settings: Settings) -> float:
        """How strongly a heading must be named."""
        return settings.lexical.threshold

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold."""
        return replace(settings, lexical=replace(settings.lexical, threshold=threshold))

    def sweep(
        self,
        settings: Settings,
        ks: Sequence[int],  # noqa: ARG002
        thresholds: Sequence[float],
    ) -> Iterator[list[Settings]]:
        """The threshold."""
        tried = dict.fromkeys((*thresholds, settings.lexical.threshold))
        yield [self.with_threshold(settings, threshold) for threshold in tried]


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
