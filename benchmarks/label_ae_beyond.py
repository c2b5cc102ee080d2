"""The joint label autoencoder, one ingredient at a time; how it grows, and with how many records.

python benchmarks/label_ae_beyond.py --work FOLDER            # all parts, one after another
python benchmarks/label_ae_beyond.py --work FOLDER PARTS...   # steps scale update rerank report

Writes results/label-ae-beyond.md and its figure; needs ../shared/data. The results of a part stay
in the folder, and the report is made from those that are there. `--paper FOLDER` is a collection
of all records with a label autoencoder by the recipe of the paper, which takes long to train, and a
reranker that uses it; `--joint FOLDER` is one as `labelkin train` leaves it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from labelkin import Document, Indexer, read_corpus, read_vocabulary
from labelkin.autoencoder import cross_entropy
from labelkin.autoencoder.ballots import NEIGHBOURS, NamedLabels, cast_ballots
from labelkin.autoencoder.joint_network import JointNetwork
from labelkin.autoencoder.joint_task import JointTask
from labelkin.autoencoder.training import Trainer
from labelkin.autoencoder.training_settings import TrainingSettings, paper_settings
from labelkin.evaluate import Evaluation, evaluate_bands, paired_test, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.label_ae_training import TrainingSources, _training_data
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.cut import cut
from labelkin.scoring.mentions import named_labels
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.store.held_out import document_key
from rerank import DATA, SPLITS, Stages, corpus, make_collection, say

ROOT = Path(__file__).parents[1]
MIF, P5 = parse_measure("MiF"), parse_measure("P@5")
PARTS = ("steps", "scale", "update", "rerank", "report")
SIZES = (5000, 15_000, 43_178)
# The largest logit that no cut reaches.
LOWEST = -4.0
CHUNK = 250


@dataclass(frozen=True)
class Variant:
    """The joint network without some of its parts."""

    name: str
    compared: str
    latent: bool = True
    corrected: bool = True
    learned: bool = True
    words: bool = True
    names: bool = True
    loss: str = "asymmetric"


VARIANTS = (
    Variant(
        "average decoded",
        "knn",
        corrected=False,
        learned=False,
        words=False,
        names=False,
        loss="BCE",
    ),
    Variant(
        "+ votes beside it", "average decoded", learned=False, words=False, names=False, loss="BCE"
    ),
    Variant("+ learned weights", "+ votes beside it", words=False, names=False, loss="BCE"),
    Variant("+ words of the text", "+ learned weights", names=False, loss="BCE"),
    Variant("+ names in the text", "+ words of the text", loss="BCE"),
    Variant("+ asymmetric loss (joint)", "+ names in the text"),
    Variant("joint without votes beside it", "+ asymmetric loss (joint)", corrected=False),
    Variant("joint without the latent average", "+ asymmetric loss (joint)", latent=False),
    Variant("joint without words", "+ asymmetric loss (joint)", words=False),
    Variant("joint, focal loss", "+ asymmetric loss (joint)", loss="focal"),
)
WHOLE = "+ asymmetric loss (joint)"


class VariantTask(JointTask):
    """Trains a variant."""

    variant = VARIANTS[0]

    def __init__(self, data: Any, *rest: Any) -> None:
        texts, one = data.texts, self.variant
        if not one.words:
            texts = replace(texts, weighted=texts.weighted * 0)
        if not one.names:
            texts = replace(texts, named=unnamed(len(texts.named)))
        super().__init__(replace(data, texts=texts), *rest)
        self.architecture = replace(self.architecture, asymmetric=one.loss != "BCE")
        network = self.network
        network.architecture = self.architecture
        if not one.learned:
            network.weigh2.weight.data.zero_()
            for weight in (network.weigh2.weight, network.sharpness):
                weight.requires_grad_(False)
        if not one.corrected:
            network.corrections = no_corrections  # type: ignore[method-assign, assignment]
        if not one.latent:
            network.inputs.weight.data.zero_()
            network.inputs.weight.requires_grad_(False)


def no_corrections(ballots: Any, votes: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    return torch.zeros_like(votes)


def unnamed(documents: int) -> NamedLabels:
    starts = np.zeros(documents + 1, dtype=np.int64)
    return NamedLabels(starts, np.zeros(0, np.int32), np.zeros((0, 9), np.float32))


def focal(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As the asymmetric loss, but nothing is left out below a margin."""
    scores = torch.sigmoid(logits)
    weights = scores.square() * 2
    cost = torch.nn.functional.softplus(logits) * weights
    return cost, scores * weights


