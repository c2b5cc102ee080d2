"""The data files of an experiment: checksums, and samples of documents drawn by a seed."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelkin.corpus.corpus import read_corpus
from labelkin.corpus.document import Document
from labelkin.exceptions import InputError


@dataclass(frozen=True)
class Source:
    """Corpus files, and how many of their documents to draw; 0 takes all.

    Documents are drawn by a hash of seed and id, so a smaller sample is a subset of
    a larger one, whatever the order of the files.
    """

    paths: tuple[Path, ...]
    size: int = 0
    seed: int = 0

    def documents(self) -> Iterator[Document]:
        """The drawn documents, in the order of the files."""
        drawn = self._drawn()
        for document in read_corpus(*self.paths).documents():
            if drawn is None or document.id in drawn:
                yield document

    def _drawn(self) -> set[str] | None:
        if self.size == 0:
            return None
        identifiers = {document.id for document in read_corpus(*self.paths).documents()}
        return set(heapq.nsmallest(self.size, identifiers, key=self._order))

    def _order(self, identifier: str) -> bytes:
        return hashlib.blake2b(f"{self.seed} {identifier}".encode(), digest_size=8).digest()


class MissingDataError(InputError):
    """Files of an experiment are missing; `lines` says of each what it is and where it is from."""

    def __init__(self, folder: Path, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        super().__init__(
            f"{folder}: {len(lines)} of the experiment's files are not there; name the folder that "
            "they are in with --data, or adapt a copy of the grid (a .toml file) to your own files"
        )


def check_data_files(folder: Path, names: Sequence[str], origins: Mapping[str, str]) -> None:
    """Raise MissingDataError unless all files are in the data folder.

    `origins` says where files come from, by name.
    """
    missing = [name for name in dict.fromkeys(names) if not (folder / name).is_file()]
    if missing:
        lines = [
            f"{folder / name}: {origins.get(name, 'a file of your own grid')}" for name in missing
        ]
        raise MissingDataError(folder, lines)


def data_files(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """The paths of files in the data folder."""
    return tuple(folder / name for name in names)


def file_checksum(path: Path) -> str:
    """A checksum of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
