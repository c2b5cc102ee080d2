"""Trees as arrays against LightGBM itself, with missing values of every kind."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from labelkin import compiled
from labelkin.exceptions import MissingExtraError
from labelkin.rerank.ranker import Ranker, fit_ranker
from labelkin.rerank.trees import Trees

lightgbm = pytest.importorskip("lightgbm")

NAMES = [f"f{number}" for number in range(6)]


def lines(count: int, seed: int = 0, missing: tuple[int, ...] = (0, 1)) -> np.ndarray:
    """Features of several kinds, some columns with missing values."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 6)).astype(np.float32)
    features[:, 2] = np.round(features[:, 2])
    features[:, 3] = np.maximum(features[:, 3], 0)
    for column in missing:
        features[rng.random(count) < 0.3, column] = np.nan
    return features


def fitted(rounds: int = 40, **parameters: object) -> Ranker:
    features = lines(3000)
    right = np.nan_to_num(features[:, 0], nan=0.7) + features[:, 2] * features[:, 3] > 0.5
    right ^= np.random.default_rng(7).random(3000) < 0.2
    if not parameters:
        return fit_ranker(features, right, NAMES, rounds=rounds, seed=1)
    data = lightgbm.Dataset(features, right, feature_name=NAMES)
    settings = {"objective": "binary", "verbose": -1, "min_data_in_leaf": 5, **parameters}
    return Ranker(lightgbm.train(settings, data, rounds).model_to_string())


@pytest.fixture(scope="module")
def ranker() -> Ranker:
    return fitted()


def by_lightgbm(ranker: Ranker, features: np.ndarray) -> np.ndarray:
    scores: np.ndarray = lightgbm.Booster(model_str=ranker.text).predict(features)
    return scores


@pytest.mark.parametrize("missing", [(), (0, 1), (2, 3, 4, 5), tuple(range(6))])
def test_scores_are_those_of_lightgbm(missing: tuple[int, ...], ranker: Ranker) -> None:
    """Also for missing values in features that had none in training."""
    features = lines(700, seed=2, missing=missing)
    features[0] = np.nan
    features[1] = np.inf
    features[2] = -np.inf
    features[3] = 0
    expected = by_lightgbm(ranker, features)
    trees = Trees.parse(ranker.text)
    assert trees.scores(features) == pytest.approx(expected, abs=1e-12)
    assert trees.batch_scores(features) == pytest.approx(expected, abs=1e-12)


def test_a_value_at_a_threshold_goes_left(ranker: Ranker) -> None:
    """Thresholds are in double precision, features in single precision."""
    trees = Trees.parse(ranker.text)
    # LightGBM takes values that are nearer to 0 than this for 0.
    nodes = np.flatnonzero(np.abs(trees.thresholds) > 1e-30)
    features = np.zeros((len(nodes), 6), dtype=np.float32)
    features[np.arange(len(nodes)), trees.features[nodes]] = trees.thresholds[nodes]
    above = np.nextafter(features, np.float32(np.inf))
    for values in (features, above):
        expected = by_lightgbm(ranker, values)
        assert trees.scores(values) == pytest.approx(expected, abs=1e-12)
        assert trees.batch_scores(values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("leaves", [2, 64, 65, 200])
def test_small_and_large_trees(leaves: int) -> None:
    ranker = fitted(rounds=5, num_leaves=leaves, min_sum_hessian_in_leaf=0.0)
    features = lines(400, seed=3)
    trees = Trees.parse(ranker.text)
    assert (trees.masks is None) == (leaves > 64)
    for scores in (trees.scores(features), trees.batch_scores(features)):
        assert scores == pytest.approx(by_lightgbm(ranker, features), abs=1e-12)


def test_a_tree_of_a_single_leaf() -> None:
    features = np.ones((100, 6), dtype=np.float32)
    ranker = fit_ranker(features, np.arange(100) % 3 == 0, NAMES, rounds=3, seed=1)
    trees = Trees.parse(ranker.text)
    assert (trees.roots < 0).any()
    for scores in (trees.scores(features), trees.batch_scores(features)):
        assert scores == pytest.approx(by_lightgbm(ranker, features), abs=1e-12)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("objective=binary sigmoid:1", "objective=regression"),
        ("num_cat=0", "num_cat=1"),
        ("is_linear=0", "is_linear=1"),
        ("decision_type=", "decision_type=1 "),
    ],
)
def test_trees_of_other_kinds_are_refused(old: str, new: str, ranker: Ranker) -> None:
    with pytest.raises(ValueError, match="trees"):
        Trees.parse(ranker.text.replace(old, new, 1))


