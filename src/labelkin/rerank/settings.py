"""How the reranker is trained; labelkin.toml documents each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labelkin.store.held_out import HeldOut, HeldOutRule, choose_held_out

if TYPE_CHECKING:
    from labelkin.store.config import Config
    from labelkin.store.reader import Reader


@dataclass(frozen=True, slots=True)
class RerankTrainingSettings:
    """How a reranker is trained.

    `documents` are held out of the collection and of every statistic to train
    on; statistics are counted over at most `statistics_documents`. `encoder`
    names an encoder whose vectors are a signal, empty for none. `groups` names
    the signals, empty for all that are available.
    """

    documents: int = 18_000
    statistics_documents: int = 200_000
    rounds: int = 300
    linear: bool = True
    linear_cost: float = 1.0
    encoder: str = ""
    threads: int = 0
    seed: int = 0
    groups: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, config: Config) -> RerankTrainingSettings:
        """The settings of labelkin.toml."""
        section = config.rerank
        return cls(
            documents=section.documents,
            rounds=section.rounds,
            linear=section.linear,
            linear_cost=section.linear_cost,
            encoder=section.encoder,
            seed=config.training.seed,
        )

    def held_out(
        self, reader: Reader, given: int = 0, within: HeldOutRule | None = None
    ) -> HeldOut:
        """Choose the documents to train on; see `choose_held_out`."""
        return choose_held_out(
            reader,
            documents=self.documents,
            statistics_documents=self.statistics_documents,
            seed=self.seed,
            given=given,
            within=within,
        )
