"""`labelkin neighbours`: the documents most similar to a text."""

from __future__ import annotations

import csv
import json as json_module
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.cluster import OnMaster, opened_cluster
from labelkin.cli.console import (
    counted,
    print_json,
    print_line,
    print_message,
    print_table,
)
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    BodyText,
    CollectionPath,
    CorpusFormat,
    Json,
    ReadingOptions,
    RepresentationName,
    TextFile,
    TitleText,
    takes,
)
from labelkin.cli.outputs import check_output, is_standard_output, open_output
from labelkin.cli.progress import Meter, meter
from labelkin.cli.texts import open_texts

if TYPE_CHECKING:
    from labelkin.cli.cluster import Cluster
    from labelkin.cluster.search import ClusterSearch
    from labelkin.corpus import Corpus, Document
    from labelkin.indexer import Indexer
    from labelkin.neighbours import Neighbours, NeighbourSearch

_BATCH = 500
_SHOWN_TERMS = 5
_FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv", ".npz": "npz"}


@takes(ReadingOptions, "reading")
def neighbours(
    collection: CollectionPath,
    reading: ReadingOptions,
    file: TextFile = None,
    title: TitleText = None,
    text: BodyText = None,
    k: Annotated[
        int | None,
        typer.Option("-k", min=1, max=10_000, help="How many. Default: as labelkin.toml says."),
    ] = None,
    representation: RepresentationName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to a file: .jsonl, .csv, .tsv or, for arrays, .npz; - is standard output.",
        ),
    ] = None,
    format: CorpusFormat = None,
    on: OnMaster = None,
    json: Json = False,
) -> None:
    """Find the most similar documents, with their distances and the terms they share."""
    from labelkin.indexer import Indexer

    if output is not None:
        check_output(output, [collection] if file is None else [collection, file])
        neighbours_format(output)
    elif on is not None:
        raise typer.BadParameter("--on is for files of texts: give --output as well")
    with (
        open_texts(file, title, text, format, reading) as (documents, corpus),
        Indexer.open(collection) as indexer,
        ExitStack() as stack,
    ):
        if output is None:
            show_neighbours(indexer, documents, k, representation, json=json)
        else:
            search = None
            if on is None:
                build_with_progress(indexer, representation)
                batches = _metered(_searched(indexer, documents, k, representation), corpus)
            else:
                from labelkin.cluster.search import term_representation

                section = indexer.config.representation
                term_representation(representation or section.name, section)
                cluster = stack.enter_context(opened_cluster(indexer, on))
                search = cluster.search(indexer, representation)
                batches = _searched_on(cluster, search, documents, k, corpus)
            count = _write(indexer, batches, representation, output)
            if search is not None:
                # Until now an interrupted command need not search again.
                search.finish()
            where = "standard output" if is_standard_output(output) else output
            print_message(f"Wrote the neighbours of {counted(count, 'document')} to {where}.")
    if corpus is not None:
        exit_after_reading(corpus.report, strict=False)


Batch = tuple[list["Document"], "NeighbourSearch", "Neighbours"]


def _searched_on(
    cluster: Cluster,
    search: ClusterSearch,
    documents: Iterator[Document],
    k: int | None,
    corpus: Corpus | None,
) -> Iterator[Batch]:
    """As `_searched`, on a cluster; lines say how far the whole is."""
    from labelkin.cluster.sizes import WAVE, taken_documents, text_alone

    # The driver holds many documents at a time.
    documents = map(text_alone, documents)
    duplicates, done, is_first = 0, 0, True
    whole = Meter("Neighbours", corpus.bytes_total if corpus else 0, None)
    whole.update(0, counted(0, "document"))
    while (batch := taken_documents(documents, search.batch, WAVE)) or is_first:
        near = search.search(search.texts(batch), k)
        cluster.stages.close()
        duplicates += len(near.duplicates)
        is_first = False
        yield batch, search, near
        done += len(batch)
        whole.update(corpus.bytes_read if corpus else done, counted(done, "document"))
    _print_duplicates(duplicates)


def _searched(
    indexer: Indexer, documents: Iterator[Document], k: int | None, representation: str | None
) -> Iterator[Batch]:
    duplicates = 0
    while batch := list(islice(documents, _BATCH)):
        search = indexer.search(representation)
        near = search.search(search.texts(batch, store_terms=True), k)
        duplicates += len(near.duplicates)
        yield batch, search, near
    _print_duplicates(duplicates)


def _print_duplicates(duplicates: int) -> None:
    if duplicates:
        print_message(f"{counted(duplicates, 'neighbour')} with exactly the same text.")


