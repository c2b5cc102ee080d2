"""Representations by name: `stems`, or several kinds of terms joined with `+`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labelkin.exceptions import ConfigError
from labelkin.represent.encoder import ENCODERS
from labelkin.represent.kind import TermKind
from labelkin.store.config import RepresentationSection


@dataclass(frozen=True, slots=True)
class Representation:
    """The kinds of terms that a document is indexed and searched by."""

    name: str
    kinds: tuple[TermKind, ...]

    def versions(self) -> dict[str, str]:
        """The version of each kind by name; an index of other versions is out of date."""
        return {kind.name: kind.version for kind in self.kinds}


def _stems(name: str, settings: RepresentationSection) -> TermKind:
    from labelkin.represent.stems import Stems

    stems = Stems(settings.title_weight)
    return TermKind(name, stems.version, stems)


def _linguistic(name: str, settings: RepresentationSection) -> TermKind:
    from labelkin.represent.linguistic import LinguisticAnalysis

    analysis = LinguisticAnalysis(settings.spacy_model, settings.title_weight, settings.processes)
    return TermKind(name, analysis.version(name), analysis)


KINDS: Mapping[str, Callable[[str, RepresentationSection], TermKind]] = {
    "stems": _stems,
    "lemmas": _linguistic,
    "nps": _linguistic,
    "deps": _linguistic,
    "ners": _linguistic,
    "keywords": _linguistic,
}
# The paper's names for combinations of kinds.
UNIONS = {"multi": ("ners", "nps", "keywords"), "all": tuple(KINDS)}


def kind_names(name: str) -> set[str]:
    """The kinds of terms that are joined in `name`, including unknown ones."""
    parts = (part.strip() for part in name.split("+"))
    return {kind for part in parts for kind in UNIONS.get(part, (part,))}


def make_representation(name: str, settings: RepresentationSection) -> Representation:
    """The representation that `name` means; joined kinds may come in any order."""
    names = sorted(kind_names(name))
    for part in names:
        if part in ENCODERS:
            raise ConfigError(f'{part} is joined with "," to other representations: {name!r}')
        if part not in KINDS:
            known = ", ".join((*KINDS, *UNIONS, *ENCODERS))
            raise ConfigError(
                f"no representation {part!r}; known: {known}, and sentence-transformers models "
                "by a name or path with a slash"
            )
    return Representation("+".join(names), tuple(KINDS[part](part, settings) for part in names))
