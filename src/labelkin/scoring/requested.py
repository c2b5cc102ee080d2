"""Settings of one request: those of labelkin.toml, changed by what the request asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from labelkin.exceptions import ConfigError
from labelkin.scoring.methods import METHODS
from labelkin.scoring.settings import Settings
from labelkin.scoring.votes import WEIGHTINGS

if TYPE_CHECKING:
    from labelkin.store.config import Config
    from labelkin.store.models import Models


def requested_settings(
    config: Config,
    models: Models,
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
    named: Callable[[str], str] = str,
) -> Settings:
    """The settings to suggest headings with; ConfigError if they do not fit together.

    A limit replaces the count, `include` the list of labelkin.toml, `exclude`
    adds to it. `review` alone lowers the threshold, so that all headings with
    that precision are shown. What does not apply to the method is refused,
    unless `lenient`. `named` gives the names of arguments in messages.
    """
    if method is not None:
        check_method(method)
    settings = Settings.from_config(config, method)
    if settings.method != "rerank" and (accept is not None or review is not None):
        if not lenient:
            raise ConfigError(f"{named('accept')} and {named('review')} are for the method rerank")
        accept = review = None
    if accept is not None and review is not None and accept < review:
        raise ConfigError(
            f"{named('accept')} {accept:g} is lower than {named('review')} {review:g}: accepted "
            "headings are also shown"
        )
    if accept is None and review is not None and review > settings.rerank.accept:
        accept = review
    if not settings.implementation.votes and not lenient:
        for name, value in (("k", k), ("weighting", weighting)):
            if value is not None:
                raise ConfigError(f"{named(name)} is not for the method {settings.method}")
    chosen = next((one for one in WEIGHTINGS if one == weighting), None)
    if weighting is not None and chosen is None:
        raise ConfigError(f"no weighting {weighting!r}; known: {', '.join(WEIGHTINGS)}")
    settings = settings.changed(
        k=k,
        weighting=chosen,
        limit=limit,
        threshold=threshold,
        accept=accept,
        review=review,
        include=tuple(include) if include else None,
        exclude=(*settings.exclude, *exclude) if exclude else None,
    )
    for name, value in (("k", k), ("weighting", weighting)):
        if value is not None and not lenient:
            try:
                settings.implementation.check_voting(settings, models)
            except ConfigError as error:
                raise ConfigError(
                    f"{named(name)} is not for the method {settings.method} here: {error}"
                ) from error
    if review is not None and threshold is None and limit is None:
        return settings.implementation.reviewing(settings, models)
    return settings


def check_method(name: str) -> None:
    """Refuse an unknown method."""
    if name not in METHODS:
        raise ConfigError(f"no method {name!r}; known: {', '.join(METHODS.names())}")
