"""The reranker, one ingredient at a time, on mesh47k and tibkat; what it costs.

python benchmarks/rerank.py --work FOLDER             # all parts, one after another
python benchmarks/rerank.py --work FOLDER PARTS...    # candidates ablation costs tibkat rare report
python benchmarks/rerank.py --work FOLDER --encoder MODEL    # with the vectors of an encoder too

Writes results/ablation.md, and results/rare-headings.md (`rare`); needs ../shared/data. The results
of a part stay in the folder, and the report is made from those that are there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from labelkin import Document, Indexer, __version__, read_corpus, read_vocabulary
from labelkin.autoencoder.model import LabelModel
from labelkin.evaluate import Evaluation, evaluate_bands, paired_test, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.label_ae_training import TrainingSources, fold_autoencoders
from labelkin.rerank.calibration import (
    calibrate,
    calibration_error,
    expected_f_counts,
    reliability,
)
from labelkin.rerank.fitting import best_threshold
from labelkin.rerank.labelled_candidates import LabelledCandidates
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.ranker import fit_ranker
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import SIGNALS, feature_names
from labelkin.rerank.training import RerankTrainer
from labelkin.scoring.cut import cut
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.held_out import MOST_FOLDS
from labelkin.training_plan import TrainingObserver
from measure import measure

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
SPLITS = ("dev", "test", "l1000", "l1000-clean")
MIF, P5, EBF = (parse_measure(name) for name in ("MiF", "P@5", "EBF"))
PARTS = ("candidates", "ablation", "costs", "tibkat", "rare", "report")
FOLDS = MOST_FOLDS
# What rare headings gain, and what it costs; powers of the inverse propensity as weights.
RARE = tuple(map(parse_measure, ("MiP", "MiR", "MiF", "MaF", "P@5", "PSP@5")))
POWERS = (0.0, 0.5, 1.0)
# About as many headings as NLM's Medical Text Indexer lists.
LONG_LIST = 23

# All that are available by default.
EVERYTHING = tuple(name for name in SIGNALS.names() if name != "vectors")
# Each rank and the feature that it is the rank of.
RANKS = {
    "vote_rank": "close4",
    **{
        f"{name}_rank": name
        for name in (
            "described",
            "spoken",
            "word_evidence",
            "margin",
            "wording_margin",
            "decoded",
            "latent",
        )
    },
    **{f"{name}_rank": name for name in ("vector_score", "name_similarity")},
}
TOKENS = 128
BASE = ("votes", "frequency", "document")
# Each step adds a signal to those before it.
STEPS = (
    ("named", "named in the text"),
    ("naming rate", "how often a named heading is given"),
    ("name words", "words of its names"),
    ("words", "words of the text"),
    ("related", "headings that go together"),
    ("hierarchy", "hierarchy"),
    ("linear", "linear classifiers"),
    ("autoencoder", "label autoencoder"),
    ("latent", "its latent space alone"),
)
# Left out together, with the linear classifiers and without.
AUTOENCODER = ("autoencoder", "latent")


def corpus(split: str) -> list[Document]:
    name, _, is_clean = split.partition("-")
    found = read_corpus(DATA / "mesh47k" / f"{name}.json.gz").documents()
    documents = [document for document in found if document.labels]
    if is_clean:
        lines = (DATA / "mesh47k" / "l1000-cited.tsv").read_text().splitlines()
        cited = {line.split("\t")[0] for line in lines}
        documents = [document for document in documents if document.id not in cited]
    return documents


def make_collection(folder: Path) -> None:
    if folder.exists():
        return
    vocabulary = read_vocabulary(DATA / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(folder, vocabulary, language="en") as indexer:
        indexer.add(read_corpus(DATA / "mesh47k" / "train.json.gz"))
    update_config(folder / CONFIG_NAME, {"dense": {"max_length": TOKENS}})


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Stages(TrainingObserver):
    """Prints when a stage begins."""

    def __init__(self) -> None:
        self._last = ""

    def stage(self, name: str, done: int, total: int) -> None:  # noqa: ARG002
        if name != self._last:
            self._last = name
            say(f"{name} ({total:,})")


def collect_candidates(work: Path, encoder: str = "") -> None:
    """The candidates of every fold and of every split, with the features of all signals."""
    make_collection(work / "mesh47k")
    if (work / f"{SPLITS[-1]}.npz").exists():
        return
    with Indexer.open(work / "mesh47k") as indexer:
        models = indexer.runtime.models
        settings = replace(RerankTrainingSettings(), encoder=encoder)
        if encoder:
            say(f"Encoding by {encoder}")
            indexer.build(encoder)
        views = indexer.runtime.views()
        held_out = settings.held_out(views.snapshot)
        if not models.has(LabelModel):
            indexer.train_label_ae(held_out=held_out, observer=Stages())
        if models.get(LabelModel).info.data.get("left_out") is None:
            raise SystemExit("the label autoencoder was trained on the held-out documents")
        search = indexer.runtime.indexes.search(views)
        sources = TrainingSources(search, views, Stages())
        trainer = RerankTrainer(
            views,
            models,
            search,
            settings,
            held_out,
            autoencoder=models.get(LabelModel),
            autoencoders=fold_autoencoders(indexer.runtime, views, sources, Stages()),
            indexes=indexer.runtime.indexes,
            progress=Stages().stage,
        )
        # All candidates: which of them a signal brings can be told only if none is left out.
        with patch("labelkin.rerank.labelled_candidates._WRONG", 1.0):
            folds, knowledge = trainer.collect()
        (work / "features.json").write_text(json.dumps(feature_names(trainer.groups)))
        for number, candidates in enumerate(folds):
            save_candidates(work / f"fold-{number}.npz", candidates)
        for split in SPLITS:
            save_candidates(
                work / f"{split}.npz", trainer.given_candidates(knowledge, corpus(split))
            )


def save_candidates(path: Path, candidates: LabelledCandidates) -> None:
    pairs = candidates.pairs
    np.savez(
        path,
        keys=pairs.keys,
        shape=np.array((pairs.count, pairs.width)),
        features=candidates.features,
        right=candidates.right,
        gold=candidates.gold,
    )


def load_candidates(path: Path) -> LabelledCandidates:
    with np.load(path) as arrays:
        count, width = arrays["shape"].tolist()
        return LabelledCandidates(
            Pairs(arrays["keys"], count, width), arrays["features"], arrays["right"], arrays["gold"]
        )


def restricted(
    candidates: LabelledCandidates, names: Sequence[str], groups: Sequence[str]
) -> LabelledCandidates:
    """The candidates that some signals bring, with the features of these signals.

    `names` are those of the columns. Ranks are those among the candidates that are left.
    """
    column = {name: candidates.features[:, place] for place, name in enumerate(names)}
    kept = (column["first"] < 8) | ((column["vote_rank"] < 100) & (column["close4"] > 0))
    if "named" in groups:
        kept |= column["named_first"] >= 0
    if "words" in groups:
        kept |= (column["spoken_rank"] < 40) & (column["spoken"] > 0)
    if "name words" in groups:
        strength = column["covered"] * column["covered_weight"]
        kept |= (candidates.pairs.ranks(strength) < 40) & (strength > 0)
    if "linear" in groups:
        for margin in ("margin", "wording_margin"):
            kept |= (column[f"{margin}_rank"] < 75) & (column[margin] > -3)
    if "vectors" in groups:
        kept |= candidates.pairs.ranks(column["vector_votes"]) < 40
        kept |= column["vector_score_rank"] < 40
    pairs = Pairs(candidates.pairs.keys[kept], candidates.pairs.count, candidates.pairs.width)
    features = []
    for name in feature_names(groups):
        values = column[RANKS.get(name, name)][kept]
        if name in RANKS:
            values = np.where(np.isnan(values), np.nan, pairs.ranks(values))
        features.append(values)
    return LabelledCandidates(
        pairs,
        np.column_stack(features).astype(np.float32),
        candidates.right[kept],
        candidates.gold,
    )


def ranking(candidates: LabelledCandidates, scores: Any) -> Ranking:
    pairs = candidates.pairs
    order = np.lexsort((-scores, pairs.documents))
    return Ranking.from_pairs(
        pairs.documents[order], pairs.columns[order], scores[order], pairs.count
    )


@dataclass
class Step:
    """How the reranker does with some signals; `compared` is the step that p compares it with."""

    name: str
    compared: str
    values: dict[str, dict[str, float]]


class Gold:
    """The right labels of every split, and what bands and propensities need."""

    def __init__(self, work: Path) -> None:
        with Indexer.open(work / "mesh47k", read_only=True) as indexer:
            vocabulary = indexer.vocabulary
            self.matrices = {split: gold_matrix(corpus(split), vocabulary) for split in SPLITS}
            width = len(vocabulary)
            self.frequencies = indexer.collection.label_sets().frequencies(
                width, np.zeros(0, dtype=np.int64)
            )

            self.documents = indexer.collection.count()

    def evaluation(self, split: str, ranked: Ranking, given: Ranking) -> Evaluation:
        gold = self.matrices[split]
        frequencies = np.pad(self.frequencies, (0, gold.shape[1] - len(self.frequencies)))
        return Evaluation(
            gold,
            given,
            ranked,
            training_frequencies=frequencies,
            training_documents=self.documents,
        )


def ablate(work: Path, encoder: str = "", chosen: str = "") -> None:
    """Signals added one after another, all but one, fewer documents to train on, an encoder.

    `chosen` is a pattern of the rows to measure, by default all.
    """
    gold = Gold(work)
    names = json.loads((work / "features.json").read_text())
    everything = {split: load_candidates(work / f"{split}.npz") for split in SPLITS}
    folds = [load_candidates(work / f"fold-{number}.npz") for number in range(FOLDS)]
    rows: list[tuple[str, str, tuple[str, ...], int]] = [("votes", "", BASE, FOLDS)]
    for signal, name in STEPS:
        before, groups = rows[-1][0], rows[-1][2]
        rows.append((f"+ {name}", before, (*groups, signal), FOLDS))
    whole = rows[-1][0]
    for signal, name in STEPS:
        others = tuple(one for one in EVERYTHING if one != signal)
        rows.append((f"all but {name}", whole, others, FOLDS))
    others = tuple(one for one in EVERYTHING if one not in AUTOENCODER)
    rows.append(("all but the autoencoder, both signals", whole, others, FOLDS))
    before = rows[-1][0]
    rows.append(
        (
            "neither autoencoder nor linear classifiers",
            before,
            tuple(one for one in others if one != "linear"),
            FOLDS,
        )
    )
    rows.append(("all, trained on one fold", whole, EVERYTHING, 1))
    if encoder:
        signals = tuple(SIGNALS.names())
        rows.append((f"all and the vectors of {Path(encoder).name}", whole, signals, FOLDS))
    found: list[Step] = []
    evaluations: dict[tuple[str, str], Evaluation] = {}
    for name, compared, groups, count in (row for row in rows if re.search(chosen, row[0])):
        shown = LabelledCandidates.joined(
            [
                restricted(fold, names, groups).thinned(np.random.default_rng(0))
                for fold in folds[:count]
            ]
        )
        ranker = fit_ranker(
            shown.features,
            shown.right,
            feature_names(groups),
            rounds=RerankTrainingSettings().rounds,
            seed=0,
            weights=shown.weights,
        )
        mine = {split: restricted(one, names, groups) for split, one in everything.items()}
        scores = {split: ranker.scores(mine[split].features) for split in SPLITS}
        _, threshold = best_threshold(mine["dev"], scores["dev"])
        step = Step(name, compared, {})
        for split in SPLITS:
            candidates = mine[split]
            ranked = ranking(candidates, scores[split])
            evaluation = gold.evaluation(split, ranked, cut(ranked, None, threshold))
            bands = evaluate_bands(evaluation, [MIF])
            step.values[split] = {
                "candidates": len(candidates.pairs) / candidates.pairs.count,
                "recall": float(candidates.right.sum() / candidates.gold.sum()),
                "MiF": MIF.value(evaluation),
                "P@5": P5.value(evaluation),
                "EBF": EBF.value(evaluation),
                **{band: bands[band]["MiF"] for band in bands},
            }
            evaluations[name, split] = evaluation
            if (compared, split) in evaluations:
                test = paired_test(MIF, evaluation, evaluations[compared, split])
                step.values[split]["p"] = test.p_value
        if name == whole:
            step.values["calibration"] = calibration(mine, scores, gold)
        found.append(step)
        say(f"{name}: " + ", ".join(f"{s} {step.values[s]['MiF']:.4f}" for s in SPLITS))
        (work / "ablation.json").write_text(json.dumps([asdict(one) for one in found], indent=1))


def weigh_rare(work: Path) -> None:
    """Trees for which right candidates of rare headings count more; also as long lists as MTI's."""
    gold = Gold(work)
    names = json.loads((work / "features.json").read_text())
    frequencies = np.maximum(gold.frequencies, 0)
    shown = LabelledCandidates.joined(
        [
            restricted(load_candidates(work / f"fold-{number}.npz"), names, EVERYTHING).thinned(
                np.random.default_rng(0)
            )
            for number in range(FOLDS)
        ]
    )
    assert shown.weights is not None
    # The propensity of Jain et al. (2016), with their constants.
    scale = (np.log(gold.documents) - 1) * 2.5**0.55
    inverse = 1 + scale * (frequencies + 1.5) ** -0.55
    rows: list[dict[str, Any]] = []
    for power in POWERS:
        weights = np.where(shown.right, inverse[shown.pairs.columns] ** power, 1.0)
        # All right candidates together count as much as before.
        weights[shown.right] /= weights[shown.right].mean()
        ranker = fit_ranker(
            shown.features,
            shown.right,
            feature_names(EVERYTHING),
            rounds=RerankTrainingSettings().rounds,
            seed=0,
            weights=(shown.weights * weights).astype(np.float32),
        )
        threshold = None
        for split in SPLITS:
            mine = restricted(load_candidates(work / f"{split}.npz"), names, EVERYTHING)
            scores = ranker.scores(mine.features)
            if threshold is None:
                _, threshold = best_threshold(mine, scores)
            ranked = ranking(mine, scores)
            for given, cut_by in (
                (cut(ranked, None, threshold), "threshold"),
                (cut(ranked, limit=LONG_LIST), f"{LONG_LIST} headings"),
            ):
                evaluation = gold.evaluation(split, ranked, given)
                values = {str(one): one.value(evaluation) for one in RARE}
                rows.append({"power": power, "split": split, "cut": cut_by, **values})
                say(f"power {power:g}, {split}, {cut_by}: {values}")
        (work / "rare.json").write_text(json.dumps(rows, indent=1))
    (ROOT / "results" / "rare-headings.md").write_text("\n".join(_rare(rows)) + "\n")


