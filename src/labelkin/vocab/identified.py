"""Documents with the ids of a vocabulary for the labels that their source has."""

from __future__ import annotations

from dataclasses import replace

from labelkin.corpus.document import Document
from labelkin.vocab.concept import ALL_LANGUAGES
from labelkin.vocab.vocabulary import Vocabulary


def with_ids(document: Document, vocabulary: Vocabulary, language: str = "") -> Document:
    """The document with ids and names of the vocabulary for all labels that it resolves.

    Names are in `language` if there are any; other labels stay as they are.
    """
    shown = () if language in ("", ALL_LANGUAGES) else (language,)
    names: dict[str, str] = {}
    ids: dict[str, str] = {}
    for label in document.labels:
        name = document.label_names.get(label, "")
        column = vocabulary.resolve(label, name, document.language or "").column
        if column is None:
            ids[label] = label
            names[label] = name
        else:
            concept = vocabulary[column]
            ids[label] = concept.id
            names[concept.id] = concept.name(*shown)
    major = dict.fromkeys(ids[label] for label in document.major_labels)
    return replace(
        document,
        labels=tuple(names),
        label_names={label: name for label, name in names.items() if name},
        major_labels=tuple(major),
    )
