from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer, Vocabulary
from labelkin.exceptions import ModelNotFoundError

from .plot_data import save_autoencoder

# Fourteen branches, the first with most headings.
CONCEPTS = [
    Concept(
        f"C{number}",
        {"en": f"Heading {number}", "de": f"Schlagwort {number}"},
        notations=(f"{chr(ord('A') + max(number - 20, 0))}{number:02d}",),
    )
    for number in range(34)
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    documents = [
        Document(f"d{number}", f"Text {number}", labels=tuple(f"C{n}" for n in range(number + 1)))
        for number in range(34)
    ]
    with Indexer.create(tmp_path / "c", Vocabulary(CONCEPTS), language="en") as indexer:
        indexer.add(documents)
    save_autoencoder(tmp_path / "c", [*(one.id for one in CONCEPTS), "gone"])
    return tmp_path / "c"


def test_points_by_frequency_with_names_and_branches(path):
    with Indexer.open(path) as indexer:
        found = indexer.latent_map(language="de")
    assert [point.id for point in found.points] == [one.id for one in CONCEPTS]
    assert [point.documents for point in found.points] == list(range(34, 0, -1))
    assert found.points[3].name == "Schlagwort 3"
    coordinates = np.array([(point.x, point.y) for point in found.points])
    assert coordinates.min() == 0
    assert coordinates.max() == 1
    assert len(set(map(tuple, coordinates.tolist()))) == 34
    assert (found.branches[0].id, found.branches[0].count) == ("A", 21)
    assert len(found.branches) == 13
    assert (found.branches[-1].id, found.branches[-1].name, found.branches[-1].count) == (
        "",
        "other",
        2,
    )
    assert sum(one.count for one in found.branches) == 34
    assert {point.branch for point in found.points} == {one.id for one in found.branches}


def test_a_limit_keeps_the_places(path):
    with Indexer.open(path) as indexer:
        every, few = indexer.latent_map(), indexer.latent_map(limit=5)
        again = indexer.latent_map(limit=5)
    assert few == again
    assert [(one.id, one.x, one.y) for one in few.points] == [
        (one.id, one.x, one.y) for one in every.points[:5]
    ]


def test_places_are_computed_once_per_model(path, monkeypatch):
    from labelkin.plots import latent

    calls = []
    original = latent.plane_layout
    monkeypatch.setattr(latent, "plane_layout", lambda v: calls.append(1) or original(v))
    with Indexer.open(path) as indexer:
        first = indexer.latent_map()
        indexer.add([Document("new", "Something new", labels=("C33",))])
        second = indexer.latent_map()
        assert len(calls) == 1
        assert first.points[33].documents == 1
        assert second.points[33].documents == 2
        save_autoencoder(path, [one.id for one in CONCEPTS], seed=5)
        third = indexer.latent_map()
    assert len(calls) == 2
    assert third.points[0] != second.points[0]


def test_without_a_model(tmp_path):
    with (
        Indexer.create(tmp_path / "c", Vocabulary(CONCEPTS)) as indexer,
        pytest.raises(ModelNotFoundError, match="labelkin train"),
    ):
        indexer.latent_map()
