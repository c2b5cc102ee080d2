"""A cache of the vocabulary's name tables on disk, which a new process loads at once."""

from __future__ import annotations

import json
import logging
from collections import Counter
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_file
from labelkin.scoring.name_table import NameTable
from labelkin.store.reader import Reader
from labelkin.tensors import npz_arrays

logger = logging.getLogger(__name__)

_NAME = "names.npz"
_FORMAT = 1
_ARRAYS = ("starts", "columns", "preferred", "acronyms")
_TEXTS = ("words", "names")
# A language with fewer names than this share of the richest one has no table of its own.
_FEW = 0.1


def name_tables(reader: Reader) -> dict[str, NameTable]:
    """A table for each language in which concepts have many names, the richest first.

    Names in languages with far fewer, for example from labels of stray
    documents, go into the first table. The tables are cached in the
    collection's folder, if it can be written to, and rebuilt when the
    vocabulary has changed.
    """
    path = reader.path / "cache" / _NAME
    about = {
        "format": _FORMAT,
        "vocabulary": reader.vocabulary_state.key,
        "stemmer": version("PyStemmer"),
    }
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        cached = _load(path, about)
        if cached is not None:
            return cached
    tables = _make_tables(reader)
    if not reader.read_only:
        try:
            path.parent.mkdir(exist_ok=True)
            _save(path, about, tables)
        except OSError as error:
            logger.warning("%s: names are not cached (%s)", path, error.strerror)
    return tables


def _make_tables(reader: Reader) -> dict[str, NameTable]:
    vocabulary = reader.vocabulary
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
    record = json.dumps({**about, "languages": list(tables)})
    with atomic_file(path) as file:
        np.savez(file, about=np.array(record), **arrays)


def _load(path: Path, about: dict[str, Any]) -> dict[str, NameTable] | None:
    """The saved tables; None if they belong to another vocabulary."""
    arrays = npz_arrays(path)
    record = json.loads(str(arrays["about"]))
    languages = record.pop("languages")
    if record != about:
        return None
    tables = {}
    for number, language in enumerate(languages):
        texts = [arrays[f"{name}-{number}"].tobytes().decode() for name in _TEXTS]
        words, names = (tuple(text.split("\n")) if text else () for text in texts)
        starts, columns, preferred, acronyms = (arrays[f"{name}-{number}"] for name in _ARRAYS)
        tables[language] = NameTable(language, words, names, starts, columns, preferred, acronyms)
    return tables
