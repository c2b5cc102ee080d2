"""Turns a grid into stages to run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from labelkin.autoencoder.training_settings import paper_settings
from labelkin.evaluate import Band
from labelkin.exceptions import ConfigError
from labelkin.experiments.cases import Group, Row, rows_of
from labelkin.experiments.grid import ClaimPart, Grid
from labelkin.experiments.measurement import Candidates, ClaimStage, DetailStage, MeasureStage
from labelkin.experiments.models import ModelStage
from labelkin.experiments.preparation import (
    CollectionStage,
    FusedStage,
    FusionStage,
    IndexStage,
    NeighbourStage,
)
from labelkin.experiments.sources import Source, check_data_files, data_files
from labelkin.experiments.stage import Stage
from labelkin.represent.encoder import is_encoder
from labelkin.represent.representation import kind_names


class Plan:
    """All stages of a grid. Creating a plan reads the data files, for their checksums."""

    def __init__(self, grid: Grid, work: Path, data: Path) -> None:
        self.grid = grid
        self.work = work
        self.data = data
        self.rows = rows_of(grid)
        self._collections: dict[int, CollectionStage] = {}
        self._indexes: dict[tuple[int, str], IndexStage] = {}
        self._near: dict[tuple[int, str, str], NeighbourStage] = {}
        self._fusions: dict[tuple[int, str], FusionStage] = {}
        self._fused: dict[tuple[int, str, str], FusedStage] = {}
        self._models: dict[tuple[int, str], ModelStage] = {}
        self._measures: dict[Group, MeasureStage] = {}
        files = [grid.collection.vocabulary, *grid.collection.documents, *grid.splits.values()]
        check_data_files(data, files, grid.origins)
        self._vocabulary = data_files(data, [grid.collection.vocabulary])[0]
        self._files = data_files(data, grid.collection.documents)
        self.splits = {
            name: Source(data_files(data, [file]), grid.split_documents, grid.seed)
            for name, file in grid.splits.items()
        }
        for row in self.rows:
            self.measures(row.group).add(row.cell)
        self.details = self._details()
        self.claims = [self._claim(claim) for claim in grid.claims]

    @property
    def stages(self) -> list[Stage]:
        """All stages, each after those that it needs."""
        return in_order(self.ends)

    @property
    def ends(self) -> list[Stage]:
        """The final stages, whose results make the report."""
        return [*self._measures.values(), *self.details.values(), *self.claims]

    @property
    def collections(self) -> dict[int, CollectionStage]:
        """The collections by size; 0 is all documents."""
        return self._collections

    @property
    def indexes(self) -> dict[tuple[int, str], IndexStage]:
        """The indexes by size of the collection and representation."""
        return self._indexes

    @property
    def models(self) -> dict[tuple[int, str], ModelStage]:
        """The label autoencoders by size of the collection and name."""
        return self._models

    @property
    def fusions(self) -> dict[tuple[int, str], FusionStage]:
        """The fusions by size of the collection and name of the representation."""
        return self._fusions

    def collection(self, size: int) -> CollectionStage:
        """The collection with `size` documents; 0 is all."""
        if size not in self._collections:
            source = Source(self._files, size, self.grid.seed)
            part = self.grid.collection
            self._collections[size] = CollectionStage(
                self.work, self._vocabulary, source, part.language, part.all_settings()
            )
        return self._collections[size]

    def neighbours(self, size: int, name: str, split: str) -> NeighbourStage | FusedStage:
        """The neighbours of a split by a representation of the grid."""
        fuses = self.grid.representations[name].fuses
        if not fuses:
            return self._single(size, name, split)
        if (size, name) not in self._fusions:
            chosen = [self._single(size, part, self.grid.choose_on) for part in fuses]
            fusion = FusionStage(self.work, name, chosen, self.grid.choose_by)
            self._fusions[size, name] = fusion
        key = (size, name, split)
        if key not in self._fused:
            parts = [self._single(size, part, split) for part in fuses]
            fusion = self._fusions[size, name]
            self._fused[key] = FusedStage(self.work, name, split, fusion, parts)
        return self._fused[key]

    def model(self, size: int, name: str) -> ModelStage:
        """A label autoencoder of the grid."""
        if (size, name) not in self._models:
            part = self.grid.models[name].model_dump()
            settings = paper_settings(**part | {"seed": self.grid.seed})
            stage = ModelStage(self.work, name, settings, self.collection(size))
            self._models[size, name] = stage
        return self._models[size, name]

    def measures(self, group: Group) -> MeasureStage:
        """The stage that measures the cells of a group."""
        if group not in self._measures:
            self._measures[group] = MeasureStage(
                self.work,
                group,
                self.collection(group.size),
                {
                    split: self.neighbours(group.size, group.representation, split)
                    for split in self.splits
                },
                self.model(group.size, group.model) if group.model else None,
                self.grid.measures,
            )
        return self._measures[group]

    def _single(self, size: int, name: str, split: str) -> NeighbourStage:
        key = (size, name, split)
        if key not in self._near:
            stage = self._near[key] = NeighbourStage(
                self.work,
                self._index(size, name),
                split,
                self.splits[split],
                self.grid.deepest,
            )
            if (wider := self._wider(name)) is not None:
                stage.after = (self._single(size, wider, split),)
        return self._near[key]

    def _index(self, size: int, name: str) -> IndexStage:
        uses = self.grid.representations[name].uses
        if (size, uses) not in self._indexes:
            stage = self._indexes[size, uses] = IndexStage(self.work, uses, self.collection(size))
            if (wider := self._wider(name)) is not None:
                stage.after = (self._index(size, wider),)
        return self._indexes[size, uses]

    def _wider(self, name: str) -> str | None:
        """The largest representation that contains all kinds of terms of this one, and more.

        Its stage goes first, so that one analysis extracts the terms of both.
        """
        mine = _kinds(self.grid.representations[name].uses)
        others = {other: _kinds(part.uses) for other, part in self.grid.representations.items()}
        wider = [other for other, kinds in others.items() if mine and mine < kinds]
        return max(wider, key=lambda other: len(others[other]), default=None)

    def _claim(self, claim: ClaimPart) -> ClaimStage:
        better, worse = (
            [(row, self.measures(row.group)) for row in self.rows if row.has(side)]
            for side in (claim.better, claim.worse)
        )
        if not better or not worse:
            raise ConfigError(
                f"no table has rows for the claim {claim.text!r}; check its `better` and `worse`"
            )
        choice = (self.grid.choose_on, self.grid.choose_by)
        samples = self.grid.details.samples
        return ClaimStage(self.work, claim.text, (better, worse), choice, samples, self.grid.seed)

    def _details(self) -> dict[tuple[str, str, int], DetailStage]:
        """The detail stages by table, representation and size."""
        rows: dict[tuple[str, str, int], list[tuple[Row, MeasureStage]]] = {}
        for row in self.rows:
            key = (row.table, row.group.representation, row.group.size)
            rows.setdefault(key, []).append((row, self.measures(row.group)))
        part = self.grid.details
        bands = [Band(band.name, band.minimum, band.maximum) for band in part.bands]
        stages = {}
        for key, candidates in rows.items():
            baseline: Candidates = rows.get((part.baseline, *key[1:]), [])
            stages[key] = DetailStage(
                self.work,
                candidates,
                baseline,
                (self.grid.choose_on, self.grid.choose_by),
                part.samples,
                bands,
                self.grid.seed,
            )
        return stages


def _kinds(representation: str) -> set[str]:
    return set() if not representation or is_encoder(representation) else kind_names(representation)


def in_order(stages: Iterable[Stage]) -> list[Stage]:
    """The stages and all that they need in topological order, each once."""
    ordered: dict[Stage, None] = {}

    def visit(stage: Stage) -> None:
        if stage not in ordered:
            for earlier in (*stage.needs, *stage.after):
                visit(earlier)
            ordered[stage] = None

    for stage in stages:
        visit(stage)
    return list(ordered)