def _rare(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "# Rare headings first",
        "",
        f"Made by `python benchmarks/rerank.py --work FOLDER candidates rare` with labelkin "
        f"{__version__}, seed 0.",
        "",
        "NLM's Medical Text Indexer is above `rerank` in recall and for rare headings "
        "([peers.md](peers.md)). What labelkin could take over from it: rare headings early, and "
        f"long lists. Here the trees of the reranker are trained with weights: right candidates "
        "count in proportion to a power of the inverse propensity of their heading (Jain et al., "
        "2016), all of them together as much as before. Power 0 is the reranker as it is. Each is "
        f"cut at the threshold that is best on dev, and after {LONG_LIST} headings, about as many "
        "as MTI lists.",
    ]
    for split in SPLITS:
        lines += ["", f"## {split}", ""]
        lines += [f"| power | cut | {' | '.join(map(str, RARE))} |"]
        lines += ["|---" * (len(RARE) + 2) + "|"]
        for row in (row for row in rows if row["split"] == split):
            values = " | ".join(f"{row[str(one)]:.4f}" for one in RARE)
            lines.append(f"| {row['power']:g} | {row['cut']} | {values} |")
    return lines


def calibration(
    mine: dict[str, LabelledCandidates], scores: dict[str, Any], gold: Gold
) -> dict[str, float]:
    """Calibrated on dev: the error on the other splits, and what the expected-F cut brings."""
    dev = mine["dev"]
    missed = float((dev.gold.sum() - dev.right.sum()) / dev.pairs.count)
    made = calibrate(scores["dev"], dev.right, missed=missed, documents=dev.pairs.count, error=0.0)
    found = {}
    for split in SPLITS[1:]:
        candidates, calibrated = mine[split], made.scores(scores[split])
        found[f"error {split}"] = calibration_error(reliability(calibrated, candidates.right))
        ranked = ranking(candidates, calibrated)
        counts = expected_f_counts(ranked.scores, ranked.starts, missed)
        evaluation = gold.evaluation(split, ranked, cut(ranked, counts))
        found[f"expected-f MiF {split}"] = MIF.value(evaluation)
        found[f"expected-f EBF {split}"] = EBF.value(evaluation)
        for target in (0.9, 0.5):
            above = calibrated >= made.threshold(target)
            found[f"precision at {target} {split}"] = float(candidates.right[above].mean())
            found[f"recall at {target} {split}"] = float(
                candidates.right[above].sum() / candidates.gold.sum()
            )
    return found


