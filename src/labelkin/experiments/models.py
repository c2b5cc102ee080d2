"""The stage that trains a label autoencoder."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.exceptions import ModelError
from labelkin.experiments.preparation import CollectionStage
from labelkin.experiments.stage import Progress, Stage

if TYPE_CHECKING:
    from labelkin.autoencoder.model import ModelInfo
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.experiments.run_context import RunContext


# Rough estimate: seconds per epoch and thousand documents.
_EPOCH = 2.0


class ModelStage(Stage):
    """Trains a label autoencoder into a model folder."""

    kind = "model"
    _suffix = ""

    def __init__(
        self, work: Path, name: str, settings: TrainingSettings, collection: CollectionStage
    ) -> None:
        self.name = name
        self.settings = settings
        self.collection = collection
        subject = f"{name}, {collection.subject}"
        super().__init__(work, subject, asdict(settings), (collection,))
        self.expected = settings.minutes * 60 or _EPOCH * settings.epochs * collection.count / 1000

    def info(self) -> ModelInfo | None:
        """The content of `model.json`; None if there is no model."""
        from labelkin.autoencoder.model import LabelModel

        try:
            return LabelModel(self.path).info
        except ModelError:
            return None

    def history(self) -> list[dict[str, float]]:
        """The course of training, an entry per epoch."""
        with (self.path / "training.csv").open(encoding="utf-8") as file:
            return [
                {name: float(value) for name, value in line.items() if value}
                for line in csv.DictReader(file)
            ]

    def is_done(self) -> bool:
        """Whether there is a model with these settings that fits the collection's size."""
        info = self.info()
        if info is None:
            return False
        # A resumed training has a lower time limit: what was left of it.
        minutes = info.settings.get("minutes", 0.0)
        same = {**info.settings, "minutes": self.settings.minutes} == asdict(self.settings)
        documents = info.data["documents"] + info.data["held_out"]
        return (
            same
            and minutes <= self.settings.minutes
            and documents <= self.collection.record().get("documents", documents)
        )

    def run(self, context: RunContext, progress: Progress) -> None:
        """Train, or resume from the last checkpoint."""
        from labelkin.autoencoder.fitting import fit_label_model
        from labelkin.autoencoder.training_data import make_training_data

        indexer = context.indexer(self.collection)
        snapshot = indexer.snapshot()
        data = make_training_data(
            snapshot.label_sets(),
            snapshot.generation().next_column,
            snapshot.tombstones(),
            held_out=self.settings.held_out,
            min_frequency=self.settings.min_frequency,
            seed=self.settings.seed,
        )
        seconds = self._seconds_before()
        minutes = self.settings.minutes
        if minutes and seconds:
            minutes = max(minutes - seconds / 60, 0.05)
        try:
            fit_label_model(
                data,
                snapshot.vocabulary,
                replace(self.settings, minutes=minutes),
                self.path,
                resume=seconds > 0,
                watcher=lambda state: progress(
                    round(1000 * state.share),
                    1000,
                    f"epoch {state.epoch}, loss {state.loss:.2f}",
                ),
            )
        except KeyboardInterrupt:
            # Drops the message, which names `train --resume`: here the same command resumes.
            raise KeyboardInterrupt from None

    def _seconds_before(self) -> float:
        """The training time of the checkpoint; 0 without one."""
        path = self.path / "checkpoint" / "checkpoint.json"
        try:
            return max(float(json.loads(path.read_text(encoding="utf-8"))["seconds"]), 1e-3)
        except (OSError, ValueError, KeyError):
            return 0.0
