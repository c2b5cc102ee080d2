"""What a method is asked about: documents and, where it looks at them, their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labelkin.corpus.document import Document
from labelkin.neighbours.neighbours import Neighbours


@dataclass(frozen=True, eq=False)
class Queries:
    """A batch of documents that want headings, each with its neighbours.

    Neighbours are found before the method is made, which must know whoever
    they are; for a method that looks at none there is room for none.
    """

    documents: Sequence[Document]
    neighbours: Neighbours

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, part: slice) -> Queries:
        """Some of the documents."""
        return Queries(self.documents[part], self.neighbours[part])

    @classmethod
    def unread(cls, neighbours: Neighbours) -> Queries:
        """Neighbours of documents whose texts nobody looks at."""
        return cls([Document(name, "") for name in neighbours.ids], neighbours)

    @classmethod
    def alone(cls, documents: Sequence[Document]) -> Queries:
        """Documents whose neighbours nobody looks at."""
        return cls(documents, Neighbours.nobody([document.id for document in documents]))