def train_once(folder: Path, linear: bool) -> dict[str, Any]:
    with Indexer.open(folder) as indexer:
        settings = replace(RerankTrainingSettings(), linear=linear)
        report = indexer.train_reranker((), settings, observer=Stages())
        size = sum(path.stat().st_size for path in report.folder.iterdir())
        return {**report.info.training, "MiF": report.score, "votes": report.votes, "bytes": size}


def predict_once(folder: Path) -> dict[str, float]:
    documents = corpus("test")
    with Indexer.open(folder, read_only=True) as indexer:
        settings = Settings.from_config(indexer.config, "rerank")
        indexer.labels(documents[:50], settings)
        began, busy = time.perf_counter(), time.process_time()
        indexer.labels(documents, settings)
        return {
            "seconds": (time.perf_counter() - began) / len(documents),
            "cpu": (time.process_time() - busy) / len(documents),
        }


def cost(work: Path) -> None:
    folder = work / "mesh47k"
    found = {}
    for name in ("linear", "lazy"):
        trained = measure(train_once, folder, name == "linear")
        predicted = measure(predict_once, folder)
        found[name] = {
            "seconds": trained.seconds,
            "cpu": trained.cpu_seconds,
            "peak": trained.peak_megabytes,
            "training": trained.result,
            "document_seconds": predicted.result["seconds"],
            "document_cpu": predicted.result["cpu"],
        }
        say(f"{name}: {found[name]}")
        (work / "costs.json").write_text(json.dumps(found, indent=1, default=str))