def _metered(batches: Iterator[Batch], corpus: Corpus | None) -> Iterator[Batch]:
    done = 0
    with meter("Searching", corpus.bytes_total if corpus else 0) as bar:
        for batch in batches:
            yield batch
            done += len(batch[0])
            bar.update(corpus.bytes_read if corpus else done, counted(done, "document"))


def show_neighbours(
    indexer: Indexer,
    documents: Iterator[Document],
    k: int | None,
    representation: str | None = None,
    *,
    json: bool = False,
) -> None:
    """Print the neighbours of each document, as tables or as JSON."""
    build_with_progress(indexer, representation)
    batches = _searched(indexer, documents, k, representation)
    if json:
        print_json([row for batch in batches for row in _rows(*batch)])
        return
    for batch in batches:
        for row in _rows(*batch):
            heading = "" if row["id"] is None else f"{row['id']}  {row['title']}"
            if not row["neighbours"]:
                print_message(f"{heading or 'The text'}: no document shares a term with it.")
                continue
            table = [
                (f"{n['distance']:.3f}", n["id"], n["title"], " ".join(n["terms"]))
                for n in row["neighbours"]
            ]
            columns = [("distance", True), ("id", False), ("title", False), ("terms", False)]
            print_table(heading, columns, table)
            print_line()


def neighbours_format(output: Path) -> str:
    """The format of a file of neighbours; FormatError if its extension has none."""
    from labelkin.exceptions import FormatError
    from labelkin.outputs import output_format

    name = output_format(output, None, _FORMATS, _FORMATS.values(), option="")
    if name == "npz" and output.name.lower().endswith(".gz"):
        raise FormatError(f"{output}: arrays are written without .gz")
    return name


def _write(
    indexer: Indexer, batches: Iterator[Batch], representation: str | None, output: Path
) -> int:
    from labelkin.neighbours import Neighbours

    format_name = neighbours_format(output)
    if format_name == "npz":
        parts = [near for _, _, near in batches]
        if not parts:
            parts = [indexer.neighbour_arrays([], representation=representation)]
        whole = Neighbours.joined(parts)
        whole.save(output)
        return len(whole)
    rows = (row for batch in batches for part in _parts(*batch) for row in _rows(*part))
    with open_output(output) as file:
        if format_name == "jsonl":
            return _write_lines(rows, file)
        return _write_table(rows, file, "," if format_name == "csv" else "\t")


def _parts(documents: list[Document], search: NeighbourSearch, near: Neighbours) -> Iterator[Batch]:
    """A batch in parts that can be described in little memory."""
    for start in range(0, len(documents), _BATCH):
        part = slice(start, start + _BATCH)
        yield documents[part], search, near[part]


def _write_lines(rows: Iterable[dict[str, Any]], file: IO[str]) -> int:
    count = 0
    for row in rows:
        file.write(json_module.dumps(row, ensure_ascii=False) + "\n")
        count += 1
    return count


def _write_table(rows: Iterable[dict[str, Any]], file: IO[str], delimiter: str) -> int:
    """A row per neighbour; one with empty cells for a document without any."""
    from labelkin.outputs import NEIGHBOUR_COLUMNS, guarded

    def cell(text: object) -> str:
        return guarded(" ".join(str(text or "").split()))

    if delimiter == "\t":
        # Cells have no tabs any more, and quotes are plain characters in TSV.
        table = csv.writer(
            file, "excel-tab", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None
        )
    else:
        table = csv.writer(file, lineterminator="\n")
    table.writerow(NEIGHBOUR_COLUMNS)
    count = 0
    for row in rows:
        own = (cell(row["id"]), cell(row["title"]))
        if not row["neighbours"]:
            table.writerow([*own, *[""] * (len(NEIGHBOUR_COLUMNS) - len(own))])
        for rank, near in enumerate(row["neighbours"], start=1):
            terms = cell(" ".join(near["terms"]))
            place = (cell(near["id"]), cell(near["title"]), near["distance"], near["score"])
            table.writerow([*own, rank, *place, terms])
        count += 1
    return count


def _rows(
    documents: list[Document], search: NeighbourSearch, near: Neighbours
) -> Iterator[dict[str, Any]]:
    from labelkin.neighbours.neighbour import describe
    from labelkin.neighbours.search import IN_HEADINGS

    described = describe(search, documents, near, _SHOWN_TERMS)
    for document, neighbours_of in zip(documents, described, strict=True):
        yield {
            "id": document.id or None,
            "title": document.title,
            "neighbours": [
                {
                    "id": one.id,
                    "title": one.title,
                    "distance": round(one.distance, 6),
                    "score": round(one.score, 4),
                    "terms": [
                        f"heading:{match.term}" if match.kind == IN_HEADINGS else match.term
                        for match in one.terms
                    ],
                }
                for one in neighbours_of
            ],
        }
