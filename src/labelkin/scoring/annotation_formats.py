"""The formats that annotations can be written in."""

from __future__ import annotations

import csv
import json
import logging
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from labelkin.atomic import atomic_file, atomic_text
from labelkin.exceptions import FormatError
from labelkin.outputs import ANNOTATION_COLUMNS, guarded, output_format
from labelkin.scoring.journal import Record
from labelkin.wording import counted

logger = logging.getLogger(__name__)

Writer = Callable[[Iterator[Record], Path, Sequence[str]], None]

_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".tsv": "annif-tsv",
    ".npz": "npz",
    ".json": "bioasq",
}


def writer_for(output: Path, format: str | None = None) -> Writer:
    """The writer of a format, by default the one for the file's extension."""
    wanted = output_format(output, format, _BY_EXTENSION, WRITERS)
    if wanted == "npz" and output.name.lower().endswith(".gz"):
        raise FormatError(f"{output}: a matrix is compressed already; leave out .gz")
    return WRITERS[wanted]


def _write_jsonl(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    with atomic_text(output) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_csv(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    """A row per suggestion; one with empty cells for a document without any."""
    with atomic_text(output) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(ANNOTATION_COLUMNS)
        for record in records:
            document, title = guarded(record["id"]), guarded(_heading(record))
            if not record["suggestions"]:
                table.writerow([document, "", "", "", "", "", title])
            for rank, given in enumerate(record["suggestions"], start=1):
                label, name = guarded(given["id"]), guarded(given["name"])
                band = given.get("band", "")
                table.writerow([document, rank, label, name, given["score"], band, title])


def _heading(record: Record) -> str:
    """The title on one line, or the beginning of a text without one."""
    return " ".join((record["title"] or record.get("text", "")).split())


def _write_annif(records: Iterator[Record], output: Path, _labels: Sequence[str]) -> None:
    """Lines of `text<TAB><uri> <uri>`; ids with spaces, which Annif does not read, are counted."""
    spaced = 0
    with atomic_text(output) as file:
        for record in records:
            ids = [given["id"] for given in record["suggestions"]]
            spaced += sum(len(one.split()) > 1 for one in ids)
            file.write(f"{_heading(record)}\t{' '.join(f'<{one}>' for one in ids)}\n")
    if spaced:
        logger.warning(
            "%s with spaces: labelkin reads them again, Annif does not; write .jsonl or .csv",
            counted(spaced, "heading has an id", "headings have ids"),
        )


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
    # The arrays of scipy.sparse.save_npz, and two more that load_npz ignores.
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