def part_of(line: int) -> int:
    """The part of tibkat that a line belongs to: 0 is test, 1 is for choices."""
    return int(hashlib.md5(str(line).encode()).hexdigest(), 16) % 10


def tibkat(work: Path) -> None:
    """Both languages: knn, rerank without and with linear classifiers."""
    found: dict[str, Any] = {}
    for language in ("en", "de"):
        documents = list(read_corpus(DATA / "tibkat" / f"{language}.tsv.gz").documents())
        parts = [part_of(line) for line in range(len(documents))]
        split = {
            name: [d for d, part in zip(documents, parts, strict=True) if part == number]
            for number, name in enumerate(("test", "dev"))
        }
        rest = [d for d, part in zip(documents, parts, strict=True) if part > 1]
        folder = work / f"tibkat-{language}"
        if not folder.exists():
            vocabulary = read_vocabulary(DATA / "tibkat" / "gnd-core-en.tsv.gz")
            with Indexer.create(folder, vocabulary, language=language) as indexer:
                indexer.add(rest, keep_unknown=True)
        found[language] = {}
        for name in ("lazy", "linear"):
            update_config(folder / CONFIG_NAME, {"rerank": {"threshold": 0.3}})
            with Indexer.open(folder) as indexer:
                settings = replace(RerankTrainingSettings(), linear=name == "linear")
                report = indexer.train_reranker(split["dev"], settings, observer=Stages())
                rerank = Settings.from_config(indexer.config, "rerank")
                trials = indexer.tune(split["dev"], MIF, method="knn")
                (knn, voted) = indexer.compare(
                    split["test"], [trials[0].settings, rerank.changed(threshold=report.threshold)]
                )
                found[language]["knn"] = {"MiF": MIF.value(knn), "P@5": P5.value(knn)}
                found[language][name] = {
                    "MiF": MIF.value(voted),
                    "P@5": P5.value(voted),
                    "threshold": report.threshold,
                    "recall": report.info.training["candidate_recall"],
                    "p": paired_test(MIF, voted, knn).p_value,
                    "error": report.info.calibration.error,
                }
            say(f"tibkat {language} {name}: {found[language]}")
            (work / "tibkat.json").write_text(json.dumps(found, indent=1))