class Splits:
    """The documents of all splits with their neighbours, right labels and frequency bands."""

    def __init__(self, indexer: Indexer) -> None:
        self.indexer = indexer
        self.documents = {split: corpus(split) for split in SPLITS}
        self.queries = {s: indexer.queries(d, NEIGHBOURS) for s, d in self.documents.items()}
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


def predicted(splits: Splits, network: JointNetwork, task: VariantTask) -> dict[str, Ranking]:
    """The rankings of a trained variant."""
    network.train(False)
    one, terms, columns = task.variant, task.data.texts.terms.columns, task.data.columns
    label_sets = splits.indexer.collection.label_sets()
    found = {}
    for split, queries in splits.queries.items():
        near = queries.neighbours(NEIGHBOURS)
        closeness = np.where(near.rows >= 0, 1 - near.distances("self"), 0).astype(np.float32)
        texts = terms.weighted(terms.counts(queries.wording()), pairs=True)
        named = named_labels(queries.mentions())
        if not one.words:
            texts = texts * 0
        if not one.names:
            named = unnamed(len(named))
        parts = []
        for start in range(0, len(near), CHUNK):
            places = np.arange(start, min(start + CHUNK, len(near)))
            ballots = cast_ballots(
                near.rows[places], closeness[places], named.taken(places), columns, label_sets
            )
            with torch.no_grad():
                logits = network.decode(ballots, texts[places]).numpy()
            documents, labels = np.nonzero(logits > LOWEST)
            scores = 1 / (1 + np.exp(-logits[documents, labels]))
            order = np.lexsort((-scores, documents))
            parts.append(
                Ranking.from_pairs(
                    documents[order], columns.columns[labels[order]], scores[order], len(places)
                )
            )
        found[split] = Ranking.joined(parts)
    return found


def trained(variant: Variant, data: Any, settings: TrainingSettings) -> tuple[VariantTask, float]:
    started = time.monotonic()
    VariantTask.variant = variant
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("labelkin.autoencoder.training.JointTask", VariantTask),
        patch.object(
            cross_entropy,
            "_asymmetric",
            focal if variant.loss == "focal" else cross_entropy._asymmetric,
        ),
    ):
        trainer = Trainer(data, settings, Path(folder))
        trainer.run()
        best = trainer.checkpoints.best()
        trainer.network.load_state_dict(best)
        return trainer.task, time.monotonic() - started  # type: ignore[return-value]


def steps(work: Path, paper: Path | None) -> None:
    """Each step of the network, alone."""
    make_collection(work / "mesh47k")
    rows: list[dict[str, Any]] = []
    evaluations: dict[str, dict[str, Evaluation]] = {}

    def add(name: str, compared: str, rankings: dict[str, Ranking], minutes: float) -> None:
        values, mine = splits.values(rankings)
        evaluations[name] = mine
        for split in SPLITS:
            for other, key in ((compared, "p"), ("knn", "p_knn")):
                if other and other in evaluations and name != other:
                    test = paired_test(MIF, mine[split], evaluations[other][split])
                    values[split][key] = test.p_value
        rows.append({"name": name, "compared": compared, "minutes": minutes, "values": values})
        say(f"{name}: " + ", ".join(f"{s} {values[s]['MiF']:.4f}" for s in SPLITS))
        (work / "steps.json").write_text(json.dumps(rows, indent=1))

    settings = TrainingSettings().fitted(SIZES[-1])
    with Indexer.open(work / "mesh47k") as indexer:
        indexer.build()
        splits = Splits(indexer)
        add("knn", "", votes(splits), 0.0)
        if paper is not None:
            add_paper(paper, add)
        views = indexer.runtime.views()
        held_out = RerankTrainingSettings().held_out(views.snapshot)
        sources = TrainingSources(indexer.runtime.indexes.search(views), views, Stages())
        data = sources.completed(
            _training_data(views.snapshot, settings, held_out.unseen), settings
        )
        for variant in VARIANTS:
            task, seconds = trained(variant, data, settings)
            add(
                variant.name,
                variant.compared,
                predicted(splits, task.network, task),
                seconds / 60,
            )


def add_paper(folder: Path, add: Any) -> None:
    with Indexer.open(folder, read_only=True) as indexer:
        from labelkin.autoencoder.model import LabelModel

        info = indexer.runtime.models.get(LabelModel).info
        name = f"paper's network, {info.architecture.sizes}, trained on averages too"
        add(name, "knn", Splits(indexer).by_method("label-ae"), info.training["seconds"] / 60)


