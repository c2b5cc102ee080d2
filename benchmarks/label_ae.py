"""The label autoencoder: cost of a step, speed of prediction, memory, and quality on mesh47k.

python benchmarks/label_ae.py step|predict|memory|quality|report [--work FOLDER] [--minutes 25]

`quality` needs ../shared/data; it trains what FOLDER does not hold yet. Each part leaves its
figures in FOLDER; `report` makes results/label-ae.md of them. Without a part, all are run.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelkin import Document, Indexer, __version__, read_corpus, read_vocabulary
from labelkin.autoencoder.architecture import make_architecture
from labelkin.autoencoder.model import MODEL_NAME
from labelkin.autoencoder.training_settings import TrainingSettings, paper_settings
from labelkin.evaluate import Evaluation, evaluate, paired_test, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.evaluate.sweep import KS, THRESHOLDS
from labelkin.neighbours.neighbours import DISTANCES, Neighbours
from labelkin.scoring.decoder import Decoder
from labelkin.scoring.mix import SHARES
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import MixSettings, ScorerSettings, Settings
from measure import measure

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
PAPER_LABELS = 29_483
MESH_LABELS = 17_576
BATCH = 256
SPLITS = ("dev", "test", "l1000")
MEASURES = [parse_measure(name) for name in "MiF MiP MiR P@5 nDCG@5 predicted".split()]
MIF = parse_measure("MiF")
FREQUENT = 100
VOTES = ScorerSettings()
# What is trained, and how it differs from the defaults. The short ones, of three epochs, compare
# with `short`.
MODELS: dict[str, dict[str, Any]] = {
    "auto": {},
    "medium": {"preset": "medium"},
    "short": {"epochs": 3},
    "short, label sets only": {"epochs": 3, "averages": False},
    "short, latent 32": {"epochs": 3, "preset": "1024/704/32"},
    "short, latent 128": {"epochs": 3, "preset": "1024/704/128"},
    "one epoch": {"epochs": 1},
    "one epoch, all outputs": {"epochs": 1, "sampled_outputs": 0},
}


# --- one training step ---------------------------------------------------------------------


def label_sets(documents: int, labels: int, seed: int = 0) -> list[np.ndarray]:
    """Label sets with frequencies as skewed as those of MeSH headings."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, labels + 1)
    chances /= chances.sum()
    sizes = np.clip(random.poisson(12.5, documents), 1, 40)
    drawn = random.choice(labels, sizes.sum(), p=chances)
    return [np.unique(part) for part in np.split(drawn, np.cumsum(sizes)[:-1])]


