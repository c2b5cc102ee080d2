"""Documents, and readers and writers for corpus files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labelkin.lazy import lazy_names

if TYPE_CHECKING:
    from labelkin.corpus.corpus import Corpus, read_corpus
    from labelkin.corpus.document import Correction, Deletion, Document
    from labelkin.corpus.formats import FORMATS
    from labelkin.corpus.report import ReadReport
    from labelkin.corpus.writers import WRITERS, write_corpus
else:
    # A suggestion for a text needs no readers, which take longer to import than it to make.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FORMATS": "labelkin.corpus.formats",
            "WRITERS": "labelkin.corpus.writers",
            "Corpus": "labelkin.corpus.corpus",
            "Correction": "labelkin.corpus.document",
            "Deletion": "labelkin.corpus.document",
            "Document": "labelkin.corpus.document",
            "ReadReport": "labelkin.corpus.report",
            "read_corpus": "labelkin.corpus.corpus",
            "write_corpus": "labelkin.corpus.writers",
        },
    )

__all__ = [
    "FORMATS",
    "WRITERS",
    "Corpus",
    "Correction",
    "Deletion",
    "Document",
    "ReadReport",
    "read_corpus",
    "write_corpus",
]
