"""Settings of the method: those of labelkin.toml, changed by what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from labelkin.cli.console import counted, tell
from labelkin.cli.options import Method

if TYPE_CHECKING:
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
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
) -> Settings:
    """The settings to suggest headings with.

    A limit replaces the count, `include` the list of labelkin.toml, `exclude`
    adds to it.
    """
    from labelkin.scoring.settings import Settings

    settings = Settings.from_config(config, method.value if method else None)
    return settings.changed(
        k=k,
        weighting=weighting,
        limit=limit,
        threshold=threshold,
        include=tuple(include) if include else None,
        exclude=(*settings.knn.exclude, *exclude) if exclude else None,
    )


def tell_unknown_labels(indexer: Indexer, settings: Sequence[Settings]) -> None:
    """Say how many labels of the collection its model has never seen."""
    if all(not one.learned for one in settings):
        return
    from labelkin.scoring.label_ae import LabelAe

    model = indexer.method(replace(settings[0], method="label-ae"))
    unknown = model.unknown_labels() if isinstance(model, LabelAe) else 0
    if unknown:
        tell(
            f"{counted(unknown, 'heading')} of the documents came after the label autoencoder was "
            "trained, which leaves them out; `labelkin train` teaches it."
        )