def step(_work: Path, _minutes: float) -> dict[str, Any]:
    """Ours against dense one-hot vectors and dense Adam, in the same process."""
    import torch
    from torch.nn import functional

    from labelkin.autoencoder.network import LabelNetwork, label_batch
    from labelkin.autoencoder.optimisation import Optimiser

    def batch(number: int) -> Any:
        sets = label_sets(BATCH, PAPER_LABELS, number)
        starts = np.concatenate(([0], np.cumsum([len(labels) for labels in sets])))
        flat = np.concatenate(sets).astype(np.int64)
        return label_batch(flat, starts.astype(np.int64), torch.device("cpu"))

    def network(dropout: float) -> Any:
        torch.manual_seed(0)
        architecture = make_architecture("medium", PAPER_LABELS, 1, dropout=dropout)
        made = LabelNetwork(PAPER_LABELS, architecture)
        made.set_odds(torch.linspace(1000, 1, PAPER_LABELS), 10_000)
        return made

    def dense_loss(made: Any, labels: Any) -> Any:
        one_hot = torch.zeros(len(labels), PAPER_LABELS)
        one_hot[labels.documents, labels.labels] = 1
        table = functional.linear(one_hot, made.inputs.weight.T, made.inputs.bias)
        hidden = made._hidden(made.norm1(table))
        hidden = made._hidden(made.norm2(made.dense2(hidden)))
        logits = made.decode(made.embedding(hidden))
        total = functional.binary_cross_entropy_with_logits(logits, one_hot, reduction="sum")
        return total / len(labels)

    # Equality: the same weights, without dropout.
    made, labels = network(0.0), batch(0)
    ours = made(labels)
    ours.backward()
    gradients = {name: weight.grad.to_dense() for name, weight in made.named_parameters()}
    made.zero_grad()
    theirs = dense_loss(made, labels)
    theirs.backward()
    differences = [
        float((gradients[name] - weight.grad).abs().max())
        for name, weight in made.named_parameters()
    ]
    figures: dict[str, Any] = {
        "loss_difference": abs(ours.item() - theirs.item()) / theirs.item(),
        "gradient_difference": max(differences),
    }
    # Cost: alternating steps, so that both meet the same machine.
    rate = 0.001
    left, right = network(0.2), network(0.2)
    lazy, adam = Optimiser(left, sampled=False), torch.optim.Adam(right.parameters(), lr=rate)
    spent = {"ours": [], "dense": []}
    losses = {"ours": [], "dense": []}
    for number in range(50):
        labels = batch(number % 20)
        torch.manual_seed(number)
        begun = time.process_time()
        loss = left(labels)
        loss.backward()
        lazy.step(rate)
        spent["ours"].append(time.process_time() - begun)
        losses["ours"].append(loss.item())
        torch.manual_seed(number)
        begun = time.process_time()
        adam.zero_grad()
        loss = dense_loss(right, labels)
        loss.backward()
        adam.step()
        spent["dense"].append(time.process_time() - begun)
        losses["dense"].append(loss.item())
    figures |= {
        "ours": float(np.median(spent["ours"])),
        "dense": float(np.median(spent["dense"])),
        "ratio": float(np.median(spent["ours"]) / np.median(spent["dense"])),
        "loss_ratio": losses["ours"][-1] / losses["dense"][-1],
        "last_losses": [losses["ours"][-1], losses["dense"][-1]],
        **sampled_step(),
    }
    return figures


def sampled_step() -> dict[str, float]:
    """A step of `auto` on mesh47k's labels with all outputs, and with a sample of them."""
    import torch

    from labelkin.autoencoder.network import LabelNetwork, OutputSample, label_batch
    from labelkin.autoencoder.optimisation import Optimiser
    from labelkin.autoencoder.training_data import OutputSampling

    sampling = OutputSampling.of_size(MESH_LABELS, paper_settings().sampled_outputs)
    assert sampling is not None
    random = np.random.default_rng(0)
    architecture = make_architecture("auto", MESH_LABELS, 43_178)
    networks = {sampled: LabelNetwork(MESH_LABELS, architecture) for sampled in (False, True)}
    optimisers = {key: Optimiser(network, sampled=key) for key, network in networks.items()}
    spent: dict[bool, list[float]] = {False: [], True: []}
    for number in range(20):
        sets = label_sets(BATCH, MESH_LABELS, number)
        starts = np.concatenate(([0], np.cumsum([len(labels) for labels in sets])))
        flat = np.concatenate(sets).astype(np.int64)
        labels = label_batch(flat, starts.astype(np.int64), torch.device("cpu"))
        for sampled, network in networks.items():
            begun = time.process_time()
            sample = None
            if sampled:
                drawn = sampling.draw(flat, random)
                sample = OutputSample(*(torch.from_numpy(array) for array in drawn))
            network(labels, sample).backward()
            optimisers[sampled].step(0.001)
            spent[sampled].append(time.process_time() - begun)
    return {"all_outputs": float(np.median(spent[False])), "sampled": float(np.median(spent[True]))}


# --- memory --------------------------------------------------------------------------------


