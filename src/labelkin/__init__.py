"""Subject headings for documents, learned from documents that are already indexed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from labelkin._version import __version__

if TYPE_CHECKING:
    from labelkin.corpus import Document, read_corpus
    from labelkin.exceptions import LabelkinError
    from labelkin.indexer import Indexer
    from labelkin.neighbours import Neighbours
    from labelkin.vocab import Concept, Vocabulary, read_vocabulary

__all__ = [
    "Concept",
    "Document",
    "Indexer",
    "LabelkinError",
    "Neighbours",
    "Vocabulary",
    "__version__",
    "read_corpus",
    "read_vocabulary",
]

# Names are imported when they are first used, so that `import labelkin` and
# `labelkin --help` stay fast.
_HOMES = {
    "Concept": "labelkin.vocab",
    "Document": "labelkin.corpus",
    "Indexer": "labelkin.indexer",
    "LabelkinError": "labelkin.exceptions",
    "Neighbours": "labelkin.neighbours",
    "Vocabulary": "labelkin.vocab",
    "read_corpus": "labelkin.corpus",
    "read_vocabulary": "labelkin.vocab",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelkin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
