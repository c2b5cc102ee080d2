from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.cli.console import errors
from labelkin.cli.training_output import TrainingOutput, print_outcome, print_plan
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.store.config import RerankSection
from labelkin.training_plan import TrainingPlan, TrainingReport

PLAN = TrainingPlan(
    documents=43_178,
    headings=17_561,
    held_out=6000,
    unseen=6000,
    given=1200,
    label_ae=TrainingSettings(epochs=8),
    rerank=RerankTrainingSettings(linear=True),
)


@pytest.fixture(autouse=True)
def captured() -> Iterator[None]:
    """Messages go to the standard error of each test."""
    errors.cache_clear()
    yield
    errors.cache_clear()


def test_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(PLAN)
    first, label_ae, rerank, last = capsys.readouterr().err.splitlines()
    assert first == "Training on 43,178 documents with 17,561 headings:"
    assert label_ae.startswith("  label autoencoder: 37,178 documents, at most 8 epochs; about ")
    assert rerank.startswith(
        "  reranker: 6,000 documents held out of all statistics and 1,200 given, "
        "linear classifiers; about "
    )
    assert "estimates" in last


def test_a_plan_that_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(replace(PLAN, label_ae=TrainingSettings(epochs=0), rerank=None))
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == ["  label autoencoder: adopted as it is"]


def test_skipped_models_come_before_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    output = TrainingOutput(RerankSection())
    output.planned(TrainingReport(PLAN, skipped=[("reranker", "too few documents")]))
    output.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Skipping the reranker: too few documents"
    assert lines[1].startswith("Training on ")


def test_an_outdated_reranker(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcome(TrainingReport(PLAN, outdated_reranker=True))
    assert "trained with the previous label autoencoder" in capsys.readouterr().err
    print_outcome(TrainingReport(PLAN))
    assert capsys.readouterr().err == ""
