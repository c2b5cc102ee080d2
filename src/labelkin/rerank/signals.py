"""What is known of documents before any heading is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labelkin.neighbours.neighbours import Neighbours
from labelkin.rerank.linear import LinearScorer
from labelkin.rerank.term_columns import TermColumns
from labelkin.rerank.votes import Votes, count_votes
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.policy import LabelPolicy
from labelkin.store.label_sets import LabelSets

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.scoring.label_ae import LabelAe


@dataclass(frozen=True, eq=False)
class Signals:
    """What is known of a batch of documents before any heading is looked at.

    `counts` has the documents' terms; `decoded` and `margins` are the scores
    of autoencoder and linear scorer, as matrices of documents × columns.
    """

    votes: Votes
    mentions: Mentions
    counts: csr_matrix[Any]
    decoded: csr_matrix[Any] | None = None
    margins: csr_matrix[Any] | None = None


def make_signals(
    near: Neighbours,
    counts: csr_matrix[Any],
    mentions: Mentions,
    *,
    width: int,
    label_sets: LabelSets,
    policy: LabelPolicy | None,
    terms: TermColumns,
    label_ae: LabelAe | None,
    linear: LinearScorer | None,
) -> Signals:
    """What is known of a batch of documents with these neighbours, terms and mentions."""
    return Signals(
        votes=count_votes(near, label_sets, policy, width),
        mentions=mentions,
        counts=counts,
        decoded=None if label_ae is None else label_ae.rank_by(near).matrix(width),
        margins=(
            None if linear is None else linear.margins(terms.weighted(counts, pairs=True), width)
        ),
    )
