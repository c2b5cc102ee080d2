"""`labelkin train`: everything that a collection can learn, in one command."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from labelkin.cli.console import print_json
from labelkin.cli.options import CollectionPath, CorpusFormat, Json, RepresentationName
from labelkin.cli.train_label_ae import is_first
from labelkin.cli.train_reranker import read_tuning
from labelkin.cli.training import Training


class Device(StrEnum):
    """Where to compute."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class Only(StrEnum):
    """What can be trained alone."""

    LABEL_AE = "label-ae"
    RERANK = "rerank"


def train(
    collection: CollectionPath,
    tune: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Documents with labels, not in the collection, that new ones will resemble: the "
            "reranker learns from them too. Repeatable.",
        ),
    ] = None,
    only: Annotated[Only | None, typer.Option(help="Train only this.")] = None,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="A linear classifier per heading as one more signal."),
    ] = False,
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
        typer.Option(
            min=0, metavar="MINUTES", help="Train the label autoencoder no longer than this."
        ),
    ] = 0.0,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.AUTO,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed, another model.")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with an autoencoder whose training was interrupted."),
    ] = False,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Train the label autoencoder and the reranker with its calibration.

    `rerank` becomes the default method if it does better than votes on documents kept aside.
    """
    if start_from is None and epochs == 0:
        raise typer.BadParameter("--epochs 0 needs --from: there is no model to take as it is")
    if start_from is not None and preset is not None:
        raise typer.BadParameter("give --preset or --from: the layers are those of the model")
    if epochs == 0 and resume:
        raise typer.BadParameter("--epochs 0 trains nothing that --resume could go on with")
    if only == Only.LABEL_AE and (tune or linear):
        raise typer.BadParameter("--tune and --linear are for the reranker")
    if only == Only.RERANK and (preset or epochs is not None or start_from or resume):
        raise typer.BadParameter(
            "--preset, --epochs, --from and --resume are for the label autoencoder"
        )
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.indexer import Indexer
    from labelkin.rerank.settings import LearningSettings

    with Indexer.open(collection) as indexer:
        given = {"preset": preset, "epochs": epochs, "seed": seed}
        changes = {name: value for name, value in given.items() if value is not None}
        label_ae = replace(
            TrainingSettings.from_config(indexer.config),
            **changes,  # type: ignore[arg-type]
            device=device.value,
            minutes=time_budget,
        )
        reranker = LearningSettings.from_config(indexer.config)
        reranker = replace(
            reranker,
            linear=linear or reranker.linear,
            seed=reranker.seed if seed is None else seed,
        )
        training = Training(
            indexer,
            None if only == Only.RERANK else label_ae,
            None if only == Only.LABEL_AE else reranker,
            read_tuning(indexer, tune or (), format),
            start_from=start_from,
        )
        training.run(representation, resume=resume, show=not json)
        if json and is_first():
            print_json(training.as_json())
