"""Measures against the official BioASQ evaluator and HEMKit, to every digit where not said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labelkin.evaluate import Evaluation, Hierarchy, evaluate, parse_measure
from labelkin.scoring.ranking import Ranking

FLAT = "Acc EBP EBR EBF MaP MaR MaF MiP MiR MiF".split()
HIERARCHICAL = "hP hR hF".split()
LCA = "LCA-P LCA-R LCA-F".split()
# How far the LCA measures may be from HEMKit's, by maximum distance: they were chosen on these
# documents, so this holds them where they are and is no proof of their being right.
LCA_DIFFERENCE = {4: 0.0037, 100000: 0.0020}

# Parents of each node; 10 and 90 have none.
SMALL_PARENTS = {20: [10], 30: [10, 90], 70: [10], 1: [20], 2: [20], 3: [30, 70], 4: [30], 5: [30]}
SMALL_GOLD = [[1, 2, 3], [1, 4, 5], [2, 4]]
SMALL_PREDICTED = [[1], [2, 4], [2, 4]]


def evaluation(
    gold: list[list[int]], predicted: list[list[int]], pairs: list[tuple[int, int]], width: int
) -> Evaluation:
    return Evaluation(
        Ranking.from_lists(gold).matrix(width),
        Ranking.from_lists(predicted),
        hierarchy=Hierarchy.from_pairs(pairs, width),
    )


@pytest.fixture(scope="module")
def small() -> Evaluation:
    pairs = [(parent, child) for child, above in SMALL_PARENTS.items() for parent in above]
    return evaluation(SMALL_GOLD, SMALL_PREDICTED, pairs, 91)


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    found = shared_data / "bioasq"
    if not found.is_dir():
        pytest.skip("needs the outputs of the BioASQ evaluator in ../shared/data/bioasq")
    return found


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return read


def lists(path: Path) -> list[list[int]]:
    return [[int(part) for part in line.split()] for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def mesh(folder: Path) -> Evaluation:
    pairs = [(parent, child) for parent, child in lists(folder / "mesh2016-hierarchy.txt")]
    width = 1 + max(max(pair) for pair in pairs)
    return evaluation(lists(folder / "gold.txt"), lists(folder / "predicted.txt"), pairs, width)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Acc", 0.5277778),
        ("EBP", 0.8333333),
        ("EBR", 0.5555556),
        ("EBF", 0.6333333),
        ("MaP", 0.8333333),
        ("MaR", 0.4),
        ("MaF", 0.4333333),
        ("MiP", 0.8),
        ("MiR", 0.5),
        ("MiF", 0.6153846),
    ],
)
def test_flat_measures_of_a_small_example(small: Evaluation, name: str, value: float) -> None:
    assert round(parse_measure(name).value(small), 7) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hP", 0.952381),
        ("hR", 0.731481),
        ("hF", 0.805128),
        ("LCA-P", 0.916667),
        ("LCA-R", 0.7),
        ("LCA-F", 0.777778),
    ],
)
def test_hierarchical_measures_of_a_small_example(
    small: Evaluation, name: str, value: float
) -> None:
    assert round(parse_measure(name).value(small), 6) == value


@pytest.mark.shared
def test_flat_measures_of_the_bioasq_files(mesh: Evaluation, expected: dict[str, Any]) -> None:
    values = evaluate(mesh, [parse_measure(name) for name in FLAT])
    assert {name: round(value, 8) for name, value in values.items()} == expected["flat"]


@pytest.mark.shared
@pytest.mark.parametrize("distance", [4, 100000])
def test_hierarchical_measures_of_the_bioasq_files(
    mesh: Evaluation, expected: dict[str, Any], distance: int
) -> None:
    wanted = expected[f"hierarchical_max_distance_{distance}"]
    values = {
        name: parse_measure(f"{name}(distance={distance})").value(mesh) for name in HIERARCHICAL
    }
    assert {name: round(value, 6) for name, value in values.items()} == {
        name: wanted[name] for name in HIERARCHICAL
    }


@pytest.mark.shared
@pytest.mark.parametrize("distance", [4, 100000])
def test_lca_measures_are_near_those_of_the_bioasq_files(
    mesh: Evaluation, expected: dict[str, Any], distance: int
) -> None:
    wanted = expected[f"hierarchical_max_distance_{distance}"]
    for name in LCA:
        value = parse_measure(f"{name}(distance={distance})").value(mesh)
        assert value == pytest.approx(wanted[name], abs=LCA_DIFFERENCE[distance])
