"""MeSH of 2016 against a recent edition, and what updating a trained collection costs and changes.

python benchmarks/editions.py                         # the differences: writes results/editions.md
python benchmarks/editions.py --table mesh2016.tsv    # the edition of 2016 as a vocabulary file
python benchmarks/editions.py --collection FOLDER [--edition FILE]
python benchmarks/editions.py --kills 20              # `vocab update` on mesh47k, killed

Needs ../shared/data. Of 2016 there are ids and hierarchy only; in the table, headings have the
recent edition's names, and those that it lacks are named by their ids. FOLDER is a trained
collection of mesh47k's training part with the edition of 2016 (`labelkin init mesh --vocab
mesh2016.tsv`); a copy of it is updated to FILE (default: the recent edition), measured on l1000
before and after with every method that it can use, without training, and the update is undone.
`--kills` makes a collection of its own, without models. Sections that are not measured stay.
"""

from __future__ import annotations

import argparse
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
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
from labelkin.store.reports import EditionReport
from labelkin.vocab.editions import KINDS, EditionDiff, compare_editions

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
RECENT = SHARED / "mesh" / "descriptors.tsv.gz"
MEASURES = [parse_measure(name) for name in ("MiF", "P@5")]
METHODS = ("knn", "label-ae", "mix-ranked", "rerank")
# The sections of the page, in order.
DIFFERENCES = "MeSH 2016 and a recent edition"
TRAINED = "A trained collection"
KILLED = "Killed updates"


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


def killed(kills: int, seed: int = 0) -> list[str]:
    """`labelkin vocab update` on mesh47k, killed at random moments; what is there afterwards."""
    choose, outcomes = random.Random(seed), {"the old": 0, "the new": 0}
    ended = harmed = 0
    with tempfile.TemporaryDirectory(prefix="editions-") as work:
        table, collection = Path(work) / "mesh2016.tsv", Path(work) / "collection"
        write_table(mesh_of_2016(), read_vocabulary(RECENT), table)
        with Indexer.create(collection, read_vocabulary(table), language="en") as indexer:
            indexer.add(read_corpus(SHARED / "mesh47k" / "train.json.gz"))
            indexer.build()
        command = [sys.executable, "-m", "labelkin", "vocab", "update", collection, RECENT]
        states, started = {"the old": counted(collection)}, time.monotonic()
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        seconds = time.monotonic() - started
        states["the new"] = counted(collection)
        undo(collection)
        assert states["the old"] == counted(collection) != states["the new"]
        for _ in range(kills):
            process = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                process.wait(choose.uniform(0, seconds))
                ended += 1
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            state = counted(collection)
            found = [name for name, one in states.items() if one == state]
            with Indexer.open(collection) as indexer:
                harmed += not found or not indexer.check().is_sound
            for name in found:
                outcomes[name] += 1
            if found == ["the new"]:
                undo(collection)
    return [
        f"`labelkin vocab update` from the edition of 2016 to the recent one on the training "
        f"records of mesh47k takes {seconds:.1f} s. Of {kills} runs, each killed with SIGKILL at a "
        f"random moment of that time unless it had ended ({ended}), {outcomes['the old']} left the "
        f"old edition and {outcomes['the new']} the new one, by the number of documents with each "
        f"heading. {harmed or 'None'} left anything else, or anything that `labelkin doctor` "
        "reports as damaged.",
    ]


def counted(collection: Path) -> dict[str, int]:
    """How many documents carry each heading."""
    with Indexer.open(collection, read_only=True) as indexer:
        counts = indexer.label_frequencies().tolist()
        return {
            concept.id: count
            for concept, count in zip(indexer.vocabulary, counts, strict=False)
            if count
        }


def undo(collection: Path) -> None:
    with Indexer.open(collection) as indexer:
        indexer.undo_vocabulary()


def sections_of(page: Path) -> dict[str, list[str]]:
    """The lines of each section of a page that is there."""
    sections: dict[str, list[str]] = {}
    for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else []:
        if line.startswith("## "):
            sections[line.removeprefix("## ")] = []
        elif sections:
            list(sections.values())[-1].append(line)
    return sections


def _pair(values: list[float]) -> str:
    return " / ".join(f"{value:.4f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure editions of a vocabulary.")
    parser.add_argument("--table", type=Path, help="write MeSH of 2016 to this file, and no more")
    parser.add_argument("--collection", type=Path, help="a trained collection of mesh47k")
    parser.add_argument("--edition", type=Path, default=RECENT, help="what to update it to")
    parser.add_argument("--kills", type=int, default=0, help="how many updates to kill")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "editions.md")
    arguments = parser.parse_args()
    old, recent = mesh_of_2016(), read_vocabulary(RECENT)
    if arguments.table is not None:
        write_table(old, recent, arguments.table)
        return
    sections = sections_of(arguments.output)
    sections[DIFFERENCES] = [
        "",
        "Of 2016 only ids and hierarchy are at hand: names are not compared, and headings that are "
        "gone count as removed.",
        "",
        *differences(compare_editions(old, recent)),
        "",
    ]
    if arguments.collection is not None:
        edition = read_vocabulary(arguments.edition)
        sections[TRAINED] = ["", *updated(arguments.collection, edition), ""]
    if arguments.kills:
        sections[KILLED] = ["", *killed(arguments.kills), ""]
    lines = [
        "# Editions of a vocabulary",
        "",
        f"`python benchmarks/editions.py`: labelkin {__version__}, Python "
        f"{platform.python_version()}, 2 shared cores.",
        "",
    ]
    for title in (DIFFERENCES, TRAINED, KILLED):
        if title in sections:
            lines += [f"## {title}", *sections[title]]
    arguments.output.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
