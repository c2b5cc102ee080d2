"""Results of a long run so far, beside the file that they will become."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.store.locks import FileLock

Record = dict[str, Any]


class Journal(Closing):
    """A JSON line a document: a digest of the document and its result.

    The first line says what the results were made with. The journal of a run
    with other settings counts for nothing, and one of other documents up to
    the first that differs. Only one process can have it at a time.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.done = 0
        content = json.dumps(settings, sort_keys=True, default=str)
        self._head = json.dumps({"settings": hashlib.sha256(content.encode()).hexdigest()}) + "\n"
        self._lock = FileLock(path)
        if not self._lock.take():
            raise CollectionBusyError(f"{path}: another process is writing it; try again later")

    def close(self) -> None:
        """Let go of the file; one that holds no results is removed."""
        if self.path.exists() and self.path.stat().st_size <= len(self._head):
            self.remove()
        self._lock.close()

    def remove(self) -> None:
        """Take the file away, when its results are where they belong."""
        self.path.unlink(missing_ok=True)

    def taken_up(self, documents: Iterator[Document]) -> Iterator[Document]:
        """The documents that are still to be done; `done` are the others.

        Without any document the journal stays as it is.
        """
        first = next(documents, None)
        if first is None:
            return documents
        documents = chain([first], documents)
        with self.path.open("rb+") as file:
            if file.readline() != self._head.encode():
                file.seek(0)
                file.truncate()
                file.write(self._head.encode())
                return documents
            while True:
                start = file.tell()
                digest = _digest_in(file.readline())
                document = next(documents, None) if digest else None
                if document is None or digest != _digest(document):
                    # The end, a line that a kill cut short, or another document than before.
                    file.truncate(start)
                    return documents if document is None else chain([document], documents)
                self.done += 1

    def append(self, results: Iterable[tuple[Document, Record]]) -> None:
        """Results of the next documents, safe on disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            for document, record in results:
                entry = {"document": _digest(document), "result": record}
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self.done += 1
            file.flush()
            os.fsync(file.fileno())

    def records(self) -> Iterator[Record]:
        """All results, in the order of the documents."""
        with self.path.open(encoding="utf-8") as file:
            next(file, None)
            for line in file:
                yield json.loads(line)["result"]


def _digest(document: Document) -> str:
    """Changes with whatever can change the result of a document."""
    parts = (document.id, document.language or "", document.title, document.text)
    content = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _digest_in(line: bytes) -> str | None:
    """The digest in a line, if it is a whole one."""
    if not line.endswith(b"\n"):
        return None
    try:
        found: str = json.loads(line)["document"]
    except (ValueError, KeyError, TypeError):
        return None
    return found
