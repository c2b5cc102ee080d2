"""Shards of the term index: the postings of a range of rows, built by executors."""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_file
from labelkin.cluster.arrays import array_record, publish_arrays
from labelkin.cluster.collection_files import CollectionFiles, label_languages, read_documents
from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.task import Task, digest
from labelkin.cluster.terms import read_terms
from labelkin.cluster.workspace import Workspace
from labelkin.neighbours.array_file import Checksums
from labelkin.neighbours.engine import IndexedDocument
from labelkin.neighbours.heading_terms import (
    HeadingTerms,
    heading_field,
    heading_key,
    joined_terms,
)
from labelkin.neighbours.postings import Segment
from labelkin.neighbours.postings_builder import SegmentBuilder
from labelkin.neighbours.postings_merge import merge_segments
from labelkin.represent.representation import Representation
from labelkin.store.snapshot import Snapshot

# Terms and documents that are collected in memory.
_RUN = 1 << 20
_SHARDS = "shards"
_HEADINGS = "headings"

# By heading and language of a document: the terms of its name, by kind.
HeadingTable = Mapping[tuple[int, str], Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class ShardTask(Task):
    """Builds the postings of some adjacent files of the collection.

    `headings` is the file with the terms of headings, None if texts alone are indexed.
    """

    output: Path
    documents: tuple[Path, ...]
    terms: tuple[Path, ...]
    headings: Path | None
    kinds: tuple[str, ...]
    fields: tuple[str, ...]

    def run(self) -> None:
        """Write a segment (`postings.py`) with the number of documents and lengths of fields."""
        publish_arrays(self.output, self._write)

    def _write(self, folder: Path) -> tuple[Checksums, Mapping[str, Any]]:
        with tempfile.TemporaryDirectory(prefix="labelkin-") as place:
            runs, builder = list[Path](), SegmentBuilder(self.fields)
            for document in self._indexed():
                builder.add(document)
                if builder.size >= _RUN:
                    runs.append(Path(place) / str(len(runs)))
                    builder.write(runs[-1])
                    builder = SegmentBuilder(self.fields)
            if not runs:
                checksums = builder.write(folder)
            else:
                if builder.size:
                    runs.append(Path(place) / str(len(runs)))
                    builder.write(runs[-1])
                segments = [Segment.open(run) for run in runs]
                nothing = [np.zeros(0, dtype=np.int64) for _ in segments]
                checksums = merge_segments(segments, nothing, folder)
        whole = Segment.open(folder)
        lengths = [int(whole.lengths[number]) for number in range(len(self.fields))]
        return checksums, {"documents": len(whole), "lengths": lengths}

    def _indexed(self) -> Iterator[IndexedDocument]:
        """Rows with their terms by field."""
        table = None if self.headings is None else _read_headings(self.headings, self.kinds)
        for documents, terms in zip(self.documents, self.terms, strict=True):
            stored = read_documents(documents)
            for of_texts, of_rows in zip(read_terms(terms, self.kinds), stored, strict=True):
                rows, _, by_field = of_texts
                if rows != of_rows[0]:
                    raise ValueError(f"{terms}: not the terms of {documents}")
                if table is not None:
                    by_field |= self._of_headings(table, *of_rows[1:])
                for place, row in enumerate(rows):
                    yield row, {field: of_all[place] for field, of_all in by_field.items()}

    def _of_headings(self, table: HeadingTable, documents: Any, labels: Any) -> dict[str, Any]:
        keys = [
            [heading_key(column, document.language) for column in columns]
            for document, columns in zip(documents, labels, strict=True)
        ]
        return {
            heading_field(kind): [
                joined_terms(table[key][kind] for key in of_one) for of_one in keys
            ]
            for kind in self.kinds
        }


def open_segment(shard: Path, used: Container[str] | None = None) -> Segment:
    """The postings of a shard, verified; `used` are the files that will be used, None for all."""
    array_record(shard, used)
    return Segment.open(shard)


def build_shards(
    session: Session,
    workspace: Workspace,
    files: CollectionFiles,
    terms: tuple[Path, ...],
    headings: Path | None,
    representation: Representation,
    fields: tuple[str, ...],
    progress: TaskProgress | None = None,
) -> tuple[Path, ...]:
    """The shards of a collection, each of about `shard_rows` rows, by ascending rows."""
    settings = workspace.settings
    size = max(settings.shard_rows // settings.part_rows, 1)
    kind = f"{_SHARDS}-{digest(fields, representation.versions())[:8]}"
    folder = workspace.part(kind)
    kinds = tuple(one.name for one in representation.kinds)
    tasks = []
    for first in range(0, len(files.paths), size):
        part = slice(first, first + size)
        depends_on = (files.digests[part], headings and headings.name, fields)
        name = digest(*depends_on, representation.versions())
        tasks.append(
            ShardTask(folder / name, files.paths[part], terms[part], headings, kinds, fields)
        )
    session.run(tasks, progress)
    shards = tuple(task.output for task in tasks)
    workspace.sweep(kind, shards)
    return shards


def write_headings(
    snapshot: Snapshot, workspace: Workspace, files: CollectionFiles, headings: HeadingTerms
) -> Path:
    """A file with the terms of all headings that documents carry."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = headings.by_heading(snapshot, label_languages(files.paths))
    content = [
        (*key, {kind: list(of) for kind, of in terms.items()}) for key, terms in table.items()
    ]
    path = workspace.part(_HEADINGS) / f"{digest(content)}.parquet"
    if not path.exists():
        kinds = content[0][2].keys() if content else ()
        columns = {
            "column": pa.array([column for column, _, _ in content], pa.int64()),
            "language": pa.array([language for _, language, _ in content], pa.string()),
            **{
                kind: pa.array([terms[kind] for *_, terms in content], pa.list_(pa.string()))
                for kind in kinds
            },
        }
        with atomic_file(path) as file:
            pq.write_table(pa.table(columns), file)
    workspace.sweep(_HEADINGS, [path])
    return path


def _read_headings(path: Path, kinds: tuple[str, ...]) -> HeadingTable:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        columns = pq.read_table(file).to_pydict()
    return {
        (column, language): {kind: tuple(columns[kind][place]) for kind in kinds}
        for place, (column, language) in enumerate(
            zip(columns["column"], columns["language"], strict=True)
        )
    }
