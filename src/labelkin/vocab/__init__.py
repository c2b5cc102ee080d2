"""Controlled vocabularies: concepts, their names and hierarchy, and readers for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labelkin.lazy import lazy_names

if TYPE_CHECKING:
    from labelkin.vocab.concept import Concept
    from labelkin.vocab.names import Match, Resolution
    from labelkin.vocab.reader import FORMATS, read_vocabulary
    from labelkin.vocab.vocabulary import Vocabulary
else:
    __getattr__ = lazy_names(
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
    "Concept",
    "Match",
    "Resolution",
    "Vocabulary",
    "read_vocabulary",
]