def train_on(documents: int) -> int:
    """A few hundred steps on generated label sets that lie on disk."""
    from labelkin.autoencoder.training import Trainer
    from labelkin.autoencoder.training_data import make_training_data
    from labelkin.store.label_sets import LabelSets, Segment

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        labels = 10_000
        sizes = np.random.default_rng(0).integers(5, 21, documents)
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        np.save(folder / "starts.npy", starts)
        columns = np.lib.format.open_memmap(
            folder / "columns.npy", "w+", np.int32, (int(starts[-1]),)
        )
        for begin in range(0, documents, 50_000):
            counts = sizes[begin : begin + 50_000]
            topics = np.random.default_rng(begin).zipf(1.3, len(counts)) % labels
            part = slice(starts[begin], starts[begin] + counts.sum())
            places = np.arange(part.stop - part.start) - np.repeat(
                np.cumsum(counts) - counts, counts
            )
            # A document's labels differ from one another: 97 has no factor in common with 10,000.
            columns[part] = (np.repeat(topics, counts) + places * 97) % labels
        columns.flush()
        del columns
        segment = Segment(
            0,
            np.load(folder / "starts.npy", mmap_mode="r"),
            np.load(folder / "columns.npy", mmap_mode="r"),
        )
        data = make_training_data(
            LabelSets([segment]),
            labels,
            np.empty(0, dtype=np.int64),
            held_out=0.001,
            min_frequency=1,
            seed=0,
        )
        settings = paper_settings(
            preset="256/128/64", epochs=1, minutes=1.0, averages=False, device="cpu"
        )
        trainer = Trainer(data, settings, folder)
        trainer.run()
        return trainer.position.steps


def memory(_work: Path, _minutes: float) -> dict[str, Any]:
    rows = []
    for documents in (100_000, 1_000_000):
        run = measure(train_on, documents)
        rows.append([documents, run.result, run.seconds, run.peak_megabytes])
    return {"rows": rows}


# --- quality -------------------------------------------------------------------------------


def collection(work: Path) -> Indexer:
    folder = work / "mesh47k"
    if folder.exists():
        return Indexer.open(folder)
    vocabulary = read_vocabulary(SHARED / "mesh" / "descriptors.tsv.gz")
    indexer = Indexer.create(folder, vocabulary, language="en")
    indexer.add(read_corpus(SHARED / "mesh47k" / "train.json.gz"))
    indexer.build()
    return indexer


def model_folder(indexer: Indexer) -> Path:
    return indexer.collection.path / "models" / MODEL_NAME


def use_model(indexer: Indexer, work: Path, name: str, settings: TrainingSettings) -> None:
    """Make `name` the model of the collection, trained now unless it was before."""
    kept = work / "models" / name.replace(" ", "-").replace(",", "")
    used = model_folder(indexer)
    if used.is_symlink():
        used.unlink()
    kept.mkdir(parents=True, exist_ok=True)
    used.symlink_to(kept.resolve())
    if not (kept / "model.json").exists():
        resume = (kept / "checkpoint" / "checkpoint.json").exists()
        indexer.train_label_ae(settings, resume=resume)


@dataclass(frozen=True)
class Split:
    """Documents with their neighbours and gold labels."""

    documents: list[Document]
    neighbours: Neighbours
    gold: Any

    def queries(self, indexer: Indexer) -> Queries:
        """New queries: what was computed for them belongs to one model."""
        return indexer.queries(self.documents, neighbours=self.neighbours)


def split(indexer: Indexer, name: str) -> Split:
    documents = list(read_corpus(SHARED / "mesh47k" / f"{name}.json.gz").documents())
    neighbours = indexer.neighbour_arrays(documents, max(KS), store_terms=True)
    return Split(documents, neighbours, gold_matrix(documents, indexer.vocabulary))


def scored(settings: Settings, queries: Queries, gold: Any) -> Evaluation:
    method = settings.implementation
    ranking = method.rank(queries, settings)
    return Evaluation(gold, method.cut(queries, ranking, settings), ranking)


