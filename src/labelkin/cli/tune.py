"""`labelkin tune`: the settings that do best on documents set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, print_json, print_table, tell
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    MethodName,
    RepresentationName,
)
from labelkin.cli.progress import meter
from labelkin.cli.settings import asked_settings, tell_known_documents

if TYPE_CHECKING:
    from labelkin.evaluate.sweep import Trial
    from labelkin.scoring.settings import Settings

_SHOWN = 10
_WORDS = ("weighting", "distance", "count")


def tune(
    collection: CollectionPath,
    files: CorpusFiles,
    measure: Annotated[str, typer.Option(help="The measure to do best on.")] = "MiF",
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

    For representations that are fused, the way and the weights are chosen first.
    """
    from labelkin.corpus import read_corpus
    from labelkin.evaluate import parse_measure
    from labelkin.exceptions import InputError
    from labelkin.indexer import Indexer
    from labelkin.store.config import CONFIG_NAME, update_config

    asked = parse_measure(measure)
    asked.check_goal()
    corpus = read_corpus(*files, format=format, label_separator=label_separator)
    documents = [document for document in corpus.documents() if document.labels]
    if not documents:
        raise InputError("no document with labels to tune on")
    with Indexer.open(collection) as indexer:
        settings = asked_settings(indexer.config, method)
        if settings.k:
            if not indexer.collection.count():
                raise InputError(f"{collection}: no documents to find neighbours among; add some")
            build_with_progress(indexer, representation)
        tell_known_documents(indexer, documents, [settings])
        with meter("Sweeping", 0) as bar:
            trials = indexer.tune(
                documents,
                asked,
                method=method.value if method else None,
                representation=representation,
                progress=lambda done, total: bar.update(done, f"{done} of {total}"),
            )
        best = trials[0].settings
        if write:
            changes = _as_config(best)
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
        tell(f"{counted(len(trials), 'setting')} on {counted(len(documents), 'document')}:")
        rows = [
            [*map(str, _tried(trial).values()), f"{trial.value:.4f}"] for trial in trials[:_SHOWN]
        ]
        names = [*_tried(trials[0]), asked.name]
        columns = [(name, name not in _WORDS) for name in names]
        if (fusion := trials[0].fusion) is not None:
            weights = " ".join(f"{weight:g}" for weight in fusion.weights)
            tell(f"Fused by {fusion.method} with weights {weights}.")
        print_table("", columns, rows)
    if write:
        tell(f"Wrote the best into {collection / CONFIG_NAME}.")
    exit_after_reading(corpus.report, strict=False)


def _tried(trial: Trial) -> dict[str, object]:
    """What was tried."""
    settings = trial.settings
    if settings.method == "mix-ranked":
        mix = settings.mix
        return {"share": mix.share, "count": mix.count or "none", "threshold": mix.threshold}
    if settings.method == "lexical":
        return {"threshold": settings.lexical.threshold}
    if settings.method == "rerank":
        cut = settings.rerank
        return {"count": cut.count or "none", "threshold": cut.threshold}
    if settings.method == "mix":
        return {"threshold": settings.label_ae.threshold}
    scorer = settings.knn if settings.method == "knn" else settings.label_ae
    return {
        "k": scorer.k,
        "weighting": scorer.weighting,
        "distance": scorer.distance,
        "count": scorer.count or "none",
        "threshold": scorer.threshold,
    }


def _as_config(best: Settings) -> dict[str, dict[str, object]]:
    """The changes of labelkin.toml that make `best` the settings."""
    knn, label_ae, mix = best.knn, best.label_ae, best.mix
    if best.method == "knn":
        return {
            "neighbours": {"k": knn.k},
            "suggest": {
                "weighting": knn.weighting,
                "count": knn.count or "none",
                "threshold": knn.threshold,
            },
        }
    if best.method == "mix-ranked":
        cut = {"count": mix.count or "none", "threshold": mix.threshold}
        return {"mix": {"share": mix.share, **cut}}
    if best.method == "lexical":
        return {"lexical": {"threshold": best.lexical.threshold}}
    if best.method == "rerank":
        reranked = best.rerank
        return {"rerank": {"count": reranked.count or "none", "threshold": reranked.threshold}}
    return {
        "label_ae": {
            "k": label_ae.k,
            "weighting": label_ae.weighting,
            "distance": label_ae.distance,
            "count": label_ae.count or "none",
            "threshold": label_ae.threshold,
        },
    }


def _fusion(trial: Trial) -> dict[str, object]:
    if trial.fusion is None:
        return {}
    return {"fusion": trial.fusion.method, "weights": trial.fusion.weights}
