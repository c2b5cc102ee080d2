"""The results of an unfinished run, in a file next to its output."""

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
#: The key of a record that holds nothing but why its document has no result.
FAILED = "failed"


class Journal(Closing):
    """One JSON line per document: a checksum of the document, and its result.

    The first line is a checksum of the settings. A journal with other settings
    is discarded; one with other documents is used up to the first that
    differs. Only one process can open it at a time.
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
        """Release the file; delete it if it holds no results."""
        if self.path.exists() and self.path.stat().st_size <= len(self._head):
            self.remove()
        self._lock.close()

    def remove(self) -> None:
        """Delete the file once its results are in the output."""
        self.path.unlink(missing_ok=True)

    def resume(self, documents: Iterator[Document]) -> Iterator[Document]:
        """The documents that have no result yet; `done` counts those that have one.

        Without any document the journal does not change.
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
                checksum = _checksum_in(file.readline())
                document = next(documents, None) if checksum else None
                if document is None or checksum != document_checksum(document):
                    # The end, an incomplete line after a crash, or a document that differs.
                    file.truncate(start)
                    return documents if document is None else chain([document], documents)
                self.done += 1

    def append(self, results: Iterable[tuple[Document, Record]]) -> None:
        """Append the results of the next documents; they are on disk when this returns."""
        lines = [
            json.dumps(
                {"document": document_checksum(document), "result": record}, ensure_ascii=False
            )
            for document, record in results
        ]
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        self.done += len(lines)

    def records(self) -> Iterator[Record]:
        """The results, in the order of the documents; those that failed are left out."""
        return (record for record in self._results() if FAILED not in record)

    def failures(self) -> list[str]:
        """Where documents were read from that failed, and why."""
        return [record[FAILED] for record in self._results() if FAILED in record]

    def _results(self) -> Iterator[Record]:
        with self.path.open(encoding="utf-8") as file:
            next(file, None)
            for line in file:
                yield json.loads(line)["result"]


def document_checksum(document: Document) -> str:
    """A checksum of everything that the result of a document depends on."""
    parts = (document.id, document.language or "", document.title, document.text)
    content = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _checksum_in(line: bytes) -> str | None:
    """The checksum in a line; None if the line is incomplete."""
    if not line.endswith(b"\n"):
        return None
    try:
        checksum: str = json.loads(line)["document"]
    except (ValueError, KeyError, TypeError):
        return None
    return checksum
