"""The parts of the benchmark of peers that decide on figures: cuts, throughput, ML-kNN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Ranking
from labelkin.evaluate import Evaluation, parse_measure

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_reaches_the_value_that_it_was_chosen_for_and_no_other_is_better(seed: int) -> None:
    from benchmarks.peers.cuts import Cut, choose
    from scipy.sparse import random as random_matrix

    random = np.random.default_rng(seed)
    gold = random_matrix(30, 12, 0.3, "csr", random_state=seed)
    ranked = [random.permutation(12)[: random.integers(0, 9)].tolist() for _ in range(30)]
    # Few values: many scores are equal.
    scores = [np.sort(random.integers(1, 6, len(one)) / 8)[::-1].tolist() for one in ranked]
    ranking, counts = Ranking.from_lists(ranked, scores), random.integers(0, 9, 30)

    def value(cut: Cut) -> float:
        return parse_measure("MiF").value(Evaluation(gold, cut.of(ranking, counts)))

    chosen = choose(gold, ranking, counts)
    assert [cut.score for cut in chosen] == sorted((cut.score for cut in chosen), reverse=True)
    for cut in chosen:
        assert cut.score == pytest.approx(value(cut))
    best = {cut.kind: cut.score for cut in chosen}
    thresholds = [value(Cut("threshold", one / 8)) for one in range(1, 6)]
    assert best["threshold"] == pytest.approx(max(thresholds))
    assert best["count"] == pytest.approx(max(value(Cut("count", one)) for one in range(1, 10)))


def test_nothing_ranked_gives_cuts_of_no_value() -> None:
    from benchmarks.peers.cuts import choose
    from scipy.sparse import csr_matrix

    gold = csr_matrix(np.ones((2, 3)))
    chosen = choose(gold, Ranking.from_lists([[], []]), np.array([1, 1]))
    assert {cut.score for cut in chosen} == {0.0}


def test_the_cut_of_a_system_that_has_seen_half_of_dev_is_chosen_on_the_other(
    tmp_path: Path,
) -> None:
    from benchmarks.peers.cuts import Cut
    from benchmarks.peers.data_folder import DataFolder
    from benchmarks.peers.label_sets import LabelSets
    from benchmarks.peers.scores import Scorer

    random, records, labels = np.random.default_rng(0), 40, 9
    gold = [sorted(random.permutation(labels)[:3].tolist()) for _ in range(records)]
    ranked = [random.permutation(labels)[:6].tolist() for _ in range(records)]
    # What it has seen it knows: all right labels have the highest score.
    ranked[::2] = [[*one, *(label for label in range(6) if label not in one)] for one in gold[::2]]
    scores = [np.sort(random.random(len(one)) / 2)[::-1].tolist() for one in ranked]
    scores[::2] = [[1.0] * 3 + [0.0] * (len(one) - 3) for one in ranked[::2]]
    rankings = LabelSets.from_lists(ranked, scores)
    evaluation = Evaluation(LabelSets.from_lists(gold).matrix(labels), rankings.ranking())

    scorer = Scorer.__new__(Scorer)
    scorer._data = DataFolder(tmp_path)
    np.save(tmp_path / "counts-dev.npy", np.full(records, 3))
    scorer.evaluation = lambda part, ranking: evaluation  # type: ignore[method-assign]
    unseen = np.arange(1, records, 2)
    on_all, on_others = scorer.chosen(rankings), scorer.chosen(rankings, unseen)
    mif, counts = parse_measure("MiF"), np.full(records, 3)

    def value(cut: Cut) -> float:
        cut_lists = Evaluation(evaluation.gold, cut.of(evaluation.predicted, counts))
        return mif.value(cut_lists.taken(unseen))

    assert on_all[0].score > on_others[0].score
    assert on_others[0].score == pytest.approx(value(on_others[0]))
    assert on_others[0].score >= max(value(cut) for cut in on_all)


def test_throughput_is_of_what_two_runs_differ_in_and_of_what_succeeded_in_every_round() -> None:
    from benchmarks.peers.throughput import of_rounds

    def cost(seconds: float) -> dict[str, float]:
        return {"seconds": 9.0, "cpu_seconds": seconds, "peak_megabytes": 5.0}

    rounds = [
        {"a/text/many": cost(5.0), "a/text/few": cost(1.0), "b/text/many": {"failed": "no"}},
        {"a/text/many": cost(4.0), "a/text/few": cost(1.5), "b/text/many": cost(1.0)},
    ]
    measured = of_rounds(rounds, {"many": 40, "few": 10})
    assert list(measured) == ["a"]
    assert measured["a"]["text"].records_per_cpu_second == pytest.approx(30 / (4.0 - 1.0))
    # A run that was interrupted in its first round.
    assert of_rounds([*rounds, {}], {"many": 40, "few": 10}) == {}


def test_ml_knn_is_the_formula_of_its_paper() -> None:
    from benchmarks.peers.classic import fit_ml_knn, ml_knn_scores
    from scipy.sparse import csr_matrix

    random = np.random.default_rng(0)
    dense = random.random((20, 8)).astype(np.float32)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    labels = (random.random((20, 4)) < 0.4).astype(np.float32)
    k, smoothing = 3, 1.0
    arrays = fit_ml_knn(csr_matrix(dense), csr_matrix(labels), k, smoothing)
    queries = random.random((5, 8)).astype(np.float32)
    found = ml_knn_scores(arrays, csr_matrix(queries), k)

    similar = dense @ dense.T
    np.fill_diagonal(similar, -1)
    around = labels[np.argsort(-similar, axis=1)[:, :k]].sum(1)
    near = labels[np.argsort(-(queries @ dense.T), axis=1)[:, :k]].sum(1)
    for label in range(4):
        has = labels[:, label] > 0
        prior = (smoothing + has.sum()) / (2 * smoothing + 20)
        for query in range(5):
            same = around[:, label] == near[query, label]
            likely, unlikely = (
                (smoothing + (same & group).sum()) / (smoothing * (k + 1) + group.sum())
                for group in (has, ~has)
            )
            expected = prior * likely / (prior * likely + (1 - prior) * unlikely)
            assert found[query, label] == pytest.approx(expected, rel=1e-5)


def test_label_sets_are_read_as_written(tmp_path: Path) -> None:
    from benchmarks.peers.label_sets import LabelSets

    sets = LabelSets.from_lists([[2, 0], [], [1]], [[0.5, 0.25], [], [1.0]])
    sets.save(tmp_path / "sets.npz")
    loaded = LabelSets.load(tmp_path / "sets.npz")
    assert loaded.matrix(3).toarray().tolist() == [[0.25, 0, 0.5], [0, 0, 0], [0, 1.0, 0]]
    assert loaded.renumbered(np.array([5, 6, 7])).columns.tolist() == [7, 5, 6]


def test_parts_of_tibkat_follow_the_rule_of_the_data() -> None:
    from benchmarks.peers.datasets import md5_part

    parts = [md5_part(number) for number in range(6980)]
    assert [parts.count(one) for one in ("train", "dev", "test")] == [5526, 722, 732]
