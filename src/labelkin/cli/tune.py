"""`labelkin tune`: the settings that do best on documents set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, print_json, print_table, tell
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    RepresentationName,
)
from labelkin.cli.progress import meter

if TYPE_CHECKING:
    from labelkin.evaluate.sweep import Trial

_SHOWN = 10


def tune(
    collection: CollectionPath,
    files: CorpusFiles,
    measure: Annotated[str, typer.Option(help="The measure to do best on.")] = "MiF",
    write: Annotated[
        bool, typer.Option("--write", help="Write the best settings into labelkin.toml.")
    ] = False,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Sweep k, weighting, count and threshold over neighbours that are found once.

    For representations that are fused, the way and the weights are chosen first.
    """
    from labelkin.corpus import read_corpus
    from labelkin.evaluate import parse_measure
    from labelkin.exceptions import InputError
    from labelkin.indexer import Indexer
    from labelkin.store.config import CONFIG_NAME, update_config

    asked = parse_measure(measure)
    documents = [d for d in read_corpus(*files, format=format).documents() if d.labels]
    if not documents:
        raise InputError("no document with labels to tune on")
    with Indexer.open(collection) as indexer:
        build_with_progress(indexer, representation)
        with meter("Sweeping", 0) as bar:
            trials = indexer.tune(
                documents,
                asked,
                representation=representation,
                progress=lambda done, total: bar.update(done, f"{done} of {total}"),
            )
        best = trials[0].settings
        if write:
            changes: dict[str, dict[str, object]] = {
                "neighbours": {"k": best.k},
                "suggest": {
                    "weighting": best.weighting,
                    "count": best.count or "none",
                    "threshold": best.threshold,
                    "limit": 0,
                },
            }
            if representation is not None:
                changes["representation"] = {"name": representation}
            if (fusion := trials[0].fusion) is not None:
                changes["fusion"] = {"method": fusion.method, "weights": list(fusion.weights)}
            update_config(indexer.collection.path / CONFIG_NAME, changes)
    if json:
        print_json([{**_as_row(trial, asked.name), **_fusion(trial)} for trial in trials])
    else:
        tell(f"{counted(len(trials), 'setting')} on {counted(len(documents), 'document')}:")
        rows = [[str(cell) for cell in _as_row(trial, asked.name).values()] for trial in trials]
        names = ["k", "weighting", "count", "threshold", asked.name]
        columns = [(name, name not in ("weighting", "count")) for name in names]
        if trials and (fusion := trials[0].fusion) is not None:
            weights = " ".join(f"{weight:g}" for weight in fusion.weights)
            tell(f"Fused by {fusion.method} with weights {weights}.")
        print_table("", columns, rows[:_SHOWN])
    if write:
        tell(f"Wrote the best into {collection / CONFIG_NAME}.")


def _as_row(trial: Trial, measure: str) -> dict[str, object]:
    settings = trial.settings
    return {
        "k": settings.k,
        "weighting": settings.weighting,
        "count": settings.count or "none",
        "threshold": settings.threshold,
        measure: round(trial.value, 4),
    }


def _fusion(trial: Trial) -> dict[str, object]:
    if trial.fusion is None:
        return {}
    return {"fusion": trial.fusion.method, "weights": trial.fusion.weights}
