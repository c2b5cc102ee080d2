"""Grids: TOML files that describe the experiments to run.

A grid names a collection and the splits to measure on, representations, label
autoencoders, and tables whose rows are all combinations of the values that they
list. `[quick]` describes a smaller version, for `--quick`. A grid that `extends`
another contains only the differences.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import Distance
from labelkin.scoring.votes import Weighting
from labelkin.store.config import RECIPES, Config, Section, TrainingSection

Cut = float | Literal["count"]
# The methods that need nothing but neighbours and a label autoencoder.
GridMethod = Literal["knn", "label-ae", "mix", "mix-ranked"]

_GRIDS = files("labelkin.experiments").joinpath("grids")


class CollectionPart(Section):
    """The files of a collection, relative to the data folder.

    Each of `sizes` is a collection with that many documents, drawn by the seed; 0
    takes all. `settings` change the collection's labelkin.toml, section by section, after a
    `recipe` if one is named.
    """

    vocabulary: str
    documents: list[str] = Field(min_length=1)
    language: str = "auto"
    sizes: list[int] = Field(default=[0], min_length=1)
    recipe: str = ""
    settings: dict[str, dict[str, Any]] = Field(default={})

    @model_validator(mode="after")
    def _known_settings(self) -> Self:
        Config.model_validate(self.settings)
        if self.recipe and self.recipe not in RECIPES:
            raise ValueError(f"no recipe {self.recipe!r}; known: {', '.join(RECIPES)}")
        return self

    def all_settings(self) -> dict[str, dict[str, Any]]:
        """The settings of the recipe, changed by the grid's own."""
        recipe = RECIPES[self.recipe] if self.recipe else {}
        return _merged({section: dict(values) for section, values in recipe.items()}, self.settings)


class RepresentationPart(Section):
    """How neighbours are found: by a named representation, or by fusing others of the grid.

    `stand_in` describes what it replaces if it differs from the paper's.
    """

    uses: str = ""
    fuses: list[str] = Field(default=[])
    stand_in: str = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.uses) == bool(self.fuses):
            raise ValueError("give either `uses` or `fuses`")
        return self


class ModelPart(TrainingSection):
    """A label autoencoder of the paper: the keys of labelkin.toml's [training], and a time limit.

    0 minutes is no limit.
    """

    recipe: Literal["paper"] = "paper"
    minutes: float = Field(default=0.0, ge=0.0)


class SinglePart(Section):
    """A single row in addition to the combinations of a table."""

    representation: str
    weighting: Weighting = "majority"
    cut: Cut = "count"
    k: int


class TablePart(Section):
    """A table with all combinations of the listed values; `paper` is the paper's table for it."""

    name: str
    title: str
    method: GridMethod
    representations: list[str] = Field(min_length=1)
    model: str = ""
    weightings: list[Weighting] = Field(default=["majority"])
    distances: list[Distance] = Field(default=["self"])
    cuts: list[Cut] = Field(default=["count"])
    shares: list[float] = Field(default=[0.0])
    ks: list[int] = Field(default=[])
    also: list[SinglePart] = Field(default=[])
    paper: str = ""
    note: str = ""


class BandPart(Section):
    """A band of headings by their number of training documents."""

    name: str
    minimum: int = 0
    maximum: int | None = None


class DetailsPart(Section):
    """What to measure for the best rows only, which are tested against the best of `baseline`."""

    baseline: str = ""
    samples: int = Field(default=1000, ge=1)
    bands: list[BandPart] = Field(default=[])


class ClaimPart(Section):
    """A conclusion: the best of some rows does better than the best of others.

    Rows are selected by table, representation, threshold and weighting. `paper` is
    whether the paper draws the conclusion.
    """

    text: str
    better: dict[str, str]
    worse: dict[str, str]
    paper: bool = True


class ScalingPart(Section):
    """MiF by collection size: the tables to plot with the paper's rows, and the paper's size."""

    documents: int
    tables: dict[str, dict[str, str]]


class QuickPart(Section):
    """The smaller version of a grid."""

    sizes: list[int] = Field(min_length=1)
    split_documents: int = Field(ge=1)
    minutes: float = Field(gt=0.0)


