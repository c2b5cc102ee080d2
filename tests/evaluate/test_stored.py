from __future__ import annotations

import json
import logging
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labelkin import Indexer
from labelkin.evaluate.stored import (
    EVALUATION_NAME,
    EvaluationSummary,
    read_summary,
    save_summary,
)
from labelkin.exceptions import CollectionReadOnlyError

SUMMARY = EvaluationSummary.now(12, {"knn": {"MiF": 0.51, "P@5": math.nan}, "lexical": {"MiF": 0}})


def test_a_summary_comes_back(tmp_path: Path) -> None:
    assert read_summary(tmp_path) is None
    save_summary(tmp_path, SUMMARY)
    assert read_summary(tmp_path) == SUMMARY
    assert SUMMARY.method == "knn"
    assert SUMMARY.methods["knn"] == {"MiF": 0.51, "P@5": None}
    # It was made when the tests were collected.
    assert datetime.now(UTC) - SUMMARY.at < timedelta(hours=2)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"at": "now", "methods": {}}', "damaged"])
def test_a_damaged_summary_is_ignored_with_a_line(
    content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_summary(tmp_path, SUMMARY)
    file = tmp_path / EVALUATION_NAME
    file.write_text(file.read_text().replace("0.51", "0.99") if content == "damaged" else content)
    with caplog.at_level(logging.WARNING):
        assert read_summary(tmp_path) is None
    (record,) = caplog.records
    assert EVALUATION_NAME in record.getMessage()
    assert "labelkin eval --save" in record.getMessage()


def test_the_latest_evaluation_of_a_collection(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer:
        assert indexer.latest_evaluation() is None
        indexer.save_evaluation(SUMMARY)
        assert indexer.latest_evaluation() == ("eval", SUMMARY)
        assert indexer.check().is_sound
    assert json.loads((tmp_path / "c" / EVALUATION_NAME).read_text())["documents"] == 12
    with (
        Indexer.open(tmp_path / "c", read_only=True) as indexer,
        pytest.raises(CollectionReadOnlyError),
    ):
        indexer.save_evaluation(SUMMARY)
