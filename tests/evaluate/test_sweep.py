from __future__ import annotations

from pathlib import Path

import pytest

from labelkin import Indexer
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.evaluate import evaluate, parse_measure
from labelkin.evaluate.gold import gold_evaluation
from labelkin.evaluate.sweep import KS, THRESHOLDS, sweep
from labelkin.scoring.settings import Settings
from labelkin.vocab import Vocabulary

CUT = ("count", "threshold")


def test_every_combination_is_tried_and_the_best_is_what_it_says(tmp_path: Path) -> None:
    documents = list(demo_documents(350))
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts())) as indexer:
        indexer.add(documents[:300])
        trials = indexer.tune(documents[300:], parse_measure("MiF"))
        assert len(trials) == len(KS) * 3 * (2 + len(THRESHOLDS))
        assert len({trial.settings for trial in trials}) == len(trials)
        values = [trial.value for trial in trials]
        assert values == sorted(values, reverse=True)
        for trial in (trials[0], trials[100], trials[-1]):
            evaluation = indexer.evaluate(documents[300:], settings=trial.settings)
            found = evaluate(evaluation, [parse_measure("MiF")])["MiF"]
            assert abs(found - trial.value) < 1e-9


def test_only_what_may_vary_is_varied(tmp_path: Path) -> None:
    documents = list(demo_documents(120))
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts())) as indexer:
        indexer.add(documents[:100])
        queries = indexer.queries(documents[100:], 20)
        gold = gold_evaluation(documents[100:], queries.snapshot)
        settings = Settings.from_config(indexer.config)
        mif = parse_measure("MiF")
        trials = sweep(settings, queries, gold, mif, varied=CUT)
        assert len(trials) == 2 + len(THRESHOLDS)
        assert {(trial.settings.k, trial.settings.knn.weighting) for trial in trials} == {
            (20, "majority")
        }
        (present,) = sweep(settings, queries, gold, mif, varied=())
        assert present.settings == settings
        # With a depth, the ranking before the cut is what counts.
        values = {t.value for t in sweep(settings, queries, gold, parse_measure("P@5"), varied=CUT)}
        assert len(values) == 1


def test_what_has_no_effect_is_tried_once(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    documents = list(demo_documents(120))
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts())) as indexer:
        indexer.add(documents[:100])
        indexer.train_label_ae(TrainingSettings(preset="8", epochs=1, device="cpu"))
        trials = indexer.tune(documents[100:], parse_measure("MiF"), method="label-ae")
    # The joint autoencoder weighs neighbours by itself; k counts for the number of headings only.
    by_threshold = [one.settings.label_ae for one in trials if one.settings.label_ae.count is None]
    assert len(by_threshold) == len(THRESHOLDS)
    present = Settings().label_ae
    assert {(one.k, one.weighting, one.distance) for one in by_threshold} == {
        (present.k, present.weighting, present.distance)
    }
    assert {*KS} <= {one.settings.label_ae.k for one in trials}
