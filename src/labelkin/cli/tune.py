"""`labelkin tune`: the best settings on held-out documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress, check_neighbours
from labelkin.cli.console import counted, print_json, print_message, print_table
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    MethodName,
    ReadingOptions,
    RepresentationName,
    takes,
)
from labelkin.cli.progress import meter
from labelkin.cli.settings import asked_settings, print_known_documents
from labelkin.cli.texts import read_labelled

if TYPE_CHECKING:
    from labelkin.evaluate.sweep import Trial
    from labelkin.indexer import Indexer

_SHOWN = 10
_WORDS = ("weighting", "distance", "count")


@takes(ReadingOptions, "reading")
def tune(
    collection: CollectionPath,
    files: CorpusFiles,
    reading: ReadingOptions,
    measure: Annotated[str, typer.Option(help="The measure to optimise.")] = "MiF",
    write: Annotated[
        bool, typer.Option("--write", help="Write the best settings into labelkin.toml.")
    ] = False,
    method: MethodName = None,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    json: Json = False,
) -> None:
    """Sweep a method's settings over neighbours that are found once.

    For fused representations, the fusion and its weights are chosen first.
    """
    from labelkin.evaluate import parse_measure
    from labelkin.evaluate.gold import unknown_labels
    from labelkin.exceptions import InputError
    from labelkin.indexer import Indexer
    from labelkin.store.config import CONFIG_NAME, update_config

    asked = parse_measure(measure)
    asked.check_goal()
    documents, corpus = read_labelled(files, "tune", format, label_separator, reading)
    with Indexer.open(collection) as indexer:
        if write:
            _check_writable(indexer, collection)
        settings = asked_settings(indexer, method)
        if settings.k:
            check_neighbours(indexer)
        unknown = unknown_labels(documents, indexer.vocabulary).total()
        if unknown == sum(len(document.labels) for document in documents):
            raise InputError(
                "no label of these documents is in the vocabulary, so all settings are equally "
                "good; check the labels with `labelkin vocab search`"
            )
        if settings.k:
            build_with_progress(indexer, representation, [settings])
        print_known_documents(indexer, documents, [settings])
        with meter("Sweeping", 0) as bar:
            trials = indexer.tune(
                documents,
                asked,
                method=method,
                representation=representation,
                progress=lambda done, total: bar.update(done, f"{done} of {total}"),
            )
        best = trials[0].settings
        if write:
            changes = best.implementation.as_config(best)
            if representation is not None:
                changes["representation"] = {"name": representation}
            if (fusion := trials[0].fusion) is not None:
                changes["fusion"] = {"method": fusion.method, "weights": list(fusion.weights)}
            update_config(indexer.collection.path / CONFIG_NAME, changes)
    if json:
        print_json(
            [
                {**_tried(trial), asked.name: round(trial.value, 4), **_fusion(trial)}
                for trial in trials
            ]
        )
    else:
        print_message(
            f"{counted(len(trials), 'setting')} on {counted(len(documents), 'document')}:"
        )
        rows = [
            [*map(str, _tried(trial).values()), f"{trial.value:.4f}"] for trial in trials[:_SHOWN]
        ]
        names = [*_tried(trials[0]), asked.name]
        columns = [(name, name not in _WORDS) for name in names]
        if (fusion := trials[0].fusion) is not None:
            weights = " ".join(f"{weight:g}" for weight in fusion.weights)
            print_message(f"Fused by {fusion.method} with weights {weights}.")
        print_table("", columns, rows)
    if write:
        print_message(f"Wrote the best settings to {collection / CONFIG_NAME}.")
    exit_after_reading(corpus.report, strict=False)


def _check_writable(indexer: Indexer, collection: Path) -> None:
    """Raise before the sweep if its outcome could not be written."""
    from labelkin.exceptions import CollectionReadOnlyError

    if indexer.collection.read_only or not os.access(indexer.collection.path, os.W_OK):
        raise CollectionReadOnlyError(
            f"{collection}: the collection cannot be written to; tune without --write and copy "
            "the best settings, or change its permissions"
        )


def _tried(trial: Trial) -> dict[str, object]:
    """The settings of a trial."""
    return trial.settings.implementation.swept(trial.settings)


def _fusion(trial: Trial) -> dict[str, object]:
    if trial.fusion is None:
        return {}
    return {"fusion": trial.fusion.method, "weights": trial.fusion.weights}
