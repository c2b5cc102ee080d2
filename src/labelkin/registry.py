"""Implementations by name: labelkin's own and those of other packages.

A registry row maps a short name to `module:attribute`, imported when the name is
first used. Other packages add rows through entry points, for example

    [project.entry-points."labelkin.methods"]
    toy = "toy_package:ToyMethod"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from labelkin.exceptions import ConfigError, LabelkinError

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries by name, resolved when they are asked for.

    A class stands for its only instance, unless the entries are `factories`.
    """

    def __init__(
        self, group: str, noun: str, own: Mapping[str, str], *, factories: bool = False
    ) -> None:
        self.group = group
        self.noun = noun
        self._own = dict(own)
        self._factories = factories

    def names(self) -> list[str]:
        """All names: labelkin's own in their order, then those of other packages."""
        others = sorted(name for name in _entry_points(self.group) if name not in self._own)
        return [*self._own, *others]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in _entry_points(self.group)

    def __iter__(self) -> Iterator[Entry]:
        return (self[name] for name in self.names())

    def __getitem__(self, name: str) -> Entry:
        place = self.place(name)
        if self._factories:
            return cast(Entry, _imported(place))
        entry = _instance(place)
        if getattr(entry, "name", None) != name:
            raise ConfigError(
                f"{place} is registered as {self.noun} {name!r} but its name is "
                f"{getattr(entry, 'name', None)!r}; repair or uninstall its package"
            )
        return cast(Entry, entry)

    def place(self, name: str) -> str:
        """`module:attribute` of an entry; ConfigError for an unknown name."""
        place = self._own.get(name) or _entry_points(self.group).get(name)
        if place is None:
            raise ConfigError(f"no {self.noun} {name!r}; known: {', '.join(self.names())}")
        return place


def installed(group: str) -> list[str]:
    """The names that other packages have registered in a group."""
    return sorted(_entry_points(group))


def loaded(group: str, name: str) -> Any:
    """What another package has registered under a name."""
    return _instance(_entry_points(group)[name])


@lru_cache(maxsize=16)
def _entry_points(group: str) -> dict[str, str]:
    return {point.name: point.value for point in _all_entry_points().select(group=group)}


@cache
def _all_entry_points() -> Any:
    """Those of all installed packages: reading them takes longer than most of what follows."""
    return entry_points()


@lru_cache(maxsize=256)
def _instance(place: str) -> Any:
    entry = _imported(place)
    if not isinstance(entry, type):
        return entry
    with _failures_named(place):
        return entry()


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    with _failures_named(place):
        return getattr(import_module(module), attribute)


@contextmanager
def _failures_named(place: str) -> Iterator[None]:
    """Whatever a package raises while it is loaded, as one line with the entry point."""
    try:
        yield
    except LabelkinError:
        raise
    except Exception as error:
        if place.startswith("labelkin."):
            raise
        raise ConfigError(
            f"{place} cannot be loaded ({type(error).__name__}: {error}); "
            "repair or uninstall the package that provides it"
        ) from error