def part(size: int) -> list[Document]:
    """So many records, the same ones first in every size."""
    documents = list(read_corpus(DATA / "mesh47k" / "train.json.gz").documents())
    return sorted(documents, key=lambda document: document_key(document.id, 19))[:size]


def make_part(folder: Path, documents: list[Document]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    vocabulary = read_vocabulary(DATA / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(folder, vocabulary, language="en") as indexer:
        indexer.add(documents)


def scale(work: Path, paper: Path | None) -> None:
    """Votes, the paper's network and the joint one with fewer records."""
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        folder = work / f"part-{size}"
        make_part(folder, part(size))
        with Indexer.open(folder) as indexer:
            indexer.build()
            splits = Splits(indexer)
            ranked = {"knn": votes(splits)}
            indexer.train_label_ae(TrainingSettings(), observer=Stages())
            ranked["joint"] = splits_of(indexer).by_method("label-ae")
            if size < SIZES[-1]:
                indexer.train_label_ae(paper_settings(), observer=Stages())
                ranked["paper"] = splits_of(indexer).by_method("label-ae")
            elif paper is not None:
                with Indexer.open(paper, read_only=True) as other:
                    ranked["paper"] = Splits(other).by_method("label-ae")
            values = {name: splits.values(one)[0] for name, one in ranked.items()}
            rows.append({"documents": size, "values": values})
            say(f"{size}: " + ", ".join(f"{n} {v['test']['MiF']:.4f}" for n, v in values.items()))
        (work / "scale.json").write_text(json.dumps(rows, indent=1))


def splits_of(indexer: Indexer) -> Splits:
    """Queries keep the model that they have seen: new ones see the new model."""
    return Splits(indexer)


def update(work: Path) -> None:
    """A tenth of the records comes later: trained further, and trained anew."""
    documents = part(SIZES[-1])
    first = len(documents) * 9 // 10
    folder = work / "update"
    make_part(folder, documents[:first])
    found: dict[str, Any] = {"before": first, "after": len(documents), "values": {}}
    with Indexer.open(folder) as indexer:
        indexer.build()
        indexer.train_label_ae(TrainingSettings(), observer=Stages())
        known = indexer.unknown_labels()
        indexer.add(documents[first:])
        indexer.build()
        found["unknown_headings"] = indexer.unknown_labels() - known
        rankings = {"without an update": Splits(indexer).by_method("label-ae")}
        for name, train in (
            ("trained further", lambda: indexer.update_label_ae(observer=Stages())),
            ("trained anew", lambda: indexer.train_label_ae(TrainingSettings(), observer=Stages())),
        ):
            started, cpu = time.monotonic(), time.process_time()
            train()
            found[name] = {
                "seconds": time.monotonic() - started,
                "cpu_seconds": time.process_time() - cpu,
            }
            rankings[name] = Splits(indexer).by_method("label-ae")
        splits = Splits(indexer)
        for name, ranked in rankings.items():
            found["values"][name] = splits.values(ranked)[0]
            say(f"{name}: {found['values'][name]['test']['MiF']:.4f} {found.get(name)}")
    (work / "update.json").write_text(json.dumps(found, indent=1))


def compare_rerankers(work: Path, joint: Path, paper: Path) -> None:
    """`rerank` of two collections that differ in their label autoencoders."""
    found = {}
    for split in SPLITS:
        documents = corpus(split)
        new, old = (reranked(folder, documents) for folder in (joint, paper))
        by_mif, by_p5 = (paired_test(one, new, old) for one in (MIF, P5))
        found[split] = {
            "new": by_mif.a,
            "old": by_mif.b,
            "p": by_mif.p_value,
            "new5": by_p5.a,
            "old5": by_p5.b,
            "p5": by_p5.p_value,
        }
        say(f"{split}: {by_mif.a:.4f} {by_mif.b:.4f}, p {by_mif.p_value:.3f}")
        (work / "rerank.json").write_text(json.dumps(found, indent=1))


def reranked(folder: Path, documents: list[Document]) -> Evaluation:
    with Indexer.open(folder, read_only=True) as indexer:
        settings = Settings.from_config(indexer.config, "rerank")
        return indexer.evaluate(documents, settings=settings)


def report(work: Path) -> None:
    lines = list(_report(work))
    (ROOT / "results" / "label-ae-beyond.md").write_text("\n".join(lines) + "\n")


def _report(work: Path) -> Iterator[str]:
    yield "# A label autoencoder beyond the paper's"
    yield ""
    yield (
        "Made by `python benchmarks/label_ae_beyond.py` on mesh47k, 2 shared cores, no GPU; seed "
        "0. docs/label-autoencoder.md says what the network is."
    )
    if (work / "steps.json").exists():
        yield from _steps(json.loads((work / "steps.json").read_text()))
    if (work / "rerank.json").exists():
        yield from _rerank(json.loads((work / "rerank.json").read_text()))
    if (work / "scale.json").exists():
        yield from _scale(json.loads((work / "scale.json").read_text()))
    if (work / "update.json").exists():
        yield from _update(json.loads((work / "update.json").read_text()))
    yield from _tried()


def _steps(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Step by step, alone"
    yield ""
    yield (
        "Trained without the 6,168 records that the reranker holds out. The cut of every line is "
        "chosen on dev; that of `knn` with its k and weights. head, torso and tail are MiF of "
        "headings with 1,000 and more, 100 to 999, and fewer records. p compares MiF (paired "
        "randomisation test)."
    )
    for split in SPLITS:
        yield ""
        yield f"### {split}"
        yield ""
        yield "| | MiF | P@5 | head | torso | tail | p, step before | p, knn | minutes |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for row in rows:
            values = row["values"][split]
            bands = [f"{values[band]:.3f}" for band in ("head", "torso", "tail")]
            tests = [f"{values[key]:.3f}" if key in values else "" for key in ("p", "p_knn")]
            minutes = f"{row['minutes']:.1f}" if row["minutes"] else ""
            cells = (
                row["name"],
                f"{values['MiF']:.4f}",
                f"{values['P@5']:.4f}",
                *bands,
                *tests,
                minutes,
            )
            yield f"| {' | '.join(cells)} |"


def _rerank(found: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## In the reranker"
    yield ""
    yield (
        "`rerank` as `labelkin train` leaves it: with the joint autoencoder, of which one is "
        "trained for each fold, and before it, with the paper's network trained on averages too, "
        "whose scores were known for one fold of three. All other signals are the same."
    )
    yield ""
    yield "| | MiF, joint | before | p | P@5, joint | before | p |"
    yield "|---|---|---|---|---|---|---|"
    for split, values in found.items():
        cells = [f"{values[key]:.4f}" for key in ("new", "old")]
        cells.append(f"{values['p']:.3f}")
        cells += [f"{values[key]:.4f}" for key in ("new5", "old5")]
        cells.append(f"{values['p5']:.3f}")
        yield f"| {split} | {' | '.join(cells)} |"


def _scale(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## With fewer records"
    yield ""
    yield "![MiF by the number of records](figures/label-ae-scale.png)"
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
    panels[0].legend(frameon=False)
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
    yield (
        "Not tried: label vectors made of names and broader headings, neighbours in the latent "
        "space, true label sets mixed with averages."
    )


def _update(found: dict[str, Any]) -> Iterator[str]:
    further, anew = found["trained further"], found["trained anew"]
    yield ""
    yield "## Trained further: `labelkin train --update`"
    yield ""
    yield (
        f"The collection has {found['before']:,} records when the network is trained; then "
        f"{found['after'] - found['before']:,} are added, with {found['unknown_headings']:,} "
        f"headings that no record had before. Training further takes "
        f"{further['seconds']:.0f} s ({further['cpu_seconds']:.0f} s CPU), training anew "
        f"{anew['seconds']:.0f} s ({anew['cpu_seconds']:.0f} s CPU): "
        f"{anew['seconds'] / further['seconds']:.1f} × as long."
    )
    yield ""
    yield "| MiF | " + " | ".join(SPLITS) + " |"
    yield "|---|" + "---|" * len(SPLITS)
    for name, values in found["values"].items():
        yield f"| {name} | " + " | ".join(f"{values[s]['MiF']:.4f}" for s in SPLITS) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--paper", type=Path)
    parser.add_argument("--joint", type=Path)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if "steps" in given.parts:
        steps(given.work, given.paper)
    if "update" in given.parts:
        update(given.work)
    if "scale" in given.parts:
        scale(given.work, given.paper)
    if "rerank" in given.parts and given.joint and given.paper:
        compare_rerankers(given.work, given.joint, given.paper)
    if "report" in given.parts:
        report(given.work)


if __name__ == "__main__":
    main()
