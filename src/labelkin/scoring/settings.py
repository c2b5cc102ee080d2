"""How headings are decided: which method, how neighbours weigh, where lists are cut."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from labelkin.neighbours.neighbours import Distance
from labelkin.scoring.cut import CountScheme
from labelkin.scoring.votes import Weighting

if TYPE_CHECKING:
    from labelkin.store.config import Config

MethodName = Literal["knn", "label-ae", "mix", "mix-ranked", "lexical", "rerank"]
# How many neighbours `rerank` hears, whatever k is.
RERANK_DEPTH = 80
METHOD_NAMES: tuple[MethodName, ...] = get_args(MethodName)


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """How one scorer weighs neighbours and where it cuts its list.

    `count` None gives as many labels as pass the threshold; `limit` 0 sets no limit.
    """

    k: int = 20
    weighting: Weighting = "majority"
    distance: Distance = "self"
    count: CountScheme | None = "mean"
    threshold: float = 0.0
    limit: int = 0
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MixSettings:
    """How `mix-ranked` joins two rankings: the share of the autoencoder's scores, and the cut."""

    share: float = 0.2
    count: CountScheme | None = None
    threshold: float = 0.25


@dataclass(frozen=True, slots=True)
class LexicalSettings:
    """Where `lexical` cuts its list, and what may be in it."""

    threshold: float = 0.4
    limit: int = 0
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RerankSettings:
    """Where `rerank` cuts its list, and how right suggestions must be to be accepted or shown.

    `count` "expected-f" gives as many headings as maximise the expected F of a document.
    """

    count: Literal["expected-f"] | None = None
    threshold: float = 0.3
    limit: int = 0
    accept: float = 0.9
    review: float = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """A method, and the settings of all that it may be made of."""

    method: MethodName = "knn"
    knn: ScorerSettings = ScorerSettings()
    label_ae: ScorerSettings = ScorerSettings(weighting="difference", count=None, threshold=0.5)
    mix: MixSettings = field(default_factory=MixSettings)
    lexical: LexicalSettings = LexicalSettings()
    rerank: RerankSettings = RerankSettings()

    @classmethod
    def from_config(cls, config: Config, method: MethodName | None = None) -> Settings:
        """What labelkin.toml says, for its own method or another."""
        suggest, label_ae, mix = config.suggest, config.label_ae, config.mix
        rerank = config.rerank
        knn = ScorerSettings(
            k=config.neighbours.k,
            weighting=suggest.weighting,
            distance=config.neighbours.distance,
            count=_count(suggest.count),
            threshold=suggest.threshold,
            limit=suggest.limit,
            include=tuple(suggest.include),
            exclude=tuple(suggest.exclude),
        )
        return cls(
            method=method or suggest.method,
            knn=knn,
            label_ae=replace(
                knn,
                k=label_ae.k,
                weighting=label_ae.weighting,
                distance=label_ae.distance,
                count=_count(label_ae.count),
                threshold=label_ae.threshold,
            ),
            mix=MixSettings(mix.share, _count(mix.count), mix.threshold),
            lexical=LexicalSettings(config.lexical.threshold, knn.limit, knn.include, knn.exclude),
            rerank=RerankSettings(
                count=None if rerank.count == "none" else rerank.count,
                threshold=rerank.threshold,
                limit=suggest.limit,
                accept=rerank.accept,
                review=rerank.review,
            ),
        )

    @property
    def learned(self) -> bool:
        """Whether the method needs a model that was trained."""
        return self.method not in ("knn", "lexical")

    @property
    def k(self) -> int:
        """How many neighbours the method looks at; 0 if it goes by the text alone."""
        if self.method == "lexical":
            return 0
        if self.method == "knn":
            return self.knn.k
        if self.method == "rerank":
            return RERANK_DEPTH
        return self.label_ae.k if self.method == "label-ae" else max(self.knn.k, self.label_ae.k)

    def changed(
        self,
        *,
        threshold: float | None = None,
        accept: float | None = None,
        review: float | None = None,
        **changes: Any,
    ) -> Settings:
        """With other values for what is named and not None, wherever the method looks at them.

        A threshold is the autoencoder's in `mix` and the joint ranking's in `mix-ranked`;
        `accept` and `review` are the reranker's.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        knn, label_ae, mix = replace(self.knn, **given), replace(self.label_ae, **given), self.mix
        lexical = replace(self.lexical, limit=knn.limit, include=knn.include, exclude=knn.exclude)
        rerank = replace(
            self.rerank,
            limit=knn.limit,
            accept=self.rerank.accept if accept is None else accept,
            review=self.rerank.review if review is None else review,
        )
        if "limit" in given:
            # Asked for a number, nobody wants fewer, unless there is a threshold as well.
            knn = replace(knn, count=None, threshold=0.0)
            label_ae = replace(label_ae, count=None, threshold=0.0)
            mix = replace(mix, count=None, threshold=0.0)
            lexical = replace(lexical, threshold=0.0)
            rerank = replace(rerank, count=None, threshold=0.0)
        if threshold is not None:
            if self.method == "knn":
                knn = replace(knn, threshold=threshold)
            elif self.method == "mix-ranked":
                mix = replace(mix, threshold=threshold)
            elif self.method == "lexical":
                lexical = replace(lexical, threshold=threshold)
            elif self.method == "rerank":
                rerank = replace(rerank, count=None, threshold=threshold)
            else:
                label_ae = replace(label_ae, threshold=threshold)
        return replace(self, knn=knn, label_ae=label_ae, mix=mix, lexical=lexical, rerank=rerank)


def _count(scheme: Literal["mean", "weighted", "none"]) -> CountScheme | None:
    return None if scheme == "none" else scheme
