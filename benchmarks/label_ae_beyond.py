"""The joint label autoencoder, one ingredient at a time; how it grows, and with how many records.

python benchmarks/label_ae_beyond.py --work FOLDER            # all parts, one after another
python benchmarks/label_ae_beyond.py --work FOLDER PARTS...   # steps scale update report

Writes results/label-ae-beyond.md and its figure; needs ../shared/data. The results of a part stay
in the folder, and the report is made from those that are there. An interrupted `steps` goes on with
the first variant that is missing; `--variants 0:9` trains some of them. `--kin FOLDER` has the
results of benchmarks/kin.py, `--rerank FOLDER` those of benchmarks/rerank.py.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from joint_variants import (
    VARIANTS,
    WHOLE,
    LatentNeighbours,
    Predictor,
    Variant,
    frequency_adjustment,
    trained,
)
from kin import METHODS as KIN
from labelkin import Document, Indexer, read_corpus, read_vocabulary
from labelkin.autoencoder.ballots import NEIGHBOURS
from labelkin.autoencoder.training_settings import TrainingSettings, paper_settings
from labelkin.corpus.text import document_key
from labelkin.evaluate import Evaluation, evaluate_bands, paired_test, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.label_ae_training import TrainingSources, _training_data
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.cut import cut
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from rerank import DATA, SPLITS, Stages, corpus, make_collection, say

ROOT = Path(__file__).parents[1]
MIF, P5 = parse_measure("MiF"), parse_measure("P@5")
PARTS = ("steps", "scale", "update", "report")
SIZES = (5000, 15_000, 43_178)
PAPER = "paper's network, trained on averages too"


class Judge:
    """The documents of all splits with their right labels, and the frequencies of labels."""

    def __init__(self, indexer: Indexer) -> None:
        self.documents = {split: corpus(split) for split in SPLITS}
        vocabulary = indexer.vocabulary
        self.gold = {s: gold_matrix(d, vocabulary) for s, d in self.documents.items()}
        label_sets = indexer.collection.label_sets()
        self.frequencies = label_sets.frequencies(len(vocabulary), np.zeros(0, dtype=np.int64))

    def evaluation(self, split: str, ranked: Ranking, threshold: float) -> Evaluation:
        gold = self.gold[split]
        frequencies = np.pad(self.frequencies, (0, gold.shape[1] - len(self.frequencies)))
        given = cut(ranked, None, threshold)
        return Evaluation(gold, given, ranked, training_frequencies=frequencies)

    def best_threshold(self, ranked: Ranking) -> float:
        """The threshold with the largest MiF on dev."""
        gold = self.gold["dev"]
        documents = np.repeat(np.arange(len(ranked)), ranked.lengths)
        right = np.asarray(gold[documents, ranked.columns]).ravel() > 0
        order = np.argsort(-ranked.scores, kind="stable")
        found = np.cumsum(right[order])
        values = 2 * found / (np.arange(1, len(found) + 1) + gold.nnz)
        return float(ranked.scores[order[int(np.argmax(values))]])

    def values(self, rankings: dict[str, Ranking]) -> tuple[dict[str, Any], dict[str, Evaluation]]:
        threshold = self.best_threshold(rankings["dev"])
        found, evaluations = {}, {}
        for split in SPLITS:
            evaluation = self.evaluation(split, rankings[split], threshold)
            bands = evaluate_bands(evaluation, [MIF])
            found[split] = {
                "MiF": MIF.value(evaluation),
                "P@5": P5.value(evaluation),
                **{band: bands[band]["MiF"] for band in bands},
            }
            evaluations[split] = evaluation
        return found, evaluations

    def dev_value(self, ranked: Ranking) -> float:
        """MiF on dev at the best threshold."""
        return MIF.value(self.evaluation("dev", ranked, self.best_threshold(ranked)))

    def shown(self, rankings: dict[str, Ranking]) -> str:
        values, _ = self.values(rankings)
        return ", ".join(f"{split} {values[split]['MiF']:.4f}" for split in SPLITS)


class Splits(Judge):
    """The documents of all splits with their neighbours."""

    def __init__(self, indexer: Indexer) -> None:
        super().__init__(indexer)
        self.queries = {s: indexer.queries(d, NEIGHBOURS) for s, d in self.documents.items()}

    def by_method(self, method: str, **changes: Any) -> dict[str, Ranking]:
        settings = Settings(method=method)
        if changes:
            settings = replace(settings, knn=replace(settings.knn, **changes))
        chosen = settings.implementation
        return {s: chosen.rank(q, settings) for s, q in self.queries.items()}


def votes(splits: Splits) -> dict[str, Ranking]:
    """Votes with the k and the weights that are best on dev, each with its own best cut."""
    best: tuple[float, dict[str, Ranking]] = (0.0, {})
    for k in (10, 20, 30, 40):
        for weighting in ("majority", "difference", "square"):
            ranked = splits.by_method("knn", k=k, weighting=weighting, count=None)
            threshold = splits.best_threshold(ranked["dev"])
            value = MIF.value(splits.evaluation("dev", ranked["dev"], threshold))
            if value > best[0]:
                best = (value, ranked)
                say(f"knn, k = {k}, {weighting}: dev {value:.4f}")
    return best[1]


def steps(work: Path, variants: Sequence[Variant]) -> None:
    """Each step of the network, alone; those that are there already are not trained again."""
    make_collection(work / "mesh47k")
    settings = TrainingSettings().fitted(SIZES[-1])
    with Indexer.open(work / "mesh47k") as indexer:
        indexer.build()
        splits = Splits(indexer)
        rows = Rows(work / "steps")
        if not rows.has("knn"):
            rows.add("knn", "", votes(splits))
        missing = [one for one in variants if not rows.has(one.name)]
        if not missing:
            return
        views = indexer.runtime.views()
        held_out = RerankTrainingSettings().held_out(views.snapshot)
        sources = TrainingSources(indexer.runtime.indexes.search(views), views, Stages())
        data = sources.completed(
            _training_data(views.snapshot, settings, held_out.unseen), settings
        )
        for variant in missing:
            task, seconds = trained(variant, data, settings, indexer.vocabulary)
            predictor = Predictor(task, indexer.collection.label_sets())
            ranked = {s: predictor.ranked(q) for s, q in splits.queries.items()}
            rows.add(variant.name, variant.compared, ranked, seconds / 60)
            say(f"{variant.name}: {seconds:.0f} s, " + splits.shown(ranked))
            if variant.name == WHOLE:
                add_frequencies(splits, predictor, rows)
                add_latent_neighbours(splits, predictor, rows)


class Rows:
    """Rankings of all splits by name, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}.npz"

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def add(
        self, name: str, compared: str, rankings: dict[str, Ranking], minutes: float = 0.0
    ) -> None:
        arrays = {
            f"{split}.{part}": getattr(ranking, part)
            for split, ranking in rankings.items()
            for part in ("starts", "columns", "scores")
        }
        about = json.dumps({"name": name, "compared": compared, "minutes": minutes})
        np.savez_compressed(self._path(name), about=np.array(about), **arrays)

    def all(self) -> Iterator[tuple[dict[str, Any], dict[str, Ranking]]]:
        """Votes, the paper's network, the variants in their order, then what is made from them."""
        order = ["knn", PAPER, *(one.name for one in VARIANTS)]
        first = [self._path(name) for name in order if self.has(name)]
        rest = sorted(set(self._folder.glob("*.npz")) - set(first))
        return (self._load(path) for path in (*first, *rest))

    def _load(self, path: Path) -> tuple[dict[str, Any], dict[str, Ranking]]:
        with np.load(path) as arrays:
            rankings = {
                split: Ranking(
                    *(arrays[f"{split}.{part}"] for part in ("starts", "columns", "scores"))
                )
                for split in SPLITS
            }
            return json.loads(str(arrays["about"])), rankings


