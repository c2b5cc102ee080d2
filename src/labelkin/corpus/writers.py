"""Writers for documents: JSON Lines (complete) and Annif's TSV (text and subjects)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from labelkin.atomic import atomic_text
from labelkin.corpus.annif import TITLE_MARK
from labelkin.corpus.document import Document
from labelkin.exceptions import FormatError

logger = logging.getLogger(__name__)


def to_record(document: Document) -> dict[str, Any]:
    """The JSON record that reads back as `document`."""
    record: dict[str, Any] = {
        "id": document.id,
        "title": document.title,
        "abstract": document.body,
        "labels": list(document.labels),
    }
    optional = {
        "language": document.language,
        "fields": dict(document.fields),
        "metadata": dict(document.metadata),
        "label_names": dict(document.label_names),
        "major_labels": list(document.major_labels),
    }
    return record | {key: value for key, value in optional.items() if value}


def write_jsonl(documents: Iterable[Document], file: IO[str]) -> int:
    """Write one complete record per line; returns the number of documents."""
    count = 0
    for document in documents:
        file.write(json.dumps(to_record(document), ensure_ascii=False) + "\n")
        count += 1
    return count


def write_annif_tsv(documents: Iterable[Document], file: IO[str]) -> int:
    """Write lines of `title ¤ text<TAB><uri> <uri>`; returns the number of documents.

    The format has no place for ids, metadata or label names, and separates
    subjects by spaces: labels with spaces are skipped and counted in a warning.
    """
    count = skipped = 0
    for document in documents:
        text = "\n".join(part for part in (document.body, *document.fields.values()) if part)
        parts = [" ".join(part.split()) for part in (document.title, text)]
        uris = [f"<{label}>" for label in document.labels if len(label.split()) == 1]
        skipped += len(document.labels) - len(uris)
        file.write(f"{TITLE_MARK.join(filter(None, parts))}\t{' '.join(uris)}\n")
        count += 1
    if skipped:
        logger.warning(
            "%d labels are names with spaces, which Annif's TSV cannot hold, and were skipped; "
            "pass a vocabulary to write their ids",
            skipped,
        )
    return count


WRITERS: dict[str, Callable[[Iterable[Document], IO[str]], int]] = {
    "jsonl": write_jsonl,
    "annif-tsv": write_annif_tsv,
}


def write_corpus(documents: Iterable[Document], path: Path, format: str | None = None) -> int:
    """Write `documents` to `path` atomically, gzipped if it ends in .gz; returns their number.

    `-` is standard output. Without `format`, the extension decides.
    """
    by_extension = "annif-tsv" if path.name.removesuffix(".gz").endswith(".tsv") else "jsonl"
    writer = WRITERS.get(format or by_extension)
    if writer is None:
        raise FormatError(f"unknown output format {format!r}; known: {', '.join(WRITERS)}")
    if str(path) == "-":
        return writer(documents, sys.stdout)
    with atomic_text(path) as file:
        return writer(documents, file)
