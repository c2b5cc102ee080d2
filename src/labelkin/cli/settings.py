"""Settings of the method: those of labelkin.toml, changed by what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelkin.scoring.knn import KnnSettings
    from labelkin.store import Config


def asked_settings(
    config: Config,
    k: int | None,
    limit: int | None,
    threshold: float | None,
    include: Sequence[str] | None,
    exclude: Sequence[str] | None,
) -> KnnSettings:
    """The settings to suggest headings with.

    A limit replaces the count, `include` the list of labelkin.toml, `exclude`
    adds to it.
    """
    from labelkin.scoring.knn import KnnSettings

    settings = KnnSettings.from_config(config)
    if k is not None:
        settings = replace(settings, k=k)
    if limit is not None:
        settings = replace(settings, limit=limit, count=None)
    if threshold is not None:
        settings = replace(settings, threshold=threshold)
    if include:
        settings = replace(settings, include=tuple(include))
    return replace(settings, exclude=(*settings.exclude, *(exclude or ())))