def add_frequencies(splits: Splits, predictor: Predictor, rows: Rows) -> None:
    """Logits adjusted by the frequency of headings, as much as is best on dev."""
    dev = splits.queries["dev"]
    strength = max(
        (-0.2, -0.1, -0.05, 0.05, 0.1, 0.2),
        key=lambda one: splits.dev_value(
            predictor.ranked(dev, frequency_adjustment(predictor, one))
        ),
    )
    ranked = {
        split: predictor.ranked(queries, frequency_adjustment(predictor, strength))
        for split, queries in splits.queries.items()
    }
    rows.add(f"joint, logits less {strength:g} of the log-odds", WHOLE, ranked)
    say(f"adjusted by {strength:g}: " + splits.shown(ranked))


def add_latent_neighbours(splits: Splits, predictor: Predictor, rows: Rows) -> None:
    """Neighbours in the latent space: their votes alone, and beside the network."""
    near, dev = LatentNeighbours(predictor), splits.queries["dev"]
    choices = [(k, power) for k in (10, 20, 40) for power in (1.0, 8.0, 24.0)]
    values = {one: splits.dev_value(near.ranked(dev, *one)) for one in choices}
    best = max(values, key=lambda one: values[one])
    say(f"latent neighbours, k and power: {values}")
    ranked = {split: near.ranked(q, *best) for split, q in splits.queries.items()}
    rows.add(f"votes of {best[0]} latent neighbours alone", WHOLE, ranked)
    say(splits.shown(ranked))
    shares = {one: splits.dev_value(near.mixed(dev, *best, one)) for one in (0.1, 0.2, 0.35, 0.5)}
    share = max(shares, key=lambda one: shares[one])
    say(f"share of the votes: {shares}")
    ranked = {split: near.mixed(q, *best, share) for split, q in splits.queries.items()}
    rows.add(f"joint and {share:.0%} votes of latent neighbours", WHOLE, ranked)
    say(splits.shown(ranked))


