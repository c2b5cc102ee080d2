"""Who is told of the progress of a training, and which process tells."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.autoencoder.training import TrainingProgress
    from labelkin.cuts import CutReport
    from labelkin.rerank.fitting import RerankReport
    from labelkin.training import TrainingReport


class TrainingObserver:
    """Receives the progress of a training. Override the methods of interest."""

    def planned(self, report: TrainingReport) -> None:
        """Nothing has been done yet: the plan, and what is skipped."""

    def stage(self, name: str, done: int, total: int) -> None:
        """A long step has come this far."""

    def epoch(self, progress: TrainingProgress) -> None:
        """The label autoencoder has come this far."""

    def trained_label_ae(self, report: AutoencoderReport) -> None:
        """The label autoencoder is saved."""

    def chose_cuts(self, report: CutReport) -> None:
        """The cuts for the new label autoencoder are in labelkin.toml."""

    def left_cuts(self, reason: str) -> None:
        """The cuts in labelkin.toml stay as they are, for a reason."""

    def trained_reranker(self, report: RerankReport) -> None:
        """The reranker is saved."""


def is_first_process() -> bool:
    """Whether this is the first, or only, process that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"
