"""Settings of a request: those of labelkin.toml, changed by the options of a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from labelkin.cli.console import counted, print_message

if TYPE_CHECKING:
    from collections import Counter

    from labelkin.cli.options import SuggestionOptions
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings
    from labelkin.store import Config


def asked_settings(
    config: Config,
    method: str | None = None,
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
    adds to it. Options that do not apply to the method are refused, unless
    `lenient`.
    """
    from labelkin.scoring.settings import Settings
    from labelkin.scoring.votes import WEIGHTINGS

    if method is not None:
        check_method(method)
    settings = Settings.from_config(config, method)
    if settings.method != "rerank" and (accept is not None or review is not None):
        raise typer.BadParameter("--accept and --review are for the method rerank")
    if accept is not None and review is not None and accept < review:
        raise typer.BadParameter(
            f"--accept {accept:g} is lower than --review {review:g}: accepted headings are also "
            "shown"
        )
    if accept is None and review is not None and review > settings.rerank.accept:
        accept = review
    if not settings.implementation.votes and not lenient:
        for option, value in (("-k", k), ("--weighting", weighting)):
            if value is not None:
                raise typer.BadParameter(f"{option} is not for the method {settings.method}")
    chosen = next((one for one in WEIGHTINGS if one == weighting), None)
    if weighting is not None and chosen is None:
        raise typer.BadParameter(f"no weighting {weighting!r}; known: {', '.join(WEIGHTINGS)}")
    return settings.changed(
        k=k,
        weighting=chosen,
        limit=limit,
        threshold=threshold,
        accept=accept,
        review=review,
        include=tuple(include) if include else None,
        exclude=(*settings.exclude, *exclude) if exclude else None,
    )


def suggestion_settings(indexer: Indexer, asked: SuggestionOptions) -> Settings:
    """The settings that the options of `suggest` and `annotate` ask for.

    `--review` alone lowers the threshold, so that all headings with that precision are shown.
    """
    settings = asked_settings(
        indexer.config,
        asked.method,
        k=asked.k,
        limit=asked.limit,
        threshold=asked.threshold,
        accept=asked.accept,
        review=asked.review,
        include=asked.include,
        exclude=asked.exclude,
    )
    if asked.review is None or asked.threshold is not None or asked.limit is not None:
        return settings
    from labelkin.rerank.model import RERANK_NAME, reranker_info

    calibration = reranker_info(indexer.runtime.models.folder / RERANK_NAME).calibration
    bar = min(settings.rerank.threshold, calibration.threshold(settings.rerank.review))
    return settings.changed(threshold=bar)


def check_method(name: str) -> None:
    """Refuse an unknown method."""
    from labelkin.scoring.methods import METHODS

    if name not in METHODS:
        raise typer.BadParameter(f"no method {name!r}; known: {', '.join(METHODS.names())}")


def print_known_documents(
    indexer: Indexer, documents: Sequence[Document], settings: Sequence[Settings]
) -> None:
    """Print how many of the documents to evaluate on are in the collection itself."""
    is_known = indexer.known(documents)
    known = sum(is_known)
    if known:
        by_id = indexer.collection.rows_of([document.id for document in documents])
        others = sum(
            one.id not in by_id for one, yes in zip(documents, is_known, strict=True) if yes
        )
        by_text = f" ({others:,} under another id)" if others else ""
        print_message(
            f"{counted(known, 'document')} in the collection itself{by_text}, "
            "searched leave-one-out."
        )
        if any(one.implementation.required_models() for one in settings):
            print_message(
                "Models trained on them know their headings: expect less for new documents."
            )


def print_unresolved(labels: Counter[str]) -> None:
    """Print how many of the right labels no method can suggest."""
    if labels:
        kinds, times = counted(len(labels), "label"), counted(labels.total(), "time")
        print_message(f"{kinds} not in the vocabulary, given {times}, cannot be suggested.")


def print_unknown_labels(indexer: Indexer, settings: Sequence[Settings]) -> None:
    """Print how many labels of the collection its autoencoder was not trained on."""
    from labelkin.autoencoder.model import LabelModel

    if not any(LabelModel in one.implementation.required_models() for one in settings):
        return
    unknown = indexer.unknown_labels()
    if unknown:
        print_message(
            f"The label autoencoder lacks {counted(unknown, 'heading')}: none of the documents "
            "that it was trained on has them."
        )