def part(size: int) -> list[Document]:
    """So many records, the same ones first in every size."""
    documents = list(read_corpus(DATA / "mesh47k" / "train.json.gz").documents())
    return sorted(documents, key=lambda document: document_key(document.id, 19))[:size]


def make_part(folder: Path, documents: list[Document]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    vocabulary = read_vocabulary(DATA / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(folder, vocabulary, language="en") as indexer:
        indexer.add(documents)


def scale(work: Path) -> None:
    """Votes, the paper's network and the joint one with fewer records."""
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        folder = work / f"part-{size}"
        make_part(folder, part(size))
        with Indexer.open(folder) as indexer:
            indexer.build()
            splits = Splits(indexer)
            row = {"documents": size, "seconds": {}, "values": {}}
            row["values"]["knn"], _ = splits.values(votes(splits))
            rows.append(row)
            for name, settings in (("joint", TrainingSettings()), ("paper", paper_settings())):
                started = time.process_time()
                indexer.train_label_ae(settings, observer=Stages())
                row["seconds"][name] = time.process_time() - started
                # Queries keep the model that they have seen: new ones see the new model.
                ranked = Splits(indexer).by_method("label-ae")
                row["values"][name], _ = splits.values(ranked)
                say(f"{size}, {name}: " + splits.shown(ranked))
                (work / "scale.json").write_text(json.dumps(rows, indent=1))
            if size == SIZES[-1]:
                Rows(work / "steps").add(PAPER, "knn", ranked, row["seconds"]["paper"] / 60)


def coming_later(documents: list[Document]) -> tuple[set[str], set[str]]:
    """A tenth of the records, and the headings that only they have: all records of each.

    Headings of 10 to 60 records are taken in a random order until their records are a tenth.
    """
    carriers: dict[str, list[str]] = {}
    for document in documents:
        for label in document.labels:
            carriers.setdefault(label, []).append(document.id)
    wanted = len(documents) // 10
    headings, later = set(), set()
    some = [label for label, ids in carriers.items() if 10 <= len(ids) <= 60]
    for label in sorted(some, key=lambda label: document_key(label, 19)):
        if len(later) >= wanted:
            break
        headings.add(label)
        later.update(carriers[label])
    return headings, later


def update(work: Path) -> None:
    """A tenth of the records comes later, with new headings: trained further, and from scratch."""
    documents = part(SIZES[-1])
    headings, later = coming_later(documents)
    before = [document for document in documents if document.id not in later]
    folder = work / "update"
    make_part(folder, before)
    found: dict[str, Any] = {
        "before": len(before),
        "after": len(documents),
        "headings": len(headings),
        "values": {},
    }
    with Indexer.open(folder) as indexer:
        indexer.build()
        indexer.train_label_ae(TrainingSettings(), observer=Stages())
        indexer.add([document for document in documents if document.id in later])
        indexer.build()
        rankings = {"no update": Splits(indexer).by_method("label-ae")}
        for name, train in (
            ("updated", lambda: indexer.update_label_ae(observer=Stages())),
            ("full", lambda: indexer.train_label_ae(TrainingSettings(), observer=Stages())),
        ):
            started, cpu = time.monotonic(), time.process_time()
            train()
            found[name] = {
                "seconds": time.monotonic() - started,
                "cpu_seconds": time.process_time() - cpu,
            }
            rankings[name] = Splits(indexer).by_method("label-ae")
        judge = Judge(indexer)
        found["values"] = {name: judge.values(ranked)[0] for name, ranked in rankings.items()}
        columns = [indexer.vocabulary.resolve(label).column for label in headings]
        for name, ranked in rankings.items():
            for split, evaluation in judge.values(ranked)[1].items():
                is_new = np.zeros(evaluation.gold.shape[1], dtype=bool)
                is_new[columns] = True
                new = evaluation.restricted(is_new)
                found["values"][name][split]["new"] = MIF.value(new)
                found["values"][name][split]["occurrences"] = int(new.gold.nnz)
            say(f"{name}: " + judge.shown(ranked) + f" {found.get(name, '')}")
            (work / "update.json").write_text(json.dumps(found, indent=1))


def report(work: Path, kin: Path | None, rerank: Path | None) -> None:
    lines = list(_report(work, kin, rerank))
    (ROOT / "results" / "label-ae-beyond.md").write_text("\n".join(lines) + "\n")


def _report(work: Path, kin: Path | None, rerank: Path | None) -> Iterator[str]:
    yield "# A label autoencoder beyond the paper's"
    yield ""
    yield (
        "Made by `python benchmarks/label_ae_beyond.py` on mesh47k, 2 cores, no GPU; seed 0. "
        "docs/label-autoencoder.md says what the network is."
    )
    if (work / "steps").exists():
        yield from _steps(work, kin)
    if rerank is not None and (rerank / "ablation.json").exists():
        yield from _rerank(json.loads((rerank / "ablation.json").read_text()))
    if (work / "scale.json").exists():
        yield from _scale(json.loads((work / "scale.json").read_text()))
    if (work / "update.json").exists():
        yield from _update(json.loads((work / "update.json").read_text()))
    yield from _tried()


@dataclass(frozen=True)
class Line:
    """A row of the tables: its values by split, with `p` and `p_knn` where they are compared."""

    name: str
    minutes: float
    values: dict[str, dict[str, float]]

    def cells(self, split: str) -> str:
        values = self.values[split]
        bands = [f"{values[band]:.3f}" for band in ("head", "torso", "tail")]
        tests = [f"{values[key]:.3f}" if key in values else "" for key in ("p", "p_knn")]
        minutes = f"{self.minutes:.1f}" if self.minutes else ""
        cells = (self.name, f"{values['MiF']:.4f}", f"{values['P@5']:.4f}", *bands, *tests, minutes)
        return f"| {' | '.join(cells)} |"


def measured_lines(work: Path, kin: Path | None) -> list[Line]:
    """All rankings that are there, each compared with votes and with what it is a step from."""
    with Indexer.open(work / "mesh47k", read_only=True) as indexer:
        judge = Judge(indexer)
    found = list(Rows(work / "steps").all())
    if kin is not None:
        found += kin_rows(kin)
    evaluations: dict[str, dict[str, Evaluation]] = {}
    lines = []
    for about, rankings in found:
        name = about["name"]
        values, evaluations[name] = judge.values(rankings)
        for split in SPLITS:
            for other, key in ((about["compared"], "p"), ("knn", "p_knn")):
                if other in evaluations and other != name:
                    pair = (evaluations[one][split] for one in (name, other))
                    values[split][key] = paired_test(MIF, *pair).p_value
        lines.append(Line(name, about["minutes"], values))
    return lines


def kin_rows(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Ranking]]]:
    """What benchmarks/kin.py left."""
    for name, (title, control) in KIN.items():
        if not (folder / f"{name}.json").exists():
            continue
        figures = json.loads((folder / f"{name}.json").read_text())
        compared = KIN[control][0] if control else ""
        about = {"name": title, "compared": compared, "minutes": figures["cpu_minutes"]}
        rankings = {}
        for split in SPLITS:
            with np.load(folder / f"{name}-{split}.npz") as arrays:
                rankings[split] = Ranking(arrays["starts"], arrays["columns"], arrays["scores"])
        yield about, rankings


