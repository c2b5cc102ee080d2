"""Measures as values: a name that prints and parses, a definition, parameters."""

from __future__ import annotations

import difflib
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelkin.evaluate.evaluation import Evaluation, Floats
from labelkin.exceptions import ConfigError

_NAME = re.compile(r"(?P<family>[A-Za-z-]+)(\((?P<options>[^()]*)\))?(@(?P<depth>[0-9]+))?")
# No ranking is this long.
_DEEPEST = 1_000_000
_families: dict[str, Family] = {}
_registration_lock = threading.Lock()


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters; equal when family and parameters are.

    `str(measure)` is its name, which `parse_measure` parses back: `MiF`, `nDCG@10`,
    `LCA-F(distance=100000)`. The name omits parameters at their defaults.
    """

    family: Family
    depth: int | None = None
    options: tuple[tuple[str, float], ...] = ()

    @property
    def name(self) -> str:
        """The name with all parameters that are not at their defaults."""
        options = ",".join(f"{key}={value:.12g}" for key, value in self.options)
        depth = "" if self.depth is None else f"@{self.depth}"
        return f"{self.family.name}{f'({options})' if options else ''}{depth}"

    @property
    def definition(self) -> str:
        """What the measure is, in one sentence."""
        return self.family.definition

    @property
    def parameters(self) -> dict[str, float]:
        """All parameters, defaults included; the depth is `k`."""
        depth = {} if self.depth is None else {"k": float(self.depth)}
        return {**depth, **self.family.options, **dict(self.options)}

    @property
    def k(self) -> int:
        """The depth of a measure that has one."""
        if self.depth is None:
            raise TypeError(f"{self.name} has no depth")
        return self.depth

    @property
    def is_additive(self) -> bool:
        """Whether the value follows from sums over documents, which makes resampling fast."""
        return self.family.statistics is not None

    def check_goal(self) -> None:
        """Raise ConfigError if a higher value is not better."""
        if not self.family.is_goal:
            raise ConfigError(f"{self.name}: a higher value is not better; choose another measure")

    def statistics(self, evaluation: Evaluation) -> Floats:
        """Documents × statistics whose sums over documents determine the value."""
        if self.family.statistics is None:
            raise TypeError(f"{self.name} does not follow from sums over documents")
        return self.family.statistics(evaluation, self)

    def value(self, evaluation: Evaluation) -> float:
        """The measure's value; 0 if it is undefined, as for no documents."""
        if self.family.statistics is None:
            return float(self.family.combine(evaluation, self))
        totals = self.statistics(evaluation).sum(axis=0)
        return float(self.family.combine(totals, evaluation.documents))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Family:
    """All measures of one name, whatever their parameters.

    With `statistics`, a value is `combine(sums of the statistics, documents)`,
    where sums may carry leading axes (one entry per resample). Without, it is
    `combine(evaluation, measure)`. If `is_goal`, a higher value is better.
    """

    name: str
    definition: str
    combine: Callable[..., Any] = field(compare=False, repr=False)
    statistics: Callable[[Evaluation, Measure], Floats] | None = field(
        default=None, compare=False, repr=False
    )
    has_depth: bool = False
    is_goal: bool = True
    options: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def pattern(self) -> str:
        """How a name of this family is written: `P@k`, `LCA-F(distance=4)`."""
        options = ",".join(f"{key}={value:g}" for key, value in self.options.items())
        return f"{self.name}{f'({options})' if options else ''}{'@k' if self.has_depth else ''}"


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide element by element; 0 where the denominator is 0."""
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    quotients = np.zeros(top.shape)
    np.divide(top, bottom, out=quotients, where=bottom != 0)
    return quotients


def mean_of_documents(totals: Floats, documents: int) -> Floats:
    """The `combine` of measures that average one value per document."""
    return ratio(totals[..., 0], documents)


def ratio_of_sums(totals: Floats, documents: int) -> Floats:  # noqa: ARG001
    """The `combine` of measures that divide one sum over documents by another."""
    return ratio(totals[..., 0], totals[..., 1])


def register(family: Family) -> None:
    """Let `parse_measure` parse the measures of a family."""
    with _registration_lock:
        if family.name in _families:
            raise ValueError(f"a measure {family.name!r} is already registered")
        _families[family.name] = family


def registered_families() -> tuple[Family, ...]:
    """All families, in the order of their registration."""
    return tuple(_families.values())


def parse_measure(name: str) -> Measure:
    """The measure with a name such as `MiF`, `nDCG@10` or `hF(distance=100000)`."""
    match = _NAME.fullmatch(name.strip())
    family = _families.get(match["family"]) if match else None
    if match is None or family is None:
        raise ConfigError(f"unknown measure {name!r}; {_suggestion(name)}")
    depth = None if match["depth"] is None else int(match["depth"])
    if family.has_depth and not depth:
        raise ConfigError(f"measure {name!r} needs a depth of at least 1: {family.name}@5")
    if depth is not None and depth > _DEEPEST:
        raise ConfigError(f"measure {name!r}: the depth must be at most {_DEEPEST:,}")
    if not family.has_depth and depth is not None:
        raise ConfigError(f"measure {name!r} takes no depth; try {family.name}")
    return Measure(family, depth, _options(name, family, match["options"]))


def _options(name: str, family: Family, text: str | None) -> tuple[tuple[str, float], ...]:
    given: dict[str, float] = {}
    for part in text.split(",") if text else ():
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in family.options:
            raise ConfigError(f"measure {name!r} has no parameter {key!r}; try {family.pattern}")
        given[key] = _number(name, key, value)
    defaults = family.options.items()
    return tuple(
        (key, given[key]) for key, default in defaults if given.get(key, default) != default
    )


def _number(name: str, key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ConfigError(f"measure {name!r}: {key} must be a number of at least 0, not {text!r}")
    return number


def _suggestion(name: str) -> str:
    families = registered_families()
    patterns = {family.name.casefold(): family.pattern for family in families}
    wanted = re.sub(r"@\d*", "", name).strip().casefold()
    close = difflib.get_close_matches(wanted, patterns, n=3, cutoff=0.5)
    if close:
        return f"did you mean {', '.join(patterns[match] for match in close)}?"
    return f"known: {', '.join(family.pattern for family in families)}"
