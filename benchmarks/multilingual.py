"""One label space, two languages: what a label autoencoder is worth beyond its own texts.

python benchmarks/multilingual.py [--work FOLDER]   # writes results/multilingual.md

Needs ../shared/data. Collections, models and rankings that FOLDER holds are not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin import Document, Indexer, __version__, read_corpus, read_vocabulary
from labelkin.autoencoder.training_settings import paper_settings
from labelkin.evaluate import Evaluation, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.evaluate.significance import bootstrap_interval, paired_test
from labelkin.evaluate.sweep import sweep
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ROOT = Path(__file__).parents[1]
TIBKAT = ROOT.parent / "shared" / "data" / "tibkat"
MIF, P5 = parse_measure("MiF"), parse_measure("P@5")
LANGUAGES = ("de", "en")
NAMES = {"de": "German", "en": "English"}
METHODS = ("knn", "label-ae", "mix-ranked")
EPOCHS = 8
# Not all of what `tune` tries, to keep this short.
KS = (10, 20, 30)
RANKED = 50


def digest(number: int) -> int:
    return int(hashlib.md5(str(number).encode()).hexdigest(), 16)


@cache
def records(language: str) -> list[list[tuple[int, Document]]]:
    """Test, dev and training records, with their line numbers."""
    parts: list[list[tuple[int, Document]]] = [[], [], []]
    for number, document in enumerate(read_corpus(TIBKAT / f"{language}.tsv.gz").documents()):
        known = replace(document, language=language, id=f"{language}-{number}")
        parts[min(digest(number) % 10, 2)].append((number, known))
    return parts


def half(language: str) -> list[Document]:
    """The training records that are there in this language only."""
    wanted = LANGUAGES.index(language)
    return [d for n, d in records(language)[2] if digest(n) // 10 % 2 == wanted]


COLLECTIONS = {
    "de": lambda: [document for _, document in records("de")[2]],
    "en": lambda: [document for _, document in records("en")[2]],
    "mixed": lambda: half("de") + half("en"),
    "de half": lambda: half("de"),
    "en half": lambda: half("en"),
}
# As many label sets pass by in these epochs of a half as in EPOCHS of the whole.
LONG: dict[str, Any] = {"epochs": 2 * EPOCHS, "patience": 0}
# A model by name: the collection it is trained on, the model that it starts from, and how its
# training differs from that of the others.
MODELS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "de": ("de", None, {}),
    "en": ("en", None, {}),
    "mixed": ("mixed", None, {}),
    "de half": ("de half", None, {}),
    "en half": ("en half", None, {}),
    "de half, longer": ("de half", None, LONG),
    "en half, longer": ("en half", None, LONG),
    "mixed, then de half": ("de half", "mixed", {}),
    "mixed, then en half": ("en half", "mixed", {}),
}


@dataclass(frozen=True)
class Setup:
    """Neighbours from a collection, a model, and texts in a language."""

    collection: str
    model: str
    language: str


def half_models(language: str) -> tuple[str, ...]:
    """Models for half of the records, the best that the half alone can have first."""
    own = f"{language} half"
    return (f"{own}, longer", own, "mixed", f"mixed, then {own}")


def setups() -> Iterator[Setup]:
    for mine, other in (LANGUAGES, LANGUAGES[::-1]):
        for model in (mine, other):
            yield Setup(mine, model, mine)
        for model in half_models(mine):
            yield Setup(f"{mine} half", model, mine)
        yield Setup("mixed", "mixed", mine)


class Work:
    """What has been made so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def collection(self, name: str) -> Path:
        path = self.folder / name.replace(" ", "-")
        if not path.exists():
            vocabulary = read_vocabulary(TIBKAT / "gnd-core-en.tsv.gz")
            with Indexer.create(path, vocabulary, language="auto") as indexer:
                indexer.add(COLLECTIONS[name](), keep_unknown=True)
                indexer.build()
        return path

    def model(self, name: str) -> Path:
        path = self.folder / "models" / name.replace(", ", "-").replace(" ", "-")
        if not path.exists():
            collection, start, changes = MODELS[name]
            settings = replace(paper_settings(epochs=EPOCHS, device="cpu"), **changes)
            begin = None if start is None else self.model(start)
            with Indexer.open(self.collection(collection)) as indexer:
                before = time.process_time()
                report = indexer.train_label_ae(settings, start_from=begin)
            assert report is not None
            told(f"{name}: trained in {time.process_time() - before:.0f} CPU-seconds")
            skipped = shutil.ignore_patterns("latents*", ".*")
            shutil.copytree(report.folder, path, ignore=skipped)
        return path

    def outcomes(self, setup: Setup) -> dict[str, Outcome]:
        name = f"{setup.collection}--{setup.model}--{setup.language}"
        path = self.folder / "rankings" / f"{name.replace(', ', '-').replace(' ', '-')}.npz"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            np.savez(path, **self._ranked(setup))
            told(f"{setup.collection} / {setup.model} / {setup.language}: ranked")
        with np.load(path) as arrays:
            return {method: Outcome.from_arrays(arrays, method) for method in METHODS}

    def _ranked(self, setup: Setup) -> dict[str, Any]:
        """Settings chosen on dev, and test ranked with them, for all methods."""
        arrays: dict[str, Any] = {}
        with Indexer.open(self.collection(setup.collection)) as indexer:
            taken = paper_settings(epochs=0)
            indexer.train_label_ae(taken, start_from=self.model(setup.model))
            test, dev, _ = ([d for _, d in part] for part in records(setup.language))
            near, near_test = (indexer.queries(part, max(KS)) for part in (dev, test))
            wanted = Evaluation.unpredicted(gold_matrix(dev, indexer.vocabulary))
            numbers = np.array([numbered()[concept.id] for concept in indexer.vocabulary])
            settings = Settings()
            for method in METHODS:
                settings = replace(settings, method=method)
                settings = sweep(settings, near, wanted, MIF, ks=KS)[0].settings
                scorer = settings.implementation
                ranked = scorer.rank(near_test, settings)
                given = scorer.cut(near_test, ranked, settings)
                parts = {"given": given, "ranked": ranked}
                arrays[f"{method}_settings"] = described(settings)
                for part, ranking in parts.items():
                    first = ranking.kept(ranking.ranks < RANKED)
                    arrays[f"{method}_{part}_starts"] = first.starts
                    arrays[f"{method}_{part}_columns"] = numbers[first.columns]
                    arrays[f"{method}_{part}_scores"] = first.scores
            used = indexer.collection.label_sets().frequencies(len(numbers), np.empty(0, np.int64))
            arrays["carried"] = numbers[np.flatnonzero(used)]
        return arrays


