"""Documents, and readers and writers for corpus files."""

from __future__ import annotations

from labelkin.corpus.corpus import Corpus, read_corpus
from labelkin.corpus.document import Correction, Deletion, Document
from labelkin.corpus.formats import FORMATS
from labelkin.corpus.report import ReadReport
from labelkin.corpus.writers import WRITERS, write_corpus

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