class Grid(Section):
    """One experiment; `origins` says of its files what they are and where they come from."""

    name: str = ""
    title: str
    seed: int = 0
    collection: CollectionPart
    splits: dict[str, str] = Field(min_length=1)
    origins: dict[str, str] = Field(default={})
    split_documents: int = Field(default=0, ge=0)
    choose_on: str
    choose_by: str = "MiF"
    report_on: list[str] = Field(min_length=1)
    measures: list[str] = Field(min_length=1)
    ks: list[int] = Field(min_length=1)
    representations: dict[str, RepresentationPart]
    models: dict[str, ModelPart] = Field(default={})
    tables: list[TablePart] = Field(min_length=1)
    details: DetailsPart = DetailsPart()
    claims: list[ClaimPart] = Field(default=[])
    scaling: ScalingPart | None = None
    quick: QuickPart | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in _problems(self):
            raise ValueError(problem)
        return self

    @property
    def deepest(self) -> int:
        """The largest k of any row."""
        own = (k for table in self.tables for k in [*table.ks, *(one.k for one in table.also)])
        return max([*self.ks, *own])

    def table(self, name: str) -> TablePart:
        """The table called `name`."""
        return next(table for table in self.tables if table.name == name)

    def reduced(self) -> Grid:
        """The smaller version that `[quick]` describes."""
        if self.quick is None:
            raise ConfigError(f"the grid {self.name!r} has no [quick]; run it without --quick")
        limits = {"minutes": self.quick.minutes}
        return self.model_copy(
            update={
                "name": f"{self.name}-quick",
                "collection": self.collection.model_copy(update={"sizes": self.quick.sizes}),
                "split_documents": self.quick.split_documents,
                "models": {
                    name: model.model_copy(update=limits) for name, model in self.models.items()
                },
            }
        )


def shipped_grids() -> list[str]:
    """The names of the grids that come with labelkin."""
    return sorted(Path(entry.name).stem for entry in _GRIDS.iterdir())


def read_grid(source: str, *, quick: bool = False) -> Grid:
    """Read a shipped grid by name, or the grid in a `.toml` file."""
    table = _read_table(source, ())
    # An empty file name removes an inherited split.
    splits = table.get("splits")
    if isinstance(splits, dict):
        table["splits"] = {name: file for name, file in splits.items() if file != ""}
    try:
        grid = Grid.model_validate({"name": Path(source).stem, **table})
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explained(error.errors()[0])}") from error
    return grid.reduced() if quick else grid


def _read_table(source: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """The content of a grid's file, merged into the grid that it extends."""
    path = Path(source)
    if source in seen:
        raise ConfigError(f"{source}: the grid extends itself")
    if path.suffix == ".toml":
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{source}: {error.strerror}") from error
    elif source in shipped_grids():
        content = _GRIDS.joinpath(f"{source}.toml").read_bytes()
    else:
        raise ConfigError(
            f"no grid {source!r}; shipped are {', '.join(shipped_grids())}; "
            "for your own, give the path of a .toml file"
        )
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from error
    base = table.pop("extends", None)
    if base is None:
        return table
    if Path(str(base)).suffix == ".toml":
        base = path.parent / str(base)
    return _merged(_read_table(str(base), (*seen, source)), table)


def _merged(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the changes; tables are merged, other values are replaced."""
    merged = dict(base)
    for key, value in changes.items():
        known = merged.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        merged[key] = _merged(known or {}, value) if both else value
    return merged


def _problems(grid: Grid) -> Iterator[str]:
    """Yield a message for each inconsistency between the parts of a grid."""
    for split in [grid.choose_on, *grid.report_on]:
        yield from _unknown("split", split, grid.splits)
    for name, part in grid.representations.items():
        for other in part.fuses:
            yield from _unknown("representation", other, grid.representations)
            if other in grid.representations and grid.representations[other].fuses:
                yield f"{name!r} fuses {other!r}, which is itself fused"
    names = [table.name for table in grid.tables]
    if len(set(names)) < len(names):
        yield f"two tables are called {max(names, key=names.count)!r}"
    for table in grid.tables:
        for name in [*table.representations, *(one.representation for one in table.also)]:
            yield from _unknown("representation", name, grid.representations)
        if table.method == "knn" and table.model:
            yield f"the table {table.name!r} has the method knn, which takes no model"
        elif table.method != "knn":
            yield from _unknown("model", table.model, grid.models)
    if grid.details.baseline:
        yield from _unknown("table", grid.details.baseline, names)
    for claim in grid.claims:
        for side in (claim.better, claim.worse):
            yield from _unknown("table", side.get("table", ""), names)
    if grid.choose_by not in grid.measures:
        yield f"choose_by is {grid.choose_by!r}, which is not among the measures"
    for name in grid.scaling.tables if grid.scaling else ():
        yield from _unknown("table", name, names)


def _unknown(what: str, name: str, known: Iterable[str]) -> Iterator[str]:
    if name not in known:
        yield f"no {what} {name!r} in the grid; there are {', '.join(known) or 'none'}"


def _explained(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "value_error":
        message = str(error["ctx"]["error"])
        return f"{place}: {message}" if place else message
    if error["type"] == "missing":
        return f"{place} is missing"
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(error["loc"][-1]), _KEYS, n=1)
        return f"unknown key {place!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    message = str(error["msg"])
    return f"{place} = {error['input']!r}: {message[0].lower()}{message[1:]}"


_KEYS = sorted(
    {
        key
        for part in (
            Grid, CollectionPart, RepresentationPart, ModelPart, SinglePart, TablePart, BandPart,
            DetailsPart, ClaimPart, ScalingPart, QuickPart,
        )
        for key in part.model_fields
    }
)  # fmt: skip
