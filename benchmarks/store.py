"""How fast documents are read and stored, and how much memory that takes.

    python benchmarks/store.py        # writes results/store.md

The real files are used where ../shared/data is at hand; the large XML and JSON files are
generated, to see that memory does not grow with the file.
"""

from __future__ import annotations

import json
import platform
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from labelkin import Indexer, __version__, read_corpus, read_vocabulary
from measure import Measured, measure

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
MEGABYTE = 1_000_000


def words(rng: random.Random, count: int) -> str:
    return " ".join(f"w{int(rng.paretovariate(0.9)) % 50_000}" for _ in range(count))


def write_xml(path: Path, size: int) -> None:
    rng = random.Random(0)
    texts = [words(rng, 200) for _ in range(500)]
    number = 0
    with path.open("w") as file:
        file.write("<PubmedArticleSet>\n")
        while file.tell() < size:
            number += 1
            headings = "".join(
                f'<MeshHeading><DescriptorName UI="D{h:06d}" MajorTopicYN="N">H {h}'
                "</DescriptorName></MeshHeading>"
                for h in rng.sample(range(20_000), 12)
            )
            file.write(
                f"<PubmedArticle><MedlineCitation><PMID>{number}</PMID><Article><ArticleTitle>"
                f"Title {number}</ArticleTitle><Abstract><AbstractText>{rng.choice(texts)}"
                "</AbstractText></Abstract><Language>eng</Language></Article><MeshHeadingList>"
                f"{headings}</MeshHeadingList></MedlineCitation></PubmedArticle>\n"
            )
        file.write("</PubmedArticleSet>\n")


def write_bioasq(path: Path, size: int) -> None:
    rng = random.Random(0)
    texts = [words(rng, 200) for _ in range(500)]
    number = 0
    with path.open("w") as file:
        file.write('{"articles":[\n')
        while file.tell() < size:
            number += 1
            article = {
                "pmid": str(number),
                "title": f"Title {number}",
                "abstractText": rng.choice(texts),
                "meshMajor": [f"H {h}" for h in rng.sample(range(20_000), 12)],
            }
            file.write(("" if number == 1 else ",\n") + json.dumps(article))
        file.write("\n]}\n")


def read(path: Path) -> int:
    return sum(1 for _ in read_corpus(path))


def add(collection: Path, corpus: Path, vocabulary: Path | None) -> int:
    found = read_vocabulary(vocabulary) if vocabulary else None
    with Indexer.create(collection, found) as indexer:
        return indexer.add(read_corpus(corpus)).documents


def row(what: str, size: str, run: Measured) -> str:
    rate = run.result / run.seconds
    return (
        f"| {what} | {size} | {run.result:,} | {run.seconds:.1f} | {rate:,.0f} "
        f"| {run.peak_megabytes:.0f} |"
    )


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        kinds: list[tuple[str, Callable[[Path, int], None], str]] = [
            ("PubMed XML", write_xml, "xml"),
            ("BioASQ JSON", write_bioasq, "json"),
        ]
        for kind, make, extension in kinds:
            for megabytes in (20, 200):
                path = scratch / f"{megabytes}.{extension}"
                make(path, megabytes * MEGABYTE)
                run = measure(read, path)
                rows.append(row(f"read {kind}, generated", f"{megabytes} MB", run))
                path.unlink()
        generated = scratch / "add.json"
        write_bioasq(generated, 200 * MEGABYTE)
        run = measure(add, scratch / "generated", generated, None)
        rows.append(row("add BioASQ JSON, generated, no vocabulary", "200 MB", run))
        if SHARED.is_dir():
            mesh = SHARED / "mesh" / "descriptors.tsv.gz"
            for name, corpus, vocabulary in (
                ("mesh47k/train with MeSH", SHARED / "mesh47k" / "train.json.gz", mesh),
                ("pubmed20n0014", SHARED / "medline" / "pubmed20n0014.xml.gz", None),
                ("tibkat/en", SHARED / "tibkat" / "en.tsv.gz", None),
            ):
                size = f"{corpus.stat().st_size / MEGABYTE:.0f} MB (gz)"
                run = measure(add, scratch / corpus.name, corpus, vocabulary)
                rows.append(row(f"add {name}", size, run))
    report = [
        "# Reading and storing documents",
        "",
        f"Made by `make bench` with labelkin {__version__} on Python {platform.python_version()}, "
        "2 shared cores. Each line is a process of its own; `add` includes making the collection "
        "and reading the vocabulary.",
        "",
        "| step | file | documents | seconds | documents/s | peak MB of memory |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    ]
    (ROOT / "results").mkdir(exist_ok=True)
    (ROOT / "results" / "store.md").write_text("\n".join(report))
    print("\n".join(report))


if __name__ == "__main__":
    main()
