"""Mixed load on a real server: no errors, nothing lost, no old answer, flat memory.

A few seconds by default; LABELKIN_LOAD_SECONDS makes it longer (`make load`: a minute).
LABELKIN_RESULTS names a file that gets the figures.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from labelkin import Indexer, RerankTrainingSettings, TrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.vocab import Vocabulary

from ..reliability.records import keep
from .mixed_load import MixedLoad
from .processes import HAS_PROC, serving
from .writers import headings_of, records_of

pytest.importorskip("fastapi", reason="needs the extra `serve`")
pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc")

DOCUMENTS, RECORDS = 400, 300
SECONDS = float(os.environ.get("LABELKIN_LOAD_SECONDS", "5"))
SOAK_SECONDS = 600.0
# Connections come and go, indexes are replaced; what leaks grows with every request.
DESCRIPTORS = 40
# How old an answer may be: a write that was acknowledged so long before it was asked for counts.
OLDEST_SECONDS = 1.0
# In the first minute caches fill and the allocator grows.
MEGABYTES = 100
SOAK_MEGABYTES_A_MINUTE = 5.0
# The last minute beside the second one; other jobs may share the machine.
SLOWER = 3.0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A small collection with all models, and the methods that it can use."""
    path = tmp_path_factory.mktemp("load") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        rerank = RerankTrainingSettings(documents=50, rounds=20, linear=False, threads=1)
        held_out = rerank.held_out(indexer.snapshot())
        label_ae = TrainingSettings(preset="16", epochs=4, batch_size=32, device="cpu")
        indexer.train_label_ae(label_ae, held_out=held_out)
        indexer.train_reranker(settings=rerank, held_out=held_out)
        return path, indexer.usable_methods()


def mixed_load(
    trained: tuple[Path, list[str]], folder: Path, seconds: float, *options: str
) -> dict[str, Any]:
    """The report of a load on a copy of the collection; it must be without errors."""
    shutil.copytree(trained[0], folder / "c")
    new = list(demo_documents(DOCUMENTS + RECORDS, 0))[DOCUMENTS:]
    records = records_of((one.title, one.body) for one in new)
    with serving({"c": folder / "c"}, folder / "server.log", *options) as server:
        with server.session() as session:
            headings = headings_of(session, "c", 400)
        load = MixedLoad(server, "c", trained[1], records, headings, seconds)
        report = load.run()
    assert report["first errors"] == []
    assert report["errors"] == 0
    assert report["documents compared"] == sum(len(one.acknowledged) for one in load.writers) > 0
    assert report["corrections seen by the next request"] > 0
    assert report["reads"] > report["writes"] > 0
    assert report["answers with an age"] > 0
    assert report["oldest when asked"] <= OLDEST_SECONDS
    keep("load", {key: value for key, value in report.items() if key != "samples"})
    assert "Traceback" not in (folder / "server.log").read_text(encoding="utf-8")
    return report


@pytest.mark.timeout(300 + 3 * SECONDS)
def test_nothing_is_lost_under_mixed_load(trained, tmp_path: Path) -> None:
    report = mixed_load(trained, tmp_path, SECONDS)
    first, last = report["descriptors"]
    assert last - first <= DESCRIPTORS
    first, last = report["megabytes"]
    assert last - first <= MEGABYTES


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_minutes_of_mixed_load(trained, tmp_path: Path) -> None:
    report = mixed_load(trained, tmp_path, SOAK_SECONDS)
    shown = {key: value for key, value in report.items() if key != "samples"}
    print(json.dumps(shown, indent=1))  # noqa: T201
    first, last = report["descriptors"]
    assert last - first <= DESCRIPTORS
    assert report["megabytes a minute"] <= SOAK_MEGABYTES_A_MINUTE
    early, late = report["by minute"][1], report["by minute"][-1]
    assert late["read p50"] <= SLOWER * early["read p50"]
    assert late["write p50"] <= SLOWER * early["write p50"]
