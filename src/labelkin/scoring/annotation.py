"""Annotating files of any size, in order, so that an interruption costs next to nothing.

Results go to a journal beside the output, a JSON line a document, a batch at a
time. Run again with the same input and settings, the journal is taken up where
it ends; when the last document is done it becomes the output in the format that
was asked for.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from labelkin.atomic import atomic_file, atomic_text
from labelkin.corpus.document import Document
from labelkin.exceptions import FormatError

_BATCH = 500

Record = dict[str, Any]
Suggest = Callable[[list[Document]], list[Record]]
Writer = Callable[[Iterator[Record], Path, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class AnnotationReport:
    """How many documents the output holds, and how many of them were done before."""

    documents: int
    resumed: int


def annotate(
    documents: Iterable[Document],
    suggest: Suggest,
    output: Path,
    *,
    labels: Sequence[str],
    settings: dict[str, Any],
    format: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> AnnotationReport:
    """Write what `suggest` says of each document to `output`, whole or not at all.

    `suggest` turns documents into records `{"id", "title", "suggestions"}`, with
    `text` where there is no title; suggestions name id, name, column and score.
    `labels` are the ids of the columns. `settings` is what the result depends
    on: a journal made with others is not taken up.
    """
    writer = _writer(output, format)
    journal = _Journal(output, settings)
    waiting = iter(documents)
    resumed = done = journal.skip_done(waiting)
    with journal.appending() as file:
        while batch := list(islice(waiting, _BATCH)):
            for record in suggest(batch):
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
            done += len(batch)
            if progress is not None:
                progress(done)
    writer(journal.records(), output, labels)
    journal.path.unlink()
    return AnnotationReport(done, resumed)


class _Journal:
    """The results so far; its first line says what they were made with."""

    def __init__(self, output: Path, settings: dict[str, Any]) -> None:
        self.path = output.with_name(f".{output.name}.journal")
        content = json.dumps(settings, sort_keys=True, default=str)
        self._mark = hashlib.sha256(content.encode()).hexdigest()

    def skip_done(self, documents: Iterator[Document]) -> int:
        """Pass over the documents that are done; the number of them."""
        finished = self._finished_ids()
        done = 0
        for identifier in finished:
            document = next(documents, None)
            if document is None or document.id != identifier:
                # Another input after all: begin again, and let the caller read anew.
                self.path.unlink(missing_ok=True)
                raise FormatError(
                    f"{self.path}: left by another input and removed; run the command again"
                )
            done += 1
        return done

    def appending(self) -> IO[str]:
        """The journal, open behind its last whole line."""
        if not self.path.exists():
            with self.path.open("w", encoding="utf-8") as file:
                file.write(json.dumps({"settings": self._mark}) + "\n")
        return self.path.open("a", encoding="utf-8")

    def records(self) -> Iterator[Record]:
        """All results."""
        with self.path.open(encoding="utf-8") as file:
            next(file, None)
            for line in file:
                yield json.loads(line)

    def _finished_ids(self) -> list[str]:
        """Ids in order; a line that a kill cut short is cut off the file."""
        if not self.path.exists():
            return []
        ids: list[str] = []
        with self.path.open("rb+") as file:
            try:
                mine = json.loads(file.readline())["settings"] == self._mark
            except (ValueError, KeyError, TypeError):
                mine = False
            end = file.tell()
            for line in file if mine else ():
                try:
                    ids.append(json.loads(line)["id"])
                except ValueError:
                    break
                end += len(line)
            if mine:
                file.truncate(end)
        if not mine:
            self.path.unlink()
        return ids


def _writer(output: Path, format: str | None) -> Writer:
    by_extension = {".csv": "csv", ".tsv": "annif-tsv", ".npz": "npz", ".json": "bioasq"}
    name = format or by_extension.get(Path(output.name.removesuffix(".gz")).suffix, "jsonl")
    if name not in WRITERS:
        raise FormatError(f"{name!r} cannot be written; known: {', '.join(WRITERS)}")
    return WRITERS[name]


def _write_jsonl(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    with atomic_text(output) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_csv(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    with atomic_text(output) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["id", "rank", "label", "name", "score"])
        for record in records:
            for rank, given in enumerate(record["suggestions"], start=1):
                table.writerow([record["id"], rank, given["id"], given["name"], given["score"]])


def _write_annif(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    with atomic_text(output) as file:
        for record in records:
            text = " ".join((record["title"] or record.get("text", "")).split())
            labels = " ".join(f"<{given['id']}>" for given in record["suggestions"])
            file.write(f"{text}\t{labels}\n")


def _write_bioasq(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    """BioASQ's submission: `{"documents": [{"pmid", "labels": […]}, …]}`."""
    with atomic_text(output) as file:
        file.write('{"documents": [')
        for number, record in enumerate(records):
            labels = [given["id"] for given in record["suggestions"]]
            entry = json.dumps({"labels": labels, "pmid": record["id"]}, ensure_ascii=False)
            file.write(("\n" if number == 0 else ",\n") + entry)
        file.write("\n]}\n")


def _write_npz(records: Iterator[Record], output: Path, labels: Sequence[str]) -> None:
    """A scipy matrix of documents × vocabulary columns, with the ids of both in the same file."""
    ids: list[str] = []
    starts, columns, scores = array("q", [0]), array("i"), array("f")
    for record in records:
        ids.append(record["id"])
        columns.extend(given["column"] for given in record["suggestions"])
        scores.extend(given["score"] for given in record["suggestions"])
        starts.append(len(columns))
    # What scipy.sparse.save_npz writes, and two arrays more, which load_npz passes over.
    with atomic_file(output) as file:
        np.savez_compressed(
            file,
            format=np.array(b"csr"),
            shape=np.array((len(ids), len(labels))),
            data=np.frombuffer(scores, dtype=np.float32),
            indices=np.frombuffer(columns, dtype=np.int32),
            indptr=np.frombuffer(starts, dtype=np.int64),
            documents=np.array(ids, dtype=str),
            labels=np.array(labels, dtype=str),
        )


WRITERS: dict[str, Writer] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "annif-tsv": _write_annif,
    "bioasq": _write_bioasq,
    "npz": _write_npz,
}