def _steps(work: Path, kin: Path | None) -> Iterator[str]:
    lines = measured_lines(work, kin)
    yield ""
    yield "## Step by step, alone"
    yield ""
    yield (
        "Trained without the 6,168 records that the reranker holds out. The cut of every line is "
        "chosen on dev; that of `knn` with its k and weights. head, torso and tail are MiF of "
        "headings with 1,000 and more, 100 to 999, and fewer records. p compares MiF (paired "
        "randomisation test): a line that starts with + with the step before "
        "it, one of the joint network's variants with the joint network, one of the methods that "
        "the paper names as kin (benchmarks/kin.py says how they "
        "differ from their papers) with its control, which lacks the autoencoder. Kin see the "
        "words of the text only. Minutes are of CPU, for the training alone."
    )
    for split in SPLITS:
        yield ""
        yield f"### {split}"
        yield ""
        yield "| | MiF | P@5 | head | torso | tail | p | p, knn | CPU-minutes |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for line in lines:
            yield line.cells(split)
    yield ""
    yield (
        "The paper's network, 960/704/512, trained on averages too (14 minutes on two busy cores), "
        "in an earlier measurement on the same records, MiF / P@5 / tail: dev 0.4307 / 0.6150 / "
        "0.235, test 0.5048 / 0.7239 / 0.264, l1000 0.3549 / 0.5408 / 0.195, l1000-clean 0.3468 / "
        "0.5307 / 0.179; below knn with p 0.001 everywhere. Not measured, but in "
        "benchmarks/joint_variants.py: the variants that have no line here."
    )


