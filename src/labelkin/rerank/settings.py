"""How the reranker is learned and how its list is cut; labelkin.toml documents each key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labelkin.rerank.features import GROUPS
from labelkin.store.held_out import HeldOut, HeldOutRule, choose_held_out

if TYPE_CHECKING:
    from labelkin.store.collection import Collection
    from labelkin.store.config import Config


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """How a reranker is learned.

    `documents` are taken out of the collection and of every statistic to learn
    from; statistics are counted over at most `statistics_documents`.
    """

    documents: int = 6000
    statistics_documents: int = 200_000
    rounds: int = 300
    linear: bool = False
    linear_cost: float = 1.0
    threads: int = 0
    seed: int = 0
    groups: tuple[str, ...] = field(default_factory=lambda: tuple(GROUPS))

    @classmethod
    def from_config(cls, config: Config) -> LearningSettings:
        """What labelkin.toml says."""
        section = config.rerank
        return cls(
            documents=section.documents,
            rounds=section.rounds,
            linear=section.linear,
            linear_cost=section.linear_cost,
            seed=config.training.seed,
        )

    def held_out(
        self, collection: Collection, given: int = 0, within: HeldOutRule | None = None
    ) -> HeldOut:
        """Choose the documents to train on; see `choose_held_out`."""
        return choose_held_out(
            collection,
            documents=self.documents,
            statistics_documents=self.statistics_documents,
            seed=self.seed,
            given=given,
            within=within,
        )
