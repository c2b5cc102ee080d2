"""The whole of labelkin behind one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from labelkin.corpus.document import Deletion, Document
from labelkin.corpus.language import normalise_language
from labelkin.exceptions import ConfigError
from labelkin.store.collection import Collection
from labelkin.store.config import CollectionSection, Config, LabelsSection
from labelkin.store.info import CollectionInfo, collection_info
from labelkin.store.reports import AddReport, RemoveReport
from labelkin.store.writer import Progress, add_documents, remove_documents
from labelkin.vocab.vocabulary import Vocabulary


class Indexer:
    """A collection that one can fill, look into and, step by step, learn from.

    >>> with Indexer.create("news", vocabulary) as indexer:
    ...     indexer.add(read_corpus("indexed.jsonl"))
    ...     indexer.info().documents
    """

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    @classmethod
    def create(
        cls,
        path: str | Path,
        vocabulary: Vocabulary | None = None,
        *,
        name: str = "",
        language: str = "auto",
    ) -> Indexer:
        """A new collection at `path`.

        Without a vocabulary, the labels found in documents become it.
        `language` is that of documents that do not state their own; "auto"
        detects it from each text.
        """
        code = language if language == "auto" else normalise_language(language)
        if code is None:
            raise ConfigError(f"{language!r} is no language code; give one such as 'en', or 'auto'")
        config = Config(
            collection=CollectionSection(name=name, language=code),
            labels=LabelsSection(unknown="keep" if vocabulary is None else "report"),
        )
        return cls(Collection.create(Path(path), vocabulary or Vocabulary(), config))

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False) -> Indexer:
        """An existing collection; one on a read-only disk can be read and searched."""
        return cls(Collection(Path(path), read_only=read_only))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the collection's files."""
        self.collection.close()

    @property
    def config(self) -> Config:
        """The settings in labelkin.toml."""
        return self.collection.config

    @property
    def vocabulary(self) -> Vocabulary:
        """The concepts that documents can be labelled with."""
        return self.collection.vocabulary

    def add(
        self,
        documents: Iterable[Document | Deletion],
        *,
        keep_unknown: bool | None = None,
        progress: Progress | None = None,
    ) -> AddReport:
        """Store documents, a corpus from `read_corpus` for one; known ids are replaced.

        `progress` is called after each stored batch with the report so far.
        """
        return add_documents(
            self.collection, documents, keep_unknown=keep_unknown, progress=progress
        )

    def remove(self, identifiers: Iterable[str]) -> RemoveReport:
        """Take documents out by their ids."""
        return remove_documents(self.collection, identifiers)

    def document(self, identifier: str) -> Document | None:
        """The document with this id."""
        return self.collection.document(identifier)

    def documents(self) -> Iterator[Document]:
        """All documents, oldest first."""
        return self.collection.documents()

    def info(self) -> CollectionInfo:
        """Counts over documents, labels, languages and files."""
        return collection_info(self.collection)
