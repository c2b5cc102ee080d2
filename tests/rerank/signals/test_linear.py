from __future__ import annotations

import io
import signal

import numpy as np
import pytest
from scipy.sparse import csr_matrix  # noqa: TID253

from labelkin.rerank.signals.linear import LinearScorer, _mapped, fit_linear

WIDTH = 9


def separable(documents: int = 120, seed: int = 0) -> tuple[csr_matrix, csr_matrix, np.ndarray]:
    """Each of six headings has a word of its own among words that mean nothing."""
    random = np.random.default_rng(seed)
    labels = (random.random((documents, 6)) < 0.25).astype(np.float32)
    noise = random.random((documents, 30)) * (random.random((documents, 30)) < 0.2)
    weighted = np.hstack((labels, noise)).astype(np.float32)
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    near = random.integers(-1, documents, (documents, 5))
    wide = np.zeros((documents, WIDTH), dtype=np.float32)
    wide[:, [0, 1, 3, 4, 6, 7]] = labels
    return csr_matrix(weighted), csr_matrix(wide), near


def fitted(**changes) -> LinearScorer:
    return fit_linear(*separable(), **{"cost": 10.0, "seed": 0, "processes": 1, **changes})


def test_separable_headings_are_told_apart():
    scorer = fitted()
    assert scorer.columns.tolist() == [0, 1, 3, 4, 6, 7]
    weighted, labels, _ = separable(seed=1)
    margins = scorer.margins(weighted, WIDTH)
    assert margins.shape == labels.shape
    given, lacking = labels.toarray() > 0, labels.toarray() == 0
    lacking[:, [2, 5, 8]] = False
    found = margins.toarray()
    assert np.mean(found[given] > 0) > 0.97
    assert np.mean(found[lacking] < 0) > 0.97


def test_the_same_with_any_number_of_processes(monkeypatch):
    monkeypatch.setattr("labelkin.rerank.signals.linear._WORTH_PROCESSES", 0)
    monkeypatch.setattr("labelkin.rerank.signals.linear._HEADINGS_A_TASK", 7)
    random = np.random.default_rng(0)
    weighted = csr_matrix(random.random((300, 80)) * (random.random((300, 80)) < 0.2))
    labels = csr_matrix((random.random((300, 60)) < 0.05).astype(np.float32))
    near = random.integers(-1, 300, (300, 5))
    one, *others = (
        fit_linear(weighted, labels, near, cost=0.5, seed=3, processes=processes)
        for processes in (1, 2, 3)
    )
    for other in others:
        assert one.arrays().keys() == other.arrays().keys()
        for name, array in other.arrays().items():
            np.testing.assert_array_equal(one.arrays()[name], array, err_msg=name)
        np.testing.assert_array_equal(one.shifts, other.shifts)


def test_processes_leave_an_interrupt_to_the_one_that_started_them():
    handlers = list(_mapped(lambda _: signal.getsignal(signal.SIGINT), [np.arange(1)] * 4, 2))
    assert handlers == [signal.SIG_IGN] * 4
    assert signal.getsignal(signal.SIGINT) != signal.SIG_IGN


def test_texts_without_terms_have_no_classifiers():
    _, labels, near = separable()
    nothing = csr_matrix((labels.shape[0], 0), dtype=np.float32)
    scorer = fit_linear(nothing, labels, near, cost=1.0, seed=0, processes=1)
    assert len(scorer.columns) == 0
    assert scorer.margins(nothing, WIDTH).nnz == 0


def test_too_few_rounds_are_no_matter_for_users():
    random = np.random.default_rng(0)
    weighted = csr_matrix(random.random((300, 80)))
    labels = csr_matrix((random.random((300, 3)) < 0.3).astype(np.float32))
    near = np.full((300, 1), -1)
    # Warnings are errors here.
    assert len(fit_linear(weighted, labels, near, cost=50.0, seed=0, processes=1).columns) == 3


def test_some_documents_at_a_time_give_the_same(monkeypatch):
    scorer, (weighted, _, _) = fitted(), separable(seed=1)
    whole = scorer.margins(weighted, WIDTH).toarray()
    monkeypatch.setattr("labelkin.rerank.signals.linear._CHUNK", 7)
    np.testing.assert_allclose(scorer.margins(weighted, WIDTH).toarray(), whole, rtol=1e-6)


def test_only_the_best_headings_are_kept(monkeypatch):
    scorer, (weighted, _, _) = fitted(), separable(seed=1)
    whole = scorer.margins(weighted, WIDTH).toarray()[:, scorer.columns]
    monkeypatch.setattr("labelkin.rerank.signals.linear._KEPT", 2)
    margins = scorer.margins(weighted, WIDTH)
    assert np.diff(margins.indptr).tolist() == [2] * len(whole)
    found = [sorted(margins[n].data.tolist()) for n in range(len(whole))]
    np.testing.assert_allclose(found, np.sort(whole, 1)[:, -2:], rtol=1e-6)


def test_arrays_round_trip():
    scorer, (weighted, _, _) = fitted(), separable(seed=1)
    file = io.BytesIO()
    np.savez(file, **scorer.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        same = LinearScorer.from_arrays(dict(arrays))
    assert same.columns.tolist() == scorer.columns.tolist()
    assert same.weights.shape == scorer.weights.shape
    np.testing.assert_array_equal(
        same.margins(weighted, WIDTH).toarray(), scorer.margins(weighted, WIDTH).toarray()
    )


def test_a_heading_that_all_documents_have():
    weighted, _, near = separable(20)
    scorer = fit_linear(weighted, csr_matrix(np.ones((20, 1))), near, cost=1.0, seed=0, processes=1)
    assert scorer.margins(weighted, 1).toarray().ravel().tolist() == [1.0] * 20


@pytest.mark.parametrize("documents", [0, 3])
def test_no_heading_is_frequent_enough(documents):
    weighted, _, near = separable(20)
    labels = csr_matrix(np.eye(20, dtype=np.float32))
    scorer = fit_linear(weighted, labels, near, cost=1.0, seed=0, processes=1)
    assert len(scorer.columns) == 0
    assert scorer.margins(weighted[:documents], 20).shape == (documents, 20)
    same = LinearScorer.from_arrays(scorer.arrays())
    assert same.margins(weighted[:documents], 20).nnz == 0


def test_progress_ends_at_the_end():
    reported = []
    fitted(progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (6, 6)
