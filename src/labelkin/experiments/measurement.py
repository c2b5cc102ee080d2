"""Stages that measure the rows of tables, and the best rows in more detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.evaluate import (
    Band,
    Evaluation,
    bootstrap_interval,
    evaluate,
    evaluate_bands,
    paired_test,
    parse_measure,
)
from labelkin.experiments.cases import Cell, Group, Row
from labelkin.experiments.stage import Progress, RecordStage
from labelkin.scoring.settings import MixSettings, ScorerSettings, Settings

if TYPE_CHECKING:
    from labelkin.experiments.models import ModelStage
    from labelkin.experiments.preparation import (
        CollectionStage,
        FusedStage,
        NeighbourStage,
    )
    from labelkin.experiments.run_context import RunContext
    from labelkin.scoring.cut import CountScheme
    from labelkin.scoring.queries import Queries
    from labelkin.scoring.ranking import Ranking

# Rough estimates: seconds per thousand documents on one core, and documents per split.
_VOTING, _DECODING, _QUERIES = 1.0, 4.0, 1_200
# The mean number of predicted labels, measured in addition to a grid's measures.
PREDICTED = "predicted"

Values = dict[str, float]


class Predictions:
    """The predictions of a group's cells for one split.

    The queries keep votes and decoded labels, so each is computed once for all cells.
    """

    def __init__(self, group: Group, queries: Queries) -> None:
        self._group = group
        self._queries = queries

    def of(self, cell: Cell) -> Ranking:
        """The labels that a cell predicts, after the cut."""
        settings = self._settings(cell)
        method = settings.implementation
        return method.cut(self._queries, method.rank(self._queries, settings), settings)

    def _settings(self, cell: Cell) -> Settings:
        """The cut is that of the cell's method; within a mix, votes are cut by count."""
        group = self._group
        count: CountScheme | None = "mean" if cell.cut == "count" else None
        threshold = 0.0 if cell.cut == "count" else cell.cut
        knn = ScorerSettings(k=group.k)
        if cell.method == "knn":
            knn = ScorerSettings(k=group.k, count=count, threshold=threshold)
        return Settings(
            method=cell.method,
            knn=knn,
            label_ae=ScorerSettings(group.k, group.weighting, group.distance, count, threshold),
            mix=MixSettings(cell.share, count, threshold),
        )


class MeasureStage(RecordStage):
    """The measures of a group's cells on every split.

    P@k and nDCG@k are computed on the predicted labels, not on the ranking before
    the cut: in the paper P@10 falls as the threshold rises.
    """

    kind = "measures"

    def __init__(
        self,
        work: Path,
        group: Group,
        collection: CollectionStage,
        splits: Mapping[str, NeighbourStage | FusedStage],
        model: ModelStage | None,
        measures: Sequence[str],
    ) -> None:
        self.group = group
        self.collection = collection
        self.splits = dict(splits)
        self.model = model
        self.cells: dict[str, Cell] = {}
        self.measures = tuple(parse_measure(name) for name in [*measures, PREDICTED])
        subject = [f"{group.representation}, k = {group.k}", collection.subject]
        if model is not None:
            distance = "" if group.distance == "self" else f" ({group.distance})"
            subject.insert(0, f"{group.model}, {group.weighting}{distance}")
        needs = (collection, *self.splits.values(), *((model,) if model is not None else ()))
        inputs = {**asdict(group), "splits": list(self.splits), "measures": list(measures)}
        super().__init__(work, ", ".join(subject), inputs, needs)
        self.queries = sum(stage.source.size or _QUERIES for stage in self.splits.values())
        self.expected = (_VOTING if model is None else _DECODING) * self.queries / 1000

    def add(self, cell: Cell) -> None:
        """Add a cell to measure."""
        self.cells[cell.name] = cell

    def is_done(self) -> bool:
        """Whether all cells have been measured."""
        return set(self.cells) <= set(self.record().get("cells", ()))

    def values(self, cell: Cell) -> dict[str, Values]:
        """The measured values of a cell, by split and measure."""
        values: dict[str, Values] = self.record()["cells"][cell.name]
        return values

    def run(self, context: RunContext, progress: Progress) -> None:
        """Measure the cells that the record lacks."""
        known: dict[str, Any] = self.record().get("cells", {})
        missing = [cell for name, cell in self.cells.items() if name not in known]
        measured: dict[str, dict[str, Values]] = {cell.name: {} for cell in missing}
        for number, split in enumerate(self.splits):
            progress(number, len(self.splits), split)
            predictions = self.predictions(context, split)
            for cell in missing:
                evaluation = self.evaluation(context, split, predictions.of(cell))
                values = evaluate(evaluation, self.measures)
                measured[cell.name][split] = {name: round(v, 6) for name, v in values.items()}
        self.write_record({"inputs": self.inputs, "cells": {**known, **measured}})

    def predictions(self, context: RunContext, split: str) -> Predictions:
        """What can be predicted for a split."""
        neighbours = context.neighbours(self.splits[split])
        return Predictions(self.group, context.queries(self.collection, neighbours, self.model))

    def evaluation(self, context: RunContext, split: str, predicted: Ranking) -> Evaluation:
        """The evaluation of predicted labels against the gold labels of a split."""
        gold = context.gold(self.collection, self.splits[split].source)
        frequencies = context.indexer(self.collection).label_frequencies(gold.shape[1])
        return Evaluation(gold, predicted, training_frequencies=frequencies)