@dataclass(frozen=True)
class Outcome:
    """What a method gave for the test records, beside what people gave."""

    evaluation: Evaluation
    settings: str
    carried: np.ndarray

    @classmethod
    def from_arrays(cls, arrays: Any, method: str) -> Outcome:
        given, ranked = (
            Ranking(*(arrays[f"{method}_{part}_{key}"] for key in ("starts", "columns", "scores")))
            for part in ("given", "ranked")
        )
        settings = str(arrays[f"{method}_settings"])
        return cls(Evaluation(gold(), given, ranked), settings, arrays["carried"])

    def figures(self) -> str:
        interval = bootstrap_interval(MIF, self.evaluation)
        precision = P5.value(self.evaluation)
        return f"{interval.value:.4f} | {interval.low:.4f} – {interval.high:.4f} | {precision:.4f}"

    def p_against(self, other: Outcome | None) -> str:
        if other is None or other is self:
            return "–"
        test = paired_test(MIF, self.evaluation, other.evaluation)
        return f"{test.difference:+.4f} (p = {test.p_value:.3f})".replace("-", "−")

    def found(self, wanted: set[int]) -> tuple[int, int, int]:
        """Occurrences of these headings in the test records: all, given, ranked at all."""
        true = self.evaluation.gold.tocoo()
        pairs = set(zip(true.row.tolist(), true.col.tolist(), strict=True))
        pairs = {(row, column) for row, column in pairs if column in wanted}
        given, ranked = (
            {(row, column) for row, (columns, _) in enumerate(part) for column in columns.tolist()}
            for part in (self.evaluation.predicted, self.evaluation.ordered)
        )
        return len(pairs), len(pairs & given), len(pairs & ranked)