# What others reach on the same data and splits (../shared/data/README.md).
OTHERS: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "Annif ensemble": {
        "test": (0.593, 0.803),
        "l1000": (0.492, 0.693),
        "l1000-clean": (0.491, 0.688),
        "dev": (0.546, None),
    },
    "Omikuji Bonsai": {"test": (None, None), "l1000": (0.474, 0.664), "dev": (0.529, None)},
    "PECOS XR-Linear, 3 trees": {
        "test": (None, None),
        "l1000": (0.472, 0.663),
        "dev": (0.529, None),
    },
}
ANNIF_TIBKAT = {"en": (0.275, 0.188), "de": (0.194, 0.136)}


# Trials whose code is not in labelkin: MiF on dev, l1000 and test, without and with it.
TRIED: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...] = (
    (
        "the nearest carriers of each heading among all documents",
        (0.5831, 0.5359, 0.6220),
        (0.5833, 0.5367, 0.6203),
    ),
    (
        "a text network (768 hidden units, log loss; 0.507 alone)",
        (0.5831, 0.5359, 0.6220),
        (0.5863, 0.5397, 0.6236),
    ),
    (
        "ridge regression on random features of LSA (0.456 alone)",
        (0.5884, 0.5386, 0.6292),
        (0.5897, 0.5388, 0.6243),
    ),
    ("vectors of wordllama", (0.5884, 0.5386, 0.6292), (0.5878, 0.5412, 0.6276)),
    (
        "year: the document's, and its distance to the years of the heading's documents",
        (0.5884, 0.5386, 0.6292),
        (0.5901, 0.5410, 0.6280),
    ),
    (
        "journal: how much more frequent a heading is in it",
        (0.5884, 0.5386, 0.6292),
        (0.5894, 0.5397, 0.6298),
    ),
    ("journal and year", (0.5884, 0.5386, 0.6292), (0.5914, 0.5346, 0.6315)),
    (
        "label2vec: similarity to the leading candidates by vectors of headings that go together",
        (0.5884, 0.5386, 0.6292),
        (0.5882, 0.5413, 0.6284),
    ),
    (
        "p(heading | word), averaged over the words of the title",
        (0.5884, 0.5386, 0.6292),
        (0.5878, 0.5401, 0.6284),
    ),
    (
        "… over those of the title and over those of the text",
        (0.5884, 0.5386, 0.6292),
        (0.5883, 0.5406, 0.6298),
    ),
    (
        "second trees that see the scores of the first",
        (0.5892, 0.5417, 0.6317),
        (0.5899, 0.5440, 0.6307),
    ),
    (
        "… and the scores of broader, narrower and sibling headings",
        (0.5892, 0.5417, 0.6317),
        (0.5898, 0.5434, 0.6307),
    ),
    (
        "a bias per heading on top of the trees (held-out documents, shrunk by 50)",
        (0.5896, 0.5438, 0.6309),
        (0.5900, 0.5432, 0.6323),
    ),
    (
        "500 rounds of 95 leaves instead of 300 of 63",
        (0.5909, 0.5429, 0.6295),
        (0.5920, 0.5439, 0.6310),
    ),
    (
        "the true number of headings as a feature: a bound, not a method",
        (0.5831, 0.5359, 0.6220),
        (0.5957, 0.5448, 0.6353),
    ),
)


