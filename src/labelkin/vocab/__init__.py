"""Controlled vocabularies: concepts, their names and hierarchy, and readers for them."""

from __future__ import annotations

from labelkin.vocab.categories import Category, categories
from labelkin.vocab.concept import Concept
from labelkin.vocab.names import Match, Resolution
from labelkin.vocab.reader import FORMATS, read_vocabulary
from labelkin.vocab.vocabulary import Vocabulary

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