def test_a_ranker_gives_the_same_scores_in_every_way(
    ranker: Ranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = lines(300, seed=4)
    expected = by_lightgbm(ranker, features)
    fresh = Ranker(ranker.text)
    for pays in (False, True):
        monkeypatch.setattr(compiled, "pays", lambda *arguments, pays=pays: pays)
        assert fresh.scores(features) == pytest.approx(expected, abs=1e-12)
        assert fresh._booster is None
    monkeypatch.setattr(compiled, "pays", lambda *arguments: False)
    monkeypatch.setattr("labelkin.rerank.ranker._WORTH_LOADING", 200)
    assert fresh.scores(features) == pytest.approx(expected, abs=1e-12)
    assert fresh._booster is not None
    assert len(fresh.scores(features[:0])) == 0


def test_without_lightgbm_and_numba_there_are_scores_but_no_contributions(
    ranker: Ranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = lines(300, seed=5)
    fresh, expected = Ranker(ranker.text), by_lightgbm(ranker, features)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr(compiled, "pays", lambda *arguments: False)
    monkeypatch.setattr(compiled, "can_load", lambda: False)
    monkeypatch.setattr("labelkin.rerank.ranker._WORTH_LOADING", 200)
    assert fresh.scores(features) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(MissingExtraError, match="LightGBM"):
        fresh.contributions(features)


@pytest.mark.parametrize("missing", [(), (0, 1), tuple(range(6))])
def test_contributions_are_those_of_lightgbm(missing: tuple[int, ...], ranker: Ranker) -> None:
    """They add up to the log odds."""
    features = lines(50, seed=6, missing=missing)
    booster = lightgbm.Booster(model_str=ranker.text)
    expected = booster.predict(features, pred_contrib=True)
    found = Ranker(ranker.text).contributions(features)
    assert found == pytest.approx(expected, abs=1e-9)
    assert found.sum(axis=1) == pytest.approx(booster.predict(features, raw_score=True), abs=1e-9)


@pytest.mark.parametrize("leaves", [2, 200])
def test_contributions_of_small_and_large_trees(leaves: int) -> None:
    """A long path splits on the same feature many times."""
    ranker = fitted(rounds=5, num_leaves=leaves, min_sum_hessian_in_leaf=0.0)
    features = lines(50, seed=3)
    expected = lightgbm.Booster(model_str=ranker.text).predict(features, pred_contrib=True)
    assert ranker.contributions(features) == pytest.approx(expected, abs=1e-9)


def test_contributions_of_a_single_leaf() -> None:
    features = np.ones((100, 6), dtype=np.float32)
    ranker = fit_ranker(features, np.arange(100) % 3 == 0, NAMES, rounds=3, seed=1)
    expected = lightgbm.Booster(model_str=ranker.text).predict(features, pred_contrib=True)
    assert ranker.contributions(features) == pytest.approx(expected, abs=1e-9)


def test_contributions_of_many_features() -> None:
    """More features on a path than one point of the sum can integrate."""
    rng = np.random.default_rng(8)
    features = rng.normal(size=(4000, 30)).astype(np.float32)
    right = (features * rng.normal(size=30)).sum(axis=1) + rng.normal(size=4000) > 0
    names = [f"g{number}" for number in range(30)]
    ranker = fit_ranker(features, right, names, rounds=60, seed=1)
    expected = lightgbm.Booster(model_str=ranker.text).predict(features[:20], pred_contrib=True)
    assert ranker.contributions(features[:20]) == pytest.approx(expected, abs=1e-9)
