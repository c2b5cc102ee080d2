"""Controlled vocabularies: concepts, their names and hierarchy, and readers for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labelkin.lazy import lazy_names

# Not when it is first used: a module has the same name.
from labelkin.vocab.categories import Category, categories

if TYPE_CHECKING:
    from labelkin.vocab.concept import Concept
    from labelkin.vocab.names import Match, Resolution
    from labelkin.vocab.reader import FORMATS, read_vocabulary
    from labelkin.vocab.vocabulary import Vocabulary
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FORMATS": "labelkin.vocab.reader",
            "Concept": "labelkin.vocab.concept",
            "Match": "labelkin.vocab.names",
            "Resolution": "labelkin.vocab.names",
            "Vocabulary": "labelkin.vocab.vocabulary",
            "read_vocabulary": "labelkin.vocab.reader",
        },
    )

__all__ = [
    "FORMATS",
    "Category",
    "Concept",
    "Match",
    "Resolution",
    "Vocabulary",
    "categories",
    "read_vocabulary",
]
