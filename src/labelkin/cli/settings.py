"""Settings of the method: those of labelkin.toml, changed by what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from labelkin.cli.console import counted, tell
from labelkin.cli.options import Method

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings
    from labelkin.store import Config


def asked_settings(
    config: Config,
    method: Method | None = None,
    *,
    k: int | None = None,
    weighting: str | None = None,
    limit: int | None = None,
    threshold: float | None = None,
    accept: float | None = None,
    review: float | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    lenient: bool = False,
) -> Settings:
    """The settings to suggest headings with.

    A limit replaces the count, `include` the list of labelkin.toml, `exclude`
    adds to it. What is not for the method is refused, unless `lenient`.
    """
    from labelkin.scoring.settings import Settings

    settings = Settings.from_config(config, method.value if method else None)
    if settings.method != "rerank" and (accept is not None or review is not None):
        raise typer.BadParameter("--accept and --review are for the method rerank")
    if settings.method in ("lexical", "rerank") and not lenient:
        for option, value in (("-k", k), ("--weighting", weighting)):
            if value is not None:
                raise typer.BadParameter(f"{option} is not for the method {settings.method}")
    return settings.changed(
        k=k,
        weighting=weighting,
        limit=limit,
        threshold=threshold,
        accept=accept,
        review=review,
        include=tuple(include) if include else None,
        exclude=(*settings.knn.exclude, *exclude) if exclude else None,
    )


def down_to_review(indexer: Indexer, settings: Settings) -> Settings:
    """With a threshold that does not keep back what passes the review bar of `rerank`."""
    from labelkin.rerank.model import reranker_info
    from labelkin.rerank.open import reranker_folder

    calibration = reranker_info(reranker_folder(indexer.collection)).calibration
    bar = min(settings.rerank.threshold, calibration.threshold(settings.rerank.review))
    return settings.changed(threshold=bar)


def tell_known_documents(
    indexer: Indexer, documents: Sequence[Document], settings: Sequence[Settings]
) -> None:
    """Say which of the documents to measure on are in the collection itself."""
    known = len(indexer.collection.rows_of([document.id for document in documents]))
    if known:
        tell(f"{counted(known, 'document')} in the collection itself, searched leave-one-out.")
        if any(one.learned for one in settings):
            tell("What was trained on them knows their headings: expect less of new documents.")


def tell_unknown_labels(indexer: Indexer, settings: Sequence[Settings]) -> None:
    """Say how many labels of the collection its model has never seen."""
    if all(one.method in ("knn", "lexical", "rerank") for one in settings):
        return
    from labelkin.scoring.label_ae import LabelAe

    model = indexer.method(replace(settings[0], method="label-ae"))
    unknown = model.unknown_labels() if isinstance(model, LabelAe) else 0
    if unknown:
        tell(
            f"{counted(unknown, 'heading')} left out by the label autoencoder: in none of the "
            "documents that it was trained on."
        )