@cache
def numbered() -> dict[str, int]:
    """A number for every heading of vocabulary and records, the same in all collections."""
    ids = {concept.id for concept in read_vocabulary(TIBKAT / "gnd-core-en.tsv.gz")}
    ids |= {label for part in records("de") for _, document in part for label in document.labels}
    return {name: number for number, name in enumerate(sorted(ids))}


@cache
def gold() -> csr_matrix[Any]:
    """The headings of the test records; the same in both languages."""
    from scipy.sparse import csr_matrix

    numbers = numbered()
    for (_, mine), (_, other) in zip(records("de")[0], records("en")[0], strict=True):
        assert set(mine.labels) == set(other.labels)
    sets = [sorted({numbers[label] for label in d.labels}) for _, d in records("de")[0]]
    starts = np.concatenate(([0], np.cumsum([len(labels) for labels in sets])))
    columns = np.concatenate(sets).astype(np.int64)
    ones = np.ones(len(columns), dtype=np.int8)
    return csr_matrix((ones, columns, starts), shape=(len(sets), len(numbers)))


def described(settings: Settings) -> str:
    if settings.method == "mix-ranked":
        mix = settings.mix
        cut = f"threshold {mix.threshold}" if mix.count is None else f"count {mix.count}"
        return f"share {mix.share}, {cut}"
    scorer = settings.knn if settings.method == "knn" else settings.label_ae
    cut = f"threshold {scorer.threshold}" if scorer.count is None else f"count {scorer.count}"
    return f"k = {scorer.k}, {scorer.weighting}, {scorer.distance}, {cut}"


