"""The names of a collection's vocabulary on disk, so that a new process has them at once."""

from __future__ import annotations

import json
import logging
import zipfile
from collections import Counter
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_file
from labelkin.scoring.name_table import NameTable
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

_NAME = "names.npz"
_FORMAT = 1
_ARRAYS = ("starts", "columns", "preferred", "acronyms")
_TEXTS = ("words", "names")
# A language with a smaller share of the names than this, of those of the richest, has no table.
_FEW = 0.1
# Tables of the latest vocabularies: with them goes the automaton, which takes longest to make.
_REMEMBERED = 2
_latest: dict[str, dict[str, NameTable]] = {}


def name_tables(collection: Collection) -> dict[str, NameTable]:
    """A table for each language in which concepts have many names, the richest first.

    Names in languages with far fewer, as labels of stray documents may bring
    them in, are in the first table as well.
    They are kept in the collection's folder, if it can be written to, and made
    anew when the vocabulary has changed.
    """
    state = collection.vocabulary_state()
    if state not in _latest:
        while len(_latest) >= _REMEMBERED:
            _latest.pop(next(iter(_latest)))
        _latest[state] = _kept_or_made(collection, state)
    return _latest[state]


def _kept_or_made(collection: Collection, state: str) -> dict[str, NameTable]:
    path = collection.path / "cache" / _NAME
    about = {"format": _FORMAT, "vocabulary": state, "stemmer": version("PyStemmer")}
    with suppress(OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        kept = _load(path, about)
        if kept is not None:
            return kept
    tables = _made(collection)
    if not collection.database.read_only:
        try:
            path.parent.mkdir(exist_ok=True)
            _save(path, about, tables)
        except OSError as error:
            logger.warning("%s: names are not kept (%s)", path, error.strerror)
    return tables


def _made(collection: Collection) -> dict[str, NameTable]:
    vocabulary = collection.vocabulary
    amounts: Counter[str] = Counter()
    for concept in vocabulary:
        amounts.update(list(concept.names))
        amounts.update({language: len(names) for language, names in concept.synonyms.items()})
    ordered = sorted(amounts, key=lambda language: (-amounts[language], language))
    if not ordered:
        return {}
    enough = _FEW * amounts[ordered[0]]
    stray = [language for language in ordered if amounts[language] < enough]
    main, *others = [language for language in ordered if amounts[language] >= enough]
    return {
        main: NameTable.make(vocabulary, main, stray),
        **{language: NameTable.make(vocabulary, language) for language in others},
    }


def _save(path: Path, about: dict[str, Any], tables: dict[str, NameTable]) -> None:
    arrays = {}
    for number, table in enumerate(tables.values()):
        for name in _ARRAYS:
            arrays[f"{name}-{number}"] = getattr(table, name)
        for name in _TEXTS:
            text = "\n".join(getattr(table, name)).encode()
            arrays[f"{name}-{number}"] = np.frombuffer(text, dtype=np.uint8)
    note = json.dumps({**about, "languages": list(tables)})
    with atomic_file(path) as file:
        np.savez(file, about=np.array(note), **arrays)


def _load(path: Path, about: dict[str, Any]) -> dict[str, NameTable] | None:
    """What `_save` wrote, None if that was about another vocabulary."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        note = json.loads(str(arrays["about"]))
        languages = note.pop("languages")
        if note != about:
            return None
        tables = {}
        for number, language in enumerate(languages):
            texts = [arrays[f"{name}-{number}"].tobytes().decode() for name in _TEXTS]
            words, names = (tuple(text.split("\n")) if text else () for text in texts)
            starts, columns, preferred, acronyms = (arrays[f"{name}-{number}"] for name in _ARRAYS)
            tables[language] = NameTable(
                language, words, names, starts, columns, preferred, acronyms
            )
        return tables
