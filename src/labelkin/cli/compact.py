"""`labelkin compact`: gives back what removed documents still take up."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from labelkin.cli.console import (
    bytes_text,
    counted,
    print_error,
    print_facts,
    print_json,
    print_message,
)
from labelkin.cli.exits import PARTLY_DONE
from labelkin.cli.options import CollectionPath, Json
from labelkin.cli.progress import Stages

if TYPE_CHECKING:
    from labelkin.compaction import CompactReport


def compact(collection: CollectionPath, json: Json = False) -> None:
    """Drop what removed documents still take up; others may read and write meanwhile.

    Merges label segments and indexes without removed documents, which then leave the
    statistics that scores depend on; drops vectors, cached terms that no document has, and
    what killed processes have left; gives free space of the database back.
    """
    from labelkin.indexer import Indexer

    with Indexer.open(collection) as indexer, Stages() as stages:
        report = indexer.compact(
            lambda part, done, total: stages.at(part, total).update(done, counted(done, "row"))
        )
    if json:
        print_json({**asdict(report), "freed": report.freed})
    else:
        print_compacted(report)
    if not report.is_complete:
        raise typer.Exit(PARTLY_DONE)


def print_compacted(report: CompactReport) -> None:
    """Print what was done for a person."""
    done = [one for one in report.parts if not one.problem]
    print_facts(
        (one.part, f"{one.change}, {bytes_text(one.bytes_before)} → {bytes_text(one.bytes_after)}")
        for one in done
    )
    for one in report.parts:
        if one.problem:
            print_error(f"{one.part} is left as it was: {one.problem}")
    if done:
        print_message(f"Freed {bytes_text(max(report.freed, 0))}.")
    elif report.is_complete:
        print_message("Nothing to do: no removed document takes up space.")
