"""Settings of a request: those of labelkin.toml, changed by the options of a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from labelkin.cli.console import counted, print_message
from labelkin.exceptions import ConfigError

if TYPE_CHECKING:
    from collections import Counter

    from labelkin.cli.options import SuggestionOptions
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings


def asked_settings(
    indexer: Indexer, method: str | None = None, *, lenient: bool = False, **options: Any
) -> Settings:
    """The settings that the options of a command ask for; see `requested_settings`."""
    from labelkin.scoring.requested import requested_settings

    try:
        return requested_settings(
            indexer.config,
            indexer.runtime.models,
            method,
            lenient=lenient,
            named=_option,
            **options,
        )
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error


def suggestion_settings(indexer: Indexer, asked: SuggestionOptions) -> Settings:
    """The settings that the options of `suggest` and `annotate` ask for."""
    return asked_settings(
        indexer,
        asked.method,
        k=asked.k,
        limit=asked.limit,
        threshold=asked.threshold,
        accept=asked.accept,
        review=asked.review,
        include=asked.include,
        exclude=asked.exclude,
    )


def check_method(name: str) -> None:
    """Refuse an unknown method."""
    from labelkin.scoring.requested import check_method

    try:
        check_method(name)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from error


def _option(name: str) -> str:
    """An argument as the command line has it."""
    return f"-{name}" if len(name) == 1 else f"--{name}"


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
    if not unknown:
        return
    headings = counted(unknown, "heading")
    if indexer.runtime.models.get(LabelModel).is_joint:
        print_message(
            f"The label autoencoder scores {headings} by votes and names alone: new or too rare."
        )
    else:
        print_message(
            f"The label autoencoder lacks {headings}: none of the documents that it was trained on "
            "has them."
        )
