"""`labelkin train`: all models of a collection, in one command."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.cluster import ClusterProvider, OnMaster
from labelkin.cli.console import counted, print_json, print_message
from labelkin.cli.options import (
    CollectionPath,
    CorpusFormat,
    Json,
    RepresentationName,
    named_path,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labelkin.corpus import Document
    from labelkin.indexer import Indexer


class Device(StrEnum):
    """Where to compute."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class TrainingRecipe(StrEnum):
    """Which label autoencoder is trained."""

    JOINT = "joint"
    PAPER = "paper"


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
            parser=named_path,
            help="Documents with labels, not in the collection, that new ones will resemble: the "
            "reranker is trained on them too. Repeatable.",
        ),
    ] = None,
    only: Annotated[Only | None, typer.Option(help="Train only this.")] = None,
    linear: Annotated[
        bool | None,
        typer.Option(
            "--linear/--no-linear",
            help="Train linear classifiers of each heading as well: better, but twice as long. "
            "The default is that of labelkin.toml.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Give the reranker the vectors of this encoder as well: lsa, wordllama, or a "
            "sentence-transformers model. The default is that of labelkin.toml.",
        ),
    ] = None,
    recipe: Annotated[
        TrainingRecipe | None,
        typer.Option(
            help="The label autoencoder: joint reads neighbours, votes, names and words; paper "
            "averages label sets. The default is that of labelkin.toml.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="auto, or the size of the latent space; with --recipe paper: auto, small, "
            "medium, large, or three sizes such as 1024/256/64."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=0, help="At most this many epochs; 0 with --from adopts MODEL as it is."),
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
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**31 - 1, help="Another seed, another model.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted training of the autoencoder."),
    ] = False,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Teach the label autoencoder the headings of the documents added since its "
            "training; what it knows, and the reranker, stay as they are.",
        ),
    ] = False,
    if_stale: Annotated[
        bool,
        typer.Option(
            "--if-stale",
            help="Train only if it would pay: a model is missing or cannot be used, a tenth of "
            "the documents has changed, or new ones carry many headings that it does not know.",
        ),
    ] = False,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    on: OnMaster = None,
    json: Json = False,
) -> None:
    """Train the label autoencoder and the reranker with its calibration.

    `rerank` becomes the default method if it does better than votes on held-out documents. The
    cuts of label-ae, mix and mix-ranked are chosen on such documents too, unless set by hand.
    """
    if update and epochs == 0:
        raise typer.BadParameter("--update needs at least 1 epoch")
    if start_from is None and epochs == 0:
        raise typer.BadParameter("--epochs 0 needs --from: there is no model to adopt")
    if start_from is not None and preset is not None:
        raise typer.BadParameter("give --preset or --from: the layers are those of the model")
    if epochs == 0 and resume:
        raise typer.BadParameter("--epochs 0 trains nothing that --resume could continue")
    if only == Only.LABEL_AE and (tune or linear is not None or encoder is not None):
        raise typer.BadParameter("--tune, --linear and --encoder are for the reranker")
    others = (tune, only, recipe, preset, start_from, resume, time_budget)
    if update and (any(others) or linear is not None or encoder is not None or seed is not None):
        raise typer.BadParameter(
            "--update trains as the model was trained; it takes --epochs and --device"
        )
    if on is not None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise typer.BadParameter("--on is for one process: with torchrun leave it out")
    if if_stale and (update or resume or start_from is not None):
        raise typer.BadParameter(
            "--if-stale decides about a new training; leave out --update, --resume and --from"
        )
    if start_from is not None and recipe is not None:
        raise typer.BadParameter("give --recipe or --from: the recipe is that of the model")
    if only == Only.RERANK and (recipe or preset or epochs is not None or start_from or resume):
        raise typer.BadParameter(
            "--recipe, --preset, --epochs, --from and --resume are for the label autoencoder"
        )
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.cli.training_output import TrainingOutput, print_outcome, report_as_json
    from labelkin.indexer import Indexer
    from labelkin.rerank.settings import RerankTrainingSettings
    from labelkin.training_plan import is_first_process

    with Indexer.open(collection) as indexer, ExitStack() as stack:
        config = indexer.config
        documents = _read_given(indexer, tune or (), format)
        if if_stale and not _would_pay(indexer, only, len(documents), json=json):
            return
        provider = None
        if on is not None:
            provider = stack.enter_context(ClusterProvider(indexer, on))
        if update:
            _update(indexer, epochs, device.value, representation, json=json)
            if provider is not None:
                provider.finish()
            return
        given = {"preset": preset, "epochs": epochs, "seed": seed}
        changes = {name: value for name, value in given.items() if value is not None}
        label_ae = replace(
            TrainingSettings.from_config(config, None if recipe is None else recipe.value),
            **changes,  # type: ignore[arg-type]
            device=device.value,
            minutes=time_budget,
        )
        rerank = RerankTrainingSettings.from_config(config)
        rerank = replace(
            rerank,
            linear=rerank.linear if linear is None else linear,
            encoder=rerank.encoder if encoder is None else encoder,
            seed=rerank.seed if seed is None else seed,
        )
        with closing(TrainingOutput(config.rerank, show=not json)) as output:
            report = indexer.train(
                label_ae=only != Only.RERANK and label_ae,
                rerank=only != Only.LABEL_AE and rerank,
                documents=documents,
                start_from=start_from,
                resume=resume,
                representation=representation,
                observer=output,
            )
        if provider is not None:
            provider.finish()
        if not is_first_process():
            return
        print_outcome(report)
        if json:
            print_json(report_as_json(report, config.rerank))


