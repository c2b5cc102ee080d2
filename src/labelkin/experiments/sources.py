"""The files of an experiment: their digests, and parts of them that are drawn by a seed."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelkin.corpus.corpus import read_corpus
from labelkin.corpus.document import Document
from labelkin.exceptions import InputError


@dataclass(frozen=True)
class Source:
    """Some files and how many of their documents are wanted; 0 for all.

    Documents are drawn by a digest of seed and id, so a smaller part is a part
    of a larger one, whatever the order of the files.
    """

    paths: tuple[Path, ...]
    size: int = 0
    seed: int = 0

    def documents(self) -> Iterator[Document]:
        """The documents that are wanted, in the order of the files."""
        wanted = self._drawn()
        for document in read_corpus(*self.paths).documents():
            if wanted is None or document.id in wanted:
                yield document

    def _drawn(self) -> set[str] | None:
        if self.size == 0:
            return None
        identifiers = {document.id for document in read_corpus(*self.paths).documents()}
        return set(heapq.nsmallest(self.size, identifiers, key=self._order))

    def _order(self, identifier: str) -> bytes:
        return hashlib.blake2b(f"{self.seed} {identifier}".encode(), digest_size=8).digest()


def data_files(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """The files of these names in the data folder; an error for one that is not there."""
    paths = tuple(folder / name for name in names)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no such file; name the data folder with --data")
    return paths


def file_digest(path: Path) -> str:
    """A digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
