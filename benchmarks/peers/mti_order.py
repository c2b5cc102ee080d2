"""Whether MTI knows rare headings better, or lists more of them, and earlier.

python -m benchmarks.peers.mti_order [--work FOLDER]    # after `make bench-peers` on mesh47k

Measures on l1000 of MTI's whole list, and of the reranker's ranking in three forms: cut as chosen
on dev, cut at the mean length of MTI's list, and ordered by score times a power of the heading's
inverse propensity, which puts rare headings first.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from labelkin.evaluate.ranked import inverse_propensities

from .cuts import Cut
from .data_folder import DataFolder
from .label_sets import LabelSets
from .mti import PART
from .scores import Scorer

MEASURES = ("MiP", "MiR", "MiF", "MaF", "P@5", "PSP@5")
POWERS = (0.5, 1.0)
WORK = Path(__file__).parents[1] / "work" / "peers"


def forms(work: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """The name of each list and its measures."""
    scorer = Scorer(DataFolder(work / "data"))

    def measured(ranking: LabelSets, cut: Cut) -> dict[str, float]:
        return scorer.measured(PART, ranking, (cut,))["measures"]

    mti = LabelSets.load(work / "mti" / "rankings" / f"mti-{PART}.npz")
    rankings = work / "ours" / "rankings"
    ours = {
        part: LabelSets.load(rankings / f"labelkin-rerank-{part}.npz") for part in ("dev", PART)
    }
    chosen = scorer.chosen(ours["dev"])[0]
    length = Cut("count", round(len(mti.columns) / len(mti)))
    yield "mti, whole list", measured(mti, Cut("whole list"))
    yield f"rerank, {chosen}", measured(ours[PART], chosen)
    yield f"rerank, {length}", measured(ours[PART], length)
    weights = inverse_propensities(scorer.evaluation(PART, ours[PART]))
    for power in POWERS:
        name = f"rerank, rare headings first (power {power:g}), {length}"
        yield name, measured(reordered(ours[PART], weights**power), length)


def reordered(ranking: LabelSets, weights: np.ndarray) -> LabelSets:
    """The same labels, ordered by score times weight."""
    columns, scores = [], []
    for start, end in zip(ranking.starts, ranking.starts[1:], strict=False):
        values = ranking.scores[start:end] * weights[ranking.columns[start:end]]
        order = np.argsort(-values, kind="stable")
        columns.append(ranking.columns[start:end][order])
        scores.append(values[order])
    return LabelSets.from_lists(columns, scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=WORK)
    given = parser.parse_args()
    print(f"| l1000 | {' | '.join(MEASURES)} |")
    print("|---" * (len(MEASURES) + 1) + "|")
    for name, measures in forms(given.work / "mesh47k"):
        print(f"| {name} | {' | '.join(f'{measures[one]:.3f}' for one in MEASURES)} |")


if __name__ == "__main__":
    main()
