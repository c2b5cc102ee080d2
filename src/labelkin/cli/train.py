"""`labelkin train`: the label autoencoder of a collection."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, print_facts, print_json, seconds_text, tell
from labelkin.cli.options import CollectionPath, Json, RepresentationName
from labelkin.cli.progress import Stages
from labelkin.exceptions import CollectionBusyError

if TYPE_CHECKING:
    from labelkin.indexer import Indexer
    from labelkin.labels.fitting import TrainingReport
    from labelkin.labels.training import TrainingProgress
    from labelkin.labels.training_settings import TrainingSettings


class Device(StrEnum):
    """Where to compute."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


def train(
    collection: CollectionPath,
    preset: Annotated[
        str | None,
        typer.Option(help="auto, small, medium, large, or three sizes such as 1024/256/64."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=0, help="At most this many rounds; 0 with --from takes MODEL as it is."),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Start from this model: a model folder, or a collection that has one. Headings "
            "are matched by concept id; the layers are the model's.",
        ),
    ] = None,
    time_budget: Annotated[
        float,
        typer.Option(min=0, metavar="MINUTES", help="Train no longer than this."),
    ] = 0.0,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.AUTO,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed, another model.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was interrupted.")
    ] = False,
    representation: RepresentationName = None,
    json: Json = False,
) -> None:
    """Train the label autoencoder, for the methods label-ae, mix and mix-ranked."""
    if start_from is None and epochs == 0:
        raise typer.BadParameter("--epochs 0 needs --from: there is no model to take as it is")
    if start_from is not None and preset is not None:
        raise typer.BadParameter("give --preset or --from: the layers are those of the model")
    if epochs == 0 and resume:
        raise typer.BadParameter("--epochs 0 trains nothing that --resume could go on with")
    from labelkin.indexer import Indexer
    from labelkin.labels.training_settings import TrainingSettings

    with Indexer.open(collection) as indexer:
        settings = TrainingSettings.from_config(indexer.config)
        given = {"preset": preset, "epochs": epochs, "seed": seed}
        changes = {name: value for name, value in given.items() if value is not None}
        settings = replace(settings, **changes, device=device.value, minutes=time_budget)  # type: ignore[arg-type]
        if settings.epochs and _is_first():
            build_with_progress(indexer, representation)
        elif settings.epochs:
            _wait_for_index(indexer, representation)
        report = train_with_progress(
            indexer, settings, representation, start_from=start_from, resume=resume
        )
    if report is None:
        return
    if json:
        print_json(report.info.to_json() | {"labels": len(report.info.labels)})
    else:
        print_report(report)


def _is_first() -> bool:
    """Whether this is the first, or only, process that torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


def _wait_for_index(indexer: Indexer, representation: str | None) -> None:
    """Let the first process build what is missing."""
    while True:
        try:
            indexer.build(representation)
        except CollectionBusyError:
            time.sleep(1)
        else:
            return


def train_with_progress(
    indexer: Indexer,
    settings: TrainingSettings,
    representation: str | None = None,
    *,
    start_from: Path | None = None,
    resume: bool = False,
) -> TrainingReport | None:
    """Train under progress bars; None in all processes but the first."""
    if not _is_first():
        return indexer.train(
            settings, representation=representation, start_from=start_from, resume=resume
        )
    with Stages() as stages:

        def watch(progress: TrainingProgress) -> None:
            bar = stages.at("Training", 1000)
            bar.update(round(1000 * progress.share), _line(progress))

        return indexer.train(
            settings,
            representation=representation,
            start_from=start_from,
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


def print_report(report: TrainingReport) -> None:
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
