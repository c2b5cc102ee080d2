"""Turns batches of documents into the records of `annotate`, in any process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from labelkin.corpus.document import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.suggestion import Band

# Characters of the text that stand in for a missing title.
_BEGINNING = 200


@dataclass(frozen=True)
class AnnotationJob:
    """What a process needs to know to annotate a batch.

    `is_bulk` says whether batches are searched with the engine for them; None lets each
    process decide.
    """

    collection: Path
    settings: Settings
    representation: str | None
    fold_broader: bool
    language: str
    is_bulk: bool | None


class Annotator:
    """Annotates batches with an open collection."""

    def __init__(self, indexer: Indexer, job: AnnotationJob) -> None:
        self._indexer = indexer
        self._job = job
        self._band = job.settings.implementation.bands(indexer.queries([]), job.settings)
        if job.settings.k and job.is_bulk is not None:
            # All processes search alike.
            indexer.search(job.representation).decide(job.is_bulk)

    def __call__(self, documents: list[Document]) -> list[dict[str, Any]]:
        """A record per document."""
        job = self._job
        given = self._indexer.labels(
            documents, job.settings, job.representation, fold=job.fold_broader
        )
        return _records(documents, given, self._indexer.vocabulary, job.language, self._band)


def _records(
    documents: list[Document],
    given: Ranking,
    vocabulary: Vocabulary,
    language: str,
    band: Callable[[float], Band] | None,
) -> list[dict[str, Any]]:
    return [
        {
            "id": document.id,
            "title": document.title,
            **({} if document.title else {"text": document.text[:_BEGINNING]}),
            "suggestions": [
                {
                    "id": vocabulary[column].id,
                    **vocabulary[column].names_as_json(language),
                    "score": round(score, 6),
                    **({} if band is None else {"band": band(score)}),
                    "column": column,
                }
                for column, score in zip(columns.tolist(), scores.tolist(), strict=True)
            ],
        }
        for document, (columns, scores) in zip(documents, given, strict=True)
    ]
