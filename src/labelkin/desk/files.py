"""Decisions as files: JSON Lines that `labelkin eval` reads, or a table of verdicts."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from labelkin.atomic import atomic_text
from labelkin.corpus.writers import to_record
from labelkin.desk.decisions import Decision
from labelkin.outputs import guarded, output_format

COLUMNS = (
    *("document", "title", "time", "method", "generation"),
    *("concept", "name", "verdict", "score", "rank", "band"),
    *("seconds", "blind"),
)
_BY_EXTENSION = {".jsonl": "jsonl", ".csv": "csv"}


def write_jsonl(decisions: Iterable[Decision], file: IO[str]) -> int:
    """Write a document per line with its chosen headings and all verdicts; their number."""
    count = 0
    for decision in decisions:
        record: dict[str, Any] = to_record(decision.labelled())
        record["verdicts"] = [
            {**asdict(one), "method": decision.method, "time": decision.time}
            for one in decision.verdicts
        ]
        record["decision"] = {
            "time": decision.time,
            "method": decision.method,
            "generation": decision.generation,
            "seconds": decision.seconds,
            "blind": decision.blind,
        }
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


def write_csv(decisions: Iterable[Decision], file: IO[str]) -> int:
    """Write a row per verdict; the number of decisions."""
    table = csv.writer(file, lineterminator="\n")
    table.writerow(COLUMNS)
    count = 0
    for decision in decisions:
        for one in decision.verdicts:
            row = (
                *(decision.document.id, " ".join(decision.document.title.split())),
                *(decision.time, decision.method, decision.generation),
                *(one.id, one.name, one.verdict, one.score, one.rank, one.band),
                *(decision.seconds, str(decision.blind).lower()),
            )
            table.writerow([guarded("" if cell is None else str(cell)) for cell in row])
        count += 1
    return count


Writer = Callable[[Iterable[Decision], IO[str]], int]

WRITERS: dict[str, Writer] = {"jsonl": write_jsonl, "csv": write_csv}


def decisions_format(path: Path, asked: str | None = None) -> str:
    """The format that `write_decisions` writes `path` in; FormatError if there is none."""
    return output_format(path, asked, _BY_EXTENSION, WRITERS)


def write_decisions(
    decisions: Iterable[Decision], path: str | Path, format: str | None = None
) -> int:
    """Write decisions to a file atomically, gzipped if it ends in .gz; their number.

    Without `format`, the extension decides: .jsonl or .csv.
    """
    path = Path(path)
    writer = WRITERS[decisions_format(path, format)]
    with atomic_text(path) as file:
        return writer(decisions, file)
