"""The interface of methods: a method ranks headings, cuts the list and explains it.

A method is a stateless object: everything it computes is a function of the
queries (which carry snapshot and models) and the settings. One module and one
row in `methods.py`, or an entry point of another package, adds a method.
tests/scoring/method_conformance.py tests what every method must do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from labelkin.scoring.cut import cut
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Band, Suggestion
from labelkin.store.config import Section
from labelkin.store.models import Model, Models


class Method(ABC):
    """From texts and their neighbours to headings.

    Subclasses of other packages may declare a `section` of labelkin.toml,
    named like the method; its values are `settings.extensions[name]`.
    """

    name: ClassVar[str]
    #: Whether -k and --weighting apply to the method.
    votes: ClassVar[bool] = False
    section: ClassVar[type[Section] | None] = None

    def required_models(self) -> tuple[type[Model], ...]:
        """The models that must have been trained."""
        return ()

    def models_checksum(self, models: Models) -> str:
        """Changes whenever a model that the method uses is trained again."""
        return " ".join(models.checksum(kind) for kind in self.required_models())

    def check_installed(self) -> None:
        """Raise MissingExtraError if a library that the method needs is missing."""
        return

    def check_representation(self, models: Models, representation: str) -> None:  # noqa: ARG002
        """Raise ModelMismatchError if a model cannot use neighbours by a representation.

        Called before the neighbours are searched, for which an index may have to be built.
        """
        return

    def check_voting(self, settings: Settings, models: Models) -> None:  # noqa: ARG002
        """Raise ConfigError if a model takes neither k nor weighting with these settings."""
        return

    @abstractmethod
    def depth(self, settings: Settings) -> int:
        """How many neighbours the method looks at; 0 if it needs the text alone."""

    @abstractmethod
    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All labels that are worth ranking, best first, with scores in [0, 1]."""

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:  # noqa: ARG002
        """The labels that are suggested: by default those above the threshold, up to the limit."""
        return cut(ranking, None, self.threshold(settings) or None, settings.limit or None)

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,  # noqa: ARG002
        *,
        signals: bool = False,  # noqa: ARG002
    ) -> list[list[Suggestion]]:
        """The given labels with the evidence for each; `signals` adds the weights of signals."""
        concepts = queries.snapshot.concepts(sorted({*given.columns.tolist()}))
        return [
            [
                Suggestion(concepts[column], score, rank)
                for rank, (column, score) in enumerate(
                    zip(columns.tolist(), scores.tolist(), strict=True), start=1
                )
            ]
            for columns, scores in given
        ]

    def bands(self, queries: Queries, settings: Settings) -> Callable[[float], Band] | None:  # noqa: ARG002
        """A function from scores to bands, for methods with calibrated scores."""
        return None

    def threshold(self, settings: Settings) -> float:
        """The lowest score that is suggested."""
        return float(getattr(settings.extensions.get(self.name), "threshold", 0.0))

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold."""
        return self._with_section(settings, threshold=threshold)

    def reviewing(self, settings: Settings, models: Models) -> Settings:  # noqa: ARG002
        """The settings that show all headings of the band review, for methods with bands."""
        return settings

    def uncut(self, settings: Settings) -> Settings:
        """The settings without a threshold or count, for a limit alone."""
        return self.with_threshold(settings, 0.0)

    def sweep(
        self,
        settings: Settings,
        ks: Sequence[int],  # noqa: ARG002
        thresholds: Sequence[float],
    ) -> Iterator[list[Settings]]:
        """What `tune` tries: lists of settings that share a ranking and differ in the cut only."""
        tried = dict.fromkeys((self.threshold(settings), *thresholds))
        yield list(dict.fromkeys(self.with_threshold(settings, one) for one in tried))

    def effective(self, queries: Queries, settings: Settings) -> Settings:  # noqa: ARG002
        """The settings with defaults for what has no effect here: `tune` tries equal ones once."""
        return settings

    def swept(self, settings: Settings) -> dict[str, Any]:
        """The values that `sweep` varies, for a table."""
        return {"threshold": self.threshold(settings)}

    def as_config(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """The changes of labelkin.toml that make these the method's settings."""
        section = settings.extensions.get(self.name)
        if section is None:
            return {self.name: self.swept(settings)} if hasattr(settings, self.name) else {}
        known = {key: one for key, one in self.swept(settings).items() if hasattr(section, key)}
        return {self.name: known} if known else {}

    def _with_section(self, settings: Settings, **values: Any) -> Settings:
        """The settings with other values of the method's own section."""
        section = settings.extensions.get(self.name)
        if section is None:
            return settings
        known = {name: value for name, value in values.items() if hasattr(section, name)}
        changed = section.model_copy(update=known)
        return replace(settings, extensions={**settings.extensions, self.name: changed})