def grid(queries: Queries, gold: Any) -> Iterator[list[Any]]:
    """Every k, weighting, distance and cut: a row each with the values of all measures."""

    def values(settings: Settings) -> Iterable[float]:
        return evaluate(scored(settings, queries, gold), MEASURES).values()

    for k in KS:
        votes = Settings(knn=replace(VOTES, k=k))
        yield ["knn", k, "majority", "", "count", *values(votes)]
        for weighting in ("difference", "square"):
            for distance in DISTANCES:
                base = ScorerSettings(k=k, weighting=weighting, distance=distance, count=None)
                for cut in ("0.5", "0.75", "count"):
                    threshold = 0.0 if cut == "count" else float(cut)
                    count = "mean" if cut == "count" else None
                    scorer = replace(base, count=count, threshold=threshold)
                    for method in ("label-ae", "mix"):
                        settings = replace(votes, method=method, label_ae=scorer)
                        yield [method, k, weighting, distance, cut, *values(settings)]
                joined = replace(
                    votes, method="mix-ranked", label_ae=base, mix=MixSettings(0.5, "mean", 0.0)
                )
                yield ["mix-ranked", k, weighting, distance, "count", *values(joined)]


def chosen_on_dev(queries: Queries, gold: Any, ks: Sequence[int]) -> dict[str, Settings]:
    """The settings of each method that do best on dev."""
    best: dict[str, tuple[float, Settings]] = {}

    def offer(name: str, settings: Settings) -> None:
        value = MIF.value(scored(settings, queries, gold))
        if name not in best or value > best[name][0]:
            best[name] = (value, settings)

    for k in ks:
        votes = replace(VOTES, k=k)
        offer("knn, majority and count", Settings(knn=votes))
        for weighting in ("majority", "difference", "square"):
            for threshold in THRESHOLDS[:12]:
                one = replace(votes, weighting=weighting, count=None, threshold=threshold)
                offer("knn", Settings(knn=one))
        for weighting in ("difference", "square"):
            for distance in DISTANCES:
                scorer = ScorerSettings(k=k, weighting=weighting, distance=distance, count=None)
                for threshold in THRESHOLDS:
                    one = replace(scorer, threshold=threshold)
                    offer("label-ae", Settings(method="label-ae", label_ae=one))
    votes = best["knn, majority and count"][1].knn
    decoding = replace(best["label-ae"][1].label_ae, threshold=0.0)
    for threshold in THRESHOLDS:
        one = replace(decoding, threshold=threshold)
        offer("mix", Settings(method="mix", knn=votes, label_ae=one))
    for source in ("knn, majority and count", "knn"):
        voting = best[source][1].knn
        for share in SHARES:
            for cut in (None, *THRESHOLDS[:14]):
                if cut is None and voting.count is None:
                    continue
                mix = MixSettings(share, "mean" if cut is None else None, cut or 0.0)
                joined = Settings(method="mix-ranked", knn=voting, label_ae=decoding, mix=mix)
                offer("mix-ranked", joined)
                if source.startswith("knn,") and cut is None:
                    offer("mix-ranked, count", joined)
    return {name: settings for name, (_, settings) in best.items()}


def described(settings: Settings) -> str:
    if settings.method == "mix-ranked":
        mix = settings.mix
        cut = "count" if mix.count else f"threshold {mix.threshold:g}"
        return f"share {mix.share:g}, {cut}; votes: {scorer_text(settings.knn)}"
    return scorer_text(settings.knn if settings.method == "knn" else settings.label_ae)


def scorer_text(scorer: ScorerSettings) -> str:
    cut = "count" if scorer.count else f"threshold {scorer.threshold:g}"
    return f"k = {scorer.k}, {scorer.weighting}/{scorer.distance}, {cut}"


def reconstruction(decoder: Decoder, gold: Any) -> dict[str, float]:
    """MiF at 0.5 of label sets that were never trained on."""
    known = gold.tocsr()[:, decoder.columns.columns]
    right = given = 0
    for start in range(0, known.shape[0], BATCH):
        part = known[start : start + BATCH].astype(np.float32)
        logits = decoder.model.decode(decoder.model.encode(part))
        rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        right += int((logits[rows, part.indices] > 0).sum())
        given += int((logits > 0).sum())
    return {
        "MiF": 2 * right / (given + gold.nnz),
        "MiP": right / max(given, 1),
        "MiR": right / gold.nnz,
    }


