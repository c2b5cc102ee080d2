from __future__ import annotations

from dataclasses import replace

from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.training import TrainingPlan

PLAN = TrainingPlan(
    documents=43_178,
    headings=17_561,
    held_out=6000,
    unseen=6000,
    label_ae=TrainingSettings(),
    rerank=RerankTrainingSettings(),
)


def test_more_takes_longer() -> None:
    fewer = replace(PLAN, documents=10_000)
    assert 0 < fewer.label_ae_seconds() < PLAN.label_ae_seconds()
    assert 0 < fewer.rerank_seconds() < PLAN.rerank_seconds()
    assert replace(PLAN, given=5000).rerank_seconds() > PLAN.rerank_seconds()
    linear = replace(PLAN, rerank=RerankTrainingSettings(linear=True))
    assert linear.rerank_seconds() > PLAN.rerank_seconds()
    assert replace(PLAN, unseen=0).label_ae_seconds() > PLAN.label_ae_seconds()


def test_a_time_budget_is_kept() -> None:
    short = replace(PLAN, label_ae=TrainingSettings(minutes=1, averages=False))
    assert short.label_ae_seconds() == 60


def test_what_is_not_trained_takes_no_time() -> None:
    nothing = replace(PLAN, label_ae=TrainingSettings(epochs=0), rerank=None)
    assert nothing.label_ae_seconds() == nothing.rerank_seconds() == 0
