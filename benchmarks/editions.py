"""MeSH of 2016 against a recent edition, and what updating a trained collection costs and changes.

python benchmarks/editions.py                         # the differences: writes results/editions.md
python benchmarks/editions.py --table mesh2016.tsv    # the edition of 2016 as a vocabulary file
python benchmarks/editions.py --collection FOLDER [--edition FILE]

Needs ../shared/data. Of 2016 there are ids and hierarchy only; in the table, headings have the
recent edition's names, and those that it lacks are named by their ids. FOLDER is a trained
collection of mesh47k's training part with the edition of 2016 (`labelkin init mesh --vocab
mesh2016.tsv`); a copy of it is updated to FILE (default: the recent edition), measured on l1000
before and after with every method that it can use, without training, and the update is undone.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import tempfile
from pathlib import Path

from labelkin import (
    Concept,
    Indexer,
    Settings,
    Vocabulary,
    __version__,
    read_corpus,
    read_vocabulary,
)
from labelkin.evaluate import parse_measure
from labelkin.store.editions import EditionReport
from labelkin.vocab.editions import KINDS, EditionDiff, compare_editions

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
RECENT = SHARED / "mesh" / "descriptors.tsv.gz"
MEASURES = [parse_measure(name) for name in ("MiF", "P@5")]
METHODS = ("knn", "label-ae", "mix-ranked", "rerank")


def mesh_of_2016() -> Vocabulary:
    """Ids and broader ids; the hierarchy's other nodes are the names of categories."""
    lines = (SHARED / "bioasq" / "mesh2016-mapping.txt").read_text().split("\n")
    ids = {number: name for name, number in map(str.split, filter(None, lines)) if name[0] == "D"}
    broader: dict[str, list[str]] = {identifier: [] for identifier in ids.values()}
    for line in (SHARED / "bioasq" / "mesh2016-hierarchy.txt").read_text().splitlines():
        above, below = line.split()
        if above in ids and below in ids:
            broader[ids[below]].append(ids[above])
    return Vocabulary(Concept(one, {}, broader=tuple(broader[one])) for one in sorted(broader))


def write_table(old: Vocabulary, recent: Vocabulary, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("id\tname\tsynonyms\tbroader\n")
        for concept in old:
            named = recent.get(concept.id) or concept
            synonyms = "|".join(named.synonyms.get("en", ()))
            file.write(f"{concept.id}\t{named.name()}\t{synonyms}\t{'|'.join(concept.broader)}\n")


def differences(diff: EditionDiff) -> list[str]:
    return [
        f"{diff.old:,} headings in 2016, {diff.new:,} in the recent edition.",
        "",
        "| change | headings | |",
        "|---|---|---|",
        *(f"| {kind} | {count:,} | {KINDS[kind]} |" for kind, count in diff.counts().items()),
    ]


def measured(indexer: Indexer) -> dict[str, list[float]]:
    documents = list(read_corpus(SHARED / "mesh47k" / "l1000.json.gz").documents())
    usable = indexer.usable_methods()
    values = {}
    for method in METHODS:
        if method in usable:
            settings = Settings.from_config(indexer.config, method)
            evaluation = indexer.evaluate(documents, settings=settings)
            values[method] = [measure.value(evaluation) for measure in MEASURES]
    return values


def reported(report: EditionReport) -> str:
    return (
        f"{report.documents:,} documents with other headings, {report.reindexed:,} with renamed "
        f"ones, {report.resolved.total():,} labels resolved, {report.unresolved.total():,} not, "
        f"{len(report.withdrawn):,} headings withdrawn ({report.withdrawn_documents:,} documents), "
        f"{len(report.new_headings):,} new, {report.seconds:.1f} s"
    )


def updated(folder: Path, edition: Vocabulary) -> list[str]:
    """Figures before an update, after it and after undoing it, on a copy of the collection."""
    with tempfile.TemporaryDirectory(prefix="editions-") as work:
        copy = Path(work) / "collection"
        shutil.copytree(folder, copy)
        with Indexer.open(copy) as indexer:
            before = measured(indexer)
            report = indexer.update_vocabulary(edition)
            after = measured(indexer)
            undone = indexer.undo_vocabulary()
            restored = measured(indexer)
    return [
        f"Update: {reported(report)}.",
        "",
        f"Undone: {reported(undone)}.",
        "",
        "| MiF / P@5 on l1000 | before | after | undone |",
        "|---|---|---|---|",
        *(
            "| "
            + " | ".join([method, *(_pair(one[method]) for one in (before, after, restored))])
            + " |"
            for method in before
        ),
    ]


def _pair(values: list[float]) -> str:
    return " / ".join(f"{value:.4f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure editions of a vocabulary.")
    parser.add_argument("--table", type=Path, help="write MeSH of 2016 to this file, and no more")
    parser.add_argument("--collection", type=Path, help="a trained collection of mesh47k")
    parser.add_argument("--edition", type=Path, default=RECENT, help="what to update it to")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "editions.md")
    arguments = parser.parse_args()
    old, recent = mesh_of_2016(), read_vocabulary(RECENT)
    if arguments.table is not None:
        write_table(old, recent, arguments.table)
        return
    lines = [
        "# Editions of a vocabulary",
        "",
        f"`python benchmarks/editions.py`: labelkin {__version__}, Python "
        f"{platform.python_version()}, 2 shared cores.",
        "",
        "## MeSH 2016 and a recent edition",
        "",
        "Of 2016 only ids and hierarchy are at hand: names are not compared, and headings that are "
        "gone count as removed.",
        "",
        *differences(compare_editions(old, recent)),
    ]
    if arguments.collection is not None:
        lines += ["", "## A trained collection", ""]
        lines += updated(arguments.collection, read_vocabulary(arguments.edition))
    arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
