"""Reading texts for the reranker: their stems, and the headings that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.represent.cache import open_term_cache
from labelkin.represent.kind import TermKind
from labelkin.represent.stems import Stems
from labelkin.rerank.pairs import Integers
from labelkin.rerank.term_columns import TermColumns
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.policy import LabelPolicy
from labelkin.store.collection import Collection
from labelkin.store.label_sets import LabelSets

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BATCH = 1000

Progress = Callable[[str, int, int], None]


class TextReader(Closing):
    """Stems and mentions of documents, as the collection would store them."""

    def __init__(self, collection: Collection, policy: LabelPolicy | None = None) -> None:
        self._collection = collection
        self._mentions = MentionSearch(collection, policy)
        stems = Stems()
        self._kind = TermKind("stems", stems.version, stems)
        self._cache = open_term_cache(collection)

    def close(self) -> None:
        """Let go of the cache."""
        self._cache.close()

    def stems(self, documents: Sequence[Document], *, store: bool = False) -> list[list[str]]:
        """The stems of each document in text order."""
        limit = self._collection.config.documents.max_characters
        expected = self._collection.only_language()
        prepared = [
            self._collection.in_its_language(document.cut(limit), expected)
            for document in documents
        ]
        return self._cache.terms([self._kind], prepared, store=store)["stems"]

    def mentions(self, documents: Sequence[Document]) -> Mentions:
        """The headings that each document names."""
        return self._mentions.find(documents)


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Labelled documents of a collection as matrices, a line per row in `rows`."""

    rows: Integers
    labels: csr_matrix[Any]
    counts: csr_matrix[Any]
    mentions: Mentions

    def __len__(self) -> int:
        return len(self.rows)

    def taken(self, places: Integers) -> LabelledTexts:
        """Some of the documents."""
        return LabelledTexts(
            self.rows[places], self.labels[places], self.counts[places], self.mentions.taken(places)
        )


def read_labelled_texts(
    reader: TextReader,
    collection: Collection,
    rows: Integers,
    labels: csr_matrix[Any],
    progress: Progress | None = None,
) -> tuple[LabelledTexts, TermColumns]:
    """The texts of `rows`, whose labels are given, and the terms that they are counted by."""
    from scipy.sparse import vstack

    total = 2 * len(rows)

    def tell(done: int) -> None:
        if progress is not None:
            progress("Reading texts", done, total)

    def stems() -> Iterator[list[str]]:
        done = 0
        for batch in _pages(collection, rows):
            yield from reader.stems(batch, store=True)
            done += len(batch)
            tell(done)

    terms = TermColumns.learned(stems(), len(rows))
    counts, mentions, done = [], [], len(rows)
    for batch in _pages(collection, rows):
        counts.append(terms.counts(reader.stems(batch)))
        mentions.append(reader.mentions(batch))
        done += len(batch)
        tell(done)
    texts = LabelledTexts(rows, labels, vstack(counts, format="csr"), Mentions.joined(mentions))
    return texts, terms


def label_matrix(
    label_sets: LabelSets, rows: Integers, width: int, policy: LabelPolicy | None
) -> csr_matrix[Any]:
    """The labels of `rows`, replaced ones as those that stand for them."""
    from scipy.sparse import csr_matrix

    starts, columns = label_sets.gather(rows)
    lines = np.repeat(np.arange(len(rows)), np.diff(starts))
    if policy is not None:
        lines, columns = policy.apply(lines, columns)
    ones = np.ones(len(columns), dtype=np.float32)
    matrix: csr_matrix[Any] = csr_matrix((ones, (lines, columns)), shape=(len(rows), width))
    return matrix


def _pages(collection: Collection, rows: Integers) -> Iterator[list[Document]]:
    gone = Document("", "", language="en")
    for start in range(0, len(rows), _BATCH):
        page = rows[start : start + _BATCH].tolist()
        texts = collection.texts_of(page)
        yield [texts.get(row, gone) for row in page]
