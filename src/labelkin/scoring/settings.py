"""How headings are chosen: the method, the weights of neighbours, where lists are cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import Distance
from labelkin.scoring.cut import CountScheme
from labelkin.scoring.votes import Weighting

if TYPE_CHECKING:
    from labelkin.scoring.method import Method
    from labelkin.store.config import Config

# How many neighbours `rerank` looks at, whatever k is.
RERANK_DEPTH = 80


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """How one scorer weighs neighbours and where it cuts its list.

    `count` None gives all labels that reach the threshold.
    """

    k: int = 20
    weighting: Weighting = "majority"
    distance: Distance = "self"
    count: CountScheme | None = "mean"
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class MixSettings:
    """How `mix-ranked` combines two rankings: the share of the autoencoder, and the cut.

    `leading` is for `mix`: labels that the autoencoder scores this high come first;
    None for those that `label-ae` gives.
    """

    share: float = 0.2
    count: CountScheme | None = None
    threshold: float = 0.25
    leading: float | None = None


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """Where `lexical` cuts its list."""

    threshold: float = 0.4


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """Where `rerank` cuts its list, and the precision of its bands.

    `count` "expected-f" gives as many headings as maximise the expected F of a document.
    """

    count: Literal["expected-f"] | None = None
    threshold: float = 0.3
    accept: float = 0.9
    review: float = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that one request for suggestions depends on besides the text.

    `limit` 0 sets no limit. `include` and `exclude` restrict the headings (see
    `LabelPolicy`). The parts hold the settings of each method; `extensions`
    those of methods from other packages, by name.
    """

    method: str = "knn"
    limit: int = 0
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    knn: ScorerSettings = ScorerSettings()
    label_ae: ScorerSettings = ScorerSettings(weighting="difference", count=None, threshold=0.5)
    mix: MixSettings = MixSettings()
    lexical: LexicalSettings = LexicalSettings()
    rerank: RerankSettings = RerankSettings()
    extensions: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse a negative limit, and one string for a list of them."""
        if self.limit < 0:
            raise ConfigError(f"limit is {self.limit}; give 0 for no limit, or more")
        for name in ("include", "exclude"):
            _listed(name, getattr(self, name))

    @classmethod
    def from_config(cls, config: Config, method: str | None = None) -> Settings:
        """The settings of labelkin.toml, for its own method or another."""
        suggest, label_ae, mix = config.suggest, config.label_ae, config.mix
        rerank = config.rerank
        return cls(
            method=method or suggest.method,
            limit=suggest.limit,
            include=tuple(suggest.include),
            exclude=tuple(suggest.exclude),
            knn=ScorerSettings(
                k=config.neighbours.k,
                weighting=suggest.weighting,
                distance=config.neighbours.distance,
                count=_count(suggest.count),
                threshold=suggest.threshold,
            ),
            label_ae=ScorerSettings(
                k=label_ae.k,
                weighting=label_ae.weighting,
                distance=label_ae.distance,
                count=_count(label_ae.count),
                threshold=label_ae.threshold,
            ),
            mix=MixSettings(mix.share, _count(mix.count), mix.threshold, mix.leading or None),
            lexical=LexicalSettings(config.lexical.threshold),
            rerank=RerankSettings(
                count=None if rerank.count == "none" else rerank.count,
                threshold=rerank.threshold,
                accept=rerank.accept,
                review=rerank.review,
            ),
            extensions=config.extensions,
        )

    @property
    def implementation(self) -> Method:
        """The method that the settings name; ConfigError for an unknown one."""
        from labelkin.scoring.methods import METHODS

        return METHODS[self.method]

    @property
    def k(self) -> int:
        """How many neighbours the method looks at; 0 if it needs the text alone."""
        return self.implementation.depth(self)

    def changed(
        self,
        *,
        k: int | None = None,
        weighting: Weighting | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        accept: float | None = None,
        review: float | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
    ) -> Settings:
        """The settings with other values where an argument is not None.

        A limit replaces the method's own count and threshold: a limit of ten
        gives ten headings, unless there is a threshold as well. The threshold
        is the method's: that of the autoencoder's headings in `mix`, the joint
        ranking's in `mix-ranked`. `accept` and `review` are the reranker's.
        """
        voting = {"k": k, "weighting": weighting}
        given: dict[str, Any] = {key: value for key, value in voting.items() if value is not None}
        settings = replace(
            self,
            include=self.include if include is None else _listed("include", include),
            exclude=self.exclude if exclude is None else _listed("exclude", exclude),
            limit=self.limit if limit is None else limit,
            knn=replace(self.knn, **given),
            label_ae=replace(self.label_ae, **given),
            rerank=replace(
                self.rerank,
                accept=self.rerank.accept if accept is None else accept,
                review=self.rerank.review if review is None else review,
            ),
        )
        if limit is not None:
            settings = settings.implementation.uncut(settings)
        if threshold is not None:
            settings = settings.implementation.with_threshold(settings, threshold)
        return settings


def _listed(name: str, entries: Iterable[str]) -> tuple[str, ...]:
    if isinstance(entries, str):
        raise ConfigError(f"{name} is {entries!r}; give a list of concepts, notations or schemes")
    return tuple(entries)


def _count(scheme: Literal["mean", "weighted", "none"]) -> CountScheme | None:
    return None if scheme == "none" else scheme
