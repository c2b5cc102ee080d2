from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from labelkin.demo import demo_documents
from labelkin.evaluate import parse_measure
from labelkin.evaluate.sweep import _WEIGHT_STEPS, _weights
from labelkin.exceptions import ConfigError
from labelkin.indexer import Indexer
from labelkin.neighbours import Neighbours
from labelkin.neighbours.fusion import fuse


def found(rows: Sequence[int], scores: Sequence[float]) -> Neighbours:
    return Neighbours(
        ("q",),
        np.array([rows], dtype=np.int64),
        np.array([scores], dtype=np.float32),
        np.ones(1, dtype=np.float32),
    )


ONE = found([7, 3, 5, -1], [0.9, 0.8, 0.3, 0])
TWO = found([3, 9, 7, 2], [0.6, 0.5, 0.4, 0.2])


def test_reciprocal_ranks() -> None:
    fused = fuse([ONE, TWO], 4)
    both = {3: 1 / 62 + 1 / 61, 7: 1 / 61 + 1 / 63, 9: 1 / 62, 5: 1 / 63}
    assert fused.rows.tolist() == [list(both)]
    assert fused.distances()[0] == pytest.approx([1 - s * 61 / 2 for s in both.values()])
    assert fuse([ONE, TWO], 3, [1, 0]).rows[0].tolist() == [7, 3, 5]


def test_a_weight_of_0_adds_nobody() -> None:
    for method in ("rank", "distance"):
        fused = fuse([ONE, TWO], 4, [1, 0], method)
        assert fused.rows.tolist() == [[7, 3, 5, -1]]
        assert fuse([TWO, ONE], 4, [0, 2], method).rows.tolist() == fused.rows.tolist()


@pytest.mark.parametrize("parts", [2, 3, 4, 5])
def test_equal_weights_are_tried_first(parts: int) -> None:
    first = _weights(parts, _WEIGHT_STEPS.get(parts, parts))[0]
    assert first == (round(1 / parts, 4),) * parts


def test_weighted_distances() -> None:
    fused = fuse([ONE, TWO], 3, [2, 1], "distance")
    assert fused.rows.tolist() == [[3, 7, 9]]
    assert fused.distances()[0] == pytest.approx([1 / 9, 1 / 6, 3 / 4], abs=1e-6)
    alone = fuse([found([4, -1], [0.2, 0]), found([-1, -1], [0, 0])], 2, [1, 1], "distance")
    assert alone.rows.tolist() == [[4, -1]]
    assert alone.distances()[0].tolist() == [0.5, 1]


def test_ties_go_by_row_and_weights_must_fit() -> None:
    assert fuse([found([4, 1], [1, 1]), found([1, 4], [1, 1])], 2).rows.tolist() == [[1, 4]]
    with pytest.raises(ConfigError, match="3 fusion weights for 2 representations"):
        fuse([ONE, TWO], 2, [1, 1, 1])


def test_a_search_by_several_is_the_fusion_of_searches(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    documents = list(demo_documents(130))
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(documents[:100])
        parts = [
            indexer.neighbour_arrays(documents[100:], 100, representation=name)
            for name in ("stems", "lsa")
        ]
        fused = indexer.neighbour_arrays(documents[100:], 10, representation="stems, lsa")
        assert np.array_equal(fused.rows, fuse(parts, 10).rows)
        assert fused.fingerprint == indexer.search("stems, lsa").fingerprint()
        trials = indexer.tune(documents[100:], parse_measure("MiF"), representation="stems,lsa")
        best = trials[0]
        assert best.fusion is not None
        assert sum(best.fusion.weights) == pytest.approx(1)
        untuned = indexer.evaluate(documents[100:], representation="stems,lsa")
        assert best.value >= parse_measure("MiF").value(untuned)
