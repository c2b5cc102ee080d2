"""Training the label autoencoder under progress bars, and what is said of it afterwards."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.cli.console import counted, print_facts, seconds_text, tell
from labelkin.cli.progress import Stages
from labelkin.exceptions import CollectionBusyError

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import TrainingReport
    from labelkin.autoencoder.training import TrainingProgress
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.indexer import Indexer
    from labelkin.store.held_out import HeldOut


def is_first() -> bool:
    """Whether this is the first, or only, process that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


def wait_for_index(indexer: Indexer, representation: str | None) -> None:
    """Let the first process build what is missing."""
    while True:
        try:
            indexer.build(representation)
        except CollectionBusyError:
            time.sleep(1)
        else:
            return


def train_label_ae(
    indexer: Indexer,
    settings: TrainingSettings,
    representation: str | None = None,
    *,
    start_from: Path | None = None,
    held_out: HeldOut | None = None,
    resume: bool = False,
) -> TrainingReport | None:
    """Train under progress bars; None in all processes but the first."""
    if not is_first():
        return indexer.train(
            settings,
            representation=representation,
            start_from=start_from,
            held_out=held_out,
            resume=resume,
        )
    with Stages() as stages:

        def watch(progress: TrainingProgress) -> None:
            bar = stages.at("Training", 1000)
            bar.update(round(1000 * progress.share), _line(progress))

        return indexer.train(
            settings,
            representation=representation,
            start_from=start_from,
            held_out=held_out,
            resume=resume,
            watcher=watch,
            progress=lambda done, total: stages.at("Finding neighbours", total).update(
                done, counted(done, "document")
            ),
        )


def _line(progress: TrainingProgress) -> str:
    """Epoch, loss, MiF of label sets kept aside, documents a second: fits a narrow terminal."""
    score = "" if progress.last is None else f", MiF {progress.last['MiF']:.3f}"
    return (
        f"epoch {progress.epoch}/{progress.epochs}, loss {progress.loss:.2f}{score}, "
        f"{progress.documents_per_second:,.0f}/s"
    )


def print_label_ae(report: TrainingReport) -> None:
    """What was trained, and how good it is on label sets kept aside."""
    info = report.info
    architecture, training, best = info.architecture, info.training, report.validation
    facts = [
        ("Layers", f"{architecture.sizes} over {counted(len(info.labels), 'heading')}"),
        ("Parameters", f"{architecture.trainable_parameters(len(info.labels)):,}"),
    ]
    if not best:
        print_facts(facts)
        tell(f"Taken over as it is: {report.folder}.")
        return
    facts += [
        ("Epochs", f"{training['epochs']}, best {training['best_epoch']}"),
        ("Stopped by", training["stopped"]),
        ("Reconstruction", f"MiF {best['MiF']:.4f} of label sets kept aside, at 0.5"),
    ]
    if "predicted_MiF" in best:
        facts.append(("Prediction", f"MiF {best['predicted_MiF']:.4f} from 20 neighbours, at 0.5"))
    print_facts(facts)
    tell(f"Trained in {seconds_text(training['seconds'])}: {report.folder}.")