def _tried() -> list[str]:
    lines = [
        "",
        "## Tried and left out",
        "",
        "Each trial beside the reranker as it was at the time: 6,000 documents of one fold, with "
        "linear classifiers, some also with those of all words and words of names, or three folds. "
        "One seed, or two averaged; 0.001 is noise. MiF, the threshold chosen on dev. l1000 has "
        "neither journal nor year, and they are missing in half of the others: they tell the "
        "source more than the subject.",
        "",
        "| | dev | l1000 | test |",
        "|---|---|---|---|",
    ]
    for name, without, with_it in TRIED:
        values = " | ".join(f"{a:.4f} → {b:.4f}" for a, b in zip(without, with_it, strict=True))
        lines.append(f"| {name} | {values} |")
    return [
        *lines,
        "",
        "No gain on dev, either: sums over the candidates of a document, seeds averaged, trees "
        "continued on the first fold. Seven folds instead of three on tibkat: English 0.3491 "
        "instead of 0.3501, German 0.2566 instead of 0.2482, in twice the time.",
    ]


def report(work: Path) -> None:
    lines = [
        "# The reranker, one ingredient at a time",
        "",
        f"Made by `python benchmarks/rerank.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, 2 shared cores, no GPU; seed 0.",
        "",
    ]
    if (work / "ablation.json").exists():
        lines += _ablation(json.loads((work / "ablation.json").read_text()))
    if (work / "costs.json").exists():
        lines += _costs(json.loads((work / "costs.json").read_text()))
    if (work / "tibkat.json").exists():
        lines += _tibkat(json.loads((work / "tibkat.json").read_text()))
    lines += _tried()
    (ROOT / "results" / "ablation.md").write_text("\n".join(lines) + "\n")


