"""Training a label autoencoder on a collection's label sets, and saving it."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.autoencoder.architecture import AnyArchitecture
from labelkin.autoencoder.card import draw_curves, model_card
from labelkin.autoencoder.model import (
    LabelModel,
    ModelInfo,
    save_model,
    vocabulary_fingerprint,
)
from labelkin.autoencoder.origin import Origin
from labelkin.autoencoder.training_data import Integers, TrainingData
from labelkin.exceptions import CollectionBusyError, MissingExtraError, TrainingError
from labelkin.store.models import software_versions, training_lock

if TYPE_CHECKING:
    from labelkin.autoencoder.training import TrainedNetwork, Trainer, Watcher
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AutoencoderReport:
    """The result of training the label autoencoder; `held_out` are the rows it validated with."""

    info: ModelInfo
    folder: Path
    held_out: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def validation(self) -> dict[str, float]:
        """The measures of the best epoch; empty if nothing was trained."""
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
    is_alone: bool = False,
    is_resumable: bool = True,
    recorded: TrainingSettings | None = None,
) -> AutoencoderReport | None:
    """Train on `data` and make the result the model in `folder`.

    Training starts from `origin` if there is one. Among several processes only
    the first writes and gets a report, unless this one trains alone. With `resume`
    an interrupted training continues from its last checkpoint; one that is not
    `is_resumable` leaves none. `recorded` are the settings of the next training, if
    others than those of this one.
    """
    trainer = _trainer_class()(
        data, settings, folder, origin, is_alone=is_alone, is_resumable=is_resumable
    )
    if not trainer.workers.is_first:
        if resume:
            trainer.resume()
        trainer.run()
        trainer.forget()
        return None
    with training_lock(folder):
        if origin is not None:
            _check_current(origin, folder)
        if resume:
            trainer.resume()
        elif trainer.checkpoints.exists():
            logger.warning("%s: discarding an unfinished training", folder)
            trainer.checkpoints.remove()
        try:
            network = trainer.run(watcher)
        except BaseException:
            if not is_resumable:
                trainer.checkpoints.remove()
            raise
        info = _written(data, vocabulary, recorded or settings, trainer, network)
        trainer.forget()
    return AutoencoderReport(info, folder, data.held_out)


def _check_current(origin: Origin, folder: Path) -> None:
    """Raise CollectionBusyError if `folder` had the model to start from and has another now."""
    model = origin.model
    if model.folder == folder and LabelModel.checksum_of(folder) != model.checksum:
        raise CollectionBusyError(
            f"{folder}: the model has been trained anew meanwhile; run the same command again"
        )


def adopt_model(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    folder: Path,
    origin: Origin,
    *,
    is_own: bool,
) -> AutoencoderReport:
    """Make `origin` the model in `folder` as it is, with labels matched; needs no torch.

    Unless `is_own`, it is of another collection and may have seen any text of this one.
    """
    with training_lock(folder):
        info = replace(
            _info(data, vocabulary, settings, origin.model.info.architecture, origin),
            data=dict(origin.model.info.data) | ({} if is_own else {"left_out": None}),
            training={"epochs": 0, "seconds": 0.0},
            versions=software_versions("numpy"),
        )
        save_model(folder, info, origin.tensors(data), model_card(info))
        for name in ("training.csv", "training.png"):
            (folder / name).unlink(missing_ok=True)
    return AutoencoderReport(info, folder, data.held_out)


def check_torch() -> None:
    """Raise MissingExtraError if torch is not installed."""
    _trainer_class()


def check_training(
    data: TrainingData, settings: TrainingSettings, folder: Path, *, resume: bool
) -> None:
    """Raise what `fit_label_model` would, before anything expensive is done."""
    if settings.epochs < 1:
        raise TrainingError(
            "training needs at least 1 epoch; 0 epochs only adopt a model to start from"
        )
    _trainer_class()
    from labelkin.autoencoder.workers import find_device

    find_device(settings.device)
    settings.check_preset(data.labels, len(data.rows))
    if resume and not (folder / "checkpoint").is_dir():
        raise TrainingError(f"{folder / 'checkpoint'}: nothing to resume; start a new training")


def _written(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    trainer: Trainer,
    network: TrainedNetwork,
) -> ModelInfo:
    """Save the trained network; returns the content of `model.json`."""
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
        versions=software_versions("numpy", "torch"),
    )
    folder = trainer.log.parent
    draw_curves(network.history, folder / "training.png")
    save_model(folder, info, network.tensors, model_card(info))
    return info


def _info(
    data: TrainingData,
    vocabulary: Vocabulary,
    settings: TrainingSettings,
    architecture: AnyArchitecture,
    origin: Origin | None,
) -> ModelInfo:
    """The description of a model before it is trained."""
    return ModelInfo(
        architecture=architecture,
        labels=tuple(vocabulary[int(column)].id for column in data.columns.columns),
        vocabulary=vocabulary_fingerprint([concept.id for concept in vocabulary]),
        seed=settings.seed,
        settings=asdict(settings),
        data=_statistics(data),
        origin={} if origin is None else origin.to_json(data),
    )


def _trainer_class() -> Any:
    try:
        from labelkin.autoencoder.training import Trainer
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("training needs torch: pip install 'labelkin[train]'") from error
    return Trainer


def _statistics(data: TrainingData) -> dict[str, Any]:
    return {
        # An update sees some of them again; the model knows all.
        "documents": data.documents - len(data.held_out),
        "held_out": len(data.held_out),
        "labels": data.labels,
        "label_occurrences": int(data.frequencies.sum()),
        "labels_seen_once": int(np.count_nonzero(data.frequencies == 1)),
        "left_out": data.left_out,
        "state": data.state,
        "documents_with_neighbours": 0 if data.neighbours is None else len(data.neighbours.rows),
    }
