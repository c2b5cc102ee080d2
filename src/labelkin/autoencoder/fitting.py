"""From a collection's label sets to a trained model in its folder."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import platform
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin._version import __version__
from labelkin.autoencoder.architecture import Architecture, make_architecture
from labelkin.autoencoder.card import draw_curves, model_card
from labelkin.autoencoder.model import ModelInfo, save_model, vocabulary_fingerprint
from labelkin.autoencoder.origin import Origin
from labelkin.autoencoder.training_data import TrainingData
from labelkin.exceptions import CollectionBusyError, MissingExtraError, TrainingError
from labelkin.store.locks import FileLock

if TYPE_CHECKING:
    from labelkin.autoencoder.training import TrainedNetwork, Trainer, Watcher
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingReport:
    """What a training did."""

    info: ModelInfo
    folder: Path

    @property
    def validation(self) -> dict[str, float]:
        """The figures of the weights that were kept; none where nothing was trained."""
        best: dict[str, float] = self.info.training.get("best", {})
        return best


def fit_label_model(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    folder: Path,
    *,
    origin: Origin | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> TrainingReport | None:
    """Train on `data` and make the result the model in `folder`.

    Training starts from `origin` if there is one. Among several processes only
    the first writes and gets a report. With `resume` an interrupted training
    goes on where its last checkpoint was.
    """
    trainer = _trainer_class()(data, settings, folder, origin)
    if not trainer.workers.is_first:
        if resume:
            trainer.resume()
        trainer.run()
        trainer.forget()
        return None
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".training.lock")
    with lock:
        _require(lock, folder)
        if resume:
            trainer.resume()
        elif trainer.checkpoints.exists():
            logger.warning("%s: an unfinished training is dropped", folder)
            trainer.checkpoints.remove()
        info = _written(data, vocabulary, settings, trainer, trainer.run(watcher))
        trainer.forget()
    return TrainingReport(info, folder)


def take_over_model(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    folder: Path,
    origin: Origin,
) -> TrainingReport:
    """Make `origin` the model in `folder` as it is, its labels matched; needs no torch."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".training.lock")
    with lock:
        _require(lock, folder)
        info = replace(
            _info(data, vocabulary, settings, origin.model.info.architecture, origin),
            data=origin.model.info.data,
            training={"epochs": 0, "seconds": 0.0},
            versions=_versions("numpy"),
        )
        save_model(folder, info, origin.tensors(data), model_card(info))
        for course in ("training.csv", "training.png"):
            (folder / course).unlink(missing_ok=True)
    return TrainingReport(info, folder)


def _require(lock: FileLock, folder: Path) -> None:
    if not lock.take():
        raise CollectionBusyError(f"{folder}: another process is training")


def check_torch() -> None:
    """Raise where training is not possible for want of torch."""
    _trainer_class()


def check_training(
    data: TrainingData, settings: TrainingSettings, folder: Path, *, resume: bool
) -> None:
    """Raise what `fit_label_model` would, before anything expensive is done."""
    if settings.epochs < 1:
        raise TrainingError("0 epochs only take over the model that training would start from")
    _trainer_class()
    from labelkin.autoencoder.workers import find_device

    find_device(settings.device)
    make_architecture(settings.preset, data.labels, len(data.rows))
    if resume and not (folder / "checkpoint").is_dir():
        raise TrainingError(f"{folder / 'checkpoint'}: nothing to resume; train afresh")


def _written(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    trainer: Trainer,
    network: TrainedNetwork,
) -> ModelInfo:
    """Write the trained network down; what `model.json` says of it."""
    info = replace(
        _info(data, vocabulary, settings, network.architecture, trainer.origin),
        training={
            "epochs": len(network.history),
            "best_epoch": network.best_epoch,
            "best": network.history[network.best_epoch - 1],
            "seconds": round(network.seconds, 1),
            "stopped": network.stopped,
            "processes": trainer.workers.count,
            "device": trainer.device.type,
        },
        versions=_versions("numpy", "torch"),
    )
    folder = trainer.log.parent
    draw_curves(network.history, folder / "training.png")
    save_model(folder, info, network.tensors, model_card(info))
    return info


def _info(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    architecture: Architecture,
    origin: Origin | None,
) -> ModelInfo:
    """What is known of a model before it is trained."""
    return ModelInfo(
        architecture=architecture,
        labels=tuple(vocabulary[int(column)].id for column in data.columns.columns),
        vocabulary=vocabulary_fingerprint([concept.id for concept in vocabulary]),
        seed=settings.seed,
        settings=asdict(settings),
        data=_statistics(data),
        origin={} if origin is None else origin.to_json(data),
    )


def _versions(*libraries: str) -> dict[str, str]:
    return {
        "labelkin": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in libraries},
    }


def _trainer_class() -> Any:
    # Threads that wait for one another should not keep busy cores from those that work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from labelkin.autoencoder.training import Trainer
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("training needs torch: pip install 'labelkin[train]'") from error
    return Trainer


def _statistics(data: TrainingData) -> dict[str, Any]:
    return {
        "documents": len(data.rows),
        "held_out": len(data.held_out),
        "labels": data.labels,
        "label_occurrences": int(data.frequencies.sum()),
        "labels_seen_once": int(np.count_nonzero(data.frequencies == 1)),
        "left_out": data.left_out,
        "documents_with_neighbours": 0 if data.neighbours is None else len(data.neighbours.rows),
    }