def quality(work: Path, minutes: float, only: Sequence[str] = ()) -> dict[str, Any]:
    path = work / "quality.json"
    figures: dict[str, Any] = {"models": {}}
    if path.exists():
        figures = json.loads(path.read_text())
    wanted: dict[str, TrainingSettings] = {
        name: paper_settings(minutes=0.0 if "epochs" in changes else minutes, **changes)
        for name, changes in MODELS.items()
        if not only or name in only
    }
    with collection(work) as indexer:
        splits = {name: split(indexer, name) for name in SPLITS}
    for name, settings in wanted.items():
        # Opened again, so that one model at a time is in memory.
        with collection(work) as indexer:
            use_model(indexer, work, name, settings)
            figures["models"][name] = model_figures(indexer, work, name, splits)
        path.write_text(json.dumps(figures, indent=1))
        print(name, json.dumps(figures["models"][name]["training"]), flush=True)
    return figures


def frequency_bands(indexer: Indexer, width: int) -> dict[str, Any]:
    """Labels by the number of documents that carry them in the collection."""
    counts = indexer.label_frequencies(width)
    return {
        "all": counts >= 0,
        f"at least {FREQUENT}": counts >= FREQUENT,
        "10 to 99": (counts >= 10) & (counts < FREQUENT),
        "below 10": counts < 10,
    }


def model_figures(
    indexer: Indexer, work: Path, name: str, splits: dict[str, Split]
) -> dict[str, Any]:
    queries = {key: of_split.queries(indexer) for key, of_split in splits.items()}
    decoder = Decoder.of(queries["dev"])
    info = decoder.model.info
    found: dict[str, Any] = {
        "layers": info.architecture.sizes,
        "parameters": info.architecture.trainable_parameters(len(info.labels)),
        "training": dict(info.training),
        "minutes": info.settings["minutes"],
        "reconstruction": reconstruction(decoder, splits["dev"].gold),
        "methods": {},
    }
    with (model_folder(indexer) / "training.csv").open() as file:
        found["curve"] = list(csv.DictReader(file))
    ks = KS[1:] if name in ("auto", "medium") else (20,)
    chosen = chosen_on_dev(queries["dev"], splits["dev"].gold, ks)
    for split_name, of_split in splits.items():
        near, gold = queries[split_name], of_split.gold
        evaluations = {key: scored(settings, near, gold) for key, settings in chosen.items()}
        base = evaluations["knn, majority and count"]
        bands = frequency_bands(indexer, gold.shape[1])
        for key, evaluation in evaluations.items():
            row = found["methods"].setdefault(key, {"settings": described(chosen[key])})
            test = paired_test(MIF, evaluation, base)
            row[split_name] = {
                **evaluate(evaluation, MEASURES),
                "p": test.p_value,
                "bands": {
                    band: MIF.value(evaluation.restricted(mask)) for band, mask in bands.items()
                },
            }
        if name in ("auto", "medium"):
            path = work / f"grid-{name}-{split_name}.csv"
            if not path.exists():
                rows = list(grid(near, gold))
                with path.open("w") as file:
                    csv.writer(file).writerows(rows)
    return found


# --- prediction ----------------------------------------------------------------------------


def predict(work: Path, _minutes: float) -> dict[str, Any]:
    """Documents a second from cached neighbours, with `medium` where it has been trained."""
    with collection(work) as indexer:
        name = "medium" if (work / "models" / "medium" / "model.json").exists() else "auto"
        use_model(indexer, work, name, paper_settings(preset=name))
        dev = split(indexer, "dev")
        settings = Settings(method="label-ae")
        label_ae = settings.implementation
        label_ae.rank(dev.queries(indexer).part(slice(10)), settings)
        rates, cpu_rates = [], []
        for _ in range(5):
            queries = dev.queries(indexer)
            begun, cpu = time.perf_counter(), time.process_time()
            label_ae.cut(queries, label_ae.rank(queries, settings), settings)
            rates.append(len(queries) / (time.perf_counter() - begun))
            cpu_rates.append(len(queries) / (time.process_time() - cpu))
        return {
            "model": name,
            "labels": len(Decoder.of(queries).columns),
            "per_second": float(np.median(rates)),
            "per_cpu_second": float(np.median(cpu_rates)),
        }


