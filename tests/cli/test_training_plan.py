from __future__ import annotations

from dataclasses import replace

import pytest

from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.cli.training_plan import TrainingPlan
from labelkin.rerank.settings import LearningSettings

PLAN = TrainingPlan(
    documents=43_178,
    headings=17_561,
    taken_out=6000,
    left_out=6000,
    label_ae=TrainingSettings(),
    reranker=LearningSettings(),
)


def test_more_takes_longer() -> None:
    fewer = replace(PLAN, documents=10_000)
    assert 0 < fewer.label_ae_seconds() < PLAN.label_ae_seconds()
    assert 0 < fewer.reranker_seconds() < PLAN.reranker_seconds()
    assert replace(PLAN, given=5000).reranker_seconds() > PLAN.reranker_seconds()
    linear = replace(PLAN, reranker=LearningSettings(linear=True))
    assert linear.reranker_seconds() > PLAN.reranker_seconds()
    assert replace(PLAN, left_out=0).label_ae_seconds() > PLAN.label_ae_seconds()


def test_a_time_budget_is_kept() -> None:
    short = replace(PLAN, label_ae=TrainingSettings(minutes=1, averages=False))
    assert short.label_ae_seconds() == 60


def test_what_is_not_trained_takes_no_time() -> None:
    nothing = replace(PLAN, label_ae=TrainingSettings(epochs=0), reranker=None)
    assert nothing.label_ae_seconds() == nothing.reranker_seconds() == 0


def test_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    from labelkin.cli.console import errors

    errors.cache_clear()
    replace(PLAN, given=1200, reranker=LearningSettings(linear=True)).tell()
    first, label_ae, reranker, last = capsys.readouterr().err.splitlines()
    errors.cache_clear()
    assert first == "Training on 43,178 documents with 17,561 headings:"
    assert label_ae.startswith("  label autoencoder: 37,178 label sets, at most 15 epochs; about ")
    assert reranker.startswith(
        "  reranker: from 6,000 documents taken out of all statistics and 1,200 given, "
        "linear classifiers; about "
    )
    assert "estimates" in last
