from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from labelkin import Indexer, RerankTrainingSettings, Settings, TrainingSettings, Vocabulary
from labelkin.cuts import (
    CHOSEN,
    MOST_DOCUMENTS,
    Cut,
    CutReport,
    choose_cuts,
    held_out_queries,
    sampled,
)
from labelkin.demo import demo_concepts, demo_documents
from labelkin.evaluate import Evaluation, parse_measure
from labelkin.scoring.queries import Queries
from labelkin.store.held_out import HeldOut

pytest.importorskip("torch", reason="needs the extra `train`")

MIF = parse_measure("MiF")


class Held(NamedTuple):
    """Held-out documents of a collection whose autoencoder has not seen them."""

    indexer: Indexer
    held_out: HeldOut
    settings: Settings
    queries: Queries
    gold: Evaluation

    def value(self, settings: Settings) -> float:
        """MiF with some settings."""
        method = settings.implementation
        ranking = method.rank(self.queries, settings)
        predicted = method.cut(self.queries, ranking, settings)
        return MIF.value(replace(self.gold, predicted=predicted))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    """A collection that is too small for scores of 0.5; one heading in three is left."""
    path = tmp_path_factory.mktemp("cuts") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(replace(one, labels=one.labels[::3]) for one in demo_documents(500, 0))
        held_out = RerankTrainingSettings().held_out(indexer.snapshot())
        settings = TrainingSettings(preset="16", epochs=6, batch_size=32, device="cpu")
        indexer.train_label_ae(settings, held_out=held_out)
        views = indexer.runtime.views()
        fold = held_out.folds[0]
        present = Settings.from_config(indexer.config)
        queries, gold = held_out_queries(
            views,
            indexer.runtime.models,
            indexer.runtime.indexes.search(views),
            present,
            fold.rows,
            fold.unseen,
        )
        yield Held(indexer, held_out, present, queries, gold)


def settings_after(held: Held, report: CutReport, method: str) -> Settings:
    """The settings of a method with all that a report writes into labelkin.toml."""
    config = held.indexer.config
    sections = {
        section: getattr(config, section).model_copy(update=values)
        for section, values in report.changes().items()
    }
    return Settings.from_config(config.model_copy(update=sections), method)


def test_the_cuts_are_better_than_the_defaults(held: Held) -> None:
    report = choose_cuts(held.queries, held.gold, held.settings)
    assert report.documents == len(held.held_out.folds[0].rows) == 71
    assert [cut.method for cut in report.cuts] == list(CHOSEN)
    assert report.knn.score == pytest.approx(held.value(replace(held.settings, method="knn")))
    for cut in report.cuts:
        default = held.value(replace(held.settings, method=cut.method))
        assert cut.score == pytest.approx(held.value(settings_after(held, report, cut.method)))
        if cut.method == "mix":
            # At the defaults nothing leads, so it is the votes.
            assert cut.score >= default
        else:
            assert cut.score > default + 0.05
    label_ae, mix, mix_ranked = report.cuts
    assert label_ae.values["threshold"] < 0.5
    assert report.changes() == {
        "label_ae": label_ae.values,
        "mix": {**mix.values, **mix_ranked.values},
    }


def test_a_mix_is_never_worse_than_votes(held: Held) -> None:
    report = choose_cuts(held.queries, held.gold, held.settings)
    worse = {cut.method for cut in report.cuts if cut.score < report.knn.score}
    assert set(report.below_knn) == worse
    assert not worse & {"mix", "mix-ranked"}


def test_what_was_set_by_hand_stays(held: Held) -> None:
    settings = replace(held.settings, mix=replace(held.settings.mix, share=0.7))
    by_hand = {"mix-ranked": frozenset({"share"}), "label-ae": frozenset({"count", "threshold"})}
    label_ae, mix, mix_ranked = choose_cuts(held.queries, held.gold, settings, by_hand).cuts
    assert label_ae.values == {"count": "none", "threshold": 0.5}
    assert label_ae.chosen == {}
    assert mix.chosen == mix.values
    assert mix_ranked.values["share"] == 0.7
    assert set(mix_ranked.chosen) == {"count", "threshold"}
    # The others are the best for this share.
    free = choose_cuts(held.queries, held.gold, settings).cuts[2]
    assert free.score >= mix_ranked.score > held.value(replace(settings, method="mix-ranked"))


def test_a_cut_is_chosen_for_equal_weights_too(held: Held) -> None:
    """The joint autoencoder weighs neighbours by itself, whatever the setting says."""
    usual = replace(held.settings.label_ae, count=None, threshold=0.9)
    scores, values = [], []
    for weighting in ("difference", "majority"):
        present = replace(held.settings, label_ae=replace(usual, weighting=weighting))
        cut = choose_cuts(held.queries, held.gold, present).cuts[0]
        scores.append(cut.score)
        values.append(dict(cut.values))
    assert scores[1] == scores[0]
    assert values[1] == values[0] != {"count": "none", "threshold": 0.9}


def test_only_what_is_chosen_is_written() -> None:
    knn = Cut("knn", 0.3, "suggest", {"count": "mean", "threshold": 0.0})
    kept = Cut("label-ae", 0.2, "label_ae", {"threshold": 0.5}, frozenset({"threshold"}))
    free = Cut("mix-ranked", 0.4, "mix", {"share": 0.3, "count": "mean"}, frozenset({"share"}))
    report = CutReport(50, knn, (kept, free))
    assert report.changes() == {"mix": {"count": "mean"}}
    assert report.below_knn == ["label-ae"]


def test_held_out_documents_are_no_neighbours(held: Held) -> None:
    near = held.queries.neighbours(20)
    fold = held.held_out.folds[0]
    assert not np.isin(near.rows, fold.unseen).any()
    assert (near.rows >= 0).all()
    assert near.k == 20


def test_labels_that_the_vocabulary_lacks_count_as_missed(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        documents = list(demo_documents(30, 0))
        indexer.add(replace(one, labels=(*one.labels, "No such heading")) for one in documents)
        views = indexer.runtime.views()
        rows = np.arange(4)
        _, gold = held_out_queries(
            views,
            indexer.runtime.models,
            indexer.runtime.indexes.search(views),
            Settings.from_config(indexer.config),
            rows,
            rows,
        )
    sizes = [len(one.labels) + 1 for one in documents[:4]]
    assert np.diff(gold.gold.indptr).tolist() == sizes


def test_a_sample() -> None:
    many = np.arange(0, 9000, 3)
    some = sampled(many, 1)
    assert len(some) == MOST_DOCUMENTS
    assert set(some) <= set(many)
    assert some.tolist() == sorted(some)
    assert some.tolist() == sampled(many, 1).tolist() != sampled(many, 2).tolist()
    assert sampled(np.arange(20), 0).tolist() == list(range(20))
    assert len(sampled(np.arange(19), 0)) == 0
