from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import labelkin.evaluate
from labelkin.evaluate import DEFAULT_MEASURES, Evaluation, evaluate, parse_measure
from labelkin.scoring.ranking import Ranking


def test_values_come_in_the_order_asked(random_evaluation: Callable[..., Evaluation]) -> None:
    made = random_evaluation()
    names = ["P@5", "MiF", "Acc"]
    values = evaluate(made, [parse_measure(name) for name in names])
    assert list(values) == names
    assert values["MiF"] == parse_measure("MiF").value(made)
    assert list(evaluate(made)) == [measure.name for measure in DEFAULT_MEASURES]


def test_a_large_evaluation_stays_sparse_and_fast() -> None:
    rng = np.random.default_rng(0)
    documents, labels = 3546, 30_000
    gold = [rng.choice(labels, 13, replace=False).tolist() for _ in range(documents)]
    ranked = [rng.choice(labels, 50, replace=False).tolist() for _ in range(documents)]
    matrix = Ranking.from_lists(gold).matrix(labels)
    longer = Ranking.from_lists(ranked)
    cut = longer.kept(longer.ranks < 12)
    frequencies = rng.integers(0, 5000, labels)
    psp = [parse_measure("PSP@5"), parse_measure("PSnDCG@5"), parse_measure("coverage@5")]
    start = time.perf_counter()
    values = evaluate(
        Evaluation(matrix, cut, longer, frequencies, 100_000), [*DEFAULT_MEASURES, *psp]
    )
    assert time.perf_counter() - start < 1
    assert values["predicted"] == 12


def test_public_names_are_sorted_and_exist() -> None:
    names = labelkin.evaluate.__all__
    upper_first = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert names == upper_first
    assert all(hasattr(labelkin.evaluate, name) for name in names)