# Rows of benchmarks/rerank.py that differ in the label autoencoder.
RERANKED = {
    "+ its latent space alone": "all signals",
    "all but the autoencoder, both signals": "without the autoencoder",
    "all but linear classifiers": "without linear classifiers",
    "neither autoencoder nor linear classifiers": "without both",
}


def _rerank(steps: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## In the reranker"
    yield ""
    yield (
        "From the ablation of the reranker ([ablation.md](ablation.md)): trees fitted with and "
        "without the two signals of the joint autoencoder, of which one is trained for each fold. "
        "p compares MiF with all signals; that of the last line with the one without the "
        "autoencoder."
    )
    yield ""
    yield "| | | MiF | P@5 | head | torso | tail | p |"
    yield "|---|---|---|---|---|---|---|---|"
    rows = {RERANKED[step["name"]]: step["values"] for step in steps if step["name"] in RERANKED}
    for split in SPLITS:
        for title in RERANKED.values():
            if title not in rows:
                continue
            values = rows[title][split]
            bands = " | ".join(f"{values[band]:.3f}" for band in ("head", "torso", "tail"))
            p = "" if title == "all signals" else f"{values['p']:.3f}"
            yield (
                f"| {split} | {title} | {values['MiF']:.4f} | {values['P@5']:.4f} | {bands} | {p} |"
            )
    yield ""
    yield (
        "The linear classifiers read the same words: beside them the autoencoder adds most where "
        "neighbours are far (l1000 and l1000-clean, p 0.001), little on dev and test (p 0.18 and "
        "0.61). Without them it adds 0.010 to 0.014 on every split."
    )
    yield ""
    yield (
        "Before, the reranker used the paper's network trained on averages too, whose scores were "
        "known for one fold of three. `labelkin train` and `labelkin compare`, MiF with that "
        "network and with the joint one: dev 0.5894 → 0.5935 (p 0.002), test 0.6290 → 0.6320 "
        "(0.015), l1000 0.5438 → 0.5475 (0.016), l1000-clean 0.5412 → 0.5457 (0.014)."
    )


def _scale(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## With fewer records"
    yield ""
    yield "![MiF by the number of records](figures/label-ae-scale.png)"
    yield ""
    yield (
        "The networks of the largest size are those above, trained without the 6,168 records that "
        "the reranker holds out; the paper's is that of an earlier measurement."
    )
    yield ""
    yield "| records | split | knn | paper's network | joint | joint − knn | paper's − knn |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        for split in SPLITS:
            values = {name: one[split]["MiF"] for name, one in row["values"].items()}
            paper = f"{values['paper']:.4f}" if "paper" in values else ""
            behind = f"{values['paper'] - values['knn']:+.4f}" if "paper" in values else ""
            yield (
                f"| {row['documents']:,} | {split} | {values['knn']:.4f} | {paper} | "
                f"{values['joint']:.4f} | {values['joint'] - values['knn']:+.4f} | {behind} |"
            )
    draw_scale(rows)
    yield ""
    yield (
        "From 5,000 records to 43,178 the paper's network does not close its gap to votes (on "
        "l1000 it widens). The joint one is ahead of votes at every size; its lead is largest "
        "where records are few."
    )


def draw_scale(rows: list[dict[str, Any]]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=False)
    styles = {
        "joint": ("joint autoencoder", "#0072B2", "-"),
        "knn": ("votes (knn)", "#D55E00", "--"),
        "paper": ("paper's autoencoder", "#009E73", ":"),
    }
    for axes, split in zip(panels, ("test", "l1000"), strict=True):
        for name, (label, colour, style) in styles.items():
            points = [
                (r["documents"], r["values"][name][split]["MiF"])
                for r in rows
                if name in r["values"]
            ]
            axes.plot(*zip(*points, strict=True), style, color=colour, label=label, marker="o")
        axes.set_xscale("log")
        axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axes.minorticks_off()
        axes.set_xlabel("records in the collection")
        axes.set_title(split, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("MiF")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    folder = ROOT / "results" / "figures"
    folder.mkdir(exist_ok=True)
    with (folder / "label-ae-scale.png").open("wb") as file:
        canvas.print_png(file)  # type: ignore[no-untyped-call]


def _tried() -> Iterator[str]:
    yield ""
    yield "## Tried with a trial network"
    yield ""
    yield (
        "One training each, without the first fold, dev MiF / P@5 at the best cut; a step is "
        "compared with the same network without it."
    )
    yield ""
    yield "| | without | with | |"
    yield "|---|---|---|---|"
    for row in (
        ("words beside votes", "0.4818 / 0.6676", "0.5050 / 0.6974", "kept"),
        ("dropout 0.5, 12 epochs instead of 0.3, 6", "0.5050 / 0.6974", "0.5145 / 0.7109", "kept"),
        ("names", "0.5145 / 0.7109", "0.5417 / 0.7384", "kept; 8 epochs"),
        ("asymmetric loss", "0.5417 / 0.7384", "0.5474 / 0.7528", "kept"),
        ("pairs of words in 30 records", "0.5477 / 0.7507", "0.5511 / 0.7552", "kept"),
        (
            "neighbours or text left out at times",
            "0.5511 / 0.7552",
            "0.5512 / 0.7593",
            "kept: the tail gains, 0.246 → 0.277 for headings of fewer than 10 records",
        ),
        (
            "outputs sampled (1,500) instead of all",
            "0.5050 / 0.6974",
            "0.4857 / 0.6742",
            "left out; 4 epochs instead of 6",
        ),
    ):
        yield f"| {' | '.join(row)} |"
    yield ""
    yield "## Tried for updates"
    yield ""
    yield (
        "The same records as for `--update` above, one training each: MiF of all headings / of the "
        "new ones. Where all weights are trained on a tenth of new records and as many old ones, "
        "the network forgets a little of everything else. Chosen on dev, but the other splits were "
        "in view. Also tried, none better on dev: a rate of 3, only headings that are "
        "wholly new, more of the average's weights before."
    )
    yield ""
    yield "| | dev | test | l1000 | l1000-clean | |"
    yield "|---|---|---|---|---|---|"
    for name, *cells in (
        (
            "no update",
            "0.5534 / 0.335",
            "0.6013 / 0.350",
            "0.5022 / 0.292",
            "0.5000 / 0.294",
            "",
        ),
        (
            "all weights, 3 epochs at 0.3 of the rate",
            "0.5506 / 0.339",
            "0.5989 / 0.391",
            "0.4968 / 0.289",
            "0.4937 / 0.287",
            "left out",
        ),
        (
            "… averaged with the weights before",
            "0.5529 / 0.335",
            "0.5994 / 0.320",
            "0.5017 / 0.289",
            "0.4993 / 0.282",
            "left out",
        ),
        (
            "rows of headings that are half new, 4 epochs",
            "0.5522 / 0.352",
            "0.6000 / 0.330",
            "0.5013 / 0.351",
            "0.4988 / 0.335",
            "left out",
        ),
        (
            "… 8 epochs",
            "0.5527 / 0.352",
            "0.6000 / 0.340",
            "0.5024 / 0.370",
            "0.5001 / 0.357",
            "left out",
        ),
        (
            "… output rows alone",
            "0.5522 / 0.345",
            "0.5996 / 0.337",
            "0.5016 / 0.372",
            "0.4993 / 0.360",
            "left out",
        ),
        (
            "… which records that are not seen count against as well",
            "0.5536 / 0.418",
            "0.6013 / 0.368",
            "0.5027 / 0.419",
            "0.5002 / 0.398",
            "kept",
        ),
    ):
        yield f"| {name} | {' | '.join(cells)} |"


def _update(found: dict[str, Any]) -> Iterator[str]:
    updated, full = found["updated"], found["full"]
    titles = {"no update": "no update", "updated": "`train --update`", "full": "trained again"}
    yield ""
    yield "## Growing: `labelkin train --update`"
    yield ""
    yield (
        f"The network is trained on {found['before']:,} records; then "
        f"{found['after'] - found['before']:,} are added, among them all that have one of "
        f"{found['headings']} headings, which are new. The update takes "
        f"{updated['cpu_seconds']:.0f} s of CPU, a new training on all records "
        f"{full['cpu_seconds']:.0f} s: "
        f"{full['cpu_seconds'] / updated['cpu_seconds']:.1f} times the CPU. Both include finding "
        "neighbours, words and names, on one thread of a busy machine, in two runs: "
        "the first two lines are of a starting model of their own, trained in the same way."
    )
    yield ""
    yield "| MiF, all headings / new ones | " + " | ".join(SPLITS) + " |"
    yield "|---|" + "---|" * len(SPLITS)
    for name, title in titles.items():
        values = found["values"][name]
        cells = (f"{values[s]['MiF']:.4f} / {values[s]['new']:.3f}" for s in SPLITS)
        yield f"| {title} | " + " | ".join(cells) + " |"
    yield ""
    counts = ", ".join(f"{s} {found['values']['full'][s]['occurrences']}" for s in SPLITS)
    yield f"Occurrences of the new headings: {counts}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--variants", default=":", help="FIRST:LAST of those to train")
    parser.add_argument("--kin", type=Path, help="the work folder of benchmarks/kin.py")
    parser.add_argument("--rerank", type=Path, help="the work folder of benchmarks/rerank.py")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if "steps" in given.parts:
        first, _, last = given.variants.partition(":")
        steps(given.work, VARIANTS[int(first or 0) : int(last or len(VARIANTS))])
    if "update" in given.parts:
        update(given.work)
    if "scale" in given.parts:
        scale(given.work)
    if "report" in given.parts:
        report(given.work, given.kin, given.rerank)


if __name__ == "__main__":
    main()
