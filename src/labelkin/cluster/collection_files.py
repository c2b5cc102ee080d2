"""A snapshot of a collection as Parquet files, which executors read in place of the database.

A file has the labelled documents of a range of rows: row, id, title, body, fields,
language, and the columns of their labels. The manifest, written last, lists the files and
says which generation they are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_file, atomic_text
from labelkin.checksums import read_sealed, sealed
from labelkin.cluster.session import TaskProgress
from labelkin.cluster.task import digest
from labelkin.cluster.workspace import Workspace
from labelkin.corpus.document import Document
from labelkin.represent.cache import text_checksum
from labelkin.store.snapshot import Snapshot

_MANIFEST = "manifest.json"
_KIND = "documents"
_FORMAT_VERSION = 1
_TEXT_COLUMNS = ("id", "title", "body", "fields", "language")
#: Documents that are read and analysed at a time.
BATCH = 500

# Rows, documents, and the columns of their labels.
StoredBatch = tuple[list[int], list[Document], list[list[int]]]


@dataclass(frozen=True, slots=True)
class CollectionFiles:
    """The files of a snapshot, by ascending rows, and a digest of what is in each."""

    paths: tuple[Path, ...]
    digests: tuple[str, ...]


def export_collection(
    snapshot: Snapshot, workspace: Workspace, progress: TaskProgress | None = None
) -> CollectionFiles:
    """The files of a snapshot; only those are written that are not there.

    `progress` is called with the rows that have been read, and all of them.
    """
    folder = workspace.part(_KIND)
    generation = snapshot.generation()
    fingerprint = {
        "format_version": _FORMAT_VERSION,
        "collection": snapshot.manifest.uid,
        "generation": generation.number,
        "token": generation.token,
        "part_rows": workspace.settings.part_rows,
    }
    digests = _listed(folder, fingerprint)
    if digests is None:
        digests = []
        with suppress(FileNotFoundError):
            # What was not used for the state before is of settings that have been given up.
            workspace.delete_unused((folder / _MANIFEST).stat().st_mtime)
        for first in range(0, generation.next_row, workspace.settings.part_rows):
            end = min(first + workspace.settings.part_rows, generation.next_row)
            if name := _write_range(snapshot, first, end, folder):
                digests.append(name)
            if progress is not None:
                progress(end, generation.next_row)
        with atomic_text(folder / _MANIFEST) as file:
            file.write(sealed({**fingerprint, "parts": digests}, indent=1))
    paths = tuple(_path(folder, name) for name in digests)
    workspace.sweep(_KIND, [*paths, folder / _MANIFEST])
    return CollectionFiles(paths, tuple(digests))


def _listed(folder: Path, fingerprint: dict[str, Any]) -> list[str] | None:
    """The parts in the manifest if it is of this fingerprint and they are all there."""
    try:
        content = read_sealed(folder / _MANIFEST)
    except (OSError, ValueError):
        return None
    if any(content.get(key) != value for key, value in fingerprint.items()):
        return None
    parts = [str(name) for name in content.get("parts", ())]
    return parts if all(_path(folder, name).exists() for name in parts) else None


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def _write_range(snapshot: Snapshot, first: int, end: int, folder: Path) -> str | None:
    """Write the documents of a range of rows; the digest of what is in them, None for none."""
    pages = list(snapshot.labelled_texts(first, end))
    rows = [row for page in pages for row, _ in page]
    documents = [document for page in pages for _, document in page]
    if not rows:
        return None
    of_rows = snapshot.labels_of(rows)
    labels = [of_rows[row] for row in rows]
    contents = zip(rows, documents, labels, strict=True)
    name = digest([(row, one.id, text_checksum(one).hex(), of) for row, one, of in contents])
    path = _path(folder, name)
    if not path.exists():
        _write(path, rows, documents, labels)
    return name


def _write(
    path: Path, rows: Sequence[int], documents: Sequence[Document], labels: Sequence[list[int]]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.string()
    table = pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "id": pa.array([one.id for one in documents], text),
            "title": pa.array([one.title for one in documents], text),
            "body": pa.array([one.body for one in documents], text),
            "fields": pa.array(
                [list(one.fields.items()) for one in documents], pa.map_(text, text)
            ),
            "language": pa.array([one.language for one in documents], text),
            "labels": pa.array(labels, pa.list_(pa.int32())),
        }
    )
    with atomic_file(path) as file:
        pq.write_table(table, file)


def read_documents(path: Path) -> Iterator[StoredBatch]:
    """The documents of a file, a batch at a time."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        for batch in pq.ParquetFile(file).iter_batches(BATCH):
            columns = batch.to_pydict()
            texts = zip(*(columns[name] for name in _TEXT_COLUMNS), strict=True)
            documents = [
                Document(name, title, body, fields=dict(fields), language=language)
                for name, title, body, fields, language in texts
            ]
            yield columns["row"], documents, columns["labels"]


def label_languages(paths: Sequence[Path]) -> set[tuple[int, str | None]]:
    """Every column that a document carries, with the document's language."""
    import pyarrow.parquet as pq

    pairs: set[tuple[int, str | None]] = set()
    for path in paths:
        with path.open("rb") as file:
            columns = pq.read_table(file, columns=["language", "labels"]).to_pydict()
        for language, labels in zip(columns["language"], columns["labels"], strict=True):
            pairs.update((column, language) for column in labels)
    return pairs
