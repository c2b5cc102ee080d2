"""spaCy models by name or path, loaded with no more components than are needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.exceptions import ConfigError, MissingExtraError
from labelkin.represent.model_folder import folder_digest

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
    """An installed model: what spaCy loads it by, and its version."""

    source: str
    version: str


@lru_cache(maxsize=16)
def find_language_model(name: str) -> LanguageModel:
    """The model called `name`, whichever package provides it, or the one in a folder."""
    about = Path(name) / "meta.json"
    if about.is_file():
        meta = json.loads(about.read_text(encoding="utf-8"))
        version = f"{meta.get('name')} {meta.get('version')} {folder_digest(name)}"
        return LanguageModel(name, version)
    installed = {entry.name: entry for entry in entry_points(group="spacy_models")}
    # An exact name first; another publisher's upload appends its own to it.
    for found in sorted(installed, key=lambda found: (len(found), found)):
        if found == name or found.startswith(f"{name}_"):
            distribution = installed[found].dist
            return LanguageModel(found, distribution.version if distribution else "")
    raise MissingExtraError(
        f"the spaCy model {name!r} is not installed; pip install 'labelkin[nlp]' and "
        f"python -m spacy download {name}"
        + (", or as https://allenai.github.io/scispacy says" if "_sci_" in name else "")
    )


@lru_cache(maxsize=4)
def load_language_model(name: str, kinds: frozenset[str]) -> Language:
    """The model with the components that these kinds of terms need."""
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


def _check(nlp: Language, name: str, kind: str) -> None:
    """Raise where a model does not give what terms of a kind are made of."""
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
