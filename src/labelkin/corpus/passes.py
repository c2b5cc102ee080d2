"""A corpus read more than once, the same documents each time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import numpy as np

from labelkin.corpus.corpus import Corpus
from labelkin.corpus.document import Document
from labelkin.corpus.near_duplicates import Hashes, Integers, Progress
from labelkin.corpus.text import document_key
from labelkin.exceptions import InputError
from labelkin.wording import counted

# Called with the name of a step, how much of it is done, how much there is to do, and a note.
StepProgress = Callable[[str, int, int, str], None]

_BETWEEN_REPORTS = 1000


class Passes:
    """The passes over a corpus of a command that first looks at all documents and then writes them.

    A document is known by its row: its place in the first pass. `file_names`
    has the name of the file of each row, by its number in `files`.
    """

    def __init__(self, corpus: Corpus, progress: StepProgress | None = None) -> None:
        self._corpus = corpus
        self._progress = progress
        self._keys = array("Q")
        self.file_names: list[str] = []
        self.files = array("i")

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> Hashes:
        """A checksum of each row's id."""
        return np.frombuffer(self._keys, dtype=np.uint64)

    def joined_by_id(self, groups: Integers) -> Integers:
        """Groups, each named by its smallest row, that also hold rows with the same id together."""
        _, first, inverse = np.unique(self.keys, return_index=True, return_inverse=True)
        if len(first) == len(self):
            return groups
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        rows = np.arange(len(self))
        edges = (np.concatenate((rows, rows)), np.concatenate((groups, first[inverse])))
        ones = np.ones(2 * len(self), dtype=bool)
        graph = coo_array((ones, edges), shape=(len(self), len(self)))
        labels = connected_components(graph, directed=False)[1]
        return np.unique(labels, return_index=True)[1][labels].astype(np.int64)

    def check_files(self) -> None:
        """Refuse standard input and pipes, of which there is no second pass."""
        for path in self._corpus.paths:
            if not path.is_file():
                name = "standard input" if str(path) == "-" else path
                raise InputError(
                    f"{name}: can be read only once, and this needs two passes; "
                    "write it to a file first"
                )

    def first(self, step: str) -> Iterator[Document]:
        """The documents of the first pass; InputError if there are none."""
        for document in self._reported(self._corpus.documents(), step):
            name = self._corpus.file_name
            if not self.file_names or self.file_names[-1] != name:
                self.file_names.append(name)
            self._keys.append(document_key(document.id, 0))
            self.files.append(len(self.file_names) - 1)
            yield document
        if not self._keys:
            raise InputError("no document could be read; nothing was written")

    def again(self, step: str) -> Iterator[tuple[int, Document]]:
        """Rows and documents of another pass; InputError if a file has changed."""
        row = -1
        for row, document in enumerate(self._reported(self._corpus.documents_again(), step)):
            if row >= len(self) or self._keys[row] != document_key(document.id, 0):
                raise _changed(self._corpus.file_name)
            yield row, document
        if row + 1 != len(self):
            raise _changed(self._corpus.file_name)

    def within(self, step: str) -> Progress | None:
        """The progress of a step between two passes."""
        progress = self._progress
        if progress is None:
            return None
        return lambda done, total: progress(step, done, total, f"{done} of {total} bands")

    def _reported(self, documents: Iterator[Document], step: str) -> Iterator[Document]:
        for count, document in enumerate(documents):
            if self._progress is not None and count % _BETWEEN_REPORTS == 0:
                done, total = self._corpus.bytes_read, self._corpus.bytes_total
                self._progress(step, done, total, counted(count, "document"))
            yield document


def _changed(name: str) -> InputError:
    return InputError(
        f"{name}: changed while it was read; nothing was written, run the same command again"
    )
