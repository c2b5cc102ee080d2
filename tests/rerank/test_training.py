from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_documents
from labelkin.exceptions import TrainingError
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.rerank.features import remaining
from labelkin.rerank.fitting import best_threshold
from labelkin.rerank.labelled_candidates import LabelledCandidates, with_replacements
from labelkin.rerank.model import RerankModel
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.training import RerankTrainer
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.settings import RERANK_DEPTH

from .rerank_data import QUICK, made

SMALL = replace(QUICK, documents=25, rounds=3)


def trainer(indexer: Indexer, given: Sequence[Document] = ()) -> RerankTrainer:
    views = indexer.runtime.views()
    held_out = SMALL.held_out(views.snapshot, len(given))
    return RerankTrainer(views, indexer.runtime.models, indexer.search(), SMALL, held_out)


def test_remaining_closes_up_ranks():
    rows = np.array([[4, 2, 7, NO_NEIGHBOUR], [2, 9, 0, 1]])
    scores = np.array([[9, 8, 7, 0], [6, 5, 4, 3]], dtype=np.float32)
    found = remaining(
        Neighbours(("a", "b"), rows, scores, np.array([9, 9], dtype=np.float32)),
        np.isin(np.arange(8), [2]),
    )
    assert found.rows.tolist() == [
        [4, 7, NO_NEIGHBOUR, NO_NEIGHBOUR],
        [0, 1, NO_NEIGHBOUR, NO_NEIGHBOUR],
    ]
    assert found.scores.tolist() == [[9, 7, 0, 0], [4, 3, 0, 0]]


def test_remaining_are_no_more_than_vote():
    rows = np.arange(RERANK_DEPTH + 9)[None]
    near = Neighbours(("a",), rows, np.ones(rows.shape, dtype=np.float32), np.ones(1, np.float32))
    found = remaining(near, np.arange(RERANK_DEPTH + 9) < 5)
    assert found.rows.tolist() == [[*range(5, RERANK_DEPTH + 5)]]


