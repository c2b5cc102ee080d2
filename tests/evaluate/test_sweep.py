from __future__ import annotations

from pathlib import Path

from labelkin import Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.evaluate import evaluate, parse_measure
from labelkin.evaluate.sweep import KS, THRESHOLDS
from labelkin.vocab import Vocabulary


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
