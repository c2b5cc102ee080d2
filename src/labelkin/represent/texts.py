"""Texts to be compared, and the values computed for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from labelkin.corpus.document import Document
from labelkin.memo import Memo
from labelkin.represent.cache import TermCache
from labelkin.represent.kind import TermKind
from labelkin.store.reader import Reader

Value = TypeVar("Value")


def vectors_key(encoder: str) -> tuple[str, str]:
    """The key under which texts keep their vectors by an encoder."""
    return ("vectors", encoder)


class PreparedTexts:
    """A batch of documents that have a language and are not too long, with their terms.

    Everything that is computed for the batch is kept with it, so that several readers
    of the batch share the work.
    """

    def __init__(
        self, documents: Sequence[Document], cache: TermCache, *, store_terms: bool = False
    ) -> None:
        self.documents = documents
        self.store_terms = store_terms
        self._cache = cache
        self._values = Memo()

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def prepared(self) -> Sequence[Document]:
        """The documents as they would be stored."""
        return self.documents

    def terms(self, kinds: Sequence[TermKind]) -> dict[str, list[list[str]]]:
        """For each kind the terms of each document, extracted once."""
        known = {kind: self._values.peek(("terms", kind.name, kind.version)) for kind in kinds}
        missing = [kind for kind, terms in known.items() if terms is None]
        if missing:
            extracted = self._cache.terms(missing, self.prepared, store=self.store_terms)
            for kind in missing:
                known[kind] = extracted[kind.name]
                self._values.put(("terms", kind.name, kind.version), extracted[kind.name])
        return {kind.name: terms for kind, terms in known.items()}

    def title_terms(self, kinds: Sequence[TermKind]) -> dict[str, list[list[str]]]:
        """For each kind the terms of each document's title, extracted once."""
        keys = {kind: ("terms", kind.name, kind.version, "title") for kind in kinds}
        missing = [kind for kind, key in keys.items() if self._values.peek(key) is None]
        if missing:
            terms = {name: list(of_all) for name, of_all in self.terms(missing).items()}
            titles = {
                place: Document(one.id, one.title, language=one.language)
                for place, one in enumerate(self.prepared)
                if one.text != one.title
            }
            extracted = self._cache.terms(missing, list(titles.values()), store=self.store_terms)
            for name, of_all in extracted.items():
                for place, of_title in zip(titles, of_all, strict=True):
                    terms[name][place] = of_title
            for kind in missing:
                self._values.put(keys[kind], terms[kind.name])
        return {kind.name: self._values.peek(key) for kind, key in keys.items()}

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """A value computed for this batch, the same at every later call."""
        return self._values.get(key, make)

    def given(self, key: Hashable, value: object) -> None:
        """Set a value that was computed elsewhere."""
        self._values.put(key, value)


class Texts(PreparedTexts):
    """A batch of documents as one state of a collection sees them.

    `store_terms` also keeps extracted terms and vectors on disk. A document is
    never its own neighbour; `without_copies`, neither is any with the same text.
    """

    def __init__(
        self,
        reader: Reader,
        documents: Sequence[Document],
        cache: TermCache,
        *,
        store_terms: bool = False,
        without_copies: bool = False,
    ) -> None:
        super().__init__(documents, cache, store_terms=store_terms)
        self.reader = reader
        self.without_copies = without_copies

    @property
    def prepared(self) -> list[Document]:
        """The documents as they would be stored: not too long, and with a language."""
        return self.once("prepared", lambda: self.reader.prepared(self.documents))

    @property
    def own_rows(self) -> list[frozenset[int]]:
        """For each document the rows that cannot be its neighbours: its own, and its copies'."""
        return self.once("own rows", self._own_rows)

    def _own_rows(self) -> list[frozenset[int]]:
        if self.without_copies:
            return self.reader.known_rows(self.documents)
        rows = self.reader.rows_of([document.id for document in self.documents])
        return [
            frozenset((rows[one.id],)) if one.id in rows else frozenset() for one in self.documents
        ]
