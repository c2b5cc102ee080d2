"""A short run over all targets with fixed seeds; `make fuzz` runs for as long as wanted."""

from __future__ import annotations

import random
import resource
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from .mutations import mutated
from .targets import Target, checked, models, readers

INPUTS = 60
MODEL_INPUTS = 15
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