# --- report --------------------------------------------------------------------------------


def report(work: Path) -> str:
    def figures(part: str) -> dict[str, Any] | None:
        path = work / f"{part}.json"
        return json.loads(path.read_text()) if path.exists() else None

    lines = [
        "# The label autoencoder",
        "",
        f"Made by `python benchmarks/label_ae.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, 2 shared cores, no GPU.",
        "",
    ]
    if (found := figures("quality")) is not None:
        lines += quality_lines(found, work)
    if (found := figures("step")) is not None:
        lines += [
            "## A training step",
            "",
            f"`medium`, {PAPER_LABELS:,} labels, batch {BATCH}, all outputs, against dense one-hot "
            "inputs and targets with torch's Adam; steps of both in turn, 50 each, medians.",
            "",
            "| | CPU-seconds a step |",
            "|---|---|",
            f"| dense one-hot, Adam | {found['dense']:.2f} |",
            "| label ids, loss from positives, lazy Adam for the input table "
            f"| {found['ours']:.2f} |",
            "",
            f"Ratio {found['ratio']:.2f}. The first step's loss differs by "
            f"{found['loss_difference']:.1e} (relative), no gradient by more than "
            f"{found['gradient_difference']:.1e}. Lazy Adam leaves rows without a gradient where "
            f"they are; after 50 steps the loss is {found['last_losses'][0]:.3f} against "
            f"{found['last_losses'][1]:.3f} (ratio {found['loss_ratio']:.4f}).",
            "",
            f"A step of `auto` over {MESH_LABELS:,} labels takes {found['all_outputs']:.2f} "
            f"CPU-seconds with all outputs and {found['sampled']:.2f} with a sample of "
            f"{paper_settings().sampled_outputs:,}.",
            "",
        ]
    if (found := figures("predict")) is not None:
        lines += [
            "## Prediction",
            "",
            f"From cached neighbours (k = 20) to headings, `{found['model']}` with "
            f"{found['labels']:,} labels: {found['per_second']:,.0f} documents/s, "
            f"{found['per_cpu_second']:,.0f} per CPU-second (medians of 5).",
            "",
        ]
    if (found := figures("memory")) is not None:
        lines += [
            "## Memory",
            "",
            "Training `256/128/64` over 10,000 labels for a minute, label sets on disk.",
            "",
            "| label sets | steps | seconds | peak MB |",
            "|---|---|---|---|",
            *(f"| {n:,} | {s:,} | {t:.0f} | {m:.0f} |" for n, s, t, m in found["rows"]),
            "",
            "What grows is the mapped label sets themselves (58 MB of files for a million, which "
            "the system can drop) and a few numbers per document: row, size, order of an epoch.",
            "",
        ]
    return "\n".join(lines)


