"""A short run over all targets with fixed seeds; `make fuzz` runs for as long as wanted."""

from __future__ import annotations

import random
import resource
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from .mutations import mutated
from .seeds import BODIES, CORPORA
from .targets import Target, checked, models, readers

INPUTS = 60
MODEL_INPUTS = 15
REQUESTS = 250
VERBS = ("suggest", "compare", "explain", "neighbours", "evaluate")
MOST_MEGABYTES = 600
READERS = readers()
FIXTURE = Path(__file__).parents[1] / "fixtures" / "collection-0.1.tar.gz"


def fuzz(target: Target, folder: Path, inputs: int) -> Counter[str]:
    """Run a target on its seeds and on mutations of them; how often each outcome occurred."""
    chance = random.Random(f"{target.name} 0")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes: Counter[str] = Counter()
    for number in range(inputs + len(target.seeds)):
        is_seed = number < len(target.seeds)
        data = target.seeds[number] if is_seed else mutated(target.seeds, chance)
        try:
            outcomes[checked(target, data, folder)] += 1
        except BaseException as error:
            kept = folder / "finding"
            kept.write_bytes(data)
            error.add_note(f"{target.name}, input {number}, kept in {kept}: {data[:200]!r}")
            raise
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MOST_MEGABYTES, f"{grown:.0f} MB more"
    return outcomes


@pytest.mark.parametrize("name", READERS)
def test_readers(name: str, tmp_path: Path) -> None:
    outcomes = fuzz(READERS[name], tmp_path, INPUTS)
    assert outcomes["read"], outcomes


def test_bodies_of_requests(small: Path, tmp_path: Path) -> None:
    """Every body is answered: never a status of 500, never more than one line of detail."""
    pytest.importorskip("fastapi", reason="needs the extra `serve`")
    from ..served import running

    shutil.copytree(small, tmp_path / "demo")
    chance = random.Random(0)
    base = "/api/v1/collections/demo"
    uploads = [data for files in CORPORA.values() for data in files]
    routes = [
        *((f"{base}/{verb}", "application/json", BODIES) for verb in VERBS),
        (f"{base}/documents", "application/json", BODIES),
        (f"{base}/documents", "application/x-ndjson", CORPORA["jsonl"]),
        (f"{base}/annotate", "application/x-ndjson", CORPORA["jsonl"]),
        (f"{base}/worklists?name=records.jsonl", "application/octet-stream", uploads),
        (f"{base}/read?name=../../x.xml", "application/octet-stream", uploads),
        ("/v1/projects/demo/suggest-batch", "application/json", BODIES),
    ]
    statuses: Counter[int] = Counter()
    with running({"demo": tmp_path / "demo"}) as service:
        for _ in range(REQUESTS):
            path, kind, seeds = chance.choice(routes)
            body = mutated(seeds, chance)
            answer = service.http.post(path, content=body, headers={"Content-Type": kind})
            statuses[answer.status_code] += 1
            assert answer.status_code not in (404, 405, 500), (path, body[:300], answer.text)
            if answer.headers["content-type"].startswith("application/problem+json"):
                assert len(answer.json()["detail"].splitlines()) == 1, (path, body[:300])
    assert statuses[200] and statuses[422], statuses
    assert {one.name for one in tmp_path.iterdir()} == {"demo"}


@pytest.fixture(scope="module")
def old_collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "collection"


def test_models_of_version_0_1(old_collection: Path, tmp_path: Path) -> None:
    for target in models(old_collection).values():
        fuzz(target, tmp_path, MODEL_INPUTS)


def test_models(trained: Path, tmp_path: Path) -> None:
    for target in models(trained).values():
        fuzz(target, tmp_path, MODEL_INPUTS)
