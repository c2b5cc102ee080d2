"""Finds spaCy models by name or path and loads only the components that are needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.exceptions import ConfigError, MissingExtraError
from labelkin.represent.loaded_models import LoadedModels, folder_checksum

if TYPE_CHECKING:
    from spacy.language import Language

_NEED_PARSE = {"nps", "deps"}
_NEED_WORDS = {"lemmas", "nps", "deps", "keywords"}
_PARSING = ("parser",)
_NAMING = ("ner", "entity_ruler", "beam_ner")
_TAGGING = ("tagger", "morphologizer", "attribute_ruler", "lemmatizer", "trainable_lemmatizer")
_NEVER = ("senter", "sentencizer", "entity_linker", "textcat", "textcat_multilabel", "spancat")


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """An installed model: the name or path that spaCy loads, and its version."""

    source: str
    version: str


@lru_cache(maxsize=16)
def find_language_model(name: str) -> LanguageModel:
    """The model that `name` means: the path of a folder, or a model of any installed package."""
    about = Path(name) / "meta.json"
    if about.is_file():
        meta = json.loads(about.read_text(encoding="utf-8"))
        version = f"{meta.get('name')} {meta.get('version')} {folder_checksum(name)}"
        return LanguageModel(name, version)
    installed = {entry.name: entry for entry in entry_points(group="spacy_models")}
    # The exact name sorts first; other publishers append their own name to it.
    for candidate in sorted(installed, key=lambda entry: (len(entry), entry)):
        if candidate == name or candidate.startswith(f"{name}_"):
            distribution = installed[candidate].dist
            return LanguageModel(candidate, distribution.version if distribution else "")
    raise MissingExtraError(
        f"the spaCy model {name!r} is not installed; pip install 'labelkin[nlp]' and "
        f"python -m spacy download {name}"
        + (", or see https://allenai.github.io/scispacy" if "_sci_" in name else "")
    )


def load_language_model(name: str, kinds: frozenset[str]) -> Language:
    """Load a model with the components that these kinds of terms need.

    Raises ConfigError if the model lacks one of them.
    """
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("spaCy is not installed; pip install 'labelkin[nlp]'") from error
    unneeded = [*_NEVER]
    if not kinds & _NEED_PARSE:
        unneeded += _PARSING
    if "ners" not in kinds:
        unneeded += _NAMING
    if not kinds & _NEED_WORDS:
        unneeded += _TAGGING
    nlp = spacy.load(find_language_model(name).source, exclude=unneeded)
    for shared in ("tok2vec", "transformer"):
        if shared in nlp.pipe_names:
            component: Any = nlp.get_pipe(shared)
            if not set(component.listening_components) & set(nlp.pipe_names):
                nlp.remove_pipe(shared)
    for kind in sorted(kinds):
        _check(nlp, name, kind)
    return nlp


# A pipeline is not safe to call from two threads: `memory_zone` frees the strings of both.
LANGUAGE_MODELS = LoadedModels(load_language_model, size=4)


def _check(nlp: Language, name: str, kind: str) -> None:
    """Raise ConfigError if a model lacks a component that a kind of terms needs."""
    needed = {
        "a parser": _PARSING if kind in _NEED_PARSE else (),
        "an entity recogniser": _NAMING if kind == "ners" else (),
        "a tagger": _TAGGING if kind in _NEED_WORDS else (),
    }
    lacking = [
        what for what, any_of in needed.items() if any_of and not {*any_of} & {*nlp.pipe_names}
    ]
    if kind == "nps" and "noun_chunks" not in nlp.Defaults.syntax_iterators:
        lacking.append(f"rules for noun phrases ({nlp.lang})")
    if lacking:
        raise ConfigError(
            f"the spaCy model {name!r} gives no {kind}: it lacks {' and '.join(lacking)}; "
            "choose another representation or [representation] spacy_model"
        )