def test_most_headings_are_among_the_candidates(indexer):
    training = indexer.runtime.models.get(RerankModel).info.training
    assert training["held_out"] == 2 * (500 // 7)
    assert training["folds"] == 2
    assert 0.85 < training["candidate_recall"] < 1


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with made(tmp_path_factory.mktemp("small") / "c", demo_documents(180, 0)) as indexer:
        yield indexer


def test_the_same_twice(small):
    one, other = (trainer(small).train() for _ in range(2))
    assert one.parts.ranker.text == other.parts.ranker.text
    assert one.info.calibration == other.info.calibration
    for name in ("together", "describing", "speaking"):
        mine, theirs = (getattr(t.parts.knowledge.statistics, name) for t in (one, other))
        assert mine.data.tobytes() == theirs.data.tobytes()
        assert mine.indices.tobytes() == theirs.indices.tobytes()


def test_a_few_given_documents_do_not_calibrate(small):
    given = list(demo_documents(203, 0))[200:]
    found = trainer(small, given).train(given)
    assert found.info.training["given"] == 3
    assert found.info.calibration.documents == 5


def test_given_documents_with_replaced_headings(small):
    old = next(c for c in small.vocabulary if c.deprecated and c.replaced_by)
    current = small.vocabulary.concept(old.replaced_by[0])
    texts = list(demo_documents(220, 0))[200:]
    given = [
        replace(d, title=f"{current.name()}: {d.title}", labels=(label.id,))
        for d in texts
        for label in (old, current)
    ]
    held_out = trainer(small, given).train(given).held_out
    assert held_out.gold.tolist() == [1] * 8
    assert held_out.right.sum() == 8


@pytest.mark.parametrize("documents", [0, 100])
def test_too_few_documents(tmp_path, documents):
    with made(tmp_path / "c", demo_documents(documents, 0)) as indexer:
        with pytest.raises(TrainingError) as caught:
            indexer.train_reranker(settings=SMALL)
        assert "\n" not in str(caught.value)
        if documents == 0:
            with pytest.raises(TrainingError, match="no document"):
                indexer.train_reranker(list(demo_documents(30, 0)), settings=SMALL)


def test_texts_that_say_nothing(tmp_path):
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(Document(str(n), "", "", labels=(f"L{n % 3}",)) for n in range(150))
        with pytest.raises(TrainingError) as caught:
            indexer.train_reranker(settings=SMALL)
        assert "\n" not in str(caught.value)


def labelled(documents: int, seed: int) -> LabelledCandidates:
    random = np.random.default_rng(seed)
    keys = np.flatnonzero(random.random(documents * 5) < 0.6)
    return LabelledCandidates(
        Pairs(keys, documents, 5),
        random.random((len(keys), 2)).astype(np.float32),
        random.random(len(keys)) < 0.5,
        random.integers(0, 4, documents),
    )


def test_candidates_are_joined_and_selected_by_document():
    parts = [labelled(3, 0), labelled(1, 1), labelled(4, 2)]
    whole = LabelledCandidates.joined(parts)
    assert whole.pairs.count == 8
    for first, part in zip((0, 3, 4), parts, strict=True):
        numbers = np.arange(8)
        again = whole.of((numbers >= first) & (numbers < first + part.pairs.count))
        assert (again.pairs.count, again.pairs.width) == (part.pairs.count, 5)
        for name in ("features", "right", "gold"):
            np.testing.assert_array_equal(getattr(again, name), getattr(part, name))
        assert again.pairs.keys.tolist() == part.pairs.keys.tolist()
    assert len(whole.of(np.zeros(8, dtype=np.bool_)).pairs) == 0


def test_a_sample_taken_in_batches_is_that_of_all():
    parts = [labelled(40, seed) for seed in range(3)]
    at_once = LabelledCandidates.joined(parts).thinned(np.random.default_rng(7))
    random = np.random.default_rng(7)
    whole = np.arange(40) % 5 == 0
    in_batches = LabelledCandidates.joined([part.thinned(random, whole) for part in parts])
    sample = in_batches.sampled()
    for name in ("features", "right", "gold", "weights"):
        np.testing.assert_array_equal(getattr(sample, name), getattr(at_once, name))
    assert sample.pairs.keys.tolist() == at_once.pairs.keys.tolist()
    assert len(sample.pairs) < sum(len(part.pairs) for part in parts)
    assert set(at_once.weights[at_once.right].tolist()) == {1.0}
    assert at_once.weights[~at_once.right].min() > 1
    # All candidates of documents that are whole are there, and only of these.
    is_whole = np.tile(whole, 3)
    everything = LabelledCandidates.joined(parts)
    for kept, has_all in ((is_whole, True), (~is_whole, False)):
        mine, all_mine = in_batches.of(kept), everything.of(kept)
        assert (mine.pairs.keys.tolist() == all_mine.pairs.keys.tolist()) == has_all
        assert (mine.weights == 0).any() == has_all


def test_replaced_headings_count_once_and_others_stay(vocabulary):
    from scipy.sparse import csr_matrix

    # V3 (column 2) replaced V5 (column 4); column 5 is no concept of the vocabulary.
    gold = csr_matrix([[1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1]], dtype=np.float32)
    replaced = with_replacements(gold, LabelPolicy(vocabulary))
    assert replaced.toarray().tolist() == [[1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 0, 1]]


def test_best_threshold_lets_equal_scores_pass_together():
    candidates = LabelledCandidates(
        Pairs(np.arange(4), 1, 4),
        np.zeros((4, 1), dtype=np.float32),
        np.array([True, False, False, True]),
        np.array([2]),
    )
    value, threshold = best_threshold(candidates, np.array([0.5, 0.5, 0.5, 0.2], dtype=np.float32))
    assert (value, threshold) == (pytest.approx(4 / 6), 0.2)
    _, threshold = best_threshold(candidates, np.array([0.9, 0.1, 0.1, 0.8767], dtype=np.float32))
    assert threshold == 0.876