Candidates = Sequence[tuple[Row, MeasureStage]]


class DetailStage(RecordStage):
    """The best row of a table and representation: interval, test against a baseline, bands."""

    kind = "details"

    def __init__(
        self,
        work: Path,
        candidates: Candidates,
        baseline: Candidates,
        choice: tuple[str, str],
        samples: int,
        bands: Sequence[Band],
        seed: int,
    ) -> None:
        self.candidates = candidates
        self.baseline = baseline
        self.choice = choice
        self.samples = samples
        self.bands = tuple(bands)
        self.seed = seed
        row, stage = candidates[0]
        stages = dict.fromkeys(stage for _, stage in [*candidates, *baseline])
        inputs = {
            "candidates": [[stage.fingerprint, row.cell.name] for row, stage in candidates],
            "baseline": [[stage.fingerprint, row.cell.name] for row, stage in baseline],
            "choice": choice,
            "samples": samples,
            "bands": [asdict(band) for band in bands],
            "seed": seed,
        }
        subject = f"{row.table}, {row.group.representation}, {stage.collection.subject}"
        super().__init__(work, subject, inputs, tuple(stages))
        self.expected = _DECODING * stage.queries / 1000

    def run(self, context: RunContext, progress: Progress) -> None:
        """Choose the best row, repeat its predictions, and measure the details."""
        row, stage = best_of(self.candidates, *self.choice)
        other = best_of(self.baseline, *self.choice) if self.baseline else None
        measure = parse_measure(self.choice[1])
        content: dict[str, Any] = {"row": _described(row)}
        if other is not None:
            content["baseline"] = _described(other[0])
        content["splits"] = {}
        for number, split in enumerate(stage.splits):
            progress(number, len(stage.splits), split)
            mine = stage.evaluation(context, split, stage.predictions(context, split).of(row.cell))
            interval = bootstrap_interval(measure, mine, self.samples, self.seed)
            bands = evaluate_bands(mine, [measure], self.bands)
            details: dict[str, Any] = {
                "interval": [round(interval.low, 6), round(interval.high, 6)],
                "bands": {name: round(values[measure.name], 6) for name, values in bands.items()},
            }
            if other is not None and other[0] != row:
                theirs = other[1].evaluation(
                    context, split, other[1].predictions(context, split).of(other[0].cell)
                )
                test = paired_test(measure, mine, theirs, self.samples, self.seed)
                details["difference"] = round(test.difference, 6)
                details["p"] = round(test.p_value, 4)
            content["splits"][split] = details
        self.write_record(content)


class ClaimStage(RecordStage):
    """A paired test of the best of some rows against the best of others."""

    kind = "claims"

    def __init__(
        self,
        work: Path,
        text: str,
        sides: tuple[Candidates, Candidates],
        choice: tuple[str, str],
        samples: int,
        seed: int,
    ) -> None:
        self.sides = sides
        self.choice = choice
        self.samples = samples
        self.seed = seed
        inputs = {
            "sides": [[[stage.fingerprint, row.cell.name] for row, stage in s] for s in sides],
            "choice": choice,
            "samples": samples,
            "seed": seed,
        }
        stages = dict.fromkeys(stage for side in sides for _, stage in side)
        super().__init__(work, text, inputs, tuple(stages))
        self.expected = 2 * _DECODING * sides[0][0][1].queries / 1000

    def run(self, context: RunContext, progress: Progress) -> None:
        """Choose the best row of each side, repeat their predictions, and compare them."""
        chosen = [best_of(side, *self.choice) for side in self.sides]
        measure = parse_measure(self.choice[1])
        content: dict[str, Any] = {"rows": [_described(row) for row, _ in chosen], "splits": {}}
        splits = chosen[0][1].splits
        for number, split in enumerate(splits):
            progress(number, len(splits), split)
            mine, theirs = (
                stage.evaluation(context, split, stage.predictions(context, split).of(row.cell))
                for row, stage in chosen
            )
            test = paired_test(measure, mine, theirs, self.samples, self.seed)
            content["splits"][split] = {
                "values": [round(test.a, 6), round(test.b, 6)],
                "p": round(test.p_value, 4),
            }
        self.write_record(content)


def best_of(candidates: Candidates, split: str, measure: str) -> tuple[Row, MeasureStage]:
    """The row with the highest measure on a split; the first of equal ones."""
    return max(candidates, key=lambda pair: pair[1].values(pair[0].cell)[split][measure])


def _described(row: Row) -> dict[str, Any]:
    return {"table": row.table, **asdict(row.group), **asdict(row.cell)}