def _would_pay(indexer: Indexer, only: Only | None, given: int, *, json: bool) -> bool:
    """Whether a training would pay; says why, or why not."""
    from labelkin.training_plan import is_first_process

    staleness = indexer.staleness(
        label_ae=only != Only.RERANK, rerank=only != Only.LABEL_AE, given=given
    )
    if is_first_process():
        begin = "Training, because" if staleness.is_stale else "Not trained:"
        print_message(f"{begin} {staleness.reason}.")
        if json and not staleness.is_stale:
            print_json({"trained": False, "reason": staleness.reason})
    return staleness.is_stale


def _update(
    indexer: Indexer, epochs: int | None, device: str, representation: str | None, *, json: bool
) -> None:
    """Train the label autoencoder further, and print what it is now."""
    from labelkin.cli.training_output import TrainingOutput, label_ae_as_json
    from labelkin.training import reranker_uses_label_ae

    with closing(TrainingOutput(indexer.config.rerank, show=not json)) as output:
        report = indexer.update_label_ae(
            epochs=epochs, device=device, representation=representation, observer=output
        )
        if report is None:
            print_message(
                "Nothing new: since the training, no heading was added or got mostly new documents."
            )
        else:
            output.trained_label_ae(report)
            if reranker_uses_label_ae(indexer.runtime):
                print_message(
                    "The reranker was trained with the label autoencoder as it was before; "
                    "`labelkin train … --only rerank` trains it again."
                )
    if json:
        print_json({"label_ae": label_ae_as_json(report)})


def _read_given(
    indexer: Indexer, files: Sequence[Path], format: str | None = None
) -> list[Document]:
    """The documents with labels in `files` that are not in the collection, by id or text.

    Those that are in it are part of the statistics that they should check.
    """
    from labelkin.corpus import read_corpus
    from labelkin.exceptions import InputError
    from labelkin.training_plan import is_first_process

    if not files:
        return []
    documents = [d for d in read_corpus(*files, format=format).documents() if d.labels]
    known = indexer.known(documents)
    if any(known) and is_first_process():
        print_message(
            f"Skipping {counted(sum(known), 'document')} to tune on: in the collection itself "
            "by id or text, so its statistics know the headings."
        )
    new = [document for document, is_known in zip(documents, known, strict=True) if not is_known]
    if not new:
        raise InputError("no document to tune on: none has labels and is not in the collection")
    return new