def _ablation(steps: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## mesh47k",
        "",
        "Signals are added one after another to the votes of 80 neighbours, then each is left out "
        "alone. The trees are trained on three folds of 6,168 documents, each held out of the "
        "collection and of every statistic; the threshold is chosen on dev. head, torso and tail "
        "are MiF of headings with 1,000 and more, 100 to 999, and fewer documents; p compares MiF "
        "with the line above, or with all signals where one is left out (paired randomisation "
        "test). Since then a heading without a classifier has no margin instead of a low one: dev "
        "0.5908 → 0.5901, its tail 0.4766 → 0.4786, that of l1000-clean 0.4328 → 0.4370.",
    ]
    for split in SPLITS:
        lines += [
            "",
            f"### {split}",
            "",
            "| signals | candidates | recall | MiF | P@5 | EBF | head | torso | tail | p |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for step in steps:
            values = step["values"][split]
            p = f"{values['p']:.3f}" if "p" in values else ""
            lines.append(
                f"| {step['name']} | {values['candidates']:.0f} | {values['recall']:.3f} | "
                f"{values['MiF']:.4f} | {values['P@5']:.4f} | {values['EBF']:.4f} | "
                f"{values['head']:.3f} | {values['torso']:.3f} | {values['tail']:.3f} | {p} |"
            )
        for name, of_split in OTHERS.items():
            mif, p5 = of_split.get(split, (None, None))
            if mif is not None:
                at_5 = "" if p5 is None else f"{p5:.3f}"
                lines.append(f"| {name} (reference) | | | {mif:.3f} | {at_5} | | | | | |")
    for step in steps:
        found = step["values"].get("calibration")
        if found:
            splits = SPLITS[1:]
            lines += ["", "## Calibration", "", "Calibrated on dev, with all signals:", ""]
            lines += [f"| | {' | '.join(splits)} |", "|---" * (len(splits) + 1) + "|"]
            for key in dict.fromkeys(key.rpartition(" ")[0] for key in found):
                values = " | ".join(f"{found[f'{key} {split}']:.4f}" for split in splits)
                lines.append(f"| {key} | {values} |")
    return lines


def _costs(found: dict[str, Any]) -> list[str]:
    lines = [
        "",
        "## What it costs on mesh47k",
        "",
        "Without the label autoencoder, whose training comes before it. Seconds are of a shared "
        "machine; CPU-seconds tell more.",
        "",
        "| | CPU-seconds to train | seconds | peak MB | folder MB | documents per CPU-second |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in (("lazy", "without linear classifiers"), ("linear", "with them")):
        if name in found:
            one = found[name]
            lines.append(
                f"| {title} | {one['cpu']:.0f} | {one['seconds']:.0f} | {one['peak']:.0f} | "
                f"{one['training']['bytes'] / 1e6:.0f} | {1 / one['document_cpu']:.0f} |"
            )
    return lines


def _tibkat(found: dict[str, Any]) -> list[str]:
    lines = [
        "",
        "## tibkat",
        "",
        "Test: lines whose number has md5 % 10 == 0; md5 % 10 == 1 is given with `--tune`.",
        "",
        "| language | method | MiF | P@5 | candidate recall | p against knn |",
        "|---|---|---|---|---|---|",
    ]
    names = {"knn": "knn, tuned", "lazy": "rerank without linear classifiers", "linear": "rerank"}
    for language, methods in found.items():
        for name, title in names.items():
            if name not in methods:
                continue
            one = methods[name]
            recall = f"{one['recall']:.3f}" if "recall" in one else ""
            p = f"{one['p']:.3f}" if "p" in one else ""
            lines.append(
                f"| {language} | {title} | {one['MiF']:.4f} | {one['P@5']:.4f} | {recall} | {p} |"
            )
        mif, p5 = ANNIF_TIBKAT[language]
        lines.append(f"| {language} | Annif ensemble (reference) | {mif:.3f} | {p5:.3f} | | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", help=" ".join(PARTS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--encoder", default="", help="a sentence-transformers model, say")
    parser.add_argument("--rows", default="", help="a pattern of the rows of the ablation")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    work = {
        "candidates": partial(collect_candidates, encoder=asked.encoder),
        "ablation": partial(ablate, encoder=asked.encoder, chosen=asked.rows),
        "costs": cost,
        "tibkat": tibkat,
        "rare": weigh_rare,
        "report": report,
    }
    for part in asked.parts or PARTS:
        work[part](asked.work)


if __name__ == "__main__":
    main()