def quality_lines(found: dict[str, Any], work: Path) -> list[str]:
    models = {name: found["models"][name] for name in MODELS if name in found["models"]}
    first = next(iter(models))
    lines = [
        "## Training on mesh47k",
        "",
        "| model | layers | parameters | epochs | best | seconds | stopped by "
        "| MiF at 0.5 (dev) | MiP | MiR |",
        "|---" * 10 + "|",
    ]
    for name, model in models.items():
        training, values = model["training"], model["reconstruction"]
        lines.append(
            f"| {name} | {model['layers']} | {model['parameters'] / 1e6:.1f} M "
            f"| {training['epochs']} | {training['best_epoch']} "
            f"| {training['seconds']:.0f} | {training['stopped']} | {values['MiF']:.4f} "
            f"| {values['MiP']:.4f} | {values['MiR']:.4f} |"
        )
    for name in ("auto", "medium"):
        if name in models:
            lines += curve_lines(name, models[name]["curve"])
    lines += ["", "## Quality, settings chosen on dev", ""]
    for split_name in SPLITS:
        lines += [
            f"### {split_name}",
            "",
            "| model | method | settings | " + " | ".join(m.name for m in MEASURES) + " | p |",
            "|---" * (len(MEASURES) + 4) + "|",
        ]
        shown_votes = False
        for name, model in models.items():
            for key, row in model["methods"].items():
                is_votes = key.startswith("knn")
                if is_votes and shown_votes:
                    continue
                values = row[split_name]
                cells = " | ".join(f"{values[m.name]:.4f}" for m in MEASURES)
                label = "" if is_votes else name
                lines.append(
                    f"| {label} | {key} | {row['settings']} | {cells} | {values['p']:.3f} |"
                )
            shown_votes = True
        lines.append("")
    lines += [
        "p: paired randomisation test of MiF against `knn, majority and count`.",
        "",
        "## MiF by how often a heading occurs in training",
        "",
    ]
    bands = list(next(iter(models[first]["methods"].values()))["dev"]["bands"])
    for split_name in SPLITS:
        lines += [f"### {split_name}", "", "| model | method | " + " | ".join(bands) + " |"]
        lines.append("|---" * (len(bands) + 2) + "|")
        shown_votes = False
        for name, model in models.items():
            for key, row in model["methods"].items():
                if key.startswith("knn") and shown_votes:
                    continue
                cells = " | ".join(f"{row[split_name]['bands'][band]:.4f}" for band in bands)
                label = "" if key.startswith("knn") else name
                lines.append(f"| {label} | {key} | {cells} |")
            shown_votes = True
        lines.append("")
    lines += grid_lines(work)
    return lines


def curve_lines(name: str, curve: list[dict[str, str]]) -> list[str]:
    lines = [
        "",
        f"The course of `{name}`:",
        "",
        "| epoch | loss | validation loss | MiF | predicted MiF | seconds |",
        "|---" * 6 + "|",
    ]
    for entry in curve:
        cells = [float(entry[key]) for key in ("loss", "validation_loss", "MiF", "predicted_MiF")]
        values = " | ".join(f"{cell:.3f}" for cell in cells)
        lines.append(f"| {entry['epoch']} | {values} | {float(entry['seconds']):.0f} |")
    return lines


def grid_lines(work: Path) -> list[str]:
    header = ["method", "k", "weighting", "distance", "cut", *(m.name for m in MEASURES)]
    rows: list[list[str]] = []
    for model in ("auto", "medium"):
        for split_name in SPLITS:
            path = work / f"grid-{model}-{split_name}.csv"
            if path.exists():
                with path.open() as file:
                    rows += [[model, split_name, *row] for row in csv.reader(file)]
    if not rows:
        return []
    with (ROOT / "results" / "label-ae.csv").open("w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["model", "split", *header])
        table.writerows([[*row[:7], *(f"{float(v):.4f}" for v in row[7:])] for row in rows])
    lines = [
        "## Every k, weighting, distance and cut",
        "",
        f"results/label-ae.csv has all {len(rows):,} rows. The best of each on l1000, `auto`:",
        "",
        "| method | cut | k | weighting | distance | MiF | MiP | MiR | P@5 |",
        "|---" * 9 + "|",
    ]
    mine = [row[2:] for row in rows if row[0] == "auto" and row[1] == "l1000"]
    for key in sorted({(row[0], row[4]) for row in mine}):
        best = max((row for row in mine if (row[0], row[4]) == key), key=lambda row: float(row[5]))
        values = " | ".join(f"{float(value):.4f}" for value in best[5:9])
        lines.append(f"| {key[0]} | {key[1]} | {best[1]} | {best[2]} | {best[3]} | {values} |")
    return [*lines, ""]


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "step": step,
    "memory": memory,
    "quality": quality,
    "predict": predict,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "report"])
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work")
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--model", action="append", choices=list(MODELS), default=[])
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    for name in arguments.parts or [*PARTS, "report"]:
        if name != "report":
            options = (arguments.model,) if name == "quality" else ()
            figures = PARTS[name](arguments.work, arguments.minutes, *options)
            (arguments.work / f"{name}.json").write_text(json.dumps(figures, indent=1))
            print(name, json.dumps(figures)[:600], flush=True)
    (ROOT / "results" / "label-ae.md").write_text(report(arguments.work))


if __name__ == "__main__":
    main()
