"""Representations by name: `stems`, or several kinds of terms joined with `+`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labelkin.exceptions import ConfigError
from labelkin.represent.kind import TermKind
from labelkin.store.config import RepresentationSection


@dataclass(frozen=True, slots=True)
class Representation:
    """The kinds of terms that stand for a document."""

    name: str
    kinds: tuple[TermKind, ...]

    def versions(self) -> dict[str, str]:
        """Each kind with its version."""
        return {kind.name: kind.version for kind in self.kinds}


def _stems(settings: RepresentationSection) -> TermKind:
    from labelkin.represent.stems import Stems

    return Stems(settings.title_weight)


KINDS: Mapping[str, Callable[[RepresentationSection], TermKind]] = {"stems": _stems}


def make_representation(name: str, settings: RepresentationSection) -> Representation:
    """The representation that `name` means; the order of joined kinds does not matter."""
    parts = sorted({part.strip() for part in name.split("+")})
    for part in parts:
        if part not in KINDS:
            raise ConfigError(f"no representation {part!r}; known: {', '.join(KINDS)}")
    return Representation("+".join(parts), tuple(KINDS[part](settings) for part in parts))