def told(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


# --- the report ----------------------------------------------------------------------------

HEAD = (
    "| texts | method | model | MiF | 95 % | P@5 | MiF against knn | MiF against own model "
    "| chosen |\n|---|---|---|---|---|---|---|---|---|"
)


def rows(work: Work, collection: str, language: str, models: Sequence[str]) -> Iterator[str]:
    """A line for votes, then one for each method and model; the first model is its own."""
    found = {model: work.outcomes(Setup(collection, model, language)) for model in models}
    own = found[models[0]]
    votes = own["knn"]
    yield f"| {NAMES[language]} | knn | – | {votes.figures()} | – | – | {votes.settings} |"
    for method in METHODS[1:]:
        for model in models:
            outcome = found[model][method]
            against = outcome.p_against(None if model == models[0] else own[method])
            yield (
                f"| {NAMES[language]} | {method} | {model} | {outcome.figures()} "
                f"| {outcome.p_against(votes)} | {against} | {outcome.settings} |"
            )


def crossing(work: Work) -> Iterator[str]:
    for language in LANGUAGES:
        one = work.outcomes(Setup(language, language, language))
        own, *_ = half_models(language)
        parted = work.outcomes(Setup(f"{language} half", own, language))
        shared = work.outcomes(Setup(f"{language} half", "mixed", language))
        mixed = work.outcomes(Setup("mixed", "mixed", language))
        for method in METHODS:
            values = [MIF.value(part[method].evaluation) for part in (one, parted, shared, mixed)]
            cells = " | ".join(f"{value:.4f}" for value in values)
            yield (
                f"| {NAMES[language]} | {method} | {cells} "
                f"| {parted[method].p_against(one[method])} "
                f"| {shared[method].p_against(one[method])} "
                f"| {mixed[method].p_against(shared[method])} |"
            )


def elsewhere(work: Work) -> Iterator[str]:
    for language in LANGUAGES:
        for model in half_models(language)[2:]:
            outcomes = work.outcomes(Setup(f"{language} half", model, language))
            kept = work.model(f"mixed, then {language} half") / "model.json"
            known = {numbered()[name] for name in json.loads(kept.read_text())["labels"]}
            carried = set(outcomes["label-ae"].carried.tolist())
            everywhere = set(range(len(numbered())))
            missing, _, _ = outcomes["label-ae"].found(everywhere - carried)
            reachable, *counts = outcomes["label-ae"].found(known - carried)
            _, *mixed_counts = outcomes["mix-ranked"].found(known - carried)
            cells = " | ".join(str(count) for count in (*counts, *mixed_counts))
            yield f"| {NAMES[language]} | {model} | {missing} | {reachable} | {cells} |"


def trained(work: Work) -> Iterator[str]:
    for name in MODELS:
        content = json.loads((work.model(name) / "model.json").read_text())
        shape, training, origin = content["architecture"], content["training"], content["origin"]
        took = (
            f"{origin['taken_over']:,} / {origin['in_no_document']:,} / {origin['new']:,} / "
            f"{origin['left_out']:,}"
            if origin
            else "–"
        )
        yield (
            f"| {name} | {content['data']['documents']:,} | {len(content['labels']):,} "
            f"| {shape['first']}/{shape['second']}/{shape['latent']} | {training['epochs']}, best "
            f"{training['best_epoch']} | {training['best']['MiF']:.3f} | {took} |"
        )


def report(work: Work) -> str:
    test, dev, train = records("de")
    return "\n".join(
        [
            "# One label space, two languages",
            "",
            f"Made by `python benchmarks/multilingual.py` with labelkin {__version__} on Python "
            f"{platform.python_version()}, 2 shared cores. What to make of it is in "
            "[docs/multilingual.md](../docs/multilingual.md).",
            "",
            f"tibkat: {len(train):,} records to train on, {len(dev)} to choose settings on (md5 "
            f"% 10 = 1) and {len(test)} to test (md5 % 10 = 0), each in German and in English, "
            "with the same GND headings. Vocabulary: gnd-core-en, headings that it lacks are kept. "
            "Neighbours are found by `stems`, with the stemmer of each text's language. "
            f"Trainings: seed 0, {EPOCHS} epochs (what time allowed, not a choice on dev), `auto` "
            "layers. k is one of 10, 20 and 30; all cuts, weights and shares are chosen on dev. "
            "95 % are bootstrap intervals over records; p is of a paired randomisation test, not "
            "corrected for their number. One seed: what another training would change is not in "
            "them.",
            "",
            "## The models",
            "",
            "| model | label sets | headings | layers | epochs | reconstruction MiF "
            "| taken over / in no document / new / left out |",
            "|---|---|---|---|---|---|---|",
            *trained(work),
            "",
            "`de` and `en` are trained on the same label sets; only the neighbours whose averages "
            "the decoder is trained on differ. `mixed` holds one half of the records in German and "
            "the other half in English. `mixed, then de half` starts from `mixed` and goes on with "
            "the German half.",
            "",
            "## A model of the other language",
            "",
            "All records are there in the language of the texts. The model is this language's own "
            "or the other's, taken over with `train --from MODEL --epochs 0`.",
            "",
            HEAD,
            *rows(work, "de", "de", ("de", "en")),
            *rows(work, "en", "en", ("en", "de")),
            "",
            "## Half of the records in each language",
            "",
            "Neighbours come from the half in the language of the texts. The model knows that half "
            f"only, or the label sets of both. `longer` has {2 * EPOCHS} epochs without a stop, so "
            "that as many label sets have passed by as in the training of `mixed`; it is the own "
            "model to compare with. It was added after the first look at the test records, at "
            f"which there were only the models of one half with {EPOCHS} epochs.",
            "",
            HEAD,
            *rows(work, "de half", "de", half_models("de")),
            *rows(work, "en half", "en", half_models("en")),
            "",
            "Headings of test records that no record of the half carries: how often they occur, "
            "how often as a heading that the model of both halves knows, and how many of these "
            f"occurrences are given or at least among the first {RANKED} that score 0.005 or more.",
            "",
            "| texts | model | occurrences | known | label-ae: given | ranked | mix-ranked: given "
            "| ranked |",
            "|---|---|---|---|---|---|---|---|",
            *elsewhere(work),
            "",
            "## What crossing languages costs",
            "",
            "MiF with all records in the language of the texts, with the half that is (its longer "
            "trained own model, then the one of both halves), and with both halves in one "
            "collection, where a text meets those of the other language by shared words only. "
            "Vectors that know both "
            "languages would reach the other half; none was at hand without a network.",
            "",
            "| texts | method | all | half | half, model of both | both in one | half against all "
            "| half, model of both, against all | both in one against half, model of both |",
            "|---|---|---|---|---|---|---|---|---|",
            *crossing(work),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args().work
    with tempfile.TemporaryDirectory() as name:
        folder = given or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        work = Work(folder)
        for setup in setups():
            work.outcomes(setup)
        text = report(work)
    (ROOT / "results" / "multilingual.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
